"""All-to-all on kappa paths per pair with equal shares and the smallest maximum load per capacity.

Source  all-to-all paper, section 3 (equal-weighted multi-path) and Appendix D, (29)-(33)
Sets    a in A arcs; k = (s,t) in K ordered pairs of distinct ranks; p in P_k paths of k, |P_k| >= kappa
Data    kappa >= 1 different paths of a pair: 1, or ``--set kappa=...`` (appendix D: kappa of every pair); c_a > 0
        capacity [link bandwidths], (m,); A arc-path incidence, (m, |P|); B commodity-path incidence,
        (|K|, |P|); D_k > 0 demand of k [shards], (|K|,): 1 (the paper's) or ``--set demand=...``
        (:mod:`opticoll.instances.demands`), whose pairs without demand are not in K; D_p that of the commodity of p
Vars    x_p in {0,1} path taken, (|P|,); Lambda in 0 .. kappa sum_k D_k / min_a c_a largest load per capacity, in paths
        that each carry 1/kappa of their demand, integer where all capacities are 1 and all demands integers

min Lambda / kappa  s.t.
    congestion[a]   sum_p A_ap D_p x_p - c_a Lambda <= 0       a on some path       (30)
    choose[k]       (B x)_k = kappa                                                 (31)

In the metrics, ``paths_per_pair`` is kappa and ``paths`` is |P|.

Lambda / kappa is the time of an all-to-all whose shards are split into kappa equal parts on different paths. With T
the optimum of the fluid problem over the same paths, Lambda / kappa >= T, and it is a multiple of some q/(kappa c_a),
where q is the largest number that divides all demands (1 for the paper's): on unit links, Lambda >= ceil(kappa T). As
no part is split, also Lambda / kappa >= max_k min_{p in P_k} max_{a in p} D_k/(kappa c_a) (``widest-path``). Any arc
lengths l >= 0 prove Lambda / kappa >= sum_k D_k l_k / sum_a c_a l_a, where l_k is the mean length of the kappa shortest
paths in P_k (of the shortest one where P_k is not listed): for kappa > 1 more than the fluid bound, since the kappa
paths of a pair must differ. A larger kappa is not always better: the optimum for kappa = 2 may exceed that for kappa =
1.

The optimum is that of the path set (``paths``, ``k``, ``lmax``; the paper samples arc-disjoint sets). It is the optimum
over all paths if it equals the bound from the fluid optimum over all paths: ``metrics.unrestricted_proven``.

Routes over sets that are too large to list (``paths=all``) contain their own paths, as in
:mod:`opticoll.formulations.flows.path_flow`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from opticoll.formulations.alltoall import min_congestion_solution
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows import path_bounds, path_flow
from opticoll.formulations.flows.concurrent_flow import demand_parameter
from opticoll.formulations.flows.path_flow import PathFlow, largest_load, named_paths, unit_capacities
from opticoll.formulations.flows.path_sets import rule_parameters
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.parameters import Parameter

if TYPE_CHECKING:
    from opticoll.formulations.model import Values


@dataclass(frozen=True, eq=False)
class ChosenPaths(Formulation):
    """The problem: one or kappa paths for every pair."""

    name = "alltoall.min-congestion"
    where = "(29)-(33)"
    problem = "MILP"
    parameters = (
        *rule_parameters("disjoint"),
        Parameter("kappa", int, default=1, help="paths of each pair, which share its demand equally", least=1),
        demand_parameter(),
    )
    meaning = "largest load per capacity Lambda / kappa, the time T [shards / link bandwidth]"
    _label_invariant = staticmethod(path_flow.label_invariant)

    variables: ClassVar = {"x": ("path",), "Lambda": ()}
    constraints: ClassVar = {"congestion": ("arc",), "choose": ("commodity",)}
    _beside = (min_congestion_solution, path_flow)

    bounds = path_bounds.share_bounds
    certify = path_bounds.share_certificate
    matrix = min_congestion_solution.matrix
    sets = path_flow.pairs_and_paths

    routing: PathFlow
    topology = property(path_flow.topology)

    @classmethod
    def _prepare(cls, instance: object, given: dict[str, Any]) -> Self:
        """The problem on a topology; errors as :func:`.path_flow.prepare_paths`, and for fewer than kappa paths."""
        return cls(path_bounds.with_enough_paths(path_flow.prepare_paths(cls.name, instance, given)))

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY: ``A diag(D) x <= Lambda c``, ``B x = kappa`` (arcs not on any path have no row)."""
        import cvxpy as cp

        b, paths = Cvx(self), self.routing.paths
        A, B, used = paths.incidence, paths.membership, paths.used
        c, D = self.topology.capacity, self.routing.amount[paths.pair]
        x = b.var("x", upper=1, integer=True)
        Lambda = b.var("Lambda", upper=largest_load(self.routing), integer=unit_capacities(self.routing))
        rows = Index.table("arc", {"arc": used})
        b.row("congestion", A[used] @ cp.multiply(D, x) <= Lambda * c[used], over=rows)
        b.row("choose", B @ x == self.routing.kappa)
        return b.minimize(Lambda / self.routing.kappa)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``x[s,t,i]``, ``Lambda``, ``congestion[a]``, ``choose[s,t]``."""
        b = Pyo(self)
        K, P, A = b.sets("commodity", "path", "arc")
        of, over = named_paths(self.routing.paths, K, P, A)
        c, amount = b.by_label(self.topology.capacity, "arc"), b.by_label(self.routing.amount, "commodity")
        D = {p: amount[k] for k in K for p in of[k]}
        whole = all(number.is_integer() for number in amount.values()) and all(room == 1 for room in c.values())
        x = b.var("x", upper=1, integer=True)
        Lambda = b.var("Lambda", upper=self.routing.kappa * sum(amount.values()) / min(c.values()), integer=whole)
        b.row(
            "congestion",
            lambda a: b.sum(D[p] * x[p] for p in over[a]) <= c[a] * Lambda,
            where=lambda a: a in over,
        )
        b.row("choose", lambda *k: b.sum(x[p] for p in of[k]) == self.routing.kappa)
        return b.minimize(Lambda / self.routing.kappa)

    def residuals(self, values: Values) -> dict[str, float]:
        """Worst violation of ``choose``, ``congestion``, of whole numbers, and of the paths themselves."""
        return path_flow.residuals(self, values)

    def objective(self, values: Values) -> float:
        """The largest load per capacity of the paths taken, recomputed."""
        return path_flow.objective(self, values)


FORMULATION = ChosenPaths
