"""Arrays in protocol buffer messages: the same bytes as the library writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opticoll.solvers.adapters.or_tools import varints
from opticoll.solvers.process.isolation import call_isolated


def one_by_one(value: int) -> bytes:
    """Encode one integer by the definition of varints."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.one_of(st.integers(0, 300), st.integers(0, 2**63 - 1))))
def test_varints_follow_the_definition(values: list[int]) -> None:
    assert varints(np.array(values, dtype=np.int64)) == b"".join(map(one_by_one, values))


def test_negative_numbers_are_rejected() -> None:
    with pytest.raises(ValueError, match=">= 0"):
        varints(np.array([3, -1]))


def fields(report: Any, **arguments: Any) -> dict[str, Any]:
    """Compare messages built from arrays and from lists; runs in a worker."""
    from ortools.math_opt import model_pb2

    from opticoll.solvers.adapters.or_tools import extend

    by_array, by_list = model_pb2.ModelProto(), model_pb2.ModelProto()
    for model, put in (
        (by_array, extend),
        (by_list, lambda message, field, values: getattr(message, field).extend(values.tolist())),
    ):
        for _ in range(2):  # appended, not replaced
            put(model.variables, "ids", arguments["ids"])
            put(model.variables, "lower_bounds", arguments["bounds"])
            put(model.variables, "integers", arguments["flags"])
            put(model.variables, "upper_bounds", arguments["empty"])
    try:
        extend(by_array.variables, "names", arguments["ids"])
        error_message = ""
    except TypeError as error:
        error_message = str(error)
    same = by_array.SerializeToString(deterministic=True) == by_list.SerializeToString(deterministic=True)
    return {"same": same, "count": len(by_array.variables.ids), "error": error_message}


def test_messages_equal_those_built_from_lists() -> None:
    ids = np.array([0, 1, 127, 128, 16_383, 16_384, 2**31, 2**62])
    bounds = np.array([-np.inf, np.inf, 0.0, -0.0, 0.1, 1e-300, -1e300, 3.0])
    arrays = {"ids": ids, "bounds": bounds, "flags": ids % 2 == 0, "empty": ids[:0]}
    answer = call_isolated(f"{__name__}:fields", arrays)
    assert answer.finished, answer.message
    assert answer.values["same"]
    assert answer.values["count"] == 16
    assert "names" in answer.values["error"]
