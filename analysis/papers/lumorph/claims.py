"""Claims of the LuMorph paper about its programs, the rounds of collectives, and the algorithms of sections 3 and 4."""

from __future__ import annotations

import math
from itertools import permutations, product
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.ledger.claim import Measurement, Measures
from opticoll.analysis.ledger.comparisons import seconds_of
from opticoll.analysis.ledger.readings import Readings, Sweep, swept
from opticoll.analysis.ledger.verdict import verdict_if
from opticoll.analysis.papers.lumorph.machine_times import GRIDS, optical
from opticoll.formulations.lumorph.cost_formulas import LUMORPH_4, formula
from opticoll.formulations.rounds.collectives import collective
from opticoll.formulations.rounds.round_schedule import Limits, violations
from opticoll.instances import parse
from opticoll.solvers.methods.lumorph.collective_algorithms import (
    greedy_rounds,
    independent_sets,
    layer_to_layer,
)
from opticoll.solvers.methods.lumorph.index_algorithm import index_pattern
from opticoll.solvers.methods.lumorph.patterns import recursive
from opticoll.solvers.relaxation import FARKAS
from opticoll.solvers.task import PROVEN

if TYPE_CHECKING:
    from opticoll.analysis.ledger.claim import Laboratory
    from opticoll.instances.topology import I64
    from opticoll.solvers.task import Record


MEASURES = Measures("lumorph")


# Algorithms 1 and 2 -------------------------------------------------------------------------------------------


def _outcome(record: Record) -> str:
    proven = record["proof"] in PROVEN
    if record["termination"] == "infeasible":
        return f"infeasible, proven in {seconds_of(record):.0f} s"
    rounds = record["metrics"].get("rounds")
    if rounds is None:
        return f"no schedule in {seconds_of(record):.0f} s"
    return f"{rounds} rounds, {'proven' if proven else 'not proven'} in {seconds_of(record):.0f} s"


@MEASURES.of("eight-gpus")
def _eight_gpus(laboratory: Laboratory) -> Measurement:
    n, kind = laboratory.scope.values("GPUs", "collective")
    spec = f"lightpath:{GRIDS[n]},lasers=4"
    runs: dict[str, dict[str, Any]] = {
        "as printed": {"program": "printed", "bounds": "false"},
        "as in the authors' code, at most 5 rounds": {"program": "coded", "rmax": 5},
        "as in the authors' code, at most 10 rounds": {"program": "coded", "rmax": 10, "time_limit_s": 15.0},
        "printed, with its indices corrected": {},
    }
    choices = Readings("program, solved by HiGHS")
    for words, settings in runs.items():
        record = laboratory.solve("lumorph.rounds", spec, method="highs", collective=kind, **settings)
        ended = record["proof"] in PROVEN or record["termination"] == "infeasible"
        choices.add(words, not ended, _outcome(record))
    return Measurement(choices.by_reading, instances=(spec,))


@MEASURES.of("algorithm-1")
def _algorithm_1(laboratory: Laboratory) -> Measurement:
    choices = Readings("instance")
    proven = ""
    for grid, kind in product(laboratory.scope["grids"], laboratory.scope["collectives"]):
        spec = f"lightpath:{grid},lasers=1"
        record = laboratory.solve(
            "lumorph.rounds",
            spec,
            method="highs",
            program="printed",
            bounds="false",
            collective=kind,
            exact=not choices,
        )
        if not choices and record["termination"] == "infeasible" and record["infeasible_by"] == FARKAS:
            proven = (
                f", and in rational arithmetic: opticoll solve lumorph.rounds {spec} --set program=printed --set "
                f"bounds=false --set collective={kind} --certificate FILE.vipr"
            )
        feasible = record["termination"] != "infeasible"
        choices.add(f"{kind} on {grid}", feasible, _outcome(record))
    return choices.measurement(
        tuple(choices.by_reading),
        measured="infeasible",
        saved_by="(2) with the chunks of the pre-condition, and (3) for every chunk and destination",
        witness="Section 3: a GPU may send a chunk it received in a previous round or had in the pre-condition. "
        "Formula (2): in round 1 the sum is empty, hence 0, and every C is 0; formula (3) needs a sum of 1. "
        f"Solved again: lumorph.rounds on lightpath:{laboratory.scope['grids'][0]},lasers=1, program=printed"
        f"{proven}",
    )


