"""Claims of SiP-ML's section 3.2: partitioning, and degree-aware placement with Algorithm 1 and its repair."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.ledger.claim import Laboratory, Measurement, Measures
from opticoll.analysis.ledger.readings import Readings, Sweep
from opticoll.analysis.papers.sipml.claims import hybrid_traffic
from opticoll.solvers.task import PROVEN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opticoll.formulations.sipml.placement import Placement
    from opticoll.instances.families.op_graphs import OpGraph
    from opticoll.instances.topology import I64, Mask
    from opticoll.types import Json

    #: A seed, a problem and the GPU of every sub-operation.
    Placed = tuple[int, Placement, I64]

PER_DIRECTION = "sends to, and receives from, counted separately"
BOTH = "sends to or receives from"
#: Number of moves after which a repair counts as endless, even if no state repeats.
ENDLESS = 100_000
#: Distances between GPUs in section 3.2 are along a circle.
ON_THE_CIRCLE = (
    "around the circle, ties to the lower number",
    "around the circle, ties ahead",
    "around the circle, ties back",
    "ahead only",
    "back only",
)
#: Rules for the nearest GPU, lowest key first; arguments: k, the GPU to move from, the candidate.
NEAREST: dict[str, Callable[[int, int, int], tuple[int, ...]]] = dict(
    zip(
        ON_THE_CIRCLE,
        (
            lambda k, g, h: (min((h - g) % k, (g - h) % k), h),
            lambda k, g, h: (min((h - g) % k, (g - h) % k), (h - g) % k),
            lambda k, g, h: (min((h - g) % k, (g - h) % k), (g - h) % k),
            lambda k, g, h: ((h - g) % k,),
            lambda k, g, h: ((g - h) % k,),
        ),
        strict=True,
    )
)
#: Rules for the choice among the GPUs in reach of most inputs, lowest key first: time free, GPU, GPU of last input, k.
PLACES: dict[str, Callable[[float, int, int, int], tuple[float, ...]]] = {
    "first free": lambda free, h, last, k: (free, h),
    "lowest number": lambda free, h, last, k: (h,),
    "highest number": lambda free, h, last, k: (-h,),
    "next after the last input": lambda free, h, last, k: ((h - last) % k,),
}
LINE = "ahead only, GPUs in a line that repeats"
MEASURES = Measures("sipml")


def random_graph(random: np.random.Generator, n: int) -> OpGraph:
    """A random graph of n sub-operations with durations 1 to 8, in topological order."""
    from opticoll.instances.families.op_graphs import OpGraph

    tail, head = np.nonzero(np.triu(random.random((n, n)) < random.uniform(0.1, 0.5), 1))
    return OpGraph(random.integers(1, 9, n), np.arange(n), tail, head, np.ones(tail.size))


def described(data: Placement) -> str:
    """A graph and its limits in words, from which it can be built again."""
    graph = data.graph
    arcs = " ".join(f"{u}>{v}" for u, v in zip(graph.tail.tolist(), graph.head.tolist(), strict=True))
    return (
        f"k = {data.devices}, Delta = {data.delta}, durations {' '.join(f'{d:g}' for d in graph.duration)}, "
        f"dependencies {arcs}"
    )


# The distance constraint --------------------------------------------------------------------------------------------


def partners(pairs: Mask) -> dict[str, int]:
    """Maximum number of GPUs that a GPU communicates with, per direction and in both; ``pairs`` is (GPUs, GPUs)."""
    off = pairs & ~np.eye(len(pairs), dtype=bool)
    return {
        PER_DIRECTION: int(max(off.sum(axis=0).max(), off.sum(axis=1).max())),
        BOTH: int((off | off.T).sum(axis=1).max()),
    }


def _placements(laboratory: Laboratory, k: int | None = None, delta: int | None = None) -> Iterator[Placed]:
    """Seeds, random graphs and their placements by Algorithm 1, with k and Delta at random unless given."""
    from opticoll.formulations.sipml import placement
    from opticoll.solvers.methods.sipml.degree_aware import Unrolled

    for seed in laboratory.seeds(laboratory.scope["seeds"]):
        random = np.random.default_rng(seed)
        for _case in range(laboratory.scope["graphs per seed"]):
            devices, limit = int(random.integers(3, 12)), int(random.integers(1, 6))
            graph = random_graph(random, int(random.integers(12, laboratory.scope["sub-ops"] + 1)))
            parameters = {"k": k or devices, "degree": (delta or limit) + 1, "replicas": 2}
            data = placement.Placement.prepare(graph, parameters)
            state = Unrolled(data, 0)
            state.place()
            yield seed, data, np.array(state.device)


def _counted(
    cases: Iterator[Placed],
    traffic: Callable[[Placement, I64], Mask],
    limit: Callable[[Placement], int],
    instances: tuple[str, ...],
) -> Measurement:
    """The verdict on a largest number of communication partners, for both ways of counting them."""
    sweeps = {PER_DIRECTION: Sweep(), BOTH: Sweep()}
    failures: dict[str, Counter[int]] = {name: Counter() for name in sweeps}
    for seed, data, device in cases:
        most = partners(traffic(data, device))
        for name, sweep in sweeps.items():
            holds = most[name] <= limit(data)
            failures[name][seed] += not holds
            sweep.add(
                most[name] / limit(data),
                holds=holds,
                size=data.n,
                case=f"{most[name]} partners, limit {limit(data)}: {described(data)}, GPUs "
                f"{' '.join(map(str, device))}",
            )
    choices = Readings("communicates with")
    for (name, sweep), counts in zip(sweeps.items(), failures.values(), strict=True):
        choices.add(
            name,
            not sweep.wrong,
            f"{len(sweep.wrong)} of {len(sweep.ratios)} placements exceed it"
            + (f" ({min(counts.values())} to {max(counts.values())} per seed)" if sweep.wrong else ""),
        )
    counted = sweeps[PER_DIRECTION].row
    counted["witness"] = sweeps[BOTH].row["witness"]  # what the other reading takes for a failure
    return choices.measurement(instances, **counted)


@MEASURES.of("distance")
def _distance(laboratory: Laboratory) -> Measurement:
    def traffic(data: Placement, device: I64) -> Mask:
        pairs = np.zeros((data.devices, data.devices), dtype=bool)
        pairs[device[data.graph.tail], device[data.graph.head]] = True
        return pairs

    return _counted(
        _placements(laboratory),
        traffic,
        lambda data: data.delta,
        (f"random graphs of 12 to {laboratory.scope['sub-ops']} sub-ops on 3 to 11 GPUs",),
    )


def with_weights(data: Placement, groups: int) -> Placement:
    """The same problem with parameters in every sub-operation, so the groups synchronise."""
    from dataclasses import replace

    from opticoll.instances.families.op_graphs import OpGraph

    graph = data.graph
    weighted = OpGraph(
        graph.duration, graph.operation, graph.tail, graph.head, graph.volume, np.ones(graph.n), spec=graph.spec
    )
    return replace(data, graph=weighted, replicas=groups)


@MEASURES.of("hybrid-degree")
def _hybrid(laboratory: Laboratory) -> Measurement:
    k, groups, degree = laboratory.scope.values("k", "l", "D")

    def traffic(data: Placement, device: I64) -> Mask:
        return hybrid_traffic(with_weights(data, groups), device, degree).traffic > 0

    return _counted(
        _placements(laboratory, k, degree - 1),
        traffic,
        lambda _: int(degree),
        (f"random graphs of 12 to {laboratory.scope['sub-ops']} sub-ops",),
    )


def candidate_ranges(devices: Sequence[int], k: int, delta: int) -> dict[str, set[int]]:
    """Algorithm 1's candidates for predecessors on ``devices``, by what farthest and nearest mean."""
    far = min(devices, key=lambda h: (max((g - h) % k for g in devices), h))
    near = far + max((g - far) % k for g in devices)
    return {
        "along the circle": {g % k for g in range(near, far + delta + 1)},
        "by number": {g % k for g in range(max(devices), min(devices) + delta + 1)},
    }


