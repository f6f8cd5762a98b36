"""Claims of the all-to-all paper about weighted paths: path sets, extraction, spreading, forwarding bandwidth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.ledger.claim import Claims, Measurement
from opticoll.analysis.ledger.comparisons import certified_flow
from opticoll.analysis.ledger.printed_number import ABOUT, similar
from opticoll.analysis.ledger.readings import SAME, Readings, Sweep, spread, swept
from opticoll.analysis.ledger.verdict import verdict_if
from opticoll.analysis.papers.alltoall.claims import (
    FORMULAS_LOST,
    NUMBERS_LOST,
    optimal_time,
    path_optimum,
)
from opticoll.analysis.papers.alltoall.natural_readings import DISJOINT, EVEN_SPLIT
from opticoll.analysis.papers.alltoall.schedule_choice import shortest_path_counts
from opticoll.formulations.alltoall import path_mcf
from opticoll.formulations.flows.path_flow import arc_load
from opticoll.instances import parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.analysis.ledger.claim import Laboratory
    from opticoll.formulations.flows.path_flow import PathFlow
    from opticoll.instances import Topology


#: Graphs of the families in figure 7, small enough to be solved quickly.
SPREAD_OUT = [
    "hypercube:3",
    "hypercube:4",
    "bipartite:4x4",
    "torus:3x3",
    "torus:3x4",
    "torus:4x4",
    "torus:5x5",
    "torus:3x3x3",
    "twisted-hypercube:3",
    "mesh:3x3",
    "petersen",
    "kautz:d=3,D=2",
    *(f"genkautz:n={n},d=4" for n in (8, 12, 16, 20, 25, 27)),
    *(f"genkautz:n={n},d=3" for n in (8, 12, 16, 20)),
    *(f"random-regular:n={n},d=4,seed=1" for n in (12, 16, 20)),
    *(f"xpander:n={n},d=4,seed=1" for n in (15, 20)),
]
DISABLED = [
    *(f"torus:3x3+fail={k},seed={s}" for k in (1, 2) for s in (0, 1)),
    *(f"torus:4x4+fail={k},seed=1" for k in (1, 2, 3)),
    "torus:3x3x3+fail=3,seed=1",
    *(f"genkautz:n=16,d=4+fail={k},seed=0" for k in (1, 2, 3)),
    *(f"random-regular:n=16,d=4,seed=1+fail={k},seed=0" for k in (1, 2)),
]
PATHS = "alltoall.path-mcf"
CLAIMS = Claims("alltoall")


@CLAIMS.stated(
    "disjoint-paths",
    "sections 3.1.4 and 6.3, figure 7",
    "The path LP over a maximal set of link-disjoint paths, at most d per pair, is observed to achieve the "
    "optimal rates of the link MCF on tori and expanders, also after links are disabled",
    "equal",
    "1e-6 to 5 %",
    scope={
        "networks": SPREAD_OUT,
        "networks with disabled links": DISABLED,
        "equal within": [1e-6, 0.01, 0.05],
        "paths of a pair over degree, at most": 1.0,
    },
    natural=DISJOINT,
    printed=1,
    second="disjoint_paths_of_eight_and_sixteen_nodes",
    procedure="We solve the path LP over one maximum set of arc-disjoint paths per pair, and compare with "
    "certified optima over all paths.",
    lost="Figure 7 with its networks and sizes.",
)
def _disjoint(laboratory: Laboratory) -> Measurement:
    scope = laboratory.scope
    slacks, largest = scope["equal within"], float(scope["paths of a pair over degree, at most"])
    sweep, most = Sweep(), 0.0
    ratios: dict[str, float] = {}
    for spec in (*scope["networks"], *scope["networks with disabled links"]):
        topology = parse(spec)
        paths = path_mcf.PathConcurrentFlow.prepare(topology, {"paths": "disjoint"}).paths
        most = max(most, np.bincount(paths.pair).max() / int(topology.out_degree.max()))
        ratios[spec] = certified_flow(topology) / path_optimum(topology, paths="disjoint")
        sweep.add(
            ratios[spec],
            holds=ratios[spec] <= 1 + SAME,
            size=topology.n,
            case=f"{spec}: {100 * (ratios[spec] - 1):.2g} % more time than the MCF",
        )
    if most > largest:
        msg = f"a pair has {most} times as many disjoint paths as its degree"
        raise ArithmeticError(msg)
    rules = [
        ((f"within {100 * slack:g} %", what), slack, floor)
        for slack in slacks
        for what, floor in (("all networks", 0), ("networks of 20 nodes and more", 20))
    ]
    choices = Readings("equal; networks")
    for name, slack, floor in rules:
        tested = {spec: ratio for spec, ratio in ratios.items() if parse(spec).n >= floor}
        if tested:
            choices.add(name, max(tested.values()) <= 1 + slack, round(max(tested.values()), 4))
    return choices.measurement(
        tuple(ratios),
        "One maximum set of arc-disjoint paths per pair, of least total length; no pair has more than d. It is exact "
        "on tori, hypercubes, random regular graphs and Xpanders, and on most of them with disabled links. GenKautz "
        "graphs of 8 and 16 nodes need other paths, as do 60 random maximum sets; the larger ones come close. The "
        "paper reads the equality off a plot whose sizes are lost. Ratio: largest T over the path set to the optimal "
        "T.",
        f"{sweep.met} of {len(ratios)} equal the MCF; the worst takes {100 * (max(sweep.ratios) - 1):.2g} % more time",
        **sweep.row,
    )


@CLAIMS.stated(
    "mcf-extp",
    "sections 1, 3.2.1 and 6.3",
    "Extracting the widest paths first from the MCF flow keeps its throughput on the paper's networks",
    "equal",
    "1e-6",
    scope={"networks": ["hypercube:3", "bipartite:4x4", "torus:3x3", "genkautz:n=16,d=4", "torus:3x3+fail=2,seed=1"]},
    weight="textbook",
    procedure="We extract widest paths from an optimal flow until none is left, check them, and compare their "
    "rate with the optimum.",
)
def _extracted(laboratory: Laboratory) -> Measurement:
    specs = laboratory.scope["networks"]
    sweep = Sweep()
    for spec in specs:
        topology = parse(spec)
        ratio = certified_flow(topology) / laboratory.solve(PATHS, spec, method="mcf-extp", paths="all")["objective"]
        sweep.add(ratio, holds=ratio <= 1 + SAME, size=topology.n, case=f"{spec}: T / optimum = {ratio:.6g}")
    return sweep.measurement(
        f"{sweep.met} of {len(specs)} equal the MCF",
        tuple(specs),
        "The paths of a flow without cycles carry all of it, so only cycles can be lost. Ratio: T of the paths to "
        "the optimal T.",
    )


def even_load(data: PathFlow) -> float:
    """The largest load over capacity when every pair is split evenly over its paths: its T."""
    counts = np.bincount(data.paths.pair, minlength=data.paths.pairs)
    load = arc_load(data.paths, 1.0 / counts[data.paths.pair])
    return float((load / np.asarray(data.topology.capacity)).max())


@CLAIMS.stated(
    "equal-weights",
    "section 5",
    "The MCF solutions of hypercube, 3-D torus and complete bipartite graph need one path per pair or paths of "
    "equal weight",
    "no more than T",
    "1e-6",
    scope={"networks": ["hypercube:3", "torus:3x3x3", "bipartite:4x4"]},
    procedure="We compare the best single paths and the even split over all shortest paths with certified optima.",
)
def _even_weights(laboratory: Laboratory) -> Measurement:
    measured: dict[str, Any] = {}
    wrong = []
    for spec in laboratory.scope["networks"]:
        topology = parse(spec)
        flow = certified_flow(topology)
        even = even_load(path_mcf.PathConcurrentFlow.prepare(topology, {"paths": "shortest"})) * flow
        single = laboratory.proven("alltoall.min-congestion", spec, method="exact-routing")["objective"] * flow
        measured[spec] = {"one path": round(single, 4), "shortest paths, equal weights": round(even, 4)}
        if min(single, even) > 1 + SAME:
            wrong.append(spec)
    return swept(
        wrong,
        len(measured),
        measured,
        tuple(measured),
        "Load over T. One path per pair suffices on the hypercube and the torus but not on the bipartite graph (3 "
        "instead of 2.5), where equal weights on all shortest paths suffice.",
    )


def least_even_load(topology: Topology, k: int, longest: int, *, repeated: bool) -> float:
    """The smallest maximum load if every pair is split evenly over k simple paths, proven by SciPy's MILP."""
    import scipy.sparse as sp
    from scipy.optimize import Bounds, LinearConstraint, milp

    paths = path_mcf.PathConcurrentFlow.prepare(topology, {"paths": "all", "lmax": longest}).paths
    last = paths.paths
    load = sp.hstack([paths.incidence / k, -sp.csr_array(np.asarray(topology.capacity, dtype=float)[:, None])])
    serve = sp.hstack([paths.membership, sp.csr_array((paths.pairs, 1))])
    cost = np.zeros(last + 1)
    cost[last] = 1.0
    result = milp(
        cost,
        integrality=np.append(np.ones(last), 0),
        bounds=Bounds(np.zeros(last + 1), np.append(np.full(last, k if repeated else 1), np.inf)),
        constraints=[LinearConstraint(sp.csr_array(load), -np.inf, 0), LinearConstraint(sp.csr_array(serve), k, k)],
        options={"time_limit": 60.0},
    )
    if result.status != 0:
        msg = f"{k} paths of equal weight on {topology.spec}: {result.message}"
        raise ArithmeticError(msg)
    return float(result.fun)