@MEASURES.of("algorithm-2")
def _algorithm_2(laboratory: Laboratory) -> Measurement:
    from scipy.optimize import linprog

    shown: dict[str, int] = laboratory.scope["arcs into the destination"]
    choices = Readings("instance")
    measured: dict[str, list[str]] = {}
    added: set[float] = set()
    for grid in laboratory.scope["grids"]:
        mesh = parse(f"mesh:{grid}")
        arcs = np.arange(mesh.arcs)
        into, out = np.zeros((mesh.n, mesh.arcs)), np.zeros((mesh.n, mesh.arcs))
        into[mesh.head, arcs], out[mesh.tail, arcs] = 1, 1
        s, d = 0, mesh.n - 1
        inner = [v for v in range(mesh.n) if v not in (s, d)]
        # in whole numbers: the left-hand sides of (10) and (16) without those of (13), plus (14), without (15)
        added |= set((into[inner].sum(axis=0) - out[inner].sum(axis=0) + into[d] - out[s] + into[s] - out[d]).tolist())
        for words, value in shown.items():
            result = linprog(
                np.zeros(mesh.arcs),
                A_ub=np.vstack([into[inner], out[inner], into[s], out[d]]),
                b_ub=np.concatenate([np.ones(2 * len(inner)), np.zeros(2)]),
                A_eq=np.vstack([into[inner] - out[inner], out[s], into[d]]),
                b_eq=np.concatenate([np.zeros(len(inner)), [1, value]]),
                bounds=(0, 1),
                method="highs",
            )
            outcome = "feasible" if result.status == 0 else "infeasible"
            measured.setdefault(words, []).append(outcome)
            if words.startswith("formula"):
                choices.add(f"one circuit on a {grid} mesh", result.status == 0, outcome)
    return choices.measurement(
        tuple(f"mesh:{grid}" for grid in laboratory.scope["grids"]),
        measured=measured,
        saved_by="1 in place of 0 on the right-hand side of (16)",
        witness="Appendix A: for each destination the sum of incoming edges is 1. Formula (16), in Algorithm 2 and in "
        "the appendix: the sum over in(v) is 0 for v = d"
        + (
            ". Added up over all vertices, (10), (13), (14) and (16) as printed imply 0 <= -1 in whole numbers: "
            "every arc leaves one vertex and enters one"
            if added == {0.0}
            else ""
        ),
    )


@MEASURES.of("r-min")
def _smaller(laboratory: Laboratory) -> Measurement:
    spec = "lightpath:{}x{},lasers=1,waveguides=1"
    least, most = laboratory.scope["tiles"]
    shapes = [(r, c) for r in range(1, 4) for c in range(max(r, 2), most + 1) if least <= r * c <= most]
    needs, takes = {}, {}
    for shape in shapes:
        record = laboratory.solve(
            "lumorph.rounds", spec.format(*shape), method="certified-rounds", collective="all-to-all"
        )
        needs[shape], takes[shape] = record["bound"], record["objective"]
    nested, anyhow = Sweep(), Sweep()
    for small, large in permutations(shapes, 2):
        n, more = math.prod(small), math.prod(large)
        if n < more:
            case = f"{small[0]}x{small[1]} needs {needs[small]:g} rounds, {large[0]}x{large[1]} takes {takes[large]:g}"
            for sweep in (anyhow, *([nested] if small[0] <= large[0] and small[1] <= large[1] else [])):
                sweep.add(needs[small] / takes[large], holds=needs[small] <= takes[large], size=n + more, case=case)
    choices = Readings("smaller interconnect")
    choices.add(
        "a grid that is part of the larger one, like the grids of the paper",
        not nested.wrong,
        f"{len(nested.wrong)} of {len(nested.ratios)} pairs fail",
    )
    choices.add(
        "any grid with fewer GPUs",
        not anyhow.wrong,
        f"{len(anyhow.wrong)} of {len(anyhow.ratios)} pairs fail; {anyhow.row['witness']}",
    )
    closed = sum(needs[shape] == takes[shape] for shape in shapes)
    return choices.measurement(
        tuple(spec.format(*shape) for shape in shapes),
        f"All-to-all with one laser and one waveguide; rounds are proven on {closed} of {len(shapes)} meshes. "
        "Every grid of the paper contains its smaller ones. Across shapes it is not a bound: a long mesh needs "
        "more rounds than a squarer one with more GPUs.",
        choices[1].measured,
        **anyhow.row,
    )


# bounds and rounds of collectives -----------------------------------------------------------------------------


def _most_informed(n: int, peers: int) -> int:
    """Rounds after which n GPUs can hold a chunk of one of them, if every holder sends to at most ``peers`` others."""
    holders, rounds = 1, 0
    while holders < n:
        holders, rounds = holders + min(peers * holders, n - holders), rounds + 1
    return rounds


