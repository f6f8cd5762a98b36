"""A plug-in of mypy that changes no check: its garbage collector would take a quarter of its time."""

from __future__ import annotations

import gc

from mypy.plugin import Plugin


def plugin(version: str) -> type[Plugin]:
    """Called once mypy has set its own threshold of 200,000 objects; this one takes 1.1 instead of 0.8 GB."""
    gc.set_threshold(5_000_000, 100, 100)
    return Plugin