@MEASURES.of("range")
def _range(laboratory: Laboratory) -> Measurement:
    forbidden, missed = (dict.fromkeys(("along the circle", "by number"), 0) for _ in range(2))
    count, witness = 0, None
    for k in range(2, laboratory.scope["k"] + 1):
        for delta in range(1, k):
            for size in range(1, laboratory.scope["predecessors"] + 1):
                for devices in itertools.combinations(range(k), size):
                    allowed = {g for g in range(k) if all((g - h) % k <= delta for h in devices)}
                    count += 1
                    for name, members in candidate_ranges(devices, k, delta).items():
                        forbidden[name] += not members <= allowed
                        missed[name] += not allowed <= members
                        if witness is None and not members <= allowed:
                            witness = f"k={k}, Delta={delta}, predecessors on {devices}, read {name}: {sorted(members)}"
    choices = Readings("farthest and nearest")
    for name, number in forbidden.items():
        choices.add(name, not number, f"{number} of {count} ranges have a GPU out of reach")
    return choices.measurement(
        (f"all sets of GPUs with predecessors, k up to {laboratory.scope['k']}",),
        "A range never allows a GPU out of reach. It may omit some in reach: the range along the circle in "
        f"{missed['along the circle']} cases, where the GPUs in reach are not consecutive, the range by number "
        f"in {missed['by number']}, also where predecessors are on both sides of GPU 0.",
        count=count,
        violations=sum(forbidden.values()),
        witness=witness,
    )