@CLAIMS.stated(
    "equal-split",
    "appendix D and section 5",
    "Spreading every pair evenly over the same number of paths, where one path is the simplest case, needs no "
    "more time than the MCF on the complete bipartite graph of 8 nodes",
    "T of the MCF",
    "1e-6",
    scope={"network": "bipartite:4x4", "paths per pair": [1, 2, 4], "longest path": 3},
    natural=EVEN_SPLIT,
    printed=1,
    procedure="For one, two and four paths per pair we choose the paths by a MILP over all short simple paths, "
    "and compare the smallest maximum load with the optimum.",
    lost=FORMULAS_LOST,
)
def _equal_split(laboratory: Laboratory) -> Measurement:
    scope = laboratory.scope
    topology = parse(scope["network"])
    counts, longest = scope["paths per pair"], int(scope["longest path"])
    fluid = 1 / certified_flow(topology)
    loads = {
        name: {k: least_even_load(topology, k, longest, repeated=repeated) for k in counts}
        for name, repeated in (("may coincide", True), ("are distinct", False))
    }
    choices = Readings("the paths of a pair")
    for name, by_count in loads.items():
        choices.add(
            name,
            min(by_count.values()) <= fluid * (1 + SAME),
            {f"{k} paths": round(load, 4) for k, load in by_count.items()},
        )
    return choices.measurement(
        (scope["network"],),
        "The smallest maximum load, proven optimal; measured: over T. Neighbours have one short path and opposite "
        "pairs four, so the same number of distinct paths forces detours; if paths may coincide, two per pair suffice "
        "where one does not.",
        {"T": round(fluid, 4), **choices.by_reading},
        value=round(min(loads["may coincide"].values()) / fluid, 6),
    )


