"""Claims of the all-to-all paper about one path per pair, deadlocks, and throughput on its testbeds."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.ledger.claim import Measurement, Measures
from opticoll.analysis.ledger.comparisons import certified_flow
from opticoll.analysis.ledger.readings import Readings, Sweep, spread, swept
from opticoll.analysis.ledger.tolerances import SAME, similar
from opticoll.analysis.papers.alltoall.claims import optimal_time, rounded
from opticoll.formulations.alltoall import path_mcf
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
from opticoll.formulations.flows.path_flow import arc_load
from opticoll.instances import parse
from opticoll.solvers.methods.alltoall.single_paths import load_aware_routes

if TYPE_CHECKING:
    from opticoll.analysis.ledger.claim import Laboratory
    from opticoll.instances import Topology
    from opticoll.instances.topology import F64
    from opticoll.types import Json


SINGLE_PATHS, LAYERS = "alltoall.min-congestion", "alltoall.virtual-channels"
MEASURES = Measures("alltoall")


def pair_routes(topology: Topology, seed: int) -> F64:
    """Loads of the arcs by Appendix D's heuristic, shape ``(m,)``.

    Pairs take shortest paths one by one in random order; every used arc becomes longer by 1.
    """
    routes = load_aware_routes(path_mcf.PathConcurrentFlow.prepare(topology, {"paths": "all"}).routing, seed)
    return arc_load(routes, np.ones(routes.paths))


def pair_loads(topology: Topology, seed: int) -> float:
    """Largest load of :func:`pair_routes`."""
    return float(pair_routes(topology, seed).max())


def tree_loads(topology: Topology, seed: int) -> float:
    """Largest load of the cited SSSP routing: a shortest-path tree to every destination, weights updated after each."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    n, m, random = topology.n, topology.arcs, np.random.default_rng(seed)
    load, arc = np.zeros(m), np.zeros((n, n), dtype=int)
    arc[topology.tail, topology.head] = np.arange(m)
    graph = csr_array((np.arange(1.0, m + 1), (topology.head, topology.tail)), shape=(n, n))
    order = graph.data.astype(int) - 1  # arcs in the order of its entries
    for t in random.permutation(n).tolist():
        graph.data = (n * (n - 1) + 1.0 + load)[order]
        distance, before = dijkstra(graph, indices=t, return_predecessors=True)
        below = np.ones(n)
        for u in np.argsort(distance, kind="stable")[:0:-1]:
            load[arc[u, before[u]]] += below[u]
            below[before[u]] += below[u]
    return float(load.max())


@MEASURES.of("sssp")
def _sssp(laboratory: Laboratory) -> Measurement:
    scope = laboratory.scope
    low, high = (laboratory.number(text).ends[end] for end, text in enumerate(scope["times that of the MCF"]))
    higher, orders = scope["tori of three and more dimensions"], laboratory.seeds(int(scope["random orders"]))
    more = float(scope["appendix D: more than"])
    rules = {"a tree to every destination (Domke et al.)": tree_loads, "pair by pair (appendix D)": pair_loads}
    means: dict[str, dict[str, float]] = {name: {} for name in rules}
    ends: dict[str, list[float]] = {name: [] for name in rules}
    for spec in scope["networks"]:
        topology = parse(spec)
        least = optimal_time(laboratory, spec)
        for name, heuristic in rules.items():
            ratios = [heuristic(topology, seed) / least for seed in orders]
            means[name][spec] = float(np.mean(ratios))
            ends[name] += ratios
    choices = Readings("SSSP; networks")
    for name in rules:
        for which, specs in (("tori of three and more dimensions", higher), ("all", scope["networks"])):
            choices.add(
                f"{name}; {which}",
                all(low <= means[name][spec] <= high for spec in specs),
                [round(end(means[name][spec] for spec in specs), 3) for end in (min, max)],
            )
    for name, values in ends.items():
        choices.add(name, max(values) > more, max(values), name="appendix D: more than 2 times")
    return choices.measurement(
        tuple(scope["networks"]),
        measured={
            name: f"{min(values):.2f} to {max(values):.2f}, means {min(means[name].values()):.2f} to "
            f"{max(means[name].values()):.2f}"
            for name, values in ends.items()
        },
        tightness=spread([value for values in ends.values() for value in values]),
    )


@MEASURES.of("sssp-order")
def _order(laboratory: Laboratory) -> Measurement:
    measured: dict[str, Json] = {}
    longer, changed = [], []
    for spec in laboratory.scope["networks"]:
        topology = parse(spec)
        loads = [pair_routes(topology, seed) for seed in laboratory.seeds(int(laboratory.scope["random orders"]))]
        shortest = float(np.asarray(topology.hops).sum())
        if any(load.sum() != shortest for load in loads):
            longer.append(spec)
        if any((load != loads[0]).any() for load in loads):
            changed.append(spec)
        measured[spec] = sorted({int(load.max()) for load in loads})
    choices = Readings("what does not change")
    choices.add("the number of arcs of every route", not longer, longer or "always fewest")
    choices.add("the routes", not changed, f"arc loads change on {', '.join(changed) or 'none'}")
    return choices.measurement(
        tuple(measured),
        measured={f"largest loads, {spec}": loads for spec, loads in measured.items()},
        count=len(measured),
        violations=len(changed),
        witness=f"{changed[0]}: largest loads {measured[changed[0]]}" if changed else None,
    )


