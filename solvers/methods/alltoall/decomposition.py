"""All-to-all by decomposition of the link MCF, all-gather by its worst cut, collectives by packed trees."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from opticoll.errors import MethodMismatch
from opticoll.formulations import outward
from opticoll.formulations.flows.path_sets import assemble, path_set_of, to_arrays
from opticoll.formulations.flows.single_source import strip_paths
from opticoll.formulations.flows.weighted_paths import extract_paths, from_flow
from opticoll.formulations.model import Parameter
from opticoll.solvers.memory import MOST_ENTRIES
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import Task, Termination

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from opticoll.formulations.alltoall.sccl import ChunkSteps
    from opticoll.formulations.flows.tree_packing import TreePacking
    from opticoll.instances.digraph import F64, I64, Topology
    from opticoll.instances.readers import Json
    from opticoll.solvers.methods.method import Context
    from opticoll.solvers.task import Run, SolveRequest

#: Relative distance from a bound that counts as round-off.
EQUAL = 1e-9


def solve_master(context: Context) -> Run:
    """Solve ``alltoall.master`` on the context's instance and demand, by the method that its ``master`` names."""
    from opticoll.solvers.plan import make_plan

    task = context.task
    master = Task(
        "alltoall.master", task.instance, method=str(context.parameters["master"]), form=task.form,
        settings=demand_of(task), time_limit_s=context.remaining(), memory_limit_gib=task.memory_limit_gib,
        tol=task.tol, seed=task.seed, threads=task.threads,
    )  # fmt: skip
    if task.form is None and make_plan(master).adapter is not None:  # for a stated model, the fastest form to build
        master = msgspec.structs.replace(master, form="matrix")
    return context.solve(master)


def demand_of(task: Task) -> dict[str, object]:
    """The setting ``demand`` of a task, if it has one."""
    return {name: value for name, value in task.settings.items() if name == "demand"}


def unsolved(master: Run) -> Answer | None:
    """The answer if the master has no verified flow; None if it has one."""
    if master.verified and master.values is not None:
        return None
    termination = master.termination
    if termination is Termination.OPTIMAL:
        termination = Termination.TOLERANCE
    return Answer(
        termination, bound=master.bound, bound_source=master.record["bound_source"],
        message=f"the master LP ended with {master.termination}: {master.record['message']}",
    )  # fmt: skip


def decomposed(context: Context, divide: Callable[[Context, F64, float], Divided]) -> Answer:
    """Solve the master, then ``divide`` its source flows ``(m, |S|)`` of value F.

    Raises
    ------
    MethodMismatch
        If the link MCF's flows of all commodities have too many entries.
    """
    flow = context.data.flow
    if context.formulation.name == "alltoall.link-mcf" and flow.groups * context.instance.arcs > MOST_ENTRIES:
        msg = (
            f"{context.formulation.name}: {flow.groups} commodities on {context.instance.arcs} arcs are more than the "
            f"{MOST_ENTRIES} entries allowed; solve alltoall.path-mcf with paths=all, which has the same flow as paths"
        )
        raise MethodMismatch(msg)
    begun = time.monotonic()
    master = solve_master(context)
    failed = unsolved(master)
    if failed is not None:
        return failed
    assert master.values is not None
    proven = time.monotonic()
    divided = divide(context, master.values["g"], float(master.values["F"]))
    return Answer(
        master.termination,
        values=divided.values,
        bound=master.bound,
        bound_source=master.record["bound_source"],
        solver={**master.record["solver"], "algorithm": f"{master.record['method']}, then {divided.algorithm}"},
        metrics={**divided.metrics, "master_s": proven - begun, "decompose_s": time.monotonic() - proven},
    )


class Divided(NamedTuple):
    """The solution, the algorithm that found it, and its metrics."""

    values: dict[str, NDArray[Any]]
    algorithm: str
    metrics: Mapping[str, Json]


