"""The command ``opticoll``, also as ``python -m opticoll``."""

import os
import signal
import sys


def program() -> int:
    """Run the command line; Ctrl-C ends it in one line also while its modules are loaded."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is ignored, as in the background
        signal.signal(signal.SIGINT, _interrupted)  # extension modules turn a KeyboardInterrupt into other errors
    from opticoll.analysis.cli.main import program as command_line

    return command_line()


def _interrupted(*_: object) -> None:
    sys.stderr.write("opticoll: interrupted\n")
    sys.stderr.flush()
    os._exit(130)


if __name__ == "__main__":
    sys.exit(program())