def proven_load(laboratory: Laboratory, spec: str, **settings: Any) -> float:
    """The smallest maximum load of single paths, proven by fluid optima and branch and bound."""
    return float(laboratory.proven(SINGLE_PATHS, spec, method="exact-routing", **settings)["objective"])


def certified_time(spec: str) -> float:
    """Certified optimal T of a small graph."""
    return 1 / certified_flow(parse(spec))


@MEASURES.of("single-path")
def _single_path(laboratory: Laboratory) -> Measurement:
    specs = laboratory.scope["networks"]
    measured = {spec: proven_load(laboratory, spec) / certified_time(spec) for spec in specs}
    wrong = [spec for spec, ratio in measured.items() if abs(ratio - 1) > SAME]
    return swept(wrong, len(specs), rounded(measured), tuple(specs), tightness=spread(list(measured.values())))


@MEASURES.of("eighty-one")
def _eighty_one(laboratory: Laboratory) -> Measurement:
    specs = laboratory.scope["networks"]
    loads = {spec: proven_load(laboratory, spec, tol=0.05, time_limit_s=600.0) for spec in specs}
    measured = {spec: load / optimal_time(laboratory, spec) for spec, load in loads.items()}
    choices = Readings("network")
    for spec, ratio in measured.items():
        choices.add(spec, similar(ratio), round(ratio, 3))
    return choices.measurement(tuple(specs), measured=rounded(measured))


def dimension_loads(shape: tuple[int, ...]) -> tuple[float, list[float]]:
    """The largest arc load of dimension-ordered routes, ties split evenly, and that of every dimension."""
    n, loads = int(np.prod(shape)), []
    for k in shape:
        # n / k pairs go from x to x + j on every ring of this dimension: earlier dimensions are done, later ones not.
        ring = np.zeros((2, k))
        for x in range(k):
            for j in range(1, k):
                forward = 1.0 if j < k - j or k == 2 else 0.0 if j > k - j else 0.5
                np.add.at(ring[0], (x + np.arange(j)) % k, forward * n / k)
                np.add.at(ring[1], (x - np.arange(k - j)) % k, (1 - forward) * n / k)
        loads.append(float(ring.max()))
    return max(loads), loads


@MEASURES.of("dimension-order")
def _dimension_order(laboratory: Laboratory) -> Measurement:
    side = int(laboratory.scope["largest side in two dimensions"])
    shapes: list[tuple[int, ...]] = [(a, b) for a in range(2, side + 1) for b in range(a, side + 1)]
    shapes += [tuple(shape) for shape in laboratory.scope["tori of three dimensions"]]
    sweep = Sweep()
    for shape in shapes:
        topology = parse("torus:" + "x".join(map(str, shape)))
        data = ConcurrentFlow.by_source(topology)
        tail, head = (np.array(np.unravel_index(end, shape)) for end in (topology.tail, topology.head))
        load, _ = dimension_loads(shape)
        proven = max(1 / data.length_bound((tail[axis] != head[axis]).astype(float)) for axis in range(len(shape)))
        sweep.add(
            load / proven,
            holds=load <= proven * (1 + SAME),
            size=topology.n,
            case=f"{topology.spec}: {load} > {proven}",
        )
    return sweep.measurement(
        f"optimal on {sweep.met} of {len(shapes)} tori",
        (f"tori of {len(shapes)} shapes, 2x2 to {side}x{side} and 3-D",),
    )


@MEASURES.of("balanced-paths")
def _balanced(laboratory: Laboratory) -> Measurement:
    specs = laboratory.scope["networks"]
    measured = {spec: proven_load(laboratory, spec, paths="shortest") / certified_time(spec) for spec in specs}
    return Measurement(rounded(measured), instances=tuple(specs))


@MEASURES.of("virtual-channels")
def _layers(laboratory: Laboratory) -> Measurement:
    measured: dict[str, Json] = {}
    wrong = []
    specs, heuristics = laboratory.scope.values("networks", "heuristics")
    for spec, heuristic in product(specs, heuristics):
        record = laboratory.solve(LAYERS, spec, method="layer-assignment", paths="disjoint", heuristic=heuristic)
        if not record["verified"]:
            wrong.append(f"{spec}, {heuristic}: {record['message']}")
        measured[f"{spec}, {heuristic}"] = int(record["objective"])
    return swept(wrong, len(measured), measured, tuple(specs))
