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

#: A time in seconds.
Seconds: TypeAlias = float
#: Memory in GiB, 2^30 bytes.
Gibibytes: TypeAlias = float
#: An amount of data: bytes, or a string with its unit, such as ``"64MB"`` (:mod:`opticoll.instances.quantities`).
DataSize: TypeAlias = str | float
#: A rate with its unit, such as ``"100Gb/s"`` (:mod:`opticoll.instances.quantities`).
Rate: TypeAlias = str
#: A delay: a number [shards / link bandwidth], or a string in seconds, such as ``"3.7us"``
#: (:mod:`opticoll.instances.quantities`).
Delay: TypeAlias = str | float
