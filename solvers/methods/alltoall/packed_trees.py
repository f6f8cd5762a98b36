"""Method ``tree-packing``: collectives by trees that attain their worst cut."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, cast

import numpy as np

from opticoll.formulations.flows.worst_cuts import MOST_FLOW, least_time, network_of, reversed_arcs
from opticoll.formulations.parameters import Parameter
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations import Formulation
    from opticoll.formulations.alltoall.all_reduce import AllReduction
    from opticoll.instances.topology import F64, I64, Topology
    from opticoll.solvers.methods.method import Context
    from opticoll.solvers.schedules.tree_packing import TreePacking
    from opticoll.solvers.task import Task

#: Largest stated all-reduce that is solved where equal shares miss its bounds: genkautz:n=50,d=4 took 9 s.
STATED = {"variables": 20_000, "nonzeros": 85_000}
#: Relative difference up to which a time attains a bound.
SAME = 1e-9


def tree_flows(packing: TreePacking) -> F64:
    """Flow of the trees towards every rank on every arc of their topology [shards], ``(m, N)``."""
    topology, n = packing.topology, packing.topology.n
    column = np.full(n, -1)
    column[topology.terminals] = np.arange(topology.num_ranks)
    key, pair = np.unique(topology.tail * n + topology.head, return_inverse=True)
    ends: list[tuple[int, int, int, int]] = []
    for tree in packing.trees:
        way: dict[int, list[tuple[int, int]]] = {tree.root: []}
        for path in tree.paths:
            way[path[-1]] = [*way[path[0]], *pairwise(path)]
            ends += [(*arc, path[-1], tree.count) for arc in way[path[-1]]]
    tail, head, end, amount = np.array(ends, dtype=np.int64).reshape(-1, 4).T
    flows = np.zeros((key.size, topology.num_ranks))
    for image in packing.images:
        arc = np.searchsorted(key, image[tail] * n + image[head])
        np.add.at(flows, (arc, column[image[end]]), amount)
    return np.asarray(flows[pair] * (share_of_joint(topology) / packing.chunks)[:, None])


def share_of_joint(topology: Topology) -> F64:
    """Capacity of every arc, relative to that of all arcs between its ends, ``(m,)``."""
    pair = np.unique(topology.tail * topology.n + topology.head, return_inverse=True)[1]
    return np.asarray(topology.capacity / np.bincount(pair, topology.capacity)[pair])


def _loads(flows: F64, packing: TreePacking) -> F64:
    """Load of the trees on every arc [shards], ``(m,)``."""
    topology = packing.topology
    load = packing.load()[topology.tail * topology.n + topology.head] / packing.chunks
    return np.maximum(load * share_of_joint(topology), flows.max(axis=1))


def opposite(topology: Topology, other: Topology) -> I64:
    """For each arc of ``topology``, the corresponding arc of ``other``, the reversed topology, ``(m,)``."""
    result = np.empty(topology.arcs, dtype=np.int64)
    result[np.lexsort((topology.capacity, topology.tail, topology.head))] = np.arange(other.arcs)
    return result


def run_tree_packing(context: Context) -> Answer:
    """Collectives by trees from every root to all ranks, which take exactly the time of the worst cut.

    The trees are those of :mod:`opticoll.solvers.schedules.tree_packing`; of networks with many ranks and translations,
    those of one rank for each orbit, moved by all translations. The flow towards a rank follows the trees; a
    reduce-scatter is the all-gather of the reversed topology, backwards. An all-reduce is both at the same time, with
    equal shares summed at all ranks; the formulation's bounds state its distance from the optimum.
    """
    from opticoll.solvers.schedules.tree_packing import pack

    context.remaining()
    topology, name = context.instance, context.formulation.name
    most = int(context.parameters["trees"]) or None
    ahead, back = name != "alltoall.reduce-scatter", name in {"alltoall.reduce-scatter", "alltoall.all-reduce"}
    packings: list[TreePacking] = []
    values: dict[str, F64] = {}
    if ahead:
        root = context.data.root if name == "alltoall.broadcast" else None
        weight = None if root is None else (topology.terminals == root).astype(int).tolist()
        packings.append(pack(topology, weight, most))
        copies = tree_flows(packings[-1])
        if root is not None:
            copies = copies[:, topology.terminals != root]
        values["h"] = copies
    if back:
        packings.append(pack(reversed_arcs(topology), None, most))
        arcs = opposite(topology, packings[-1].topology)
        sums = tree_flows(packings[-1])
        values["h"] = sums[arcs]
    T = float(packings[0].time)
    if ahead and back:
        y, z = _loads(copies, packings[0]), _loads(sums, packings[1])[arcs]
        values = {"x": np.ones(topology.num_ranks), "y": y, "z": z, "f": copies, "g": sums[arcs]}
        T = float(((y + z) / topology.capacity).max())
    few = all(len(packing.images) > 1 for packing in packings)
    algorithm = "worst cut, " + (
        "trees of few ranks, translated" if few else "switch splitting, tree packing in integers"
    )
    exact = not (ahead and back) and packings[0].time == packings[0].bound
    return Answer(
        Termination.OPTIMAL if exact else Termination.TOLERANCE,
        values={**values, "T": np.asarray(T)},
        solver={"algorithm": algorithm},
        metrics={
            "trees": sum(len(packing.trees) * len(packing.images) for packing in packings),
            "trees_per_shard": max(packing.chunks for packing in packings),
        },
    )


def equal_shares(problem: AllReduction, size: Mapping[str, int]) -> bool:
    """Whether equal shares attain a bound of an all-reduce, or its stated model is too large to find better ones."""
    if any(size[name] > most for name, most in STATED.items()):
        return True
    both = problem.topology, reversed_arcs(problem.topology)
    time = sum(float(least_time(one, [1] * one.num_ranks)[0]) for one in both)
    return time <= max(bound.value for bound in problem.bounds()) * (1 + SAME)


def _suits(problem: Formulation, _task: Task, size: Mapping[str, int]) -> bool:
    """Whether the capacities, scaled to whole numbers, are small enough for max-flows, and equal shares good enough."""
    problem = cast("AllReduction", problem)
    network = network_of(problem.topology, (1,) * problem.topology.num_ranks)
    small = 2 * problem.topology.num_ranks * sum(network.capacity) <= MOST_FLOW
    return bool(small) and equal_shares(problem, size)


METHOD = Method(
    name="tree-packing",
    title="Packed spanning trees",
    summary="trees from every root that attain the worst cut, in integers; switches only forward",
    serves=("alltoall.all-gather", "alltoall.broadcast", "alltoall.reduce-scatter", "alltoall.all-reduce"),
    takes_over=(Beyond("alltoall.all-reduce", 10_000, 60_000, suits=_suits),),
    parameters=(Parameter("trees", int, default=0, help="limit on trees per shard; 0 for no limit", least=0),),
    run=run_tree_packing,
)
