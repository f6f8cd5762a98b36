"""What every instance has in common: a size, a spec, parameters, and a hash of what is solved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np


class Instance(ABC):
    """A frozen value that a formulation solves.

    Attributes
    ----------
    n
        Number of vertices or servers.
    spec
        The one-line spec that regenerates the instance.
    parameters
        What the family and the modifiers were called with, defaults and seeds included.

    Two instances are equal when they are of one class and have one hash.
    """

    n: int
    spec: str
    parameters: tuple[tuple[str, Any], ...]

    @property
    @abstractmethod
    def hash(self) -> str:
        """SHA-256 of what is solved, in hexadecimal digits; neither spec nor labels enter it."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Instance) and type(self) is type(other) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.spec!r}, n={self.n}, hash={self.hash[:12]})"

    def __setstate__(self, state: dict[str, Any]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):  # unpickled arrays come back writable
                value.setflags(write=False)
        self.__dict__.update(state)
