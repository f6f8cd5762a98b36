"""The command ``opticoll``, also as ``python -m opticoll``."""

import sys


def program() -> int:
    """Run the command line; Ctrl-C ends it in one line also while its modules are loaded."""
    try:
        from opticoll.analysis.cli.main import program as command_line

        return command_line()
    except KeyboardInterrupt:
        sys.stderr.write("opticoll: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(program())
