"""Whole arrays into repeated fields of protocol buffer messages, as the bytes of their wire format.

Number by number through Python lists, a matrix of five million nonzeros takes a gigabyte and many seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LENGTH_DELIMITED = 2


def extend(message: Any, field: str, values: NDArray[Any]) -> None:
    """Append ``values`` to the packed repeated field of ``message`` (double, bool, or integers >= 0).

    Raises
    ------
    TypeError
        If the field is of another kind.
    """
    kind = message.DESCRIPTOR.fields_by_name[field]
    array = np.ascontiguousarray(values)
    if array.size == 0:
        return
    if kind.type == kind.TYPE_DOUBLE:
        payload = array.astype("<f8", copy=False).tobytes()
    elif kind.type == kind.TYPE_BOOL:
        payload = array.astype(np.uint8).tobytes()
    elif kind.type in (kind.TYPE_INT64, kind.TYPE_INT32, kind.TYPE_UINT64, kind.TYPE_UINT32):
        payload = varints(array)
    else:
        msg = f"field {field!r} holds neither doubles nor truth values nor integers"
        raise TypeError(msg)
    head = np.array([kind.number << 3 | _LENGTH_DELIMITED])
    message.MergeFromString(varints(head) + varints(np.array([len(payload)])) + payload)


def varints(values: NDArray[Any]) -> bytes:
    """Integers >= 0 in base-128 varints: seven bits a byte, least significant first, all but the last byte marked.

    Raises
    ------
    ValueError
        If one is negative.
    """
    if values.size == 0:
        return b""
    if values.min() < 0:
        msg = "varints are made of integers >= 0 here"
        raise ValueError(msg)
    rest = values.astype(np.uint64)
    width = max(1, -(-int(rest.max()).bit_length() // 7))
    digits = np.empty((rest.size, width), dtype=np.uint8)
    used = np.empty((rest.size, width), dtype=bool)
    for place in range(width):
        used[:, place] = rest > 0 if place else True
        digits[:, place] = rest & np.uint64(0x7F)
        rest >>= np.uint64(7)
    digits[:, :-1] |= used[:, 1:].astype(np.uint8) << 7
    return digits[used].tobytes()
