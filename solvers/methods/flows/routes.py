"""Conversion between routes, kappa paths per commodity, and the variables x and Lambda of models that choose paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.flows.path_flow import PathFlow, arc_load, largest
from opticoll.formulations.flows.path_sets import (
    MOST_PATHS,
    PathRule,
    PathSet,
    build_path_set,
    count_all,
    path_set_of,
    subset,
    to_arrays,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from opticoll.instances.readers.untrusted import Json

    F64 = NDArray[np.float64]
    I64 = NDArray[np.int64]

#: Formulations with kappa paths per commodity in the variables x and Lambda, whose data are a path flow's.
SINGLE_PATH = ("alltoall.min-congestion", "lumorph.min-overlap")
#: Candidates of a search over all paths are at most this many arcs longer than a shortest path.
DETOUR = 1


def worst_load(routes: PathSet, share: F64) -> float:
    """Largest load per capacity of routes, each of which carries the ``share`` ``(|K|,)`` of its commodity."""
    return float((arc_load(routes, share[routes.pair]) / routes.topology.capacity).max())


def single_only(data: PathFlow, method: str) -> str | None:
    """Why a method for one path per commodity does not take the data; None if it does."""
    if data.kappa == 1:
        return None
    return f"{method} gives one path per pair, not kappa={data.kappa}; take exact-routing or sssp over listed paths"


def values_of(data: PathFlow, routes: PathSet) -> dict[str, F64]:
    """The variables of the formulation for ``routes``, kappa paths per commodity in their order."""
    worst = np.asarray(worst_load(routes, data.amount))
    if data.rule.kind == "all":
        return {"x": np.ones(routes.paths), "Lambda": worst, **to_arrays(routes)}
    listed = data.paths
    x = np.zeros(listed.paths)
    for number, k in enumerate(routes.pair.tolist()):
        listed_paths = listed.of_pair(k)
        route = routes.path(number)
        x[next(p for p in listed_paths if listed.path(p) == route)] = 1.0
    return {"x": x, "Lambda": worst}


def pick(candidates: PathSet, choice: I64) -> PathSet:
    """The chosen candidates, kappa per commodity, ``choice`` ``(kappa |K|,)``."""
    keep = np.zeros(candidates.paths, dtype=bool)
    keep[choice] = True
    return subset(candidates, keep)


def candidates_for(data: PathFlow, generated: PathSet) -> PathSet:
    """Candidates of a search: the set itself if it is listed, else short paths and generated ones.

    For rules that allow all paths these are all paths at most :data:`DETOUR` arcs longer than the kappa-th, or all
    shortest, or four of them, the first of these that number at most :data:`MOST_PATHS`; and the paths of a fluid
    optimum.
    """
    topology, rule = data.topology, data.rule
    if rule.kind != "all":
        return data.paths
    pairs = data.commodities
    if data.traffic is None:
        far = topology.diameter
    else:
        far = topology.hops[np.searchsorted(topology.terminals, pairs[0]), pairs[1]].max()
    longest = min(rule.lmax or topology.n, int(far) + DETOUR)
    for short in (PathRule("all", lmax=longest), PathRule("shortest"), PathRule("k", 4, rule.lmax)):
        # A pair that occurs several times is counted once and listed as often as it occurs.
        count, _, complete = count_all(topology, short, MOST_PATHS * 2, pairs)
        if short.kind == "k" or (complete and count * _most_alike(pairs, topology.n) <= MOST_PATHS):
            listed = build_path_set(topology, short, data.name, pairs)
            break
    nth = np.minimum(listed.first[:-1] + data.kappa, listed.first[1:]) - 1
    distance = listed.length[nth]
    listed = subset(listed, listed.length <= distance[listed.pair] + DETOUR)
    if (np.diff(listed.first) < data.kappa).any():
        listed = union(listed, build_path_set(topology, PathRule("k", data.kappa, rule.lmax), data.name, pairs))
    return union(listed, generated)


def _most_alike(pairs: tuple[I64, I64], n: int) -> int:
    """Multiplicity of the most frequent pair."""
    return int(np.unique(pairs[0] * n + pairs[1], return_counts=True)[1].max())


def union(first: PathSet, second: PathSet) -> PathSet:
    """The paths of both sets, each once."""
    known = {(int(s.pair[p]), tuple(s.path(p))) for s in (first, second) for p in range(s.paths)}
    return path_set_of(
        first.topology, [path for _, path in known], [k for k, _ in known], (first.sources, first.targets)
    )


def round_shares(paths: PathSet, share: F64, amount: F64, random: np.random.Generator, tries: int) -> PathSet:
    """The best of ``tries`` independent roundings: every commodity takes a path with its share as probability.

    ``amount`` ``(|K|,)`` is what the commodities carry.
    """
    best: PathSet | None = None
    level = np.cumsum(share)
    before = level[paths.first[:-1]] - share[paths.first[:-1]]
    total = level[paths.first[1:] - 1] - before
    for _ in range(max(tries, 1)):
        point = before + random.random(paths.pairs) * total
        choice = np.clip(np.searchsorted(level, point), paths.first[:-1], paths.first[1:] - 1)
        routes = pick(paths, choice)
        if best is None or worst_load(routes, amount) < worst_load(best, amount):
            best = routes
    assert best is not None
    return best


def draw_different(
    paths: PathSet, weight: F64, share: F64, kappa: int, random: np.random.Generator, tries: int
) -> PathSet:
    """The best of ``tries`` draws of ``kappa`` different paths per commodity, likelier the larger their ``weight``.

    A weighted sample without replacement (Efraimidis & Spirakis, Information Processing Letters 97, 2006); each path
    carries the ``share`` ``(|K|,)`` of its commodity.
    """
    best: PathSet | None = None
    for _ in range(max(tries, 1)):
        keys = np.log(random.random(paths.paths)) / np.maximum(weight, 1e-6)
        routes = pick(paths, largest(paths, keys, kappa))
        if best is None or worst_load(routes, share) < worst_load(best, share):
            best = routes
    assert best is not None
    return best


def route_metrics(data: PathFlow, routes: PathSet) -> dict[str, Json]:
    """Metrics of all routing methods: mean load and path lengths."""
    return {
        "mean_load": float((arc_load(routes, data.share[routes.pair]) / data.topology.capacity).mean()),
        "mean_length": float(routes.length.mean()),
        "longest_path": int(routes.length.max()),
    }


def routes_from(data: PathFlow, paths: Sequence[Sequence[int]]) -> PathSet:
    """One path per commodity, or kappa one behind the other, in the commodities' order, as a set."""
    return path_set_of(data.topology, paths, np.arange(len(paths)) // data.kappa, data.commodities)
