"""Where a run was made: host, platform, versions, commit."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent


@cache
def environment() -> dict[str, Any]:
    """Describe this process's machine and software, as every record carries it."""
    return {
        "host": socket.gethostname(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "opticoll": opticoll_version(),
        "git_commit": _commit(),
        "cpus": _cpus(),
    }


@cache
def opticoll_version() -> str | None:
    """Version of the installed distribution; of the checkout if none is installed; None if neither tells."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("opticoll")
    except PackageNotFoundError:
        pass
    import tomllib

    try:
        told = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        return None
    return str(told)


def _cpus() -> int | None:
    """Processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _commit() -> str | None:
    """Commit of the checkout, with ``-dirty`` if files differ from it; None outside a checkout."""
    if not (CHECKOUT / ".git").exists():
        return None
    command = ["git", "-C", str(CHECKOUT), "describe", "--always", "--dirty", "--abbrev=40", "--match="]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
