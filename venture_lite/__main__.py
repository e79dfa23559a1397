"""The process `venture`, also as `python -m venture_lite`.

What the command imports takes a while; Ctrl-C ends the process from the first moment on as it does later, with a word
and status 130. So this module imports next to nothing before it listens.
"""

try:
    import os
    import signal
    import sys
except KeyboardInterrupt:
    raise SystemExit(130) from None


def _end(number: int, frame: object) -> None:
    """Nothing has begun that would have to be finished; and an import that is broken off may not say so."""
    os.write(2, b"interrupted\n")
    os._exit(128 + number)


def main() -> int:
    """Run the command with the arguments of the process; returns the exit status."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    from venture_lite.shell import cli

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
