"""Options of solvers whose parameters are protocol buffer messages (GLOP, PDLP, CP-SAT)."""

from __future__ import annotations

from typing import Any

from solvers.adapters.options import refused, typed, unknown


def set_options(solver: str, message: Any, options: dict[str, Any], *, inside: str | None = None) -> None:
    """Set fields of ``message`` by name; dots reach into nested messages.

    Fields of the message called ``inside`` may also be named without it.

    Raises
    ------
    BadOption
        If a name does not exist or a value is refused.
    """
    names = _fields(message)
    for name, value in options.items():
        full = f"{inside}.{name}" if inside and f"{inside}.{name}" in names else name
        if full not in names:
            raise unknown(solver, name, names)
        *path, last = full.split(".")
        target = message
        for part in path:
            target = getattr(target, part)
        field = target.DESCRIPTOR.fields_by_name[last]
        try:
            setattr(target, last, _value(solver, name, value, field))
        except (TypeError, ValueError, AttributeError) as error:
            raise refused(solver, name, value, str(error)) from error


def effective(message: Any) -> dict[str, Any]:
    """List the fields that are set, by dotted name."""
    found: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE and hasattr(value, "ListFields"):
            found |= {f"{field.name}.{name}": inner for name, inner in effective(value).items()}
        elif field.type == field.TYPE_ENUM and isinstance(value, int):
            found[field.name] = field.enum_type.values_by_number[value].name
        else:
            found[field.name] = value if isinstance(value, (bool, int, float, str)) else str(value)
    return found


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
        raise refused(solver, name, value, f"it wants one of {', '.join(known)}")
    if field.type == field.TYPE_BOOL:
        return typed(solver, name, value, bool)
    if field.type in (field.TYPE_DOUBLE, field.TYPE_FLOAT):
        return typed(solver, name, value, float)
    if field.type == field.TYPE_STRING:
        return str(value)
    return typed(solver, name, value, int)
