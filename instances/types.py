"""Types of values in files and settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

#: A JSON value, read-only: null, true, false, a number, a string, a list or an object.
if TYPE_CHECKING:
    Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None
else:  # msgspec does not accept a recursive alias; it decodes only JSON
    Json = Any
#: Value of a parameter of a formulation, a method or an instance family; demand data are a string that names
#: them (:class:`opticoll.instances.demands.DemandSpec`).
Setting: TypeAlias = bool | int | float | str
#: Values of parameters by name.
Settings: TypeAlias = Mapping[str, Setting]
