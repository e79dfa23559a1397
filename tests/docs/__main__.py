"""Run the blocks of documents and write what they print into them: `python -m tests.docs docs/tutorial.md`.

For one who changed a program of the documents, or what it gives. Without a file, every document is brought up to date;
the changes are there to be read before they are committed.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path

from tests.docs.blocks import DOCUMENTS, Runner, blocks


def renewed(text: str) -> str:
    """The document with every output as it is now."""
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.closing(Runner(Path(folder))) as runner,
    ):
        replaced = [(block.output_span, runner.run(block)) for block in blocks(text)]
    for span, shown in reversed(replaced):
        if span is not None and shown is not None:
            text = text[: span[0]] + shown + text[span[1] :]
    return text


def main() -> None:
    for document in [Path(name).resolve() for name in sys.argv[1:]] or DOCUMENTS:
        before = document.read_text(encoding="utf-8")
        after = renewed(before)
        if after != before:
            document.write_text(after, encoding="utf-8")
        print(f"{'renewed ' if after != before else 'the same'}  {document}")


if __name__ == "__main__":
    main()