def child_flows(context: Context, g: F64, F: float) -> Divided:
    """Solve one child LP per source through the executor; F follows from the joint load of the flows.

    Every child's flow is repaired to match its own source flow exactly.
    """
    from opticoll.solvers.executor import make_executor
    from opticoll.solvers.task import SolveRequest

    topology: Topology = context.instance
    cluster = str(context.parameters["dask"]) or None
    jobs = int(context.parameters["jobs"])
    traffic = context.data.flow.traffic
    senders = np.flatnonzero(traffic.any(axis=1)).tolist()
    columns: list[F64 | None] = [None] * len(senders)
    with make_executor(jobs=jobs or (None if cluster else context.task.threads), dask=cluster) as executor:
        request = SolveRequest(context.remaining(), threads=1, seed=context.task.seed)
        solver, alone = str(context.parameters["solver"]), executor.shares_files
        items = [
            Child(topology, rank, traffic[rank], g[:, i], solver, request, alone=alone)
            for i, rank in enumerate(senders)
        ]
        for index, flow in executor.map_unordered(solve_child, items):
            context.remaining()
            if isinstance(flow, BaseException):
                raise flow
            columns[index] = flow
    # Every target receives its full demand; F follows from the joint load.
    flows = np.concatenate([c for c in columns if c is not None], axis=1)
    F = float((topology.capacity / np.maximum(flows.sum(axis=1), 1e-300)).min())
    values = {"f": flows * F, "F": np.asarray(F)}
    return Divided(values, f"{len(senders)} child LPs", {"children": len(senders)})


@dataclass(frozen=True)
class Child:
    """A child LP to solve: the number of its source, its demands ``(N,)`` and flow ``(m,)``, and the solver.

    ``alone`` states that the executing process uses no other solver, as a process of a cluster might.
    """

    topology: Topology
    number: int
    shards: F64
    capacity: F64
    solver: str
    request: SolveRequest
    alone: bool


def solve_child(item: Child) -> F64:
    """Solve one child LP in an executor's process; return the flow to every destination, one column each.

    Raises
    ------
    NoSolution
        If the child's LP has no usable solution.
    """
    from opticoll.errors import NoSolution
    from opticoll.formulations.alltoall import child
    from opticoll.solvers.methods.flows.certified_pdlp import reformulate
    from opticoll.solvers.relaxation import scaling_steps, solve_scaled
    from opticoll.solvers.standard_form import compile_model

    # f / F does not depend on the unit of capacity, and solvers drop tiny entries.
    data = child.child_of(item.topology, item.number, item.capacity / max(item.capacity.max(), 1e-300), item.shards)
    form = compile_model(child.FORMULATION.build["matrix"](data))
    steps = scaling_steps(form)
    steps.append(reformulate(steps[-1].form if steps else form, child.FORMULATION))
    outcome = solve_scaled(form, item.solver, item.request, steps=steps, in_process=item.alone)
    values: dict[str, Any] | None = None
    if outcome.x is not None:
        values = child.FORMULATION.repair(data, form.values(outcome.x))  # type: ignore[misc]
    if values is None:
        msg = f"child LP of rank {item.number} ended with {outcome.termination}: {outcome.message}"
        raise NoSolution(msg)
    return values["f"] / float(values["F"])


def run_master_child(context: Context) -> Answer:
    """The link MCF by one child LP per source, in parallel, as in the paper.

    The optimum of the link MCF is that of the master LP, which is solved first.
    """
    return decomposed(context, child_flows)


MASTER_CHILD = Method(
    name="master-child",
    title="Master LP, then child LPs in parallel",
    summary="the paper's decomposition: source flows first, then one LP per source splits them by destination",
    applies=lambda formulation: formulation.name == "alltoall.link-mcf",
    parameters=(
        Parameter("master", str, default="auto", help="method for the master LP"),
        Parameter("solver", str, default="highs-simplex", help="LP solver for the children"),
        Parameter("jobs", int, default=0, help="processes for the children; 0 for as many as threads"),
        Parameter("dask", str, default="", help="scheduler of a Dask cluster for the children, instead of processes"),
    ),
    run=run_master_child,
)


