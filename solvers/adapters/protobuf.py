"""Options and arrays in protocol buffer messages, for the solvers of OR-Tools (GLOP, PDLP, CP-SAT).

Arrays are appended to repeated fields as bytes in the wire format. Through Python lists, a matrix of five million
nonzeros takes a gigabyte and many seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.solvers.adapters.common import parse_value, rejected_value, unknown_option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from opticoll.instances.readers.untrusted import Json

_LENGTH_DELIMITED = 2


def extend(message: Any, field: str, values: NDArray[Any]) -> None:
    """Append ``values`` to the packed repeated field of ``message`` (double, bool, or integers >= 0).

    Raises
    ------
    TypeError
        If the field has another type.
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
        msg = f"field {field!r} has an unsupported type; doubles, booleans and integers are supported"
        raise TypeError(msg)
    head = np.array([kind.number << 3 | _LENGTH_DELIMITED])
    message.MergeFromString(varints(head) + varints(np.array([len(payload)])) + payload)


def varints(values: NDArray[Any]) -> bytes:
    """Encode integers >= 0 as base-128 varints: seven bits per byte, least significant first, continuation bit set.

    Raises
    ------
    ValueError
        If any is negative.
    """
    if values.size == 0:
        return b""
    if values.min() < 0:
        msg = "varints encode only integers >= 0"
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


def set_options(solver: str, message: Any, options: Mapping[str, object], *, inside: str | None = None) -> None:
    """Set fields of ``message`` by name; a dotted name addresses a nested message.

    Fields of the nested message ``inside`` may also be given without its prefix.

    Raises
    ------
    BadOption
        If a name does not exist or a value is rejected.
    """
    names = _fields(message)
    for name, value in options.items():
        full = f"{inside}.{name}" if inside and f"{inside}.{name}" in names else name
        if full not in names:
            raise unknown_option(solver, name, names)
        *path, last = full.split(".")
        target = message
        for part in path:
            target = getattr(target, part)
        field = target.DESCRIPTOR.fields_by_name[last]
        try:
            setattr(target, last, _value(solver, name, value, field))
        except (TypeError, ValueError, AttributeError) as error:
            raise rejected_value(solver, name, value, str(error)) from error


def effective(message: Any) -> dict[str, Json]:
    """Return the fields that are set, by dotted name."""
    options: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE and hasattr(value, "ListFields"):
            options |= {f"{field.name}.{name}": inner for name, inner in effective(value).items()}
        elif field.type == field.TYPE_ENUM and isinstance(value, int):
            options[field.name] = field.enum_type.values_by_number[value].name
        else:
            options[field.name] = value if isinstance(value, (bool, int, float, str)) else str(value)
    return options


def _fields(message: Any) -> list[str]:
    names = []
    for field in message.DESCRIPTOR.fields:
        if field.type != field.TYPE_MESSAGE:
            names.append(field.name)
        elif hasattr(getattr(message, field.name), "DESCRIPTOR"):
            names += [f"{field.name}.{name}" for name in _fields(getattr(message, field.name))]
    return names


def _value(solver: str, name: str, value: Any, field: Any) -> Any:
    if field.type == field.TYPE_ENUM:
        known = field.enum_type.values_by_name
        if str(value) in known:
            return known[str(value)].number
        if str(value).isdigit() and int(value) in field.enum_type.values_by_number:
            return int(value)
        raise rejected_value(solver, name, value, f"it must be one of {', '.join(known)}")
    if field.type == field.TYPE_BOOL:
        return parse_value(solver, name, value, bool)
    if field.type in (field.TYPE_DOUBLE, field.TYPE_FLOAT):
        return parse_value(solver, name, value, float)
    if field.type == field.TYPE_STRING:
        return str(value)
    return parse_value(solver, name, value, int)
