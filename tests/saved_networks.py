"""Networks in files of a test, and their arcs by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opticoll.errors import BadFile
from opticoll.instances import parse

if TYPE_CHECKING:
    from pathlib import Path

    from opticoll.instances import Topology


def written(tmp_path: Path, text: str, suffix: str) -> Path:
    """A file with a text, and this suffix."""
    path = tmp_path / f"net.{suffix}"
    path.write_text(text, encoding="utf-8")
    return path


def saved(tmp_path: Path, text: str, suffix: str) -> str:
    """The spec of a text that is saved as a file with this suffix."""
    return f"file:{written(tmp_path, text, suffix)}"


def read(tmp_path: Path, text: str, suffix: str, options: str = "") -> Topology:
    """The network of a text that is saved as a file with this suffix, read with options such as ``,capacity=1``."""
    return parse(saved(tmp_path, text, suffix) + options)


def arcs(topology: Topology) -> list[tuple[str, str, float]]:
    """Tail, head and capacity of every arc, sorted by name."""
    names = topology.labels
    ends = zip(topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist(), strict=True)
    return sorted((names[u], names[v], c) for u, v, c in ends)


def check_refused(tmp_path: Path, text: str, suffix: str, message: str) -> None:
    """Check that a file is refused in one line that contains a message; the suffix may have options behind it."""
    suffix, comma, options = suffix.partition(",")
    with pytest.raises(BadFile, match=message) as refused:
        read(tmp_path, text, suffix, comma + options)
    assert "\n" not in str(refused.value)
    assert f"net.{suffix}" in str(refused.value)
