"""The standard streams of the command: closed ones, and those that cannot print every character."""

from __future__ import annotations

import os
import sys
from typing import TextIO


def prepare() -> None:
    """Give the process streams that take whatever the commands print.

    A standard stream that is closed becomes the null device: otherwise the next file that is opened would take its
    number, and what is printed. A character that a stream cannot print becomes a question mark.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream: TextIO | None = getattr(sys, name)
        if stream is None:
            mode = "w" if number else "r"
            while (opened := os.open(os.devnull, os.O_RDWR)) < number:
                pass
            setattr(sys, name, open(opened, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
        elif number and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def closed_by_reader() -> int:
    """Print no more, since the reader of standard output has gone; returns the exit status."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 141  # as of a process that SIGPIPE ends


def prints_unicode() -> bool:
    """Whether standard output can print every character."""
    return (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
