"""Sizes of the models of this room, counted from their data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opticoll.formulations.model import NotApplicable

if TYPE_CHECKING:
    from opticoll.formulations.topology.design import Design
    from opticoll.formulations.topology.matchings import TopologyMatchings
    from opticoll.formulations.topology.sequence import TopologySequence
    from opticoll.formulations.topology.steps import TopologySteps


#: Maximum number of entries of the flows of a solution.
MOST_FLOWS = 20_000_000


def sequence_size(data: TopologySequence) -> dict[str, int]:
    """Size of the model."""
    n, K, M, P = data.n, data.configurations, data.parallel, data.phases
    pairs, senders, due = n * (n - 1), int(data.sends.sum()), int((data.demand > 0).sum())
    circuits, changes = K * M * pairs, (K - 1) * pairs
    flows, states = P * senders * (n - 1) ** 2, P * senders * (n - 1)
    windows, changing = changes * data.overlap, K > 1 and data.charge == "changed"
    leaving = flows - states // (n - 1) * (n - 1)  # flows that do not leave their source
    earlier = states - senders * (n - 1)
    mutual = 0 if data.directed else circuits // 2
    ordered, fixed = K * (M - 1) * pairs, 0 if data.standing is None else M * pairs
    setting, waiting = changes * M * changing, windows * changing
    step = states if data.held else 0
    starting = K * (data.startup > 0)
    R, rack = data.racks.racks, data.racks.rack_of
    crossing = K * M * int((rack[:, None] != rack[None, :]).sum())
    wiring = K * (R * (R - 1) * bool(data.cables) + 2 * R * bool(data.uplinks))
    entries = 2 * circuits + 2 * mutual + 2 * ordered + fixed + 4 * circuits
    entries += flows + circuits + windows + 2 * windows * (1 + M) + 2 * waiting + 3 * setting
    entries += states + earlier + flows + leaving + (leaving + earlier if step else 0) + due
    entries += 2 * starting + crossing * (bool(data.cables) + 2 * bool(data.uplinks))
    return {
        "variables": 2 * circuits + K + flows + states + windows + (K - 1) * changing + starting,
        "constraints": 2 * K * n
        + mutual
        + ordered
        + fixed
        + 2 * circuits
        + P * pairs
        + 2 * windows
        + waiting
        + setting
        + states
        + step
        + due
        + starting
        + wiring,
        "nonzeros": entries,
        "integers": circuits + (K - 1) * changing + starting,
    }


def refuse_many_flows(data: TopologySequence) -> None:
    """Refuse a model whose flows are too many to store."""
    if data.phases * data.n**3 > MOST_FLOWS:
        msg = f"{data.name}: {data.phases} phases of {data.n} nodes have too many flows to store; use fewer nodes"
        raise NotApplicable(msg)


#: Maximum number of nodes: the flows of a solution are n^3 numbers.
MOST_NODES = 256


def design_size(data: Design) -> dict[str, int]:
    """Size of the model."""
    n = data.n
    m, flows, mutual = n * (n - 1), n * (n - 1) ** 2, 0 if data.directed else n * (n - 1) // 2
    entries = flows + (flows - m) + m + flows + m  # of balance: into, out of (not s itself), F; of capacity: g, x
    K, crossing = data.racks, int((data.rack_of[:, None] != data.rack_of[None, :]).sum())
    rows = (K * (K - 1) if data.cables else 0) + (2 * K if data.uplinks else 0)
    wired = crossing * (bool(data.cables) + 2 * bool(data.uplinks))
    return {
        "variables": m + flows + 1,
        "constraints": 2 * n + 2 * m + mutual + rows,
        "nonzeros": 2 * m + entries + 2 * mutual + wired,
        "integers": m,
    }


def refuse_many_nodes(data: Design) -> None:
    """Refuse a model whose flows are too many to store."""
    if data.n > MOST_NODES:
        nodes = f"n={data.n} degree={data.degree}"
        msg = f"{data.name}: {data.n} nodes have too many flows to store; run opticoll design {nodes}"
        raise NotApplicable(msg)


#: Maximum number of circuits of a stated model.
MOST_CIRCUITS = 2_000_000


def matchings_size(data: TopologyMatchings) -> dict[str, int]:
    """Size of the model."""
    s, K, P = data.switches, data.configurations, len(data.pairs)
    ends = int(data.demand.any(axis=1).sum() + data.demand.any(axis=0).sum())
    slots, charged = s * K, s * K if data.first else s * (K - 1)
    waiting = charged if data.delay > 0 else 0
    ordered, limited = s * (K - 1), int(data.total > 0)
    return {
        "variables": 2 * slots * P + 2 * slots + 1,
        "constraints": 2 * slots * ends + slots * P + P + s + 2 * ordered + s - 1 + limited,
        "nonzeros": 2 * slots * (2 * P + ends)
        + 2 * slots * P
        + slots * P
        + slots
        + waiting
        + s
        + 4 * ordered
        + 2 * (s - 1)
        + slots * limited,
        "integers": slots * P + slots,
    }


def refuse_many_circuits(data: TopologyMatchings) -> None:
    """Refuse a model that is too large to state."""
    circuits = data.switches * data.configurations * len(data.pairs)
    if circuits > MOST_CIRCUITS:
        msg = (
            f"{data.name}: {circuits:,} circuits are too many for a stated model; give configurations=, or method auto"
        )
        raise NotApplicable(msg)


def steps_size(data: TopologySteps) -> dict[str, int]:
    """Size of the model."""
    choices = int(data.allowed.sum())
    kept = int((data.allowed[1:] & data.allowed[:-1]).sum())
    return {
        "variables": 2 * choices,
        "constraints": len(data.steps) + choices,
        "nonzeros": 3 * choices + kept,
        "integers": choices,
    }