def path_flows(context: Context, g: F64, F: float) -> Divided:
    """Split every source's flow into paths, and add them up by commodity."""
    topology, flow = context.instance, context.data.flow
    flows = np.zeros((topology.arcs, flow.groups))
    paths = longest = 0
    for i, source in enumerate(np.unique(flow.sources).tolist()):
        context.remaining()
        columns = np.flatnonzero(flow.sources == source)
        targets, amount = context.data.targets[columns], context.data.amount[columns] * F
        split = strip_paths(topology, source, g[:, i], targets, amount)
        for column, stripped in zip(columns.tolist(), split, strict=True):
            for path in stripped:
                flows[path.arcs, column] += path.amount
                longest = max(longest, len(path.arcs))
            paths += len(stripped)
    metrics = {"paths": paths, "paths_per_commodity": paths / flows.shape[1], "longest_path": longest}
    return Divided({"f": flows, "F": np.asarray(F)}, "path stripping", metrics)


def run_flow_decomposition(context: Context) -> Answer:
    """The link MCF, or its paths, by splitting every source's flow, without child LPs.

    The optimum of the link MCF is that of the master LP, which is solved first. A single-source flow without cycles
    decomposes into at most N + m paths from the source (Ford & Fulkerson); the paths that end at t carry exactly what t
    receives. For the link MCF they are added up to flows of commodities on arcs, a dense matrix; for the *path* model
    over all simple paths they are the solution themselves, source by source in flat arrays, so thousands of ranks
    fit.
    """
    if context.formulation.name == "alltoall.link-mcf":
        return decomposed(context, path_flows)
    refuse_restricted(context, "flow-decomposition")
    return decomposed(context, split_paths)


FLOW_DECOMPOSITION = Method(
    name="flow-decomposition",
    title="Master LP, then flow decomposition",
    summary="per-commodity flows or paths from the master's source flows, without child LPs",
    applies=lambda formulation: formulation.name in {"alltoall.link-mcf", "alltoall.path-mcf"},
    parameters=(Parameter("master", str, default="auto", help="method for the master LP"),),
    run=run_flow_decomposition,
)


def split_paths(context: Context, g: F64, F: float) -> Divided:
    """Split every source's flow into the weighted paths of the path model."""
    result = from_flow(context.data.flow, g)
    context.remaining()
    pair = np.repeat(np.arange(result.sources.size), np.diff(result.first_path))
    length = np.diff(result.first_arc)
    ends = (result.sources, result.targets)
    paths = assemble(context.instance, result.arcs.astype(np.int64), length, pair, ends)
    values = {"f": result.rate[np.lexsort((length, pair))], "F": np.asarray(result.F), **to_arrays(paths)}
    return Divided(values, "path stripping", result.summary)


def refuse_restricted(context: Context, method: str) -> None:
    """Refuse a path set other than that of all simple paths.

    Raises
    ------
    MethodMismatch
        If the path set is not that of all simple paths.
    """
    if not context.data.rule.unrestricted:
        msg = f"{method} may extract any path, not only {context.data.rule}; use --set paths=all without lmax"
        raise MethodMismatch(msg)


def run_mcf_extp(context: Context) -> Answer:
    """The link MCF's flow turned into weighted paths by widest paths (all-to-all paper, 3.2.1).

    It solves the *path* model ``alltoall.path-mcf`` over all simple paths, whose checker verifies that the paths carry
    the full flow within the capacities. The parameter ``link`` names the method that solves the link MCF.

    Raises
    ------
    MethodMismatch
        If the path set is not that of all simple paths.
    """
    refuse_restricted(context, "mcf-extp")
    topology, task = context.instance, context.task
    flow = context.solve(
        Task(
            "alltoall.link-mcf", task.instance, method=str(context.parameters["link"]), settings=demand_of(task),
            time_limit_s=context.remaining(), memory_limit_gib=task.memory_limit_gib, tol=task.tol, seed=task.seed,
            threads=task.threads,
        )
    )  # fmt: skip
    failed = unsolved(flow)
    if failed is not None:
        return failed
    assert flow.values is not None
    F = float(flow.values["F"])
    sources, targets = context.data.commodities
    demand = context.data.amount.tolist()
    paths: list[list[int]] = []
    pair: list[int] = []
    amount: dict[tuple[int, tuple[int, ...]], float] = {}
    most = 0
    for k, (s, t) in enumerate(zip(sources.tolist(), targets.tolist(), strict=True)):
        pair_paths = extract_paths(topology, s, t, flow.values["f"][:, k], F * demand[k])
        most = max(most, len(pair_paths))
        for path in pair_paths:
            key = (k, tuple(path.arcs))
            if key not in amount:
                paths.append(path.arcs)
                pair.append(k)
            amount[key] = amount.get(key, 0.0) + path.amount
        if k % 1000 == 0:
            context.remaining()
    extracted = path_set_of(topology, paths, pair, (sources, targets))
    rates = np.array([amount[int(extracted.pair[p]), tuple(extracted.path(p))] for p in range(extracted.paths)])
    return Answer(
        flow.termination,
        values={"f": rates, "F": np.asarray(F), **to_arrays(extracted)},
        bound=flow.bound,
        bound_source=flow.record["bound_source"],
        solver={**flow.record["solver"], "algorithm": f"{flow.record['method']}, then widest paths"},
        metrics={
            "paths": extracted.paths,
            "paths_per_commodity": extracted.paths / sources.size,
            "most_paths_per_commodity": most,
            "longest_path": int(extracted.length.max()),
        },
    )


