"""All-to-all on a single path per pair, with the largest load per capacity as small as possible.

Source  all-to-all paper, Appendix D, (29)-(33)
Sets    a in A arcs; k = (s,t) in K ordered pairs of distinct ranks; p in P_k paths of k
Data    c_a > 0 capacity [link bandwidths], (m,); A arc-path incidence, (m, |P|); B commodity-path incidence,
        (|K|, |P|); D_k > 0 demand of k [shards], (|K|,): 1 (the paper's) or ``--set demand=...``
        (:mod:`opticoll.instances.demands`), whose pairs without demand are not in K; D_p that of the commodity of p
Vars    x_p in {0,1} path taken, (|P|,); Lambda in 0 .. sum_k D_k / min_a c_a largest load per capacity, integer where
        all capacities are 1 and all demands integers

min Lambda  s.t.
    congestion[a]   sum_p A_ap D_p x_p - c_a Lambda <= 0       (30)
    choose[k]       (B x)_k = 1                                (31)

Lambda is the time of an all-to-all whose shards are not split. With T the optimum of the fluid problem over the same
paths, Lambda >= T, and Lambda is a multiple of some q/c_a, where q is the largest number that divides all demands (1
for the paper's): Lambda >= min_a q ceil(T c_a/q)/c_a, ceil(T) on unit links. As no demand is split, also
Lambda >= max_k min_{p in P_k} max_{a in p} D_k/c_a (``widest-path``).

The optimum is that of the path set (``paths``, ``k``, ``lmax``; the paper samples arc-disjoint sets). It is the optimum
over all paths if it equals the bound from the fluid optimum over all paths: ``metrics.unrestricted_proven``.

Routes over sets that are too large to list (``paths=all``) bring their own paths, as in
:mod:`opticoll.formulations.flows.path_flow`. The model itself is :mod:`opticoll.formulations.flows.single_path`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations import outward
from opticoll.formulations.alltoall import PAPER, path_mcf
from opticoll.formulations.arrays import BANDWIDTHS, SHARDS, Links
from opticoll.formulations.flows import single_path
from opticoll.formulations.flows.concurrent_flow import demand_metrics, demand_parameter
from opticoll.formulations.flows.path_flow import (
    PathFlow,
    known_paths,
    label_invariant,
    path_sets,
    prepare_paths,
    restriction,
)
from opticoll.formulations.flows.path_sets import rule_parameters
from opticoll.formulations.flows.single_path import chosen_paths, quantum, round_up, unsplit_bounds
from opticoll.formulations.model import Bound, Formulation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

NAME = "alltoall.min-congestion"


def prepare(instance: object, parameters: dict[str, Any] | None = None) -> PathFlow:
    """The data of the model.

    Raises
    ------
    NotApplicable
        If the instance is not a connected topology of at least two ranks, or the rule leaves some pair without a path.
    """
    return prepare_paths(instance, parameters or {}, NAME)


def rounded(data: PathFlow, bound: Bound) -> Bound:
    """The bound on Lambda that follows from a bound on the fluid flow F."""
    fluid = max(outward.quotient_down(1.0, bound.value), 0.0) if np.isfinite(bound.value) else 0.0
    value = round_up(fluid, data.topology.capacity, quantum(data.amount))
    return Bound(bound.name, value, f"T >= {fluid:.8g}, rounded up to whole paths; {bound.reason}", bound.paper)


def bounds(data: PathFlow) -> list[Bound]:
    """The fluid bounds of the path set, rounded up to whole paths."""
    return [rounded(data, bound) for bound in path_mcf.bounds(data)] + unsplit_bounds(data)


def certify(data: PathFlow, duals: Mapping[str, NDArray[np.float64]]) -> Bound | None:
    """The bound that arc lengths prove for this path set: the fluid one, rounded up to whole paths."""
    name = "congestion" if "congestion" in duals else "capacity"
    if name not in duals:
        return None
    found = path_mcf.certify(data, {"capacity": np.abs(np.asarray(duals[name], dtype=float))})
    return None if found is None else rounded(data, found)


def metrics(data: PathFlow, value: float | None) -> dict[str, float | int | str | bool | None]:
    """The load, the path set, and whether the load meets an analytic bound that holds for every path set."""
    over_all = max(
        bound.value for bound in [*(rounded(data, one) for one in data.unrestricted_bounds), *unsplit_bounds(data)]
    )
    proven = None if value is None else bool(value <= over_all * (1 + 1e-9))
    return {
        "max_load": value,
        "T": value,
        "ranks": data.topology.ranks,
        **({} if data.traffic is None else demand_metrics(data.flow)),
        "path_set": str(data.rule),
        "paths": None if data.rule.kind == "all" and "paths" not in vars(data) else data.paths.paths,
        "unrestricted_bound": over_all,
        "unrestricted_proven": proven,
    }


def decode(data: PathFlow, values: Mapping[str, NDArray[np.float64]]) -> dict[tuple[int, int], list[int]]:
    """The route of every pair of ranks (s, t), as arc numbers.

    Raises
    ------
    NotApplicable
        If the values do not take exactly one path for every pair.
    """
    routes = chosen_paths(data, values)
    ends = zip(routes.sources[routes.pair].tolist(), routes.targets[routes.pair].tolist(), strict=True)
    return {pair: routes.path(p) for p, pair in enumerate(ends)}


def links(data: PathFlow, values: Mapping[str, NDArray[np.float64]]) -> Links:
    """Routes over every arc, each of its demand, within the time Lambda."""
    capacity = data.topology.capacity
    load = single_path.carried(data, known_paths(data, values), np.asarray(values["x"], dtype=float)) * capacity
    return Links(data.topology, load, capacity, float((load / capacity).max(initial=0.0)), SHARDS, BANDWIDTHS)


FORMULATION = Formulation(
    name=NAME,
    paper=PAPER,
    where="(29)-(33)",
    title="All-to-all on one path per pair: minimum congestion",
    sense="min",
    problem="MILP",
    parameters=(*rule_parameters("disjoint"), demand_parameter()),
    label_invariant=label_invariant,
    prepare=prepare,
    build={"cvxpy": single_path.build_cvxpy, "pyomo": single_path.build_pyomo},
    residuals=single_path.residuals,
    objective=single_path.objective,
    bounds=bounds,
    arrays=single_path.arrays,
    certify=certify,
    dual_arrays=single_path.dual_arrays,
    repair=single_path.repair,
    metrics=metrics,
    restriction=restriction,
    estimate=single_path.estimate,
    derived=single_path.derived,
    size="|P| + 1 variables",
    meaning="largest load per capacity Lambda, the time T [shards / link bandwidth]",
    shards=True,
    index_sets=path_sets,
    links=links,
)
