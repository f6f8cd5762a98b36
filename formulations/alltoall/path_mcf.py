"""Maximum concurrent flow over a path set.

Source  all-to-all paper, (21)-(24)
Sets    a in A arcs; k = (s,t) in K ordered pairs of distinct ranks; p in P_k paths of k, P = union of all P_k
Data    c_a > 0 capacity [link bandwidths], (m,); A arc-path incidence, (m, |P|), 1 where p uses a; B commodity-path
        incidence, (|K|, |P|), 1 where p carries k; D_k > 0 demand of k [shards], (|K|,): 1 (the paper's) or ``--set
        demand=...`` (:mod:`opticoll.instances.demands`), whose pairs without demand are not in K
Vars    f_p >= 0 flow along path p [shards per unit time], (|P|,); F >= 0 concurrent flow

max F  s.t.
    serve[k]       (B f)_k >= F D_k             (23)
    capacity[a]    (A f)_a <= c_a               (22)

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

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows import path_flow
from opticoll.formulations.flows.concurrent_flow import demand_parameter
from opticoll.formulations.flows.flow_bounds import work_by_hops
from opticoll.formulations.flows.flow_checks import flow_metrics
from opticoll.formulations.flows.path_flow import (
    PathFlow,
    arc_load,
    bounded_distances,
    known_paths,
    named_paths,
    path_arrays,
    prepare_paths,
    serve_alike,
)
from opticoll.formulations.flows.path_sets import path_violations, rule_parameters
from opticoll.formulations.flows.single_source import WeightedPath
from opticoll.formulations.index import Index
from opticoll.formulations.model import (
    Bound,
    CvxpyModel,
    Formulation,
    NotApplicable,
    PyomoModel,
)
from opticoll.formulations.standard_form import StandardForm, blocks
from opticoll.formulations.variables import BANDWIDTHS, Array, Links, arc_axis

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from fractions import Fraction

    from opticoll.instances.topology import F64
    from opticoll.types import Json, Settings

NAME = "alltoall.path-mcf"


def shortest_lengths(data: PathFlow, lengths: F64) -> F64:
    """Length of every commodity's shortest allowed path under positive arc ``lengths`` ``(m,)``, shape ``(|K|,)``.

    If a commodity is split equally over ``data.kappa`` listed paths, the mean over its ``kappa`` shortest paths.
    """
    if data.rule.kind != "all":
        return data.paths.shortest(lengths, data.kappa)
    sources = data.topology.terminals
    if data.rule.lmax is None:
        reach, sources = data.flow.distances(lengths).T, data.flow.sources
    else:
        reach = bounded_distances(data.topology, lengths, data.rule.lmax)[-1]
    starts, ends = data.commodities
    return reach[np.searchsorted(sources, starts), ends]


def length_bound(data: PathFlow, lengths: F64) -> float:
    """``sum c l / sum_k D_k min_{p in P_k} l(p)``, rounded up: a bound on F over the path set.

    Any lengths ``(m,)`` prove a bound. They are read as by
    :func:`opticoll.formulations.flows.concurrent_flow.ConcurrentFlow.length_bound`.
    """
    lengths = rounding.usable_lengths(data.topology.capacity, lengths)
    if not lengths.size:
        return np.inf
    # A path has at most n arcs: so many additions, plus those of the sum and of the mean.
    roundings = data.topology.n + 1 + data.kappa
    cost = float(rounding.down(rounding.dot_down(data.amount, shortest_lengths(data, lengths)), roundings))
    return rounding.weighted_capacity(data.topology.capacity, lengths, cost)


def path_certificate(data: PathFlow, duals: Mapping[str, F64]) -> Bound | None:
    """Bound for this path set proven by the duals of ``capacity``, read as arc lengths."""
    if "capacity" not in duals:
        return None
    value = length_bound(data, duals["capacity"])
    if not np.isfinite(value):
        return None
    return Bound("any-lengths", value, f"arc lengths from the duals, shortest of {data.rule} recomputed")


def path_bounds(data: PathFlow) -> list[Bound]:
    """Bounds on the flow over all paths, and the bound from the hop lengths of the set's own paths."""
    if data.rule.unrestricted:
        return list(data.unrestricted_bounds)
    ones = np.ones(data.topology.arcs)
    value, reason = length_bound(data, ones), f"Theorem 1 with the shortest of {data.rule}"
    hops = np.rint(shortest_lengths(data, ones) * data.kappa)  # a mean of kappa paths
    work = work_by_hops(data.amount, hops)
    needed = None if work is None else work / data.kappa
    fraction = rounding.quotient(rounding.exact_sum(data.topology.capacity), needed)
    result = [replace(bound, exact=False) for bound in data.unrestricted_bounds]
    return [*result, Bound("path-lengths", value, reason, "alltoall", fraction=fraction)]


