"""Maximum concurrent flow over a path set.

Source  all-to-all paper, (21)-(24)
Sets    a in A arcs; k = (s,t) in K ordered pairs of distinct ranks; p in P_k paths of k, P = union of all P_k
Data    c_a > 0 capacity [link bandwidths], (m,); A arc-path incidence, (m, |P|), 1 where p uses a; B commodity-path
        incidence, (|K|, |P|), 1 where p carries k; D_k > 0 demand of k [shards], (|K|,): 1 (the paper's) or ``--set
        demand=...`` (:mod:`opticoll.instances.demands`), whose pairs without demand are not in K
Vars    f_p >= 0 flow along path p [link bandwidths], (|P|,); F >= 0 concurrent flow [link bandwidths / shard]

max F  s.t.
    serve[k]       (B f)_k >= F D_k                        (23)
    capacity[a]    (A f)_a <= c_a      a on some path      (22)

The path set (:mod:`opticoll.formulations.flows.path_sets`) is ``paths`` = disjoint (the paper's tractable choice),
shortest, k, or all. Over all simple paths the optimum is that of ``alltoall.link-mcf``; over fewer it is at most that,
and bound and proof hold *for the path set*. The metrics of a record give the set, its size, and the best analytic
bound on the optimum over all paths.

Certificate for a set: for any lengths l >= 0, F <= sum_a c_a l_a / sum_k D_k min_{p in P_k} l(p). Over all simple
paths the minimum is a shortest path; with ``lmax`` it is a shortest walk of at most lmax arcs (removing its cycles
gives a path).

Solutions over sets that are too large to list (method ``column-generation``) contain their own paths, see
:mod:`opticoll.formulations.flows.path_flow`. The checker then verifies each path as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from opticoll.formulations.alltoall import path_mcf_solution
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows import feasible_bases, path_bounds, path_flow
from opticoll.formulations.flows.concurrent_flow import demand_parameter
from opticoll.formulations.flows.path_flow import PathFlow, arc_load, named_paths
from opticoll.formulations.flows.path_sets import path_violations, rule_parameters
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel

if TYPE_CHECKING:
    from opticoll.formulations.model import Changeable, Values


@dataclass(frozen=True, eq=False)
class PathConcurrentFlow(Formulation):
    """The problem: flows over the paths of a set."""

    name = "alltoall.path-mcf"
    where = "(21)-(24)"
    parameters = (*rule_parameters("disjoint"), demand_parameter())
    concurrent = "F"
    variables: ClassVar = {"f": ("path",), "F": ()}
    constraints: ClassVar = {"serve": ("commodity",), "capacity": ("arc",)}
    _beside = (path_mcf_solution,)
    _label_invariant = staticmethod(path_flow.label_invariant)

    bounds = path_bounds.set_bounds
    certify = path_bounds.length_certificate
    matrix = path_mcf_solution.flow_program
    sets = path_flow.pairs_and_paths
    _derived = path_flow.exact_amounts
    _feasible_basis = feasible_bases.path_basis
    _prepare = classmethod(path_flow.over_paths)

    routing: PathFlow
    topology = property(path_flow.topology)
    flow = property(path_flow.flow_by_source)

    def changeable(self) -> Changeable:
        """Capacities and demands."""
        return {"c": (self.topology.capacity, "arc"), "D": (self.routing.amount, "commodity")}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY: ``B f >= F D``, ``A f <= c`` (arcs not on any path have no row)."""
        b, paths = Cvx(self), self.routing.paths
        A, B, used = paths.incidence, paths.membership, paths.used
        c, D = b.data("c"), b.data("D")
        f, F = b.var("f"), b.var("F")
        b.row("serve", B @ f >= F * D)
        b.row("capacity", A[used] @ f <= c[used], over=Index.table("arc", {"arc": used}))
        return b.maximize(F)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``f[s,t,i]`` for the i-th path of (s,t), ``F``, ``serve[s,t]``, ``capacity[a]``."""
        b = Pyo(self)
        of, over = named_paths(self.routing.paths, *b.sets("commodity", "path", "arc"))
        c, D = b.data("c"), b.data("D")
        f, F = b.var("f"), b.var("F")
        b.row("serve", lambda *k: b.sum(f[p] for p in of[k]) >= D[k] * F)
        b.row("capacity", lambda a: b.sum(f[p] for p in over[a]) <= c[a], where=lambda a: a in over)
        return b.maximize(F)

    def residuals(self, values: Values) -> dict[str, float]:
        """Worst violation of every block, from numpy alone.

        ``paths`` is 0 if every path is a simple chain from source to target with an allowed length, else infinite;
        ``nonnegative`` and ``capacity`` are relative to every arc's own capacity, ``serve`` to F D_k.
        """
        f, F = np.asarray(values["f"], dtype=float), float(np.asarray(values["F"]))
        paths = self.routing.paths_of(values)
        if paths is None or path_violations(paths, self.routing.rule) > 0:
            return dict.fromkeys(("paths", "nonnegative", "serve", "capacity"), np.inf)
        capacity = self.topology.capacity
        unit = max(float(capacity.min(initial=np.inf)), np.finfo(float).tiny)
        carried = np.bincount(paths.pair, f, paths.pairs) / self.routing.amount
        negative = np.repeat(np.maximum(-f, 0.0), paths.length) / capacity[paths.arcs]
        return {
            "paths": 0.0,
            "nonnegative": max(0.0, float(negative.max(initial=0.0)), -F / unit),
            "serve": float((F - carried).max(initial=0.0)) / max(abs(F), 1e-12 * unit),
            "capacity": max(0.0, float((arc_load(paths, f) / capacity).max(initial=0.0)) - 1.0),
        }


FORMULATION = PathConcurrentFlow
