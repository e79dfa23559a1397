"""`python -m venture_lite` is the command `venture`."""

import sys

from venture_lite.cli import main

if __name__ == "__main__":
    sys.exit(main())
