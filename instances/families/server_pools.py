"""Server pools: the machines whose topology is still to be chosen, with the traffic that they carry."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from instances.errors import BadSpec
from instances.files import read_matrix
from instances.servers import ServerPool, check_servers
from instances.spec import check_positive, family, nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: TopoOpt, section 2.1: size of one ring-AllReduce transfer with all tables replicated, and without them.
_REPLICATED_BYTES, _HYBRID_BYTES = 44e9, 4e9
#: TopoOpt, appendix D: 8192 samples a server, 512 activations a sample, 8 bytes each (32 MiB).
_ACTIVATION_BYTES = 8192 * 512 * 8
#: TopoOpt, section 2.1: the servers of the four embedding tables, of 16.
_TABLES = (0, 3, 8, 13)


def _ring(n: int, transfer: float) -> NDArray[np.float64]:
    matrix = np.zeros((n, n))
    matrix[np.arange(n), (np.arange(n) + 1) % n] = transfer
    return matrix


def dlrm(n: int) -> NDArray[np.float64]:
    r"""Traffic of the DLRM of TopoOpt's section 2.1 under hybrid parallelism (its figure 1b) [bytes].

    Ring-AllReduce of the replicated part, 4 GB from :math:`i` to :math:`i+1 \bmod n`; and for each of
    the four embedding tables 32 MiB (8192 samples · 512 activations · 8 bytes) from its server to every
    other, and as much back (gradients). The tables stand on servers 0, 3, 8, 13 of 16; with another
    :math:`n` on :math:`\lfloor n \cdot (0, 3, 8, 13) / 16 \rfloor`, two on one server if they coincide.
    """
    matrix = _ring(n, _HYBRID_BYTES)
    for table in _TABLES:
        owner = table * n // 16
        matrix[owner, :] += _ACTIVATION_BYTES
        matrix[:, owner] += _ACTIVATION_BYTES
    np.fill_diagonal(matrix, 0.0)
    return matrix


def dlrm_replicated(n: int) -> NDArray[np.float64]:
    """Traffic of the same DLRM under pure data parallelism (figure 1a): a 44 GB ring [bytes]."""
    return _ring(n, _REPLICATED_BYTES)


#: Named traffic models: number of servers -> bytes, shape (n, n).
TRAFFIC_MODELS: dict[str, Callable[[int], NDArray[np.float64]]] = {
    "dlrm": dlrm,
    "dlrm-replicated": dlrm_replicated,
}


@family(
    "servers",
    example="servers:n=12,degree=4,traffic=dlrm",
    source="TopoOpt (Wang et al., NSDI 2023), sections 2.1 and D; SiP-ML (Khani et al., SIGCOMM 2021)",
)
def servers(n: int, degree: int, traffic: str = "alltoall", seed: int = 0, volume: float = 1e6) -> ServerPool:
    r"""Servers with optical ports and a traffic matrix; their topology is what a formulation chooses.

    Parameters
    ----------
    n
        Number of servers, ``2 <= n <= 8192``.
    degree
        Optical interfaces of each server, at least 1.
    traffic
        ``alltoall``: ``volume`` bytes between every ordered pair. ``random``: independent and uniform on
        :math:`[0, 2\,volume)`, so ``volume`` in the mean. ``file:PATH.csv``: an n×n matrix in bytes,
        comma or space separated, zero on the diagonal. Or a named model: ``dlrm`` (hybrid parallel) and
        ``dlrm-replicated`` (data parallel), see :func:`dlrm`.
    seed
        Seed of ``random``; other traffic does not read it.
    volume
        Bytes of a pair for ``alltoall`` and ``random``; other traffic does not read it.

    Raises
    ------
    BadSpec
        For an unknown name of traffic.
    BadInput
        For sizes out of range, or traffic that is negative, not finite, not square or on the diagonal.
    BadFile
        For a traffic file that cannot be read.
    """
    check_servers(n)
    check_positive(degree, "degree", "servers")
    check_positive(seed, "seed", "servers", least=0)
    if not volume > 0:
        msg = f"servers: volume must be a positive number of bytes, not {volume}"
        raise BadSpec(msg)
    if traffic.startswith("file:"):
        matrix = read_matrix(traffic.removeprefix("file:"), n)
    elif traffic == "alltoall":
        matrix = np.full((n, n), float(volume))
        np.fill_diagonal(matrix, 0.0)
    elif traffic == "random":
        matrix = np.random.default_rng(seed).uniform(0.0, 2.0 * volume, size=(n, n))
        np.fill_diagonal(matrix, 0.0)
    elif traffic in TRAFFIC_MODELS:
        matrix = TRAFFIC_MODELS[traffic](n)
    else:
        known = ["alltoall", "random", "file:PATH.csv", *TRAFFIC_MODELS]
        msg = f"servers: no traffic {traffic!r}; {nearest(traffic, known)}"
        if "known" not in msg:
            msg += f" (known: {', '.join(known)})"
        raise BadSpec(msg)
    return ServerPool(n, degree, matrix, spec="servers")
