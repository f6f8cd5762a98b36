"""What a benchmark table is, and how a command is timed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """A named table of timings: its heading, and the function that measures its rows (which share their keys)."""

    name: str
    title: str
    measure: Callable[[], list[Row]]


def timed_command(*arguments: str) -> tuple[float, str]:
    """Wall seconds and standard output of one ``opticoll`` command, started as a user starts it."""
    program = Path(sys.executable).with_name("opticoll")
    start = time.perf_counter()
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=True)
    return time.perf_counter() - start, done.stdout
