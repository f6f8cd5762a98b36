"""Duty cycle of reconfigured circuits, and the traffic of model and data parallelism together.

Source  SiP-ML, section 3.1: "for a topology with reconfiguration latency r, the circuit hold time should be longer
        than, for instance, 10 x r to achieve a 90% duty cycle"
        SiP-ML, section 3.2 ("Putting it all together"): GPU g of group r has number r k + g. Within its group it
        sends the output of its sub-operations; to its counterpart in the next group it sends 2 (l-1)/l of its weights
        (ring all-reduce).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadInput
from opticoll.instances.servers import ServerPool

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.formulations.sipml.placement import Placement

#: Reconfiguration latency [s]: MEMS optical circuit switches (section 3.1), micro-ring resonators (section 3.1, 4.4).
OCS_LATENCY_S, RING_LATENCY_S = 10e-3, 25e-6


def _check(latency_s: float) -> None:
    if not 0 <= latency_s < float("inf"):
        msg = f"duty cycle: the reconfiguration latency must be a number of seconds of at least 0, not {latency_s}"
        raise BadInput(msg)


def duty_cycle(hold_s: float, latency_s: float) -> float:
    """Share of time in which circuits carry data, h / (h + r): dark for r after every hold time h.

    Raises
    ------
    BadInput
        Unless the hold time is positive and the latency not negative, both finite [s].
    """
    _check(latency_s)
    if not 0 < hold_s < float("inf"):
        msg = f"duty cycle: the hold time must be a positive number of seconds, not {hold_s}"
        raise BadInput(msg)
    return hold_s / (hold_s + latency_s)


def least_hold(latency_s: float, duty: float) -> float:
    """Shortest hold time [s] of a duty cycle: r d / (1 - d), 9 r for 90%; the paper's 10 r gives 10/11.

    Raises
    ------
    BadInput
        Unless the latency is finite and not negative and 0 < duty < 1.
    """
    _check(latency_s)
    if not 0 < duty < 1:
        msg = f"duty cycle: a share of the time must lie between 0 and 1, not {duty}"
        raise BadInput(msg)
    return latency_s * duty / (1.0 - duty)


def hybrid_traffic(data: Placement, device: NDArray[np.int64], degree: int) -> ServerPool:
    """The traffic matrix of a step on k l GPUs [bytes], as a pool of servers of this degree.

    Raises
    ------
    BadInput
        If there is only one GPU, or more than a dense traffic matrix takes.
    """
    graph, k, groups = data.graph, data.devices, data.replicas
    if k * groups < 2:
        msg = "hybrid traffic: one GPU sends nothing; take k or replicas of at least 2"
        raise BadInput(msg)
    inner = np.zeros((k, k))
    np.add.at(inner, (device[graph.tail], device[graph.head]), graph.volume)
    np.fill_diagonal(inner, 0.0)
    matrix = np.kron(np.eye(groups), inner)
    if groups > 1:
        held = np.bincount(device, graph.weights, minlength=k) * 2.0 * (groups - 1) / groups
        at = np.arange(k * groups)
        matrix[at, (at + k) % (k * groups)] += np.tile(held, groups)
    return ServerPool(k * groups, degree, matrix, spec=f"hybrid of {graph.spec}")
