"""Method ``receiver-flows``: collectives whose copies are free, one receiver after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from opticoll.formulations.flows.worst_cuts import MOST_FLOW, least_time_of, network_of, reversed_arcs
from opticoll.solvers.methods.alltoall.packed_trees import equal_shares, opposite, share_of_joint
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from opticoll.formulations import Formulation
    from opticoll.formulations.alltoall.all_gather import AllGather
    from opticoll.formulations.alltoall.all_reduce import AllReduction
    from opticoll.formulations.alltoall.broadcast import Broadcast
    from opticoll.formulations.alltoall.reduce_scatter import ReduceScatter
    from opticoll.formulations.flows.worst_cuts import Network
    from opticoll.instances.topology import F64, I64, Topology
    from opticoll.solvers.methods.method import Context
    from opticoll.solvers.task import Task


def run_receiver_flows(context: Context) -> Answer:
    """Flows towards one receiver after the other, each a max-flow within the time of the worst cut.

    Copies are free, so flows towards different receivers need not add up, and share T alone. The least T is that of the
    worst cut, p/q in whole capacities c: then p c admits q units from every rank to each receiver, by max-flow and
    min-cut. A reduce-scatter is the all-gather of the reversed topology. An all-reduce on ranks alone is both at once,
    with equal shares summed at all ranks; the bounds of the formulation state its distance from the optimum.
    """
    topology, name = context.instance, context.formulation.name
    root = context.data.root if name == "alltoall.broadcast" else None
    values: dict[str, F64] = {}
    T = 0.0
    if name != "alltoall.reduce-scatter":
        time, values["h"] = _flows(context, topology, root)
        T += float(time)
    if name in {"alltoall.reduce-scatter", "alltoall.all-reduce"}:
        back = reversed_arcs(topology)
        time, sums = _flows(context, back, None)
        T += float(time)
        sums = sums[opposite(topology, back)]
        if name == "alltoall.all-reduce":
            copies = values.pop("h")
            y, z = copies.max(axis=1), sums.max(axis=1)
            values = {"x": np.ones(topology.num_ranks), "y": y, "z": z, "f": copies, "g": sums}
            T = float(((y + z) / topology.capacity).max())
        else:
            values["h"] = sums
    return Answer(
        Termination.TOLERANCE if name == "alltoall.all-reduce" else Termination.OPTIMAL,
        values={**values, "T": np.asarray(T)},
        solver={"algorithm": "worst cut, and a max-flow for every receiver"},
    )


def _flows(context: Context, topology: Topology, root: int | None) -> tuple[Fraction, F64]:
    """Time of the worst cut, and the flow towards every receiver within it, ``(m, receivers)``."""
    weight = tuple(1 if root is None else int(v == root) for v in topology.terminals.tolist())
    network = network_of(topology, weight)
    receivers = topology.terminals if root is None else topology.terminals[topology.terminals != root]
    time, _ = least_time_of(network)
    p, q = time.numerator, time.denominator
    flows = np.empty((network.tail.size, receivers.size))
    for j, v in enumerate(receivers.tolist()):
        context.remaining()
        flows[:, j] = _towards(network, v, p, q)
    key = network.tail * topology.n + network.head
    order = np.argsort(key)
    pair = order[np.searchsorted(key[order], topology.tail * topology.n + topology.head) % key.size]
    loop = topology.tail == topology.head
    shared = flows[pair] * share_of_joint(topology)[:, None] / q
    shared[loop] = 0.0
    return time / network.unit, shared


def _towards(network: Network, sink: int, p: int, q: int) -> I64:
    """A flow of q units from every other rank with a shard to ``sink`` under capacities p c, ``(joint arcs,)``."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    n, used = network.n, network.tail != sink
    sends = network.ranks[(np.array(network.weight) > 0) & (network.ranks != sink)]
    tail = np.concatenate([network.tail[used], np.full(sends.size, n)])
    head = np.concatenate([network.head[used], sends])
    most = np.concatenate([p * np.array(network.capacity)[used], np.full(sends.size, q)]).astype(np.int32)
    found = maximum_flow(csr_array((most, (tail, head)), shape=(n + 1, n + 1)), n, sink)
    flow = np.zeros(network.tail.size, dtype=np.int64)
    flow[used] = np.maximum(np.asarray(found.flow[network.tail[used], network.head[used]]).ravel(), 0)
    return flow


def _refusal(problem: AllGather | Broadcast | ReduceScatter | AllReduction) -> str | None:
    """Why max-flows do not have the solution: switches of an all-reduce, or capacities too large for SciPy's."""
    topology = problem.topology
    if problem.name == "alltoall.all-reduce" and topology.num_ranks < topology.n:
        return "needs an all-reduce without switches, tree-packing does not"
    # p is at most N, and q at most the sum of the capacities.
    if 2 * topology.num_ranks * sum(network_of(topology, (1,) * topology.num_ranks).capacity) > MOST_FLOW:
        return "needs capacities of fewer digits: scaled to whole numbers, they are too large"
    return None


def _applies(problem: Formulation, _task: Task, size: Mapping[str, int]) -> bool:
    """Whether max-flows have the solution, of an all-reduce a good one."""
    if _refusal(cast("AllGather", problem)) is not None:
        return False
    return problem.name != "alltoall.all-reduce" or equal_shares(cast("AllReduction", problem), size)


METHOD = Method(
    name="receiver-flows",
    title="A max-flow for every receiver",
    summary="the worst cut, and flows within its time towards one receiver after the other",
    serves=("alltoall.all-gather", "alltoall.broadcast", "alltoall.reduce-scatter", "alltoall.all-reduce"),
    # All-gather of torus:8x8 16,129 variables in 8 s beside other work (0.5 s by receivers).
    takes_over=(
        Beyond("alltoall.all-gather", 16_500, 66_000, suits=_applies, first=True),
        Beyond("alltoall.broadcast", 16_500, 66_000, suits=_applies, first=True),
        Beyond("alltoall.reduce-scatter", 16_500, 66_000, suits=_applies, first=True),
        Beyond("alltoall.all-reduce", 10_000, 60_000, suits=_applies, first=True),
    ),
    run=run_receiver_flows,
    refuse=_refusal,
)
