"""Claims of the all-to-all paper about weighted paths: path sets, extraction, spreading, forwarding bandwidth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.ledger.claim import Measurement, Measures
from opticoll.analysis.ledger.comparisons import certified_flow
from opticoll.analysis.ledger.readings import Readings, Sweep, spread, swept
from opticoll.analysis.ledger.tolerances import ABOUT, SAME, similar
from opticoll.analysis.ledger.verdict import verdict_if
from opticoll.analysis.papers.alltoall.claims import (
    optimal_time,
    path_optimum,
)
from opticoll.formulations.alltoall import path_mcf
from opticoll.formulations.flows.path_flow import arc_load
from opticoll.instances import parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.analysis.ledger.claim import Laboratory
    from opticoll.formulations.flows.path_flow import PathFlow
    from opticoll.instances import Topology


PATHS = "alltoall.path-mcf"
MEASURES = Measures("alltoall")


@MEASURES.of("disjoint-paths")
def _disjoint(laboratory: Laboratory) -> Measurement:
    scope = laboratory.scope
    largest = float(scope["paths of a pair over degree, at most"])
    sweep, most = Sweep(), 0.0
    ratios: dict[str, float] = {}
    for spec in (*scope["networks"], *scope["networks with disabled links"]):
        topology = parse(spec)
        paths = path_mcf.PathConcurrentFlow.prepare(topology, {"paths": "disjoint"}).routing.paths
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
    choices = Readings("networks")
    for name, floor in (("all networks", 0), ("networks of 20 nodes and more", 20)):
        tested = [ratio for spec, ratio in ratios.items() if parse(spec).n >= floor]
        if tested:
            choices.add(name, max(tested) <= 1 + SAME, round(max(tested), 4))
    return choices.measurement(
        tuple(ratios),
        measured=f"{sweep.met} of {len(ratios)} equal the MCF; the smallest that does not: {sweep.row['witness']}",
        tightness=spread(sweep.ratios),
        saved_by="networks of figure 7 that are not among ours",
    )


@MEASURES.of("mcf-extp")
def _extracted(laboratory: Laboratory) -> Measurement:
    specs = laboratory.scope["networks"]
    sweep = Sweep()
    for spec in specs:
        topology = parse(spec)
        ratio = certified_flow(topology) / laboratory.solve(PATHS, spec, method="mcf-extp", paths="all")["objective"]
        sweep.add(ratio, holds=ratio <= 1 + SAME, size=topology.n, case=f"{spec}: T / optimum = {ratio:.6g}")
    return sweep.measurement(f"{sweep.met} of {len(specs)} equal the MCF", tuple(specs))


def even_load(data: PathFlow) -> float:
    """The largest load over capacity when every pair is split evenly over its paths: its T."""
    counts = np.bincount(data.paths.pair, minlength=data.paths.pairs)
    load = arc_load(data.paths, 1.0 / counts[data.paths.pair])
    return float((load / np.asarray(data.topology.capacity)).max())


@MEASURES.of("equal-weights")
def _even_weights(laboratory: Laboratory) -> Measurement:
    measured: dict[str, Any] = {}
    wrong = []
    for spec in laboratory.scope["networks"]:
        topology = parse(spec)
        flow = certified_flow(topology)
        even = even_load(path_mcf.PathConcurrentFlow.prepare(topology, {"paths": "shortest"}).routing) * flow
        single = laboratory.proven("alltoall.min-congestion", spec, method="exact-routing")["objective"] * flow
        measured[spec] = {"one path": round(single, 4), "shortest paths, equal weights": round(even, 4)}
        if min(single, even) > 1 + SAME:
            wrong.append(spec)
    return swept(wrong, len(measured), measured, tuple(measured))


@MEASURES.of("path-throughput")
def _path_throughput(laboratory: Laboratory) -> Measurement:
    spec = laboratory.scope["network"]
    topology = parse(spec)
    link = 1 / certified_flow(topology)
    path = 1 / path_optimum(topology, paths="disjoint")
    steps = int(topology.diameter)
    stepped = laboratory.proven("alltoall.timestep-mcf", spec, steps=steps, aggregate="source")["objective"]
    return Measurement(
        {"link-based": round(link, 6), "path-based": round(path, 6), f"time-stepped, {steps} steps": round(stepped, 6)},
        instances=(spec,),
        value=round(path / link, 6),
    )


@MEASURES.of("forwarding")
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


def shortest_path_counts(topology: Topology) -> np.ndarray:
    """Number of shortest paths from every rank to every vertex, ``(N, n)``; parallel arcs count as separate paths."""
    count = (topology.hops == 0).astype(float)  # (N, n), by source
    onward = topology.hops[:, topology.tail] + 1 == topology.hops[:, topology.head]
    for hop in range(1, int(topology.diameter) + 1):
        source, arc = np.nonzero(onward & (topology.hops[:, topology.head] == hop))
        np.add.at(count, (source, topology.head[arc]), count[source, topology.tail[arc]])
    return count


@MEASURES.of("path-diversity")
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


@MEASURES.of("shortest-paths")
def _spread_alike(laboratory: Laboratory) -> Measurement:
    scope = laboratory.scope
    well = 1 + ABOUT
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
                        even_load(path_mcf.PathConcurrentFlow.prepare(topology, rule).routing)
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
        measured={
            name: {family: max(values) for family, values in ratios.items()} for name, ratios in measured.items()
        },
        tightness=spread(every),
    )