# The repair ---------------------------------------------------------------------------------------------------------


def repair_ends(data: Placement, nearest: str, place: str) -> bool:
    """Whether the printed repair ends under a rule for the nearest GPU and one for the sub-op out of reach."""
    from opticoll.solvers.methods.sipml.degree_aware import Repair

    class Printed(Repair):
        def nearest(self, g: int, bits: int) -> int:
            return min((h for h in range(self.k) if bits >> h & 1), key=lambda h: NEAREST[nearest](self.k, g, h))

        def nearest_behind(self, g: int, reached: int) -> int:
            return self.nearest(g, sum(1 << (reached - step) % self.k for step in range(self.delta + 1)))

        def most_inputs(self, v: int, free: list[float]) -> int:
            inputs = [self.device[u] for u in self.inputs(v)]
            votes = [sum(self.ahead[g] >> h & 1 for g in inputs) for h in range(self.k)]
            rank = PLACES[place]
            return min(range(self.k), key=lambda h: (-votes[h], *rank(free[h], h, inputs[-1], self.k)))

    return Printed(data, ENDLESS).place()


@MEASURES.of("convergence")
def _convergence(laboratory: Laboratory) -> Measurement:
    from opticoll.formulations.sipml import placement
    from opticoll.solvers.methods.sipml.degree_aware import Unrolled

    problems: dict[str, Placement] = {}
    sizes = range(7, laboratory.scope["sub-ops"] + 1)
    for seed in laboratory.seeds(laboratory.scope["seeds"]):
        random = np.random.default_rng(seed)
        for case in range(laboratory.scope["graphs per seed"]):
            graph = random_graph(random, sizes[case % len(sizes)])
            data = placement.Placement.prepare(graph, {"k": min(8, graph.n), "degree": int(random.integers(2, 5))})
            problems[described(data)] = data
    choices, failing = Readings("nearest GPU"), []
    for nearest in NEAREST:
        counts = []
        for place in PLACES:
            endless = [data for data in problems.values() if not repair_ends(data, nearest, place)]
            counts.append(len(endless))
            failing += [(data.n, data.graph.dependencies, f"{described(data)}; {nearest}; {place}") for data in endless]
        number = f"{counts[0]}" if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)}"
        choices.add(nearest, max(counts) == 0, f"{number} of {len(problems)} do not end, by {len(PLACES)} rules for x")
    unrolled = sum(not Unrolled(data, 0).place() for data in problems.values())
    choices.add(LINE, unrolled == 0, f"{unrolled} of {len(problems)} do not end")
    return choices.measurement(
        (f"{len(problems)} different random graphs of {sizes[0]} to {sizes[-1]} sub-ops, k at most 8",),
        count=len(problems) * (len(NEAREST) * len(PLACES) + 1),
        violations=len(failing),
        witness=min(failing)[2] if failing else None,
    )


@MEASURES.of("prohibitive")
def _prohibitive(laboratory: Laboratory) -> Measurement:
    from opticoll.formulations.sipml import placement, placement_solution
    from opticoll.instances import parse
    from opticoll.solvers.methods.sipml.degree_aware import Unrolled

    size, share = laboratory.scope.values("sub-ops", "share of the size")
    unproven: dict[str, list[int]] = {}
    measured: dict[str, Json] = {}
    specs = []
    for layers, parts, k in laboratory.scope["(layers, parts, k)"]:
        spec = f"op-graph:model=transformer,layers={layers},parts={parts}"
        record = laboratory.solve(
            "sipml.placement", spec, method="highs", k=k, degree=3, time_limit_s=laboratory.scope["time limit [s]"]
        )
        n = parse(spec).n
        gap = "no placement" if record["gap"] is None else f"gap {100 * record['gap']:.0f} %"
        measured[f"{n} sub-ops, k = {k}"] = "proven" if record["proof"] in PROVEN else gap
        unproven.setdefault(f"k = {k}", []).append(n if record["proof"] not in PROVEN else size)
        specs.append(spec)
    whole = "op-graph:model=transformer,layers=136,parts=32"
    data = placement.Placement.prepare(parse(whole), {"k": 32, "degree": 5})
    placed = data.n if data.n > size and Unrolled(data, 0).place() else 0
    measured["placed by Algorithm 1"] = placed
    variables = placement_solution.estimate(data)["variables"]
    choices = Readings("model of the transformer")
    for name, sizes in unproven.items():
        choices.add(name, min(sizes) <= share * size and placed > size, f"no proof for {min(sizes)} sub-ops")
    return choices.measurement(
        (*specs, whole),
        f"A disjunctive program, solved by HiGHS, is out of reach at less than {100 * share:g} % of the size; "
        f"with {data.n:,} sub-ops it has up to {variables - data.n - 1:,} binaries. The paper "
        "states no program, and layers and parts are our choice; another program may go further. Algorithm 1 "
        "places the whole graph in seconds.",
        measured,
    )


