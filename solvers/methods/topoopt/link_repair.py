"""Method ``link-repair``: TopologyFinder's design after a circuit fails, repaired."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.topoopt.circuit_design import sorted_circuits
from opticoll.formulations.topoopt.circuit_design_solution import residuals
from opticoll.formulations.topoopt.forwarding import routed_design
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.methods.topoopt.topology_finder import topology_finder

if TYPE_CHECKING:
    from opticoll.formulations.topoopt.circuit_design import CircuitDesign, Ring
    from opticoll.instances.topology import I64
    from opticoll.solvers.methods.method import Context
    from opticoll.types import Json

#: A circuit by its two servers.
Pair = tuple[int, int]
WAYS = ("reroute", "spread", "swap")


def parse_pair(text: str, design: CircuitDesign) -> Pair:
    """Read ``U-V``, a pair with a circuit; the busiest circuit's for an empty text.

    Raises
    ------
    NotApplicable
        If it is not a pair of servers with a circuit.
    """
    if not text:
        u, v = design.circuits[int(np.argmax(design.loads))].tolist()
        return u, v
    ends = text.split("-")
    if len(ends) != 2 or not all(end.isdecimal() for end in ends):
        refuse("link-repair", f"failed={text!r}; name a circuit by its servers, such as 0-1", NotApplicable)
    pair = int(ends[0]), int(ends[1])
    if pair not in pairs_of(design):
        msg = f"link-repair: no circuit from server {pair[0]} to {pair[1]}; server {pair[0]} has circuits to "
        heads = sorted({v for u, v in pairs_of(design) if u == pair[0]})
        raise NotApplicable(msg + (", ".join(map(str, heads)) or "none"))
    return pair


def pairs_of(design: CircuitDesign) -> list[Pair]:
    """The pairs of servers with circuits, sorted."""
    return sorted({(u, v) for u, v in design.circuits.tolist()})


def without(circuits: I64, pair: Pair) -> I64:
    """The circuits without one of this pair, ``(m - 1, 2)``."""
    place = np.flatnonzero((circuits == pair).all(axis=1))[0]
    return np.delete(circuits, place, axis=0)


def rings_over(design: CircuitDesign, pair: Pair) -> list[int]:
    """The numbers of the rings with a hop over a pair."""
    results = []
    for number, ring in enumerate(design.rings):
        sender, receiver, _ = ring.hops
        if ((sender == pair[0]) & (receiver == pair[1])).any():
            results.append(number)
    return results


def broken_rings(design: CircuitDesign, pair: Pair) -> list[int]:
    """The rings that a failed circuit leaves without a circuit of their own: those of least share."""
    left = int((design.circuits == pair).all(axis=1).sum()) - 1
    over = sorted(rings_over(design, pair), key=lambda number: -design.rings[number].share)
    return over[left:]


def rerouted(design: CircuitDesign, pair: Pair) -> CircuitDesign | None:
    """All demand forwarded over the circuits that are left; None if some has no path."""
    return _routed(design, without(design.circuits, pair), design.rings)


def spread(design: CircuitDesign, pair: Pair) -> CircuitDesign | None:
    """The shares of broken rings moved to the other rings of the group, in proportion; None if there are none."""
    broken = broken_rings(design, pair)
    kept = [ring for number, ring in enumerate(design.rings) if number not in broken]
    total = np.zeros(len(design.pool.groups))
    for ring in kept:
        total[ring.group] += ring.share
    if not broken or any(total[design.rings[number].group] <= 0 for number in broken):
        return None
    rings = [replace(ring, share=ring.share / float(total[ring.group])) for ring in kept]
    return _routed(design, without(design.circuits, pair), rings)


def swapped(design: CircuitDesign, pair: Pair) -> CircuitDesign | None:
    """The pair connected again by ports of circuits that no ring uses: the best choice of these; None without any.

    The failed circuit leaves its two ports unusable. Circuits u -> x and y -> v become u -> v and y -> x, so that every
    other server keeps its ports.
    """
    u, v = pair
    left = without(design.circuits, pair)
    used: Counter[Pair] = Counter()
    for ring in design.rings:
        used.update(zip(ring.hops[0].tolist(), ring.hops[1].tolist(), strict=True))
    spare = Counter((a, b) for a, b in left.tolist()) - used
    leaving = [(a, b) for a, b in spare if a == u and b != v]
    entering = [(a, b) for a, b in spare if b == v and a != u]
    best: CircuitDesign | None = None
    for one, other in product(leaving, entering):
        moved = without(without(left, one), other)
        added = [pair] if one[1] == other[0] else [pair, (other[0], one[1])]
        found = _routed(design, np.concatenate([moved, added]), design.rings)
        if found is not None and (best is None or found.max_load < best.max_load):
            best = found
    return best


def _routed(design: CircuitDesign, circuits: I64, rings: tuple[Ring, ...] | list[Ring]) -> CircuitDesign | None:
    try:
        return routed_design(design.pool, sorted_circuits(circuits), rings)
    except NotApplicable:
        return None


_REPAIRS = {"reroute": rerouted, "spread": spread, "swap": swapped}


def repaired(design: CircuitDesign, pair: Pair, way: str) -> CircuitDesign | None:
    """The design after a circuit of ``pair`` has failed, repaired in one of :data:`WAYS`; None if impossible."""
    return _REPAIRS[way](design, pair)


def violation(design: CircuitDesign, pair: Pair, after: CircuitDesign) -> float:
    """Worst violation of the checker of designs, or number of circuits above the ports that the failure leaves."""
    n = design.pool.n
    out, into = np.full(n, design.pool.degree), np.full(n, design.pool.degree)
    tail, head = (np.bincount(design.circuits[:, side], minlength=n) for side in (0, 1))
    out[pair[0]], into[pair[1]] = tail[pair[0]] - 1, head[pair[1]] - 1
    used = np.bincount(after.circuits[:, 0], minlength=n), np.bincount(after.circuits[:, 1], minlength=n)
    excess = max(int((used[0] - out).max()), int((used[1] - into).max()), 0)
    return max(float(excess), *residuals(design.pool, after.values()).values())


def run_link_repair(context: Context) -> Answer:
    """TopologyFinder's design after a circuit has failed, repaired in the ways of section 7.

    Source  TopoOpt, section 7, handling failures

    A failed circuit from u to v takes a port out of u and a port into v.

    ``reroute`` keeps all other circuits and the rings; all demand is forwarded over what is left. A second circuit of
    the pair, dedicated to point-to-point traffic, then takes the ring's hop, as the paper says.

    ``spread`` moves the share of a broken ring to the other rings of its group.

    ``swap`` takes ports of circuits that no ring uses: u -> x and y -> v become u -> v and y -> x, of all choices the
    one with the least maximum load. It is the paper's repair of a permanent failure, which needs a reconfiguration.

    ``best`` takes the way with the least maximum load.

    The answer is checked as a design, which has the ports of the intact servers; that it does without the two failed
    ones is checked here, and reported as ``port_violation``.
    """
    settings, pool = context.parameters, context.instance
    design = topology_finder(pool, trees=context.data.trees)
    pair = parse_pair(str(settings["failed"]), design)
    ways = WAYS if settings["repair"] == "best" else (str(settings["repair"]),)
    possible = {way: after for way in ways if (after := repaired(design, pair, way)) is not None}
    if not possible:
        name = f"{pair[0]}-{pair[1]}"
        msg = f"link-repair: repair={settings['repair']} cannot replace the circuit {name}; try best, or raise degree"
        raise NotApplicable(msg)
    way = min(possible, key=lambda name: context.data.value_of(possible[name]))
    metrics: dict[str, Json] = {
        "failed": f"{pair[0]}-{pair[1]}",
        "repair": way,
        "load_before": design.max_load,
        "port_violation": violation(design, pair, possible[way]),
    }
    return Answer.heuristic(possible[way].values(), way, metrics)


METHOD = Method(
    name="link-repair",
    title="TopologyFinder's design without a failed circuit",
    summary="repairs TopologyFinder's design after a circuit fails: forwards, moves ring shares, or swaps ports",
    serves=("topoopt.topology",),
    parameters=(
        Parameter("failed", str, default="", help="failed circuit as U-V; empty: the busiest one"),
        Parameter(
            "repair",
            str,
            default="best",
            help="forward, move the share of broken rings, or swap ports",
            choices=("best", *WAYS),
        ),
    ),
    run=run_link_repair,
)
