"""Maximum concurrent flow over at most so many paths of every pair.

Source  beyond the paper: ``alltoall.path-mcf`` with the limit of section 6.1, a NIC that stores up to 8 routes per
        destination
Sets    a in A arcs; k = (s,t) in K ordered pairs of distinct ranks; p in P_k paths of k, P = union of all P_k; P' paths
        of the pairs that have more than R
Data    c_a > 0 capacity [link bandwidths], (m,); A arc-path incidence, (m, |P|), 1 where p uses a; B commodity-path
        incidence, (|K|, |P|), 1 where p carries k; D_k > 0 demand of k [shards], (|K|,): 1 or ``--set demand=...``; R
        most paths of a pair (``--set routes_per_pair=...``); w_p least capacity along p [link bandwidths], (|P|,)
Vars    f_p >= 0 flow along path p [link bandwidths], (|P|,); y_p in {0,1} whether it is taken, p in P', (|P|,); F >= 0
        concurrent flow [link bandwidths / shard]

max F  s.t.
    serve[k]       (B f)_k >= F D_k
    capacity[a]    (A f)_a <= c_a      a on some path
    taken[p]       f_p <= w_p y_p      p in P'
    limit[k]       (B y)_k <= R        |P_k| > R

With one path for every pair the largest load is that of ``alltoall.min-congestion`` for kappa = 1; from R = 2 on the
paths of a pair may have different weights. Without the limit the optimum is that of ``alltoall.path-mcf``, whose bounds
hold here. A basic solution of that has a path with flow for every pair and at most one more for every arc, so for an
all-to-all on n nodes of degree d on average at most 1 + d / (n - 1) of every pair; but some pair may have many.

The checker counts the paths with flow beyond round-off and does not read y.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opticoll.formulations.alltoall import few_paths_solution, path_mcf_solution
from opticoll.formulations.alltoall.path_mcf import PathConcurrentFlow
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows import path_bounds, path_flow
from opticoll.formulations.flows.path_flow import PathFlow, named_paths
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel

if TYPE_CHECKING:
    from opticoll.formulations.model import Values


@dataclass(frozen=True, eq=False)
class FewPaths(Formulation):
    """The problem: flows over at most ``routes_per_pair`` paths of every pair."""

    name = "alltoall.few-paths"
    where = "section 6.1"
    example = "ring:5"
    sense = "max"
    problem = "MILP"
    parameters = few_paths_solution.PARAMETERS
    meaning = "concurrent flow F [link bandwidths / shard]; T = 1/F"
    variables: ClassVar = {"f": ("path",), "y": ("path",), "F": ()}
    constraints: ClassVar = {"serve": ("commodity",), "capacity": ("arc",), "taken": ("path",), "limit": ("commodity",)}
    _beside = (few_paths_solution, path_mcf_solution)
    _label_invariant = staticmethod(path_flow.label_invariant)

    bounds = path_bounds.set_bounds  # over all paths of the set
    sets = path_flow.pairs_and_paths
    _derived = path_flow.exact_amounts

    routing: PathFlow
    routes_per_pair: int
    topology = property(path_flow.topology)
    flow = property(path_flow.flow_by_source)

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY: ``B f >= F D``, ``A f <= c``, ``f <= w y``, ``B y <= R``."""
        import cvxpy as cp

        b, paths, c, R = Cvx(self), self.routing.paths, self.topology.capacity, self.routes_per_pair
        A, B, used, count = paths.incidence, paths.membership, paths.used, np.diff(paths.first)
        at, narrow = np.flatnonzero(count[paths.pair] > R), np.minimum.reduceat(c[paths.arcs], paths.start[:-1])
        f, F, y = b.var("f"), b.var("F"), b.var("y", upper=1, integer=True, over=Index.table("path", {"path": at}))
        b.row("serve", B @ f >= F * self.routing.amount)
        b.row("capacity", A[used] @ f <= c[used], over=Index.table("arc", {"arc": used}))
        if at.size:
            many = np.flatnonzero(count > R)
            b.row("taken", f[at] <= cp.multiply(narrow[at], y), over=Index.table("path", {"path": at}))
            b.row("limit", B[many][:, at] @ y <= R, over=Index.table("commodity", {"commodity": many}))
        return b.maximize(F)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``f[s,t,i]``, ``y[s,t,i]`` for the i-th path of (s,t), and the rows of the docstring."""
        b, R = Pyo(self), self.routes_per_pair
        K, P, A = b.sets("commodity", "path", "arc")
        of, over = named_paths(self.routing.paths, K, P, A)
        c, D = b.by_label(self.topology.capacity, "arc"), b.by_label(self.routing.amount, "commodity")
        narrow: dict[Any, float] = {}
        for a, crossing in over.items():
            for p in crossing:
                narrow[p] = min(c[a], narrow.get(p, np.inf))
        many = [k for k in K if len(of[k]) > R]
        f, F, y = b.var("f"), b.var("F"), b.var("y", upper=1, integer=True, over=[p for k in many for p in of[k]])
        b.row("serve", lambda *k: b.sum(f[p] for p in of[k]) >= D[k] * F)
        b.row("capacity", lambda a: b.sum(f[p] for p in over[a]) <= c[a], where=lambda a: a in over)
        b.row("taken", lambda *p: f[p] <= narrow[p] * y[p], over=[p for k in many for p in of[k]])
        b.row("limit", lambda *k: b.sum(y[p] for p in of[k]) <= R, over=many)
        return b.maximize(F)

    def objective(self, values: Values) -> float:
        """The given F; :meth:`residuals` checks that the paths deliver it."""
        return float(np.asarray(values["F"]))

    def residuals(self, values: Values) -> dict[str, float]:
        """Worst violation of every block as in ``alltoall.path-mcf``; ``limit``: paths with flow beyond R."""
        found, paths = PathConcurrentFlow(self.routing).residuals(values), self.routing.paths_of(values)
        if paths is None or not np.isfinite(found["paths"]):
            return {**found, "limit": np.inf}
        most = few_paths_solution.taken(self, paths, values["f"]).max(initial=0)
        return {**found, "limit": float(most) - self.routes_per_pair}


FORMULATION = FewPaths