# Partitioning -------------------------------------------------------------------------------------------------------


def _makespan(
    durations: Sequence[float], arcs: Sequence[tuple[int, int]], device: Sequence[int], delay: float
) -> float:
    """End of the last sub-op if each starts as soon as its inputs and its GPU are ready, in the order given."""
    free: dict[int, float] = {}
    end: list[float] = []
    for v, duration in enumerate(durations):
        ready = [end[u] + delay * (device[u] != device[v]) for u, head in arcs if head == v]
        end.append(max([free.get(device[v], 0.0), *ready]) + duration)
        free[device[v]] = end[-1]
    return max(end)


def _stages(durations: Sequence[float], parts: int) -> tuple[list[float], list[tuple[int, int]]]:
    """Durations and dependencies of sequential ops, each of equal parts that depend on all parts before."""
    split = [duration / parts for duration in durations for _ in range(parts)]
    arcs = [
        (first * parts + i, (first + 1) * parts + j)
        for first in range(len(durations) - 1)
        for i in range(parts)
        for j in range(parts)
    ]
    return split, arcs


@MEASURES.of("sequential")
def _sequential(laboratory: Laboratory) -> Measurement:
    k, ops = laboratory.scope.values("GPUs", "sequential ops")
    spreads: dict[str, list[float]] = {"computing time": [], "with transfer time": []}
    loads = []
    for seed in laboratory.seeds(laboratory.scope["seeds"]):
        durations = np.random.default_rng(seed).integers(1, 9, ops).astype(float).tolist()
        for parts in range(1, k + 1):
            split, arcs = _stages(durations, parts)
            placements = [
                [gpu for stage in stages for gpu in stage]
                for stages in itertools.product(list(itertools.permutations(range(k), parts)), repeat=ops)
            ]
            for name, delay in zip(spreads, (0.0, 1.0), strict=True):
                times = [_makespan(split, arcs, device, delay) for device in placements]
                spreads[name].append(max(times) / min(times))
            load = [max(np.bincount(device, split)) for device in placements]
            loads.append(max(load) / min(load))
    beside = (1.0, 2.0, 2.0, 1.0), [(0, 3)]
    apart, together = (
        min(
            _makespan(*beside, device, 0.0)
            for device in itertools.product(range(2), repeat=4)
            if (device[0] == device[3]) == same
        )
        for same in (False, True)
    )
    stages = "sequential stages"
    choices = Readings("setting")
    choices.add(
        f"{stages}, computing time only",
        max(spreads["computing time"]) <= 1 + 1e-9,
        max(spreads["computing time"]),
    )
    choices.add(
        f"{stages}, with transfer time",
        max(spreads["with transfer time"]) <= 1 + 1e-9,
        max(spreads["with transfer time"]),
    )
    choices.add("other ops run beside them", together <= apart, together / apart)
    return choices.measurement(
        (f"{ops} sequential ops of 1 to {k} parts on {k} GPUs",),
        "In sequential stages the run time is the same under all placements, although the largest load of a GPU "
        "is not. This fails where transfers take time, or where other ops run alongside: with u (time 1) "
        f"before v (1) and independent ops of times 2 and 2, two GPUs take {apart:g} with u and v apart, "
        f"{together:g} with both on one GPU.",
        {"longest over shortest run time": choices[0].measured, "largest over smallest load": max(loads)},
        count=len(loads),
    )


