r"""Maximum concurrent flow grouped by source: the master LP of the decomposition.

Source  all-to-all paper, (6)-(9)
Sets    u in V vertices; a in A arcs; s in S sources (the ranks)
Data    c_a > 0 capacity [link bandwidths], (m,); unit demand of every rank u != s for the shard of s
Vars    g_as >= 0 flow that left source s, over arc a, (m, |S|); F >= 0 concurrent flow

max F  s.t.
    balance[u,s]   inflow_u(g_s) - outflow_u(g_s) >= F  (>= 0 where u is no rank)     u != s        (8)
    capacity[a]    sum_s g_as <= c_a                                                                (7)

Arcs into s are fixed at 0. Same optimum as ``alltoall.link-mcf`` at 1/(N-1) of its variables: m N + 1.
Closed forms: directed n-ring F = 2/(n(n-1)); see :mod:`formulations.alltoall.closed_forms`.
The paper's text solves it at N=1000, d=4 in 40 minutes with MOSEK (figure 6).
"""

from __future__ import annotations

from typing import Any

from formulations.alltoall import PAPER
from formulations.alltoall import concurrent_flow as model
from formulations.alltoall.bounds import bounds
from formulations.base import Formulation
from instances.topology import Topology

NAME = "alltoall.master"


def prepare(instance: object, parameters: dict[str, Any] | None = None) -> model.ConcurrentFlow:
    """The data of the model.

    Raises
    ------
    NotApplicable
        If the instance is no connected topology of at least two ranks.
    """
    return model.by_source(model.all_to_all_topology(instance, NAME))


FORMULATION = Formulation(
    name=NAME,
    paper=PAPER,
    where="(6)-(9)",
    title="All-to-all as concurrent flow grouped by source",
    sense="max",
    problem="LP",
    prepare=prepare,
    build={"cvxpy": model.build_cvxpy, "pyomo": model.build_pyomo, "matrix": model.build_matrix},
    residuals=model.residuals,
    objective=model.objective,
    bounds=bounds,
    certify=model.certify,
    repair=model.repair,
    metrics=model.metrics,
    estimate=model.estimate,
    foresee=lambda instance, _: model.size(instance, instance.ranks) if isinstance(instance, Topology) else None,
    concurrent="F",
    size="N m + 1 variables",
)