MCF_EXTP = Method(
    name="mcf-extp",
    title="Link MCF, then widest paths (MCF-extP)",
    summary="weighted paths from the link MCF's flow, widest first; with --set paths=all",
    applies=lambda formulation: formulation.name == "alltoall.path-mcf",
    parameters=(Parameter("link", str, default="flow-decomposition", help="method that solves alltoall.link-mcf"),),
    run=run_mcf_extp,
)


def run_worst_cut(context: Context) -> Answer:
    """The all-gather optimum without an LP, from the worst cut.

    Newton's method on max-flows finds the cut, which bounds T from below; max-flows to each receiver attain it.
    """
    from opticoll.formulations.alltoall.all_gather import optimal_flows

    context.remaining()
    topology = context.instance
    exact, inside, flows = optimal_flows(topology)
    time, held = outward.fraction_down(exact), int(np.isin(topology.terminals, list(inside)).sum())
    return Answer(
        Termination.OPTIMAL,
        values={"h": flows, "T": np.asarray(time)},
        bound=time,
        bound_source="worst-cut",
        solver={"name": "worst-cut", "algorithm": "Newton's method on cut ratios, max-flows in integers (NetworkX)"},
        metrics={"cut_ranks": held, "cut_capacity": float(held / exact)},
    )


WORST_CUT = Method(
    name="worst-cut",
    title="Worst cut by max-flow",
    summary="the all-gather optimum and a cut that proves it, by max-flows in integers; no LP",
    applies=lambda formulation: formulation.name == "alltoall.all-gather",
    run=run_worst_cut,
)