def _in_rounds(durations: I64, parts: int, k: int) -> float:
    """Run time of sequential ops of equal parts on k GPUs: all parts of an op, k at a time, precede the next op."""
    return float((durations * -(-parts // k) / parts).sum())


def _best(durations: Sequence[float], k: int) -> float:
    """Minimum makespan of independent sub-ops on k GPUs, over all placements."""
    return min(
        float(np.bincount(device, durations).max()) for device in itertools.product(range(k), repeat=len(durations))
    )


@MEASURES.of("split-cap")
def _cap(laboratory: Laboratory) -> Measurement:
    most, ops = laboratory.scope.values("parts over k", "sequential ops")
    wrong, ratios = [], []
    for k in laboratory.scope["k"]:
        for seed in laboratory.seeds(laboratory.scope["seeds"]):
            durations = np.random.default_rng(seed).integers(1, 9, ops)
            times = {parts: _in_rounds(durations, parts, k) for parts in range(1, most * k + 1)}
            ratios.append(min(times.values()) / times[k])
            if ratios[-1] < 1 - 1e-9:
                wrong.append(f"k={k}, durations {durations.tolist()}")
    pair = {parts: _best([1.0] + [3.0 / parts] * parts, 2) for parts in range(1, 2 * most + 1)}
    capped, free = min(pair[1], pair[2]), min(pair.values())
    choices = Readings("ops")
    choices.add("sequential", not wrong, f"never faster with more than k parts in {len(ratios)} cases")
    choices.add(
        "two side by side",
        free >= capped,
        f"with k = 2, ops of times 3 and 1: {capped:g} with at most 2 parts, {free:g} with 3",
    )
    return choices.measurement(
        (f"{ops} sequential ops, up to {most} k parts", "two ops of times 3 and 1, k = 2"),
        measured={"sequential": min(ratios), "two ops side by side": free / capped},
        value=min(ratios),
        count=len(ratios),
        violations=len(wrong),
        witness=wrong[0] if wrong else None,
    )


# The example and the choice of k and l -------------------------------------------------------------------------------


def example_placements(k: int, delta: int, parts: Sequence[int], rule: str) -> Iterator[tuple[frozenset[int], ...]]:
    """GPUs of the ops A, B, C, D of figure 4, in this order, within the limit on communication.

    The parts of A, B and D are on different GPUs, those of C on all GPUs but one. B is on GPU 0, since
    rotations of the GPUs change nothing. ``rule`` is ``distance``, or a key of :func:`partners`.
    """
    first, second, third, last = (
        [frozenset(chosen) for chosen in itertools.combinations(range(k), count)]
        for count in (parts[0], parts[1], k - 1, parts[3])
    )
    for stages in itertools.product(first, second[:1], third, last):
        pairs = np.zeros((k, k), dtype=bool)
        for before, after in itertools.pairwise(stages):
            pairs[np.ix_(sorted(before), sorted(after))] = True
        source, target = np.nonzero(pairs)
        within = bool(((target - source) % k <= delta).all()) if rule == "distance" else partners(pairs)[rule] <= delta
        if within:
            yield stages


@MEASURES.of("figure-4")
def _figure_4(laboratory: Laboratory) -> Measurement:
    k, delta, c = laboratory.scope.values("k", "Delta", "parts of C")
    choices = Readings("limit on communication")
    for rule in ("distance", PER_DIRECTION, BOTH):
        fits = [
            (a, d)
            for a in range(1, k + 1)
            for d in range(1, k + 1)
            if any(True for _ in example_placements(k, delta, (a, 1, c, d), rule))
        ]
        fitting = ", ".join(f"{a} and {d}" for a, d in fits) or "none"
        choices.add(rule, bool(fits), f"parts of A and D: {fitting}")
    return choices.measurement((f"A, B, C, D in sequence; B one part, C {c}; k = {k}",), count=len(choices) * k * k)


@MEASURES.of("hybrid-search")
def _search(laboratory: Laboratory) -> Measurement:
    from opticoll.solvers.methods.sipml.degree_aware import hybrids

    gpus, degree, bandwidth = laboratory.scope.values("GPUs", "D", "bandwidth [bytes/s]")
    choices, measured = Readings("model"), {}
    for model, layers, hidden, batch in laboratory.scope["(model, layers, width, batch)"]:
        spec = f"op-graph:model={model},layers={layers},hidden={hidden}"
        tried = hybrids(spec, gpus, batch, degree=degree, bandwidth=bandwidth)
        every = [k for k in range(1, gpus + 1) if gpus % k == 0]
        times = {one.k: one.time for one in tried}
        best = min(times, key=lambda k: times[k]) if times else None
        measured[model] = {
            "best k": best,
            "iteration by k [us]": {f"k = {k}": round(time, 1) for k, time in times.items()},
        }
        gain = ""
        if best is not None and {1, gpus} <= set(times):
            gain = f"; {times[1] / times[best]:.3g} and {times[gpus] / times[best]:.3g} times as fast as k = 1 and N"
        choices.add(model, list(times) == every, f"{len(times)} of {len(every)} placed{gain}")
    return choices.measurement(tuple(choices.by_reading), measured=measured)
