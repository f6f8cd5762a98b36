"""Claims of SiP-ML's sections 2 and 3: degree, duty cycle, placement and its repair, circuits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.ledger.claim import Claim, Laboratory, Measurement, Verdict, verdict_if
from opticoll.analysis.ledger.sweeps import Sweep, spread
from opticoll.errors import BadInput
from opticoll.instances.servers import ServerPool

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.formulations.sipml.placement import Placement
    from opticoll.instances.op_graph import OpGraph


#: Reconfiguration latency [s]: MEMS optical circuit switches (section 3.1), micro-ring resonators (section 3.1, 4.4).
OCS_LATENCY_S, RING_LATENCY_S = 10e-3, 25e-6


def _check(latency_s: float) -> None:
    if not 0 <= latency_s < float("inf"):
        msg = f"duty cycle: the reconfiguration latency must be a number of seconds of at least 0, not {latency_s}"
        raise BadInput(msg)


def duty_cycle(hold_s: float, latency_s: float) -> float:
    """Share of time in which circuits carry data, h / (h + r): dark for r after every hold time h.

    Raises
    ------
    BadInput
        Unless the hold time is positive and the latency not negative, both finite [s].
    """
    _check(latency_s)
    if not 0 < hold_s < float("inf"):
        msg = f"duty cycle: the hold time must be a positive number of seconds, not {hold_s}"
        raise BadInput(msg)
    return hold_s / (hold_s + latency_s)


def least_hold(latency_s: float, duty: float) -> float:
    """Shortest hold time [s] of a duty cycle: r d / (1 - d), 9 r for 90%; the paper's 10 r gives 10/11.

    Raises
    ------
    BadInput
        Unless the latency is finite and not negative and 0 < duty < 1.
    """
    _check(latency_s)
    if not 0 < duty < 1:
        msg = f"duty cycle: a share of the time must lie between 0 and 1, not {duty}"
        raise BadInput(msg)
    return latency_s * duty / (1.0 - duty)


def hybrid_traffic(data: Placement, device: NDArray[np.int64], degree: int) -> ServerPool:
    """The traffic matrix of a step on k l GPUs [bytes], as a pool of servers of this degree.

    Raises
    ------
    BadInput
        If there is only one GPU, or more than a dense traffic matrix takes.
    """
    graph, k, groups = data.graph, data.devices, data.replicas
    if k * groups < 2:
        msg = "hybrid traffic: one GPU sends nothing; take k or replicas of at least 2"
        raise BadInput(msg)
    inner = np.zeros((k, k))
    np.add.at(inner, (device[graph.tail], device[graph.head]), graph.volume)
    np.fill_diagonal(inner, 0.0)
    matrix = np.kron(np.eye(groups), inner)
    if groups > 1:
        held = np.bincount(device, graph.weights, minlength=k) * 2.0 * (groups - 1) / groups
        at = np.arange(k * groups)
        matrix[at, (at + k) % (k * groups)] += np.tile(held, groups)
    return ServerPool(k * groups, degree, matrix, spec=f"hybrid of {graph.spec}")


PAPER = "sipml"


def _duty(_: Laboratory) -> Measurement:

    measured = duty_cycle(10.0, 1.0)
    reason = (
        "Circuits that carry data for 10 r and are dark for r reach 10/11. 90 % needs a hold time of "
        f"{least_hold(1.0, 0.9):.3g} r, so 10 r suffice."
    )
    return Measurement(round(100 * measured, 2), verdict_if(measured >= 0.9), reason=reason)


def _switch_speed(_: Laboratory) -> Measurement:
    return Measurement(100 * 10.0, verdict_if(100 * 10.0 == 1000.0), reason="Number of ports times their rate.")


# circuits -----------------------------------------------------------------------------------------------------------


def _random_traffic(random: np.random.Generator) -> tuple[NDArray[np.float64], int]:
    """A small integer traffic matrix and a degree that allows every pair a circuit."""
    n = int(random.integers(2, 9))
    matrix = random.integers(1, 50, (n, n)) * (random.random((n, n)) < random.uniform(0.2, 0.9))
    np.fill_diagonal(matrix, 0)
    matrix[0, 1] += 1
    peers = max(int((matrix > 0).sum(axis=0).max()), int((matrix > 0).sum(axis=1).max()))
    return matrix.astype(float), peers + int(random.integers(0, 9))


def _koenig(_: Laboratory) -> Measurement:
    """Assign circuits within D ports to D switches, one matching each."""
    from opticoll.formulations.sipml import ocs_circuits
    from opticoll.instances.servers import ServerPool
    from opticoll.solvers.methods.sipml.koenig_bisection import bisect

    random, sweep = np.random.default_rng(0), Sweep()
    for case in range(1000):
        matrix, degree = _random_traffic(random)
        data = ocs_circuits.prepare(ServerPool(matrix.shape[0], degree, matrix))
        time = bisect(data)[0]
        needs = data.transfers.needs(time)
        match = ocs_circuits.matchings_of(data, needs).astype(float)
        ends = (data.transfers.source, data.transfers.target)
        used = max(float(np.bincount(end, needs).max()) for end in ends)
        sweep.add(used / degree, holds=max(ocs_circuits.residuals(data, {"match": match}).values()) <= 0,
                  size=matrix.shape[0], case=f"case {case}: {matrix.shape[0]} servers, D = {degree}")  # fmt: skip
    return Measurement(
        f"{len(sweep.wrong)} of {len(sweep.ratios)} assignments do not fit", verdict_if(not sweep.wrong),
        ("2 to 8 servers, random traffic",),
        "Koenig: circuits within D ports of every server split into D matchings, so only ports limit them. Ratio: "
        "largest number of circuits of a server over D switches.", **sweep.row,
    )  # fmt: skip


def _ilp(laboratory: Laboratory) -> Measurement:
    """Compare the ILP with the polynomial method, both as complete runs."""
    specs = [f"servers:n={n},degree={d},traffic=random,seed={s}" for n, d in ((5, 7), (7, 12), (9, 24)) for s in (1, 2)]
    wrong, ratios = 0, []
    for spec in specs:
        ours = laboratory.solve("sipml.ocs-circuits", spec)
        ilp = laboratory.solve("sipml.ocs-circuits", spec, method="highs")
        same = ours["proof"] == ilp["proof"] == "optimal" and abs(ilp["objective"] / ours["objective"] - 1) < 1e-6
        wrong += not same
        ratios.append(ours["metrics"]["whole_circuits_cost"])
    return Measurement(
        f"{len(specs) - wrong} of {len(specs)} equal", verdict_if(wrong == 0), tuple(specs),
        "The ILP is correct but not needed: bisection on the time and an edge colouring are exact and polynomial "
        "(equal on over 1000 random matrices in the tests). Divisible circuits would be faster by the ratios given.",
        count=len(specs), violations=wrong,
        tightness=spread(ratios),
    )  # fmt: skip


def _reuse(laboratory: Laboratory) -> Measurement:
    record = laboratory.solve("sipml.ring-wavelengths", "wdm-ring:n=8,wavelengths=16", traffic="random", seed=0)
    measured = record["metrics"]
    per = measured["circuits"] / (2 * measured["wavelengths"])
    return Measurement(
        round(per, 3), verdict_if(record["verified"] and per > 1), (record["instance"],),
        "Average number of circuits per wavelength and direction in an optimal assignment; no segment carries two.",
    )  # fmt: skip


# placement ----------------------------------------------------------------------------------------------------------


def _example(laboratory: Laboratory) -> Measurement:
    """Operation B of one part precedes operation C of four, k = 4: proven makespans in parts for Delta = 2 and 3."""
    measured = []
    for degree in (3, 4):
        record = laboratory.solve(
            "sipml.placement", "op-graph:model=chain,splits=1x4", method="placement-enumeration", k=4, degree=degree,
            rule="degree",
        )  # fmt: skip
        if record["proof"] != "optimal":
            return Measurement(None, Verdict.NOT_TESTABLE, reason="the search did not finish")
        measured.append(record["objective"])
    return Measurement(
        measured, verdict_if(measured == [3.0, 2.0]), ("op-graph:model=chain,splits=1x4",),
        "After one part, four parts take two rounds with Delta = 2 and one with Delta = 3, also with the degree rule "
        "alone.",
    )  # fmt: skip


def _random_graph(random: np.random.Generator, n: int) -> OpGraph:
    from opticoll.instances.op_graph import OpGraph

    tail, head = np.nonzero(np.triu(random.random((n, n)) < random.uniform(0.1, 0.5), 1))
    return OpGraph(random.integers(1, 9, n), np.arange(n), tail, head, np.ones(tail.size))


def _distance(_: Laboratory) -> Measurement:
    from opticoll.formulations.sipml import placement
    from opticoll.solvers.methods.sipml.degree_aware import Unrolled

    random, sweep, both = np.random.default_rng(1), Sweep(), 0
    for case in range(500):
        k = int(random.integers(2, 12))
        graph = _random_graph(random, int(random.integers(2, 40)))
        data = placement.prepare(graph, {"k": min(k, graph.n), "degree": int(random.integers(2, 7))})
        state = Unrolled(data, 0)
        state.place()
        sends, hears = placement.peers_of(data, np.array(state.device))
        most = int(max(sends.max(), hears.max()))
        both += int(_others(data, np.array(state.device)) > data.delta)
        sweep.add(most / data.delta, holds=most <= data.delta, size=graph.n,
                  case=f"case {case}: {graph.n} sub-ops, k = {data.devices}, {most} others, Delta = "
                        f"{data.delta}")  # fmt: skip
    count = len(sweep.ratios)
    return Measurement(
        {"per direction": f"{len(sweep.wrong)} of {count} placements exceed Delta",
         "both directions together": f"{both} of {count} exceed it"},
        verdict_if(not sweep.wrong), ("random graphs of 2 to 39 sub-ops",),
        "Circuits are directed, and in each direction a GPU has at most Delta peers. The distance is one-sided, so "
        "the GPUs it sends to and those it receives from can together be up to 2 Delta. Ratio: peers over Delta.",
        **sweep.row,
    )  # fmt: skip


def _others(data: Placement, device: NDArray[np.int64]) -> int:
    """Largest number of distinct GPUs that one GPU sends to or receives from."""
    graph = data.graph
    meets = np.zeros((data.devices, data.devices), dtype=bool)
    meets[device[graph.tail], device[graph.head]] = True
    meets |= meets.T
    np.fill_diagonal(meets, False)
    return int(meets.sum(axis=1).max())


def _hybrid(_: Laboratory) -> Measurement:
    from opticoll.formulations.sipml import placement
    from opticoll.instances import parse
    from opticoll.solvers.methods.sipml.degree_aware import Unrolled

    spec = "op-graph:model=transformer,layers=4,parts=4"
    data: Placement = placement.prepare(parse(spec), {"k": 4, "degree": 3, "replicas": 2})
    state = Unrolled(data, 0)
    state.place()
    traffic = hybrid_traffic(data, np.array(state.device), 3).traffic > 0
    most = int(max(traffic.sum(axis=0).max(), traffic.sum(axis=1).max()))
    return Measurement(
        most,
        verdict_if(most <= 3),
        (spec,),
        "Largest number of GPUs that one GPU sends to or receives from; k = 4, l = 2.",
    )


#: Number of moves after which the printed repair counts as not converging, even if no state repeats.
ENDLESS = 100_000
#: Sizes among which the smallest graph without convergence is sought.
SMALL = range(4, 14)


def _convergence(_: Laboratory) -> Measurement:
    """Compare the printed repair with the unrolled one on small random graphs."""
    from opticoll.formulations.sipml import placement
    from opticoll.solvers.methods.sipml.degree_aware import Repair, Unrolled

    random, count, wrong, circles = np.random.default_rng(2), 0, [], 0
    for n in (*SMALL, *[20] * 4):
        for _case in range(100):
            graph = _random_graph(random, n)
            data = placement.prepare(graph, {"k": min(8, n), "degree": int(random.integers(2, 5))})
            if not Unrolled(data, 0).place():
                msg = "the unrolled repair did not terminate"
                raise ArithmeticError(msg)
            count += 1
            printed = Repair(data, ENDLESS)
            if not printed.place():
                circles += printed.cycled
                arcs = " ".join(f"{u}>{v}" for u, v in zip(graph.tail.tolist(), graph.head.tolist(), strict=True))
                wrong.append((n, graph.dependencies, f"k = {data.devices}, Delta = {data.delta}, durations "
                              f"{' '.join(f'{d:g}' for d in graph.duration)}, dependencies {arcs}"))  # fmt: skip
    return Measurement(
        f"{len(wrong)} of {count} do not terminate ({circles} return to an earlier state)", verdict_if(not wrong),
        (f"random graphs of {SMALL.start} to {SMALL.stop - 1} and of 20 sub-ops",),
        "Moves to the nearest GPU can repeat cyclically. If the circle is unrolled to a line, where moves only go "
        "forward, the repair always terminates (as in all of these cases).",
        count=count, violations=len(wrong), counterexample=min(wrong)[2] if wrong else None,
    )  # fmt: skip


def _prohibitive(_: Laboratory) -> Measurement:
    from opticoll.formulations.sipml import placement
    from opticoll.instances import parse
    from opticoll.solvers.methods.sipml.degree_aware import Unrolled

    spec = "op-graph:model=transformer,layers=136,parts=32"
    data = placement.prepare(parse(spec), {"k": 32, "degree": 5})
    integers = placement.estimate(data)["integers"]
    placed = Unrolled(data, 0).place()
    return Measurement(
        {"sub-operations": data.n, "binaries": integers, "placed": placed},
        verdict_if(data.n > 20_000 and placed and integers > 10**7), (spec,),
        "Binary variables of the disjunctive ILP (an upper bound: all pairs unordered); Algorithm 1 places the graph "
        "in seconds. Layers and parts are our choice; the paper does not state its own.",
    )  # fmt: skip


CLAIMS: tuple[Claim, ...] = (
    Claim("sipml.duty-cycle", PAPER, "section 3.1", "Circuits held for 10 r reach a 90 % duty cycle", 90, "at least",
          _duty),
    Claim("sipml.packet-switch", PAPER, "section 2", "100 ports of 10 Tbps need a switch of 1000 Tbps", 1000, "exact",
          _switch_speed),
    Claim("sipml.switches-degree", PAPER, "section 3.1", "In SiP-OCS the degree D equals the number of switches", "D",
          "exact", _koenig),
    Claim("sipml.reuse", PAPER, "section 3.1", "Wavelengths are reused on segments of the ring that do not overlap",
          "more than 1 circuit a wavelength", "exact", _reuse),
    Claim("sipml.ilp", PAPER, "section 3.3", "A simple ILP assigns circuits with the least maximum transfer time",
          "ILP optimal", "1e-6", _ilp),
    Claim("sipml.example", PAPER, "section 3.2, figure 4", "Four parts after one part cannot use 4 GPUs with Delta = 2",
          [3.0, 2.0], "exact", _example),
    Claim("sipml.distance", PAPER, "section 3.2", "A distance of at most Delta limits a GPU to Delta peers",
          "at most Delta", "exact", _distance),
    Claim("sipml.hybrid-degree", PAPER, "section 3.2, figure 4",
          "For k = 4, l = 2, a GPU communicates with at most D = 3 GPUs", 3, "at most", _hybrid),
    Claim("sipml.convergence", PAPER, "section 3.2",
          "The forward-backward procedure is repeated until all ops are placed (the proof is left open)", "always ends",
          "exact", _convergence),
    Claim("sipml.prohibitive", PAPER, "section 3.2", "The placement ILP is prohibitive at over 20,000 sub-ops", 20000,
          "in words", _prohibitive),
    Claim("sipml.ocs-latency", PAPER, "section 3.1", "Commercial optical circuit switches take about 10 ms", "10 ms",
          reason="A property of the hardware, which our models take as an input."),
    Claim("sipml.ring-latency", PAPER, "section 3.1", "Micro-ring resonators switch wavelengths within 25 us", "25 us",
          reason="A property of the hardware, which our models take as an input."),
    Claim("sipml.density", PAPER, "section 2", "Interfaces of 10 Tbps/mm are possible with silicon photonics",
          "10 Tbps/mm", reason="A property of the hardware, taken from other papers."),
    Claim("sipml.asics", PAPER, "section 2", "ASICs of packet switches process 12.8 Tbps", "12.8 Tbps",
          reason="A property of the hardware, taken from other papers."),
    Claim("sipml.evaluation", PAPER, "sections 4, 5", "SiP-ML trains faster than today's clusters", "faster",
          reason="Only sections 2 and 3.1-3.3 of the paper are available to us, without any number of its evaluation."),
    Claim("sipml.appendix", PAPER, "sections 3.3, A.1, A.2",
          "The programs and the heuristic of the appendix for SiP-Ring", "as printed",
          reason="The appendix is not available to us; our models follow the statements of the text."),
)  # fmt: skip