def tree_flows(packing: TreePacking) -> F64:
    """Flow of the trees towards every rank on every arc of their topology [shards], ``(m, N)``."""
    topology = packing.topology
    place = {v: j for j, v in enumerate(topology.terminals.tolist())}
    arcs: dict[tuple[int, int], list[int]] = {}
    for a, ends in enumerate(zip(topology.tail.tolist(), topology.head.tolist(), strict=True)):
        arcs.setdefault(ends, []).append(a)
    flows = np.zeros((topology.arcs, topology.ranks))
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

    The trees are those of :mod:`opticoll.formulations.flows.tree_packing`. The flow towards a rank follows the trees; a
    reduce-scatter is the all-gather of the reversed topology, backwards. An all-reduce is both at the same time, with
    equal shares summed at all ranks; the formulation's bounds state its distance from the optimum.

    Raises
    ------
    MethodMismatch
        For a negative number of trees.
    """
    from opticoll.formulations.flows.tree_packing import pack
    from opticoll.formulations.flows.worst_cuts import reversed_arcs

    context.remaining()
    topology, name = context.instance, context.formulation.name
    most = int(context.parameters["trees"]) or None
    if most is not None and most < 0:
        msg = f"tree-packing: trees={most} is negative; use 0 for as many trees per shard as the optimum needs"
        raise MethodMismatch(msg)
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
        values = {"x": np.ones(topology.ranks), "y": y, "z": z, "f": copies, "g": sums[arcs]}
        T = float(((y + z) / topology.capacity).max())
    best = max(bound.value for bound in context.formulation.bounds(context.data))
    return Answer(
        Termination.OPTIMAL if best * (1 + EQUAL) >= T else Termination.TOLERANCE,
        values={**values, "T": np.asarray(T)},
        solver={"name": "tree-packing", "algorithm": "worst cut, switch splitting and tree packing in integers"},
        metrics={
            "trees": sum(len(packing.trees) for packing in packings),
            "trees_per_shard": max(packing.chunks for packing in packings),
        },
    )


TREE_PACKING = Method(
    name="tree-packing",
    title="Packed spanning trees",
    summary="trees from every root that attain the worst cut, in integers; switches only forward",
    applies=lambda formulation: (
        formulation.name
        in {"alltoall.all-gather", "alltoall.broadcast", "alltoall.reduce-scatter", "alltoall.all-reduce"}
    ),
    parameters=(Parameter("trees", int, default=0, help="limit on trees per shard; 0 for no limit"),),
    run=run_tree_packing,
)


#: Most seconds for certified branch and bound on the flows by source.
BRANCHING_S = 60.0


def run_source_flows(context: Context) -> Answer:
    """SCCL's program as an integer flow per source, which is then split into chunks.

    The bound is that of the time-stepped LP by source, from its step prices, rounded up to whole rounds; if it is below
    the value and the program is small, ``certified-branching`` raises it.
    """
    from opticoll.formulations.alltoall.sccl import chunk_values, prepare
    from opticoll.solvers.choice import is_small

    data: ChunkSteps = context.data
    task, flow = context.task, data.flow
    common: dict[str, Any] = {
        "memory_limit_gib": task.memory_limit_gib, "tol": task.tol, "seed": task.seed, "threads": task.threads,
    }  # fmt: skip
    settings: dict[str, int | str] = {"steps": flow.steps, "chunks": data.chunks, "model": "sources"}
    relaxed = context.solve(
        Task(
            "alltoall.timestep-mcf", task.instance, settings={"steps": flow.steps, "aggregate": "source"},
            time_limit_s=context.remaining(), **common,
        )
    )  # fmt: skip
    bound = None if relaxed.bound is None else float(np.ceil(outward.down(data.chunks * relaxed.bound, 2)))
    result = context.solve(
        Task(
            context.formulation.name, task.instance, method=str(context.parameters["solver"]),
            settings=settings, time_limit_s=context.remaining(), **common,
        )
    )  # fmt: skip
    source = "step prices of the time-stepped LP, whole rounds"
    size, found = result.record.size, result.objective
    unproven = result.verified and None not in (bound, found) and found > bound * (1 + task.tol)  # type: ignore[operator]
    if unproven and is_small(size.variables, size.nonzeros):
        left = context.remaining()
        branched = context.solve(
            Task(
                context.formulation.name,
                task.instance,
                method="certified-branching",
                settings=settings,
                time_limit_s=BRANCHING_S if left is None else min(left, BRANCHING_S),
                **common,
            )
        )
        if branched.verified and branched.objective is not None and found is not None and branched.objective <= found:
            result = branched
        if branched.bound is not None and bound is not None and branched.bound > bound:
            bound, source = branched.bound, f"{branched.record.bound_source}, of the flows by source"
    values = None
    if result.verified and result.values is not None:
        values = {name: np.rint(array) for name, array in result.values.items()}
        if data.model == "chunks":
            values = chunk_values(data, prepare(context.instance, settings), values)
    return Answer(
        result.termination, values=values, bound=bound, bound_source=source,
        solver={**result.record["solver"], "name": "source-flows"}, message=result.record["message"] or "",
    )  # fmt: skip


SOURCE_FLOWS = Method(
    name="source-flows",
    title="Integer flows by source",
    summary="SCCL's program as an integer flow per source, split into chunks; bound of the time-stepped LP",
    applies=lambda formulation: formulation.name == "alltoall.sccl",
    parameters=(Parameter("solver", str, default="highs", help="solver of the integer program"),),
    run=run_source_flows,
)


METHODS = (MASTER_CHILD, FLOW_DECOMPOSITION, MCF_EXTP, WORST_CUT, TREE_PACKING, SOURCE_FLOWS)
