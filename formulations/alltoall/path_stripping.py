"""A single-source flow as weighted paths, by destination."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from formulations.alltoall.single_source import cancel_cycles
from instances.errors import BadInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from instances.topology import Topology


@dataclass(frozen=True)
class WeightedPath:
    """A path (arc numbers, from the source on) and the flow it carries."""

    arcs: list[int]
    amount: float


def strip_paths(
    topology: Topology,
    source: int,
    flow: NDArray[np.float64],
    targets: NDArray[np.int64],
    amount: float | NDArray[np.float64],
) -> list[list[WeightedPath]]:
    """Split a flow that brings ``amount`` (of its own, if there are several) to every target into paths.

    Walks back from each target along the in-arc with most flow left; every walk empties an arc or ends a demand,
    so that there are at most ``m + len(targets)`` paths.

    Parameters
    ----------
    topology, source
        The graph and the vertex all flow comes from.
    flow
        Shape ``(m,)``; net inflow of every target must be at least ``amount``.
    targets
        Distinct vertices other than the source.
    amount
        What every target gets, positive; or for each its own, shape of ``targets``.

    Returns
    -------
    For each target, its paths; their amounts add up to ``amount``.

    Raises
    ------
    BadInput
        If the flow does not bring that much to some target (by more than round-off).
    """
    left = np.maximum(flow, 0.0)
    cancel_cycles(topology, left)
    residual = left.tolist()
    tails = topology.tail.tolist()
    into: list[list[int]] = [[] for _ in range(topology.n)]
    for a in np.flatnonzero(left > 0).tolist():
        into[topology.head[a]].append(a)
    result = []
    for target, wanted in zip(targets.tolist(), np.broadcast_to(amount, targets.shape).tolist(), strict=True):
        paths: list[WeightedPath] = []
        need = wanted
        while need > wanted * 1e-9:
            walk: list[int] = []
            u, width = target, need
            while u != source:
                best = max(into[u], key=residual.__getitem__, default=-1)
                if best < 0 or residual[best] <= 0.0:
                    width = 0.0
                    break
                walk.append(best)
                width = min(width, residual[best])
                u = tails[best]
            if width <= 0.0:
                msg = (
                    f"flow decomposition: the flow of source {source} brings {wanted - need:g} of {wanted:g} "
                    f"to {target}; give a flow that serves every target"
                )
                raise BadInput(msg)
            for a in walk:
                residual[a] -= width
            need -= width
            paths.append(WeightedPath(walk[::-1], width))
        carried = sum(path.amount for path in paths)
        result.append([WeightedPath(path.arcs, path.amount * wanted / carried) for path in paths])
    return result
