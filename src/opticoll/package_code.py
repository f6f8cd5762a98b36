"""A digest of the package's code, for resume keys, stored records and the workers of a cluster.

Versions do not tell two states of the code apart. What counts is the source, and the tables beside it; neither its
place nor its dates nor its line endings do.
"""

from __future__ import annotations

import os
from functools import cache
from hashlib import sha256
from pathlib import Path

#: What makes the row of a run: the layers that solve it, and those parts of the fourth that state and record it.
#: Plots, reports, claims and the command line do not change a row.
OF_RUNS = ("instances", "formulations", "solvers", "analysis/study", "analysis/store")
#: Endings of the files that count.
SUFFIXES = (".py", ".csv", ".json", ".toml")
ROOT = Path(__file__).parent


@cache
def digest(parts: tuple[str, ...] = OF_RUNS) -> str:
    """SHA-256 of the code in these folders of the package and beside them, read once a process."""
    return digest_of(ROOT, parts)


def whole_digest() -> str:
    """SHA-256 of all code of the package."""
    return digest(("instances", "formulations", "solvers", "analysis"))


def digest_of(root: Path, parts: tuple[str, ...] = OF_RUNS) -> str:
    """As :func:`digest`, of the package in a folder, as its files are now."""
    folders = (next(os.walk(root)), *(folder for part in parts for folder in os.walk(root / part)))
    files = [f"{place}/{name}" for place, _, names in folders for name in names if name.endswith(SUFFIXES)]
    content, start = sha256(), len(f"{root}/")
    for name, file in sorted((file[start:], file) for file in files):
        with open(file, "rb", buffering=0) as opened:  # noqa: PTH123 - a Path of each takes as long as reading it
            data = opened.read()
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        content.update(f"{name}\0{len(data)}\0".encode())
        content.update(data)
    return content.hexdigest()
