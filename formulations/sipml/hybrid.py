r"""Model and data parallel at once: a placement repeated in every group, and what all GPUs then send.

Source  SiP-ML, section 3.2 ("Putting it all together"): GPU g of group r is number r k + g. Within its group it
        sends what its sub-operations pass on; to its counterpart in the next group 2 (l-1)/l of its weights (ring
        all-reduce).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from instances.errors import BadInput
from instances.servers import ServerPool

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from formulations.sipml.placement import Placement


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
