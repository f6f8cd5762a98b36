"""Arrays in protocol buffer messages: bytes as the library itself writes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opticoll.solvers.adapters.protobuf import varints
from opticoll.solvers.isolation import call_isolated


def one_by_one(value: int) -> bytes:
    """The definition."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.integers(0, 300), st.integers(0, 2**63 - 1))))
def test_varints_are_those_of_the_definition(values: list[int]) -> None:
    assert varints(np.array(values, dtype=np.int64)) == b"".join(map(one_by_one, values))


def test_negative_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match=">= 0"):
        varints(np.array([3, -1]))


def fields(arguments: Any, arrays: dict[str, Any], report: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """In a worker: what a message holds after arrays were appended, and after lists were."""
    from ortools.math_opt import model_pb2

    from opticoll.solvers.adapters.protobuf import extend

    whole, listed = model_pb2.ModelProto(), model_pb2.ModelProto()
    for model, put in (
        (whole, extend), (listed, lambda message, field, values: getattr(message, field).extend(values.tolist())),
    ):  # fmt: skip
        for _ in range(2):  # appended, not replaced
            put(model.variables, "ids", arrays["ids"])
            put(model.variables, "lower_bounds", arrays["bounds"])
            put(model.variables, "integers", arrays["flags"])
            put(model.variables, "upper_bounds", arrays["empty"])
    try:
        extend(whole.variables, "names", arrays["ids"])
        refused = ""
    except TypeError as error:
        refused = str(error)
    same = whole.SerializeToString(deterministic=True) == listed.SerializeToString(deterministic=True)
    return {"same": same, "count": len(whole.variables.ids), "refused": refused}, {}


def test_messages_are_those_that_lists_make() -> None:
    ids = np.array([0, 1, 127, 128, 16_383, 16_384, 2**31, 2**62])
    bounds = np.array([-np.inf, np.inf, 0.0, -0.0, 0.1, 1e-300, -1e300, 3.0])
    arrays = {"ids": ids, "bounds": bounds, "flags": ids % 2 == 0, "empty": ids[:0]}
    answer = call_isolated(f"{__name__}:fields", {}, arrays)
    assert answer.finished, answer.message
    assert answer.values["same"]
    assert answer.values["count"] == 16
    assert "names" in answer.values["refused"]