@CLAIMS.stated(
    "path-throughput",
    "section 6.2, figure 4",
    "On the complete bipartite graph of 8 nodes path-based schedules perform comparably with link-based ones",
    "comparable",
    "equal in the model",
    scope={"network": "bipartite:4x4"},
    printed=1,
    procedure="We compare the optimal times of the path LP, the link LP and the time-stepped LP, not the "
    "testbed's throughput.",
)
def _path_throughput(laboratory: Laboratory) -> Measurement:
    spec = laboratory.scope["network"]
    topology = parse(spec)
    link = 1 / certified_flow(topology)
    path = 1 / path_optimum(topology, paths="disjoint")
    steps = int(topology.diameter)
    stepped = laboratory.proven("alltoall.timestep-mcf", spec, steps=steps, aggregate="source")["objective"]
    return Measurement(
        {"link-based": round(link, 6), "path-based": round(path, 6), f"time-stepped, {steps} steps": round(stepped, 6)},
        verdict_if(max(path, stepped) <= link * (1 + SAME)),
        (spec,),
        "T in shards over link bandwidth; measured: path-based over link-based. The testbed adds the latency and "
        "software of each runtime, which no model here contains.",
        value=round(path / link, 6),
    )


@CLAIMS.stated(
    "forwarding",
    "sections 1, 6.1 and 6.2",
    "Path-based schedules are necessary to use the forwarding bandwidth of the NICs on the torus of 27 nodes, "
    "where hosts inject less than the links carry",
    "T with NICs < T with hosts",
    "1e-6",
    scope={"network": "torus:3x3x3", "injection [Gb/s]": 100, "link [Gb/s]": 25},
    procedure="We solve the all-to-all on the network augmented with hosts of limited bandwidth, with "
    "forwarding by NICs and by hosts.",
)
def _forwarding(laboratory: Laboratory) -> Measurement:
    spec, injection = laboratory.scope["network"], float(laboratory.scope["injection [Gb/s]"])
    width = injection / float(laboratory.scope["link [Gb/s]"])
    times = {relay: optimal_time(laboratory, f"{spec}+host={width:g},relay={relay}") for relay in ("nic", "host")}
    gain = times["host"] / times["nic"]
    return Measurement(
        {
            "T, NICs forward": round(times["nic"], 4),
            "T, hosts forward": round(times["host"], 4),
            "ratio": round(gain, 4),
        },
        verdict_if(gain > 1 + SAME),
        (f"{spec}+host={width:g}",),
        f"T in shards over link bandwidth; hosts inject {width:g} link bandwidths. Where hosts forward, every shard "
        f"passes a host at each hop, so the injection bandwidth limits all of the traffic.",
    )


