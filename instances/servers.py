"""A pool of servers with optical ports and a traffic matrix, not yet wired (TopoOpt, SiP-ML)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from instances.errors import BadInput
from instances.instance import Instance
from instances.spec import check_positive

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

#: More servers than this are refused: the traffic matrix is dense.
MAX_SERVERS = 8192


def check_servers(n: int) -> None:
    """Refuse a pool whose traffic matrix would not fit, before it is allocated.

    Raises
    ------
    BadInput
        Unless ``2 <= n <= MAX_SERVERS``.
    """
    check_positive(n, "n", "servers", least=2)
    if n > MAX_SERVERS:
        msg = f"servers: n={n} is more than the {MAX_SERVERS} a dense traffic matrix takes; ask for fewer"
        raise BadInput(msg)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class ServerPool(Instance):
    """Servers, their optical degree, and the bytes that each sends to each in one iteration.

    Parameters
    ----------
    n
        Number of servers, ``2 <= n <= 8192``.
    degree
        Optical interfaces of each server: circuits out of it, and circuits into it, at one time.
    traffic
        Bytes from server ``i`` (row) to server ``j`` (column), shape ``(n, n)``, zero on the diagonal.
    spec, parameters
        As for every instance.

    Raises
    ------
    BadInput
        For sizes out of range, or traffic that is not square, not finite, negative, or on the diagonal.
    """

    n: int
    degree: int
    traffic: NDArray[np.float64]
    spec: str = "custom"
    parameters: tuple[tuple[str, Any], ...] = ()

    def __init__(
        self,
        n: int,
        degree: int,
        traffic: ArrayLike,
        *,
        spec: str = "custom",
        parameters: dict[str, Any] | tuple[tuple[str, Any], ...] = (),
    ) -> None:
        check_servers(n)
        check_positive(degree, "degree", spec)
        matrix = np.array(traffic, dtype=np.float64)
        if matrix.shape != (n, n):
            shape = "x".join(map(str, matrix.shape)) or "one number"
            msg = f"{spec}: the traffic matrix is {shape}, not {n}x{n}; give one row and one column a server"
            raise BadInput(msg)
        bad = ~(np.isfinite(matrix) & (matrix >= 0))
        if bad.any():
            i, j = (int(k) for k in np.argwhere(bad)[0])
            msg = f"{spec}: traffic from {i} to {j} is {matrix[i, j]} bytes; it must be finite, not negative"
            raise BadInput(msg)
        if np.diagonal(matrix).any():
            i = int(np.flatnonzero(np.diagonal(matrix))[0])
            msg = f"{spec}: server {i} sends {matrix[i, i]} bytes to itself; write 0 on the diagonal"
            raise BadInput(msg)
        matrix += 0.0  # -0.0 becomes 0.0, so that equal traffic has one hash
        matrix.setflags(write=False)
        put = object.__setattr__
        put(self, "n", int(n))
        put(self, "degree", int(degree))
        put(self, "traffic", matrix)
        put(self, "spec", spec)
        put(self, "parameters", tuple(parameters.items()) if isinstance(parameters, dict) else parameters)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of servers, degree and traffic."""
        digest = hashlib.sha256(b"opticoll-servers-1")
        digest.update(np.array([self.n, self.degree], dtype="<i8").tobytes())
        digest.update(np.ascontiguousarray(self.traffic, dtype="<f8").tobytes())
        return digest.hexdigest()
