"""Files with one character changed: never a traceback, and what is read is read again by its spec."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opticoll.errors import BadInput
from opticoll.instances import parse

_NEW = ["", " ", "0", "9", "x", '"', "<", "(", "]", "{", "\n", "\x00", "-", ".", "#", "*", "\\"]


def changed_files(cases: Sequence[tuple[str, str, str]], examples: int = 40) -> Callable[..., None]:
    """A test that changes files, given as text, suffix and options, and reads them."""

    @settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test(tmp_path: Path, data: st.DataObject) -> None:
        read_changed(tmp_path, data, cases)

    return test


def read_changed(folder: Path, data: st.DataObject, cases: Sequence[tuple[str, str, str]]) -> None:
    """Change a character of a text with its suffix and options, and read the file."""
    text, suffix, options = data.draw(st.sampled_from(cases))
    at = data.draw(st.integers(0, len(text) - 1))
    new = data.draw(st.sampled_from([*_NEW, text[at] * 2]))
    path = folder / f"net.{suffix}"
    path.write_text(text[:at] + new + text[at + 1 :], encoding="utf-8")
    reason = ""
    try:
        topology = parse(f"file:{path}{options}")
    except BadInput as error:
        reason = str(error)
    assert "\n" not in reason
    if reason:
        return
    assert parse(topology.spec) == topology
    assert np.isfinite(topology.capacity).all()
    assert topology.num_ranks >= 1
