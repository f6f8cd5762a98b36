"""Base class of instances: size, spec, parameters, and a hash of the contents."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np


class Instance(ABC):
    """A frozen value for which a formulation is solved.

    Attributes
    ----------
    n
        Number of vertices or servers.
    spec
        The one-line spec that regenerates the instance.
    parameters
        Arguments of the family and the modifiers, including defaults and seeds.

    Two instances are equal if they have the same class and the same hash.
    """

    n: int
    spec: str
    parameters: tuple[tuple[str, Any], ...]

    @property
    @abstractmethod
    def hash(self) -> str:
        """SHA-256 of the contents in hexadecimal digits; spec and labels are not included."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Instance) and type(self) is type(other) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.spec!r}, n={self.n}, hash={self.hash[:12]})"

    def __setstate__(self, state: dict[str, Any]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):  # arrays are writable after unpickling
                value.setflags(write=False)
        self.__dict__.update(state)