@MEASURES.of("log-bound")
def _log_bound(laboratory: Laboratory) -> Measurement:
    most, peers = laboratory.scope.values("GPUs, at most", "peers per round")
    sweep = Sweep()
    for n in range(2, most + 1):
        rounds = _most_informed(n, peers)
        sweep.add(math.log2(n) / rounds, holds=math.log2(n) <= rounds + 1e-9, size=n, case=f"{n} GPUs: {rounds} rounds")
    several = {f"{k} peers": recursive(most, k + 1).steps for k in (3, 15)}
    choices = Readings("peers per round")
    choices.add("as section 4 assumes", not sweep.wrong, f"{sweep.met} sizes attain it")
    choices.add("several, as in section 4.1", min(several.values()) >= math.log2(most), several)
    return choices.measurement((f"2 to {most} GPUs",), measured=choices[0].measured, **sweep.row)


@MEASURES.of("appendix-b")
def _appendix_b(laboratory: Laboratory) -> Measurement:
    n, radix = laboratory.scope.values("GPUs", "radix")
    pattern = recursive(n, radix)
    chunks = int((pattern.source == 0).sum())
    circuit = chunks // (radix - 1)
    printed = laboratory.scope["chunks of B/N"]
    choices = Readings("data sent")
    choices.add("over one circuit", circuit == printed, circuit / n)
    choices.add("by a GPU over its three circuits", chunks == printed, chunks / n)
    return choices.measurement((f"{n} GPUs",), saved_by="3 (B/16 + B/4) in place of B/16 + B/4")


@MEASURES.of("steps")
def _two_steps(laboratory: Laboratory) -> Measurement:
    cases = laboratory.scope["(GPUs, radix)"]
    measured = {f"{n} GPUs, radix {radix}": recursive(n, radix).steps for n, radix in cases}
    expected = [round(math.log(n, radix)) for n, radix in cases]
    return Measurement(
        measured,
        verdict_if(list(measured.values()) == expected),
        instances=tuple(f"{n} GPUs" for n, _ in cases),
        value=list(measured.values()),
    )


@MEASURES.of("log-all-to-all")
def _index(laboratory: Laboratory) -> Measurement:
    sizes = laboratory.scope["GPUs"]
    steps = {n: index_pattern(collective("all-to-all", n), 2).steps for n in sizes}
    measured = {f"{n} GPUs": count for n, count in steps.items()}
    return swept([str(n) for n in sizes if steps[n] != math.log2(n)], len(steps), measured, tuple(measured))