def most_walks(topology: Topology) -> float:
    """Maximum number of walks of at most diameter arcs between a pair, an upper bound on its paths of that length."""
    step = np.zeros((topology.n, topology.n))
    np.add.at(step, (topology.tail, topology.head), 1.0)
    power, total = np.eye(topology.n), np.zeros_like(step)
    for _length in range(int(topology.diameter)):
        power = power @ step
        total += power
    np.fill_diagonal(total, 0.0)
    return float(total.max())


@CLAIMS.stated(
    "path-diversity",
    "section 3.1.4",
    "The number of paths no longer than the diameter seems to be polynomial in N on expanders such as GenKautz, "
    "but grows faster on tori",
    "polynomial; more than polynomial",
    "power at most 2; growing power",
    scope={
        "GenKautz": "genkautz:n={n},d=4",
        "torus": "torus:{k}x{k}",
        "torus sides": [4, 6, 8, 10, 12, 16],
        "power of N, at most": 2,
    },
    procedure="We bound the number of paths from above on GenKautz graphs and from below on tori, by powers of "
    "the adjacency matrix.",
    lost=FORMULAS_LOST,
)
def _diversity(laboratory: Laboratory) -> Measurement:
    """Growth of the counts: the logarithm over log N, bounded if polynomial, and for tori over the diameter."""
    sides, degree = laboratory.scope["torus sides"], float(laboratory.scope["power of N, at most"])
    graphs: dict[int, tuple[Any, Any]] = {
        k * k: (parse(laboratory.scope["GenKautz"].format(n=k * k)), parse(laboratory.scope["torus"].format(k=k)))
        for k in sides
    }
    kautz = {n: most_walks(graph) for n, (graph, _) in graphs.items()}
    tori = {n: float(shortest_path_counts(torus).max()) for n, (_, torus) in graphs.items()}
    low = [float(np.log(count) / np.log(n)) for n, count in kautz.items()]
    high = [float(np.log(count) / np.log(n)) for n, count in tori.items()]
    steep = [float(np.log(tori[n]) / graphs[n][1].diameter) for n in tori]
    good = max(low) <= degree and all(np.diff(high) > 0) and similar(steep[-1] / steep[-2])
    return Measurement(
        {
            "GenKautz, at most": {f"N={n}": count for n, count in kautz.items()},
            "2-D torus, at least": {f"N={n}": float(f"{count:.3g}") for n, count in tori.items()},
        },
        verdict_if(good),
        (f"genkautz, torus, N = {sides[0] ** 2} .. {sides[-1] ** 2}",),
        "For the pair with the most paths: walks no longer than the diameter bound the number of paths from above on "
        f"GenKautz, at most N^{max(low):.2g}; shortest paths bound it from below on tori, a power of N that grows from "
        f"{high[0]:.2g} to {high[-1]:.2g}. There the logarithm divided by the diameter approaches {steep[-1]:.2g}. The "
        f"paper's exponents are lost.",
    )


