"""Method ``tree-packing``: collectives by trees that attain their worst cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.parameters import Parameter
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64, Topology
    from opticoll.solvers.methods.method import Context
    from opticoll.solvers.schedules.tree_packing import TreePacking


#: Relative distance from a bound that counts as round-off.
EQUAL = 1e-9


def tree_flows(packing: TreePacking) -> F64:
    """Flow of the trees towards every rank on every arc of their topology [shards], ``(m, N)``."""
    topology = packing.topology
    place = {v: j for j, v in enumerate(topology.terminals.tolist())}
    arcs: dict[tuple[int, int], list[int]] = {}
    for a, ends in enumerate(zip(topology.tail.tolist(), topology.head.tolist(), strict=True)):
        arcs.setdefault(ends, []).append(a)
    flows = np.zeros((topology.arcs, topology.num_ranks))
    for tree in packing.trees:
        steps: dict[int, list[tuple[tuple[int, ...], int]]] = {}
        for path, count in tree.hops:
            steps.setdefault(path[-1], []).append((path, count))
        for v, j in place.items():
            u = v
            while u != tree.root:
                for path, count in steps[u]:
                    for k in range(len(path) - 1):
                        joint = arcs[path[k], path[k + 1]]
                        share = topology.capacity[joint] / topology.capacity[joint].sum()
                        flows[joint, j] += count / packing.chunks * share
                u = steps[u][0][0][0]
    return flows


def _loads(flows: F64, packing: TreePacking) -> F64:
    """Load of the trees on every arc [shards], ``(m,)``."""
    topology = packing.topology
    ends = list(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))
    joint: dict[tuple[int, int], float] = {}
    for pair, c in zip(ends, topology.capacity.tolist(), strict=True):
        joint[pair] = joint.get(pair, 0.0) + c
    load = dict.fromkeys(joint, 0)
    for tree in packing.trees:
        for path, count in tree.hops:
            for k in range(len(path) - 1):
                load[path[k], path[k + 1]] += count
    share = topology.capacity / np.array([joint[pair] for pair in ends])
    return np.maximum(np.array([load[pair] for pair in ends]) / packing.chunks * share, flows.max(axis=1))


def _opposite(topology: Topology, other: Topology) -> I64:
    """For each arc of ``topology``, the corresponding arc of ``other``, the reversed topology, ``(m,)``."""
    result = np.empty(topology.arcs, dtype=np.int64)
    result[np.lexsort((topology.capacity, topology.tail, topology.head))] = np.arange(other.arcs)
    return result


def run_tree_packing(context: Context) -> Answer:
    """Collectives by trees from every root to all ranks, which take exactly the time of the worst cut.

    The trees are those of :mod:`opticoll.solvers.schedules.tree_packing`. The flow towards a rank follows the trees; a
    reduce-scatter is the all-gather of the reversed topology, backwards. An all-reduce is both at the same time, with
    equal shares summed at all ranks; the formulation's bounds state its distance from the optimum.
    """
    from opticoll.formulations.flows.worst_cuts import reversed_arcs
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
        arcs = _opposite(topology, packings[-1].topology)
        sums = tree_flows(packings[-1])
        values["h"] = sums[arcs]
    T = float(packings[0].time)
    if ahead and back:
        y, z = _loads(copies, packings[0]), _loads(sums, packings[1])[arcs]
        values = {"x": np.ones(topology.num_ranks), "y": y, "z": z, "f": copies, "g": sums[arcs]}
        T = float(((y + z) / topology.capacity).max())
    best = max(bound.value for bound in context.formulation.bounds())
    return Answer(
        Termination.OPTIMAL if best * (1 + EQUAL) >= T else Termination.TOLERANCE,
        values={**values, "T": np.asarray(T)},
        solver={"algorithm": "worst cut, switch splitting and tree packing in integers"},
        metrics={
            "trees": sum(len(packing.trees) for packing in packings),
            "trees_per_shard": max(packing.chunks for packing in packings),
        },
    )


METHOD = Method(
    name="tree-packing",
    title="Packed spanning trees",
    summary="trees from every root that attain the worst cut, in integers; switches only forward",
    serves=("alltoall.all-gather", "alltoall.broadcast", "alltoall.reduce-scatter", "alltoall.all-reduce"),
    parameters=(Parameter("trees", int, default=0, help="limit on trees per shard; 0 for no limit", least=0),),
    run=run_tree_packing,
)