@MEASURES.of("forwarding")
def _forwarding(laboratory: Laboratory) -> Measurement:
    from opticoll.solvers.methods.lumorph.realisation import realised

    lasers, sizes = laboratory.scope.values("lasers", "GPUs")
    mesh, limits, kind = parse("lightpath:2x4,waveguides=8"), Limits(lasers, 8, load=None), collective("all-to-all", 8)
    measured = violations(mesh, kind, limits, realised(mesh, limits, index_pattern(kind, 2)))
    rounds = {n: (-(-(n - 1) // lasers), int(math.log2(n))) for n in sizes}
    direct = [n for n, (needed, stated) in rounds.items() if needed <= stated]
    choices = Readings("no forwarding")
    choices.add(
        "holds for the index algorithm too",
        measured["redundant"] == 0,
        f"{measured['redundant']:g} forwarded receptions on 8 GPUs",
    )
    choices.add(
        f"direct circuits of {lasers} lasers, all sizes",
        len(direct) == len(sizes),
        f"log2 N rounds suffice up to {max(direct)} GPUs",
    )
    choices.add("holds for Algorithm 1 only", True, "nothing to measure")
    return choices.measurement(
        ("lightpath:2x4", *(f"{n} GPUs" for n in sizes)),
        measured={
            f"{n} GPUs, at least": f"{needed} round{'s' * (needed != 1)} directly, log2 N = {stated}"
            for n, (needed, stated) in rounds.items()
        },
    )


@MEASURES.of("every-round")
def _once_per_round(laboratory: Laboratory) -> Measurement:
    sweep = Sweep()
    for grid, name in product(laboratory.scope["grids"], laboratory.scope["algorithms"]):
        line = optical(name, grid, check=True)
        sweep.add(
            line.reconfigurations / line.rounds,
            holds=line.reconfigurations <= line.rounds and line.violations == 0,
            size=line.rounds,
            case=f"{name} on {grid}",
        )
    return sweep.measurement(
        f"{len(sweep.wrong)} of {len(sweep.ratios)} schedules violate a limit or reconfigure more often",
        tuple(f"lightpath:{grid}" for grid in laboratory.scope["grids"]),
    )


@MEASURES.of("one-round")
def _one_round(laboratory: Laboratory) -> Measurement:
    n, lasers = laboratory.scope.values("GPUs", "lasers")
    spec = f"lightpath:{GRIDS[n]},lasers={lasers},waveguides=1"
    record = laboratory.solve("lumorph.rounds", spec, method="layer-to-layer", collective="all-to-all")
    return Measurement(int(record["objective"]), verdict_if(record["objective"] == 1), instances=(spec,))


# Algorithm 3 and co-scheduling --------------------------------------------------------------------------------


@MEASURES.of("algorithm-3")
def _greedy(laboratory: Laboratory) -> Measurement:
    n, lasers = laboratory.scope.values("GPUs", "lasers")
    choices = Readings("pattern")
    for kind in laboratory.scope["patterns"]:
        printed = layer_to_layer(collective(kind, n), lasers, limit="receivers")
        at_once = np.bincount(printed.step * n + printed.source)
        choices.add(
            f"{kind} on {n} GPUs", at_once.max() <= lasers, f"{at_once.max()} circuits of one sender in a round"
        )
    senders, receivers = laboratory.scope["layer 129 of NCF: senders, receivers"]
    pairs = np.array([(s, t) for s in range(senders) for t in range(receivers) if s != t])
    when = greedy_rounds(pairs[:, 0], pairs[:, 1], lasers, limit="receivers")
    most = int(np.bincount(pairs[when == 0, 0]).max())
    choices.add(
        f"NCF's layer 129 in the authors' logs, {senders} senders, {receivers} receivers",
        most <= lasers,
        f"{most} circuits of one sender in a round",
    )
    root = choices[0].measured
    return choices.measurement(
        tuple(choices.by_reading),
        saved_by="patterns in which every sender has at most 16 receivers, such as all-to-all among 16 GPUs",
        witness=f"Section 3, (4): a laser is used at most once in a round. Algorithm 3 on a scatter: {root}, of "
        f"{lasers} lasers",
    )


def _random_groups(n: int, count: int, seed: int) -> list[list[int]]:
    """``count`` random groups of between 2 and 8 of n vertices."""
    random = np.random.default_rng(seed)
    sizes = random.integers(2, 8, count, endpoint=True)
    return [sorted(random.choice(n, int(size), replace=False).tolist()) for size in sizes]


@MEASURES.of("cover")
def _cover(laboratory: Laboratory) -> Measurement:
    sweep, gpus = Sweep(), laboratory.scope["GPUs"]
    for calls, seed in product(range(2, 10), laboratory.seeds(laboratory.scope["draws"])):
        groups = _random_groups(gpus, calls, seed)
        everyone = {v for group in groups for v in group}
        covered: set[int] = set()
        done = 0
        for batch in independent_sets([np.array(group) for group in groups], gpus):
            if covered >= everyone:
                break
            covered |= {v for k in batch for v in groups[k]}
            done += len(batch)
        sweep.add(done / calls, holds=done == calls, size=calls, case=f"{calls - done} of {calls} calls left out")
    choices = Readings("until a cover set is obtained")
    choices.add(
        "until every GPU is covered",
        not sweep.wrong,
        f"a call is left out in {len(sweep.wrong)} of {len(sweep.ratios)} cases",
    )
    choices.add("until every call is in a set", True, "no call is left out")
    return choices.measurement(
        (f"2 to 9 random groups of 2 to 8 of {gpus} GPUs",), measured=choices[0].measured, **sweep.row
    )


def _call_times(spec: str) -> tuple[list[I64], list[float]]:
    """GPUs and times [us] of the calls of an iteration among more than one GPU, LUMORPH-4 as plotted."""
    job = parse(spec)
    calls = [call for call in job.calls if len(call.ranks) > 1]
    size = {len(call.ranks) for call in calls}
    cost = {k: formula(LUMORPH_4, 1 << (k - 1).bit_length(), "plotted") for k in size}
    return [np.array(call.ranks) for call in calls], [cost[len(call.ranks)].time(call.size) for call in calls]


@MEASURES.of("co-scheduling")
def _co_scheduling(laboratory: Laboratory) -> Measurement:
    specs = {name: laboratory.scope[name] for name in ("models", "random calls")}
    choices = Readings("calls")
    for words, each in specs.items():
        saved = {}
        for spec in each:
            groups, times = _call_times(spec)
            member = np.zeros((len(groups), 1 + max(int(group.max()) for group in groups)), dtype=np.int64)
            for number, group in enumerate(groups):
                member[number, group] = 1
            if (member @ member.T > 0).all():
                saved[spec] = 0.0  # a set has one call
                continue
            batches = independent_sets(groups, member.shape[1])
            spent = sum(max(times[k] for k in batch) for batch in batches)
            saved[spec] = round(100 * (1 - spent / sum(times)), 1)
        choices.add(words, all(value > 0 for value in saved.values()), saved)
    return choices.measurement(tuple(spec for each in specs.values() for spec in each))
