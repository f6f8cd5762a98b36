"""``python -m opticoll`` is the command ``opticoll``."""

import sys

from opticoll.analysis.cli.main import program

if __name__ == "__main__":
    sys.exit(program())