def decode(data: PathFlow, values: Mapping[str, F64]) -> dict[tuple[int, int], list[WeightedPath]]:
    """Return the paths with flow for every pair of ranks (s, t), largest flow first.

    Raises
    ------
    NotApplicable
        If the values contain paths that cannot be read.
    """
    paths, f = data.paths_of(values), np.asarray(values["f"], dtype=float)
    if paths is None or f.shape != (paths.paths,):
        msg = f"{data.name}: the values do not give one number for every path"
        raise NotApplicable(msg)
    result: dict[tuple[int, int], list[WeightedPath]] = {}
    for k, (s, t) in enumerate(zip(paths.sources.tolist(), paths.targets.tolist(), strict=True)):
        places = paths.of_pair(k)
        carrying = [WeightedPath(paths.path(p), float(f[p])) for p in places if f[p] > 0]
        result[s, t] = sorted(carrying, key=lambda path: -path.amount)
    return result


class PathConcurrentFlow(PathFlow, Formulation):
    """The problem: flows over the paths of a set."""

    name = NAME
    where = "(21)-(24)"
    sense = "max"
    problem = "LP"
    parameters = (*rule_parameters("disjoint"), demand_parameter())
    concurrent = "F"
    meaning = "concurrent flow F [link bandwidths / shard]; T = 1/F"
    shards = True
    variables: ClassVar = {"f": ("path",), "F": ()}
    constraints: ClassVar = {"serve": ("commodity",), "capacity": ("arc",)}
    changeable: ClassVar = {"c": ("arc",), "D": ("commodity",)}
    label_invariant = staticmethod(path_flow.label_invariant)

    bounds = path_bounds
    certify = path_certificate

    @classmethod
    def prepare(cls, instance: object, parameters: Settings | None = None) -> Self:
        """The data of the model.

        Raises
        ------
        NotApplicable
            If the instance is not a topology of at least two ranks with a path for every demand, or the rule leaves
            some pair without a path.
        """
        return prepare_paths(cls, instance, cls._completed(parameters))

    def derived(self) -> Iterable[Fraction]:
        """Numbers of the matrix that are computed from the data."""
        return rounding.decimals(self.amount)

    def sets(self) -> dict[str, list[Any]]:
        """Pairs of ranks, and their paths: (s,t,i) is the i-th of (s,t)."""
        K, of, _ = named_paths(self.paths)
        return {"commodity": K, "path": [p for k in K for p in of[k]]}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY: ``B f >= F D``, ``A f <= c`` (arcs not on any path have no row)."""
        b, A, B = Cvx(self), self.paths.incidence.tocsr(), self.paths.membership
        c, D = b.data("c", self.topology.capacity), b.data("D", self.amount)
        f, F = b.var("f"), b.var("F")
        used = np.unique(self.paths.arcs)
        b.row("serve", B @ f >= F * D)
        b.row("capacity", A[used] @ f <= c[used], over=Index.table("arc", {"arc": used}))
        return b.maximize(F)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``f[s,t,i]`` for the i-th path of (s,t), ``F``, ``serve[s,t]``, ``capacity[a]``."""
        from pyomo.core import quicksum

        b, (_, of, over) = Pyo(self), named_paths(self.paths)
        c, D = b.data("c", self.topology.capacity), b.data("D", self.amount)
        f, F = b.var("f"), b.var("F")
        b.row("serve", lambda *k: quicksum(f[p] for p in of[k]) >= D[k] * F)
        b.row("capacity", lambda a: quicksum(f[p] for p in over[a]) <= c[a], where=lambda a: a in over)
        return b.maximize(F)

    def matrix(self) -> StandardForm:
        """The same problem without a modelling layer, for methods that solve it many times: f, then F."""
        import scipy.sparse as sp

        paths, m = self.paths, self.topology.arcs
        used = np.unique(paths.arcs)
        at = np.concatenate([paths.pair, paths.pairs + np.searchsorted(used, paths.arcs)])
        column = np.concatenate([np.arange(paths.paths), np.repeat(np.arange(paths.paths), paths.length)])
        flows = sp.csc_array((np.ones(at.size), (at, column)), shape=(paths.pairs + used.size, paths.paths))
        served = np.concatenate([self.amount, np.zeros(used.size)])
        A = sp.hstack([flows, -sp.csc_array(served[:, None])], format="csc")
        cost = np.zeros(paths.paths + 1)
        cost[-1] = 1.0
        capacity = np.full(m, -1, dtype=np.int64)
        capacity[used] = paths.pairs + np.arange(used.size)
        return StandardForm(
            A=A,
            row_lower=np.concatenate([np.zeros(paths.pairs), np.full(used.size, -np.inf)]),
            row_upper=np.concatenate([np.full(paths.pairs, np.inf), self.topology.capacity[used]]),
            col_lower=np.zeros(cost.size),
            col_upper=np.full(cost.size, np.inf),
            cost=cost,
            sense="max",
            columns=blocks({"f": ((paths.paths,), np.arange(paths.paths)), "F": ((), np.array([paths.paths]))}),
            rows=blocks({"serve": ((paths.pairs,), np.arange(paths.pairs)), "capacity": ((m,), capacity)}),
        )

    def updates(self) -> dict[str, F64]:
        """Capacities and demands, which can change in a model that is built."""
        return {"c": self.topology.capacity, "D": self.amount}

    def estimate(self) -> dict[str, int]:
        """Size of the model; lists the path set."""
        paths = self.paths
        return {
            "variables": paths.paths + 1,
            "constraints": paths.pairs + int(np.unique(paths.arcs).size),
            "nonzeros": paths.paths + paths.pairs + int(paths.arcs.size),
            "integers": 0,
        }

    def arrays(self, names: Collection[str]) -> dict[str, Array]:
        """The flows f and F, the paths if the solution contains its own, and the duals of ``capacity``."""
        result = path_arrays(self, "f", "F", names, (BANDWIDTHS, f"{BANDWIDTHS} / shard"))
        return result | {"capacity": Array((arc_axis(self.topology),), dual=True)}

    def objective(self, values: Mapping[str, F64]) -> float:
        """The given F; :meth:`residuals` checks that the paths deliver it."""
        return float(np.asarray(values["F"]))

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block, from numpy alone.

        ``paths`` is 0 if every path is a simple chain from source to target with an allowed length, else infinite;
        ``nonnegative`` and ``capacity`` are relative to every arc's own capacity, ``serve`` to F D_k.
        """
        f, F = np.asarray(values["f"], dtype=float), float(np.asarray(values["F"]))
        paths = self.paths_of(values)
        blocks = ("paths", "nonnegative", "serve", "capacity")
        if paths is None or f.shape != (paths.paths,) or not np.isfinite(f).all() or not np.isfinite(F):
            return dict.fromkeys(blocks, np.inf)
        if path_violations(paths, self.rule) > 0:
            return dict.fromkeys(blocks, np.inf)
        capacity = self.topology.capacity
        unit = max(float(capacity.min(initial=np.inf)), np.finfo(float).tiny)
        carried = np.bincount(paths.pair, f, paths.pairs) / self.amount
        negative = np.repeat(np.maximum(-f, 0.0), paths.length) / capacity[paths.arcs]
        return {
            "paths": 0.0,
            "nonnegative": max(0.0, float(negative.max(initial=0.0)), -F / unit),
            "serve": float((F - carried).max(initial=0.0)) / max(abs(F), 1e-12 * unit),
            "capacity": max(0.0, float((arc_load(paths, f) / capacity).max(initial=0.0)) - 1.0),
        }

    def repair(self, values: Mapping[str, F64]) -> dict[str, F64] | None:
        """Scale to a feasible flow in the same proportions that serves the same fraction of every demand.

        Returns None if the paths are malformed.

        A commodity without any flow is sent over its first path, which is a shortest path of its set.
        """
        f = np.asarray(values["f"], dtype=float)
        paths = self.paths_of(values)
        if paths is None or f.shape != (paths.paths,) or not np.isfinite(f).all():
            return None
        if paths.paths == 0 or path_violations(paths, self.rule) > 0:
            return None
        if (np.bincount(paths.pair, minlength=paths.pairs) == 0).any():
            return None
        share = serve_alike(paths, f) * self.amount[paths.pair]
        load = arc_load(paths, share)
        used = load > 0
        F = float((self.topology.capacity[used] / load[used]).min())
        kept = {name: values[name] for name in ("path_arcs", "path_pair") if name in values}
        return {"f": share * F, "F": np.asarray(F), **kept}

    def metrics(self, value: float | None) -> dict[str, Json]:
        """F, T, the path set by name and size, and the best analytic bound on the optimum over all paths.

        ``unrestricted_proven`` is whether F meets that bound to within 1e-6.
        """
        over_all = min(b.value for b in self.unrestricted_bounds)
        proven = value is not None and bool(value >= over_all * (1 - 1e-6))
        return {
            **flow_metrics(self, value),
            "path_set": str(self.rule),
            "paths": None if self.rule.kind == "all" and "paths" not in vars(self) else self.paths.paths,
            "unrestricted_bound": over_all,
            "unrestricted_proven": None if value is None else proven,
            "conditional_on": None if proven else path_flow.restriction(self),
        }

    def links(self, values: Mapping[str, F64]) -> Links:
        """Flow over every arc, all paths together."""
        load = arc_load(known_paths(self, values), np.asarray(values["f"], dtype=float))
        return Links(self.topology, load, self.topology.capacity, 1.0, BANDWIDTHS, BANDWIDTHS)


FORMULATION = PathConcurrentFlow