@CLAIMS.stated(
    "shortest-paths",
    "section 1",
    "Multi-path TCP over shortest paths is reported to work well on expanders; it performs poorly on tori",
    "T near that of the MCF on expanders, above on tori",
    "well: within 10 %",
    scope={
        "expanders": [
            "genkautz:n=16,d=4",
            "genkautz:n=27,d=4",
            *(f"random-regular:n=20,d=4,seed={s}" for s in range(1, 9)),
            "xpander:n=20,d=4,seed=1",
        ],
        "tori": ["torus:4x4", "torus:5x5", "torus:4x6", "torus:6x6", "torus:3x3x3"],
        "k": [4, 8],
        "well: within": ABOUT,
    },
    natural=None,
    procedure="We split every pair over all shortest or over the k shortest paths, with equal and with optimal "
    "weights, and compare with the MCF.",
    lost=NUMBERS_LOST,
)
def _spread_alike(laboratory: Laboratory) -> Measurement:
    scope = laboratory.scope
    well = 1 + float(scope["well: within"])
    families: dict[str, Sequence[str]] = {name: scope[name] for name in ("expanders", "tori")}
    rules: dict[str, dict[str, Any]] = {
        "all shortest paths": {"paths": "shortest"},
        **{f"{k} short paths": {"paths": "k", "k": k} for k in scope["k"]},
    }
    measured: dict[str, dict[str, list[float]]] = {}
    for family, specs in families.items():
        for spec in specs:
            topology = parse(spec)
            true = optimal_time(laboratory, spec)
            for name, rule in rules.items():
                for weights in ("equal weights", "best weights"):
                    time = (
                        even_load(path_mcf.PathConcurrentFlow.prepare(topology, rule))
                        if weights == "equal weights"
                        else 1 / path_optimum(topology, **rule)
                    )
                    ratios = measured.setdefault(f"{name}, {weights}", {"expanders": [], "tori": []})
                    ratios[family].append(round(time / true, 3))
    choices = Readings("paths; weights")
    for name, ratios in measured.items():
        choices.add(name, max(ratios["expanders"]) <= well < max(ratios["tori"]), dict(ratios))
    every = [value for ratios in measured.values() for values in ratios.values() for value in values]
    return choices.measurement(
        tuple(spec for specs in families.values() for spec in specs),
        "T over that of the MCF; the largest of each family. 'Well' is read as within 10 %. Congestion control that "
        "finds the best weights does well on expanders with few paths, and poorly on larger tori; with equal weights "
        "the order is reversed or both do poorly. The paper cites the result for expanders.",
        {name: {family: max(values) for family, values in ratios.items()} for name, ratios in measured.items()},
        tightness=spread(every),
    )
