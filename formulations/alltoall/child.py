r"""One child LP of the decomposition: split a source's flow by destination.

Source  all-to-all paper, (10)-(14)
Sets    u in V vertices; a in A arcs; t in R ranks other than the source s
Data    g_a >= 0 the master's flow of source s over arc a, (m,)
Vars    f_at >= 0 flow for destination t over arc a, (m, N-1); F >= 0 (the paper's F_s)

max F  s.t.
    balance[u,t]   (M f)_ut = F [u = t]       u != s        (12), (13)
    capacity[a]    sum_t f_at <= g_a                        (11)

At an optimal master solution F_s = F* for every s. The source is ``--set source=V`` (a rank's number, 0 the first).
The flow g is a solution of ``alltoall.master``, which is solved first and whose run the record names. A child does not
need an LP (method ``flow-decomposition``); it is included because the paper solves it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations import outward
from opticoll.formulations.alltoall import PAPER
from opticoll.formulations.flows import concurrent_flow as model
from opticoll.formulations.model import Bound, Formulation, NotApplicable, Parameter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from opticoll.instances.digraph import Topology

NAME = "alltoall.child"


def prepare(
    instance: object,
    parameters: dict[str, Any] | None = None,
    needed: Mapping[str, NDArray[np.float64]] | None = None,
) -> model.ConcurrentFlow:
    """The data of the model; ``needed`` are the values of a solution of ``alltoall.master``.

    Raises
    ------
    NotApplicable
        If the instance is not a connected topology of at least two ranks, or ``source`` is not one of its ranks.
    """
    topology = model.all_to_all_topology(instance, NAME)
    number = int((parameters or {}).get("source", 0))
    if not 0 <= number < topology.ranks:
        msg = f"{NAME}: source={number} is not a rank of {topology.spec}; ranks are 0..{topology.ranks - 1}"
        raise NotApplicable(msg)
    # Without a master solution (sizes, refusals) the arcs keep their own capacities.
    capacity = topology.capacity if needed is None else np.asarray(needed["g"], dtype=float)[:, number]
    return child_of(topology, number, np.maximum(capacity, 0.0))


def child_of(topology: Topology, number: int, capacity: NDArray[np.float64]) -> model.ConcurrentFlow:
    """The child LP of rank ``number`` under the master's flow ``capacity``, shape ``(m,)``."""
    source = topology.terminals[number]
    targets = np.delete(topology.terminals, number)
    return model.by_commodity(topology, np.full(targets.size, source), targets, capacity=capacity)


def bounds(data: model.ConcurrentFlow) -> list[Bound]:
    """Hop distances under g, and the inflow of g into each destination."""
    targets = np.argmax(data.demand, axis=0)
    inflow = np.bincount(data.topology.head, data.capacity, data.topology.n)[targets]
    hop = model.length_bound(data, np.ones(data.topology.arcs))
    return [
        Bound("distance", hop, "Theorem 1 under the capacities g", "alltoall"),
        Bound(
            "inflow",
            float(outward.up(inflow.min(), int(data.topology.in_degree.max()))),
            "what g brings to the destination that gets least",
            "alltoall",
        ),
    ]


FORMULATION = Formulation(
    name=NAME,
    paper=PAPER,
    where="(10)-(14)",
    title="Child LP: one source's flow split by destination",
    sense="max",
    problem="LP",
    parameters=(Parameter("source", int, default=0, help="number of the rank whose flow is split"),),
    prepare=prepare,
    build={"cvxpy": model.build_cvxpy, "pyomo": model.build_pyomo, "matrix": model.build_matrix},
    residuals=model.residuals,
    objective=model.objective,
    bounds=bounds,
    arrays=model.arrays,
    certify=model.certify,
    dual_arrays=model.dual_arrays,
    repair=model.repair,
    metrics=model.metrics,
    estimate=model.estimate,
    needs="alltoall.master",
    concurrent="F",
    size="(N-1) m + 1 variables",
)
