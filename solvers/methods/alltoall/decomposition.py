"""The master LP of an all-to-all, its division into one LP per source, and paths from the link MCF."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from opticoll.errors import MethodMismatch
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
from opticoll.formulations.flows.path_sets import path_set_of, reordered, to_arrays
from opticoll.formulations.parameters import Parameter
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.process.memory import MOST_ENTRIES
from opticoll.solvers.schedules.weighted_paths import extract_paths, from_flow
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from opticoll.formulations.alltoall.child import Child
    from opticoll.formulations.alltoall.timestep_child import StepChild
    from opticoll.instances.topology import F64, Topology
    from opticoll.solvers.methods.method import Context
    from opticoll.solvers.run import Run
    from opticoll.solvers.task import SolveRequest, Task
    from opticoll.types import Json


def solve_master(context: Context) -> Run:
    """Solve ``alltoall.master`` on the context's instance and demand, by the method that its ``master`` names."""
    from opticoll.solvers.plan import make_plan

    task, method = context.task, str(context.parameters["master"])
    master = context.part("alltoall.master", method=method, form=task.form, settings=demand_of(task))
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
        termination,
        bound=master.bound,
        bound_source=master.record["bound_source"],
        message=": ".join(filter(None, (f"the master LP ended with {master.termination}", master.record["message"]))),
    )


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
    from opticoll.formulations.alltoall.child import Child

    topology: Topology = context.instance
    traffic = context.data.flow.traffic
    ranks = np.flatnonzero(traffic.any(axis=1)).tolist()
    children = [
        (rank, partial(Child, ConcurrentFlow.from_rank(topology, rank, traffic[rank], g[:, i])))
        for i, rank in enumerate(ranks)
    ]
    # Every target receives its full demand; F follows from the joint load.
    entries = topology.arcs * int(np.count_nonzero(traffic))
    flows = np.concatenate(solve_children(context, children, entries), axis=1)
    F = float((topology.capacity / np.maximum(flows.sum(axis=1), 1e-300)).min())
    values = {"f": flows * F, "F": np.asarray(F)}
    return Divided(values, f"{len(ranks)} child LPs", {"children": len(ranks)})


#: Entries of the flows of all children up to which they are solved before other processes have started.
FEW_ENTRIES = 50_000


def solve_children(
    context: Context, children: Sequence[tuple[int, Callable[[], Child | StepChild]]], entries: int
) -> list[F64]:
    """Solve child LPs, given by rank and as functions that make them, by the method's executor and ``solver``.

    ``entries`` is the number of entries of their flows together; if it is small, by default this process solves them.

    Returns
    -------
    The flow of every child that delivers its demands, a column per destination.

    Raises
    ------
    NoSolution
        If some child's LP has no usable solution.
    """
    from opticoll.solvers.process.executor import make_executor
    from opticoll.solvers.task import SolveRequest

    cluster = str(context.parameters["dask"]) or None
    jobs = int(context.parameters["jobs"]) or (None if cluster or entries <= FEW_ENTRIES else context.task.threads)
    flows: dict[int, F64] = {}
    with make_executor(jobs=jobs, dask=cluster) as executor:
        request = SolveRequest(context.remaining(), threads=1, seed=context.task.seed)
        solver, alone = str(context.parameters["solver"]), executor.shares_files
        items = [ChildTask(rank, problem, solver, request, alone=alone) for rank, problem in children]
        for index, flow in executor.map_unordered(solve_child, items):
            context.remaining()
            if isinstance(flow, BaseException):
                raise flow
            flows[index] = flow
    return [flows[index] for index in range(len(children))]


@dataclass(frozen=True)
class ChildTask:
    """A child LP to solve: the number of its source, the function that makes it, and the solver.

    ``alone`` states that the executing process uses no other solver, as a process of a cluster might.
    """

    number: int
    problem: Callable[[], Child | StepChild]
    solver: str
    request: SolveRequest
    alone: bool


def solve_child(item: ChildTask) -> F64:
    """Solve one child LP in an executor's process; return the flow to every destination, one column each.

    Raises
    ------
    NoSolution
        If the child's LP has no usable solution.
    """
    from opticoll.errors import NoSolution
    from opticoll.solvers.compile.compilation import compile_model
    from opticoll.solvers.compile.scaling import scaling_steps, solve_scaled
    from opticoll.solvers.methods.flows.time_form import reformulate

    # f / F does not depend on the unit of capacity, and solvers drop tiny entries.
    stated = item.problem()
    capacity = stated.flow.capacity
    data: Any = replace(stated, flow=replace(stated.flow, capacity=capacity / max(capacity.max(), 1e-300)))
    form = compile_model(data.matrix())
    steps = scaling_steps(form)
    steps.append(reformulate(steps[-1].form if steps else form, data))
    outcome = solve_scaled(form, item.solver, item.request, steps=steps, in_process=item.alone)
    values: dict[str, Any] | None = None
    if outcome.x is not None:
        values = data.repair(form.values(outcome.x))
    if values is None:
        words = (f"child LP of rank {item.number} ended with {outcome.termination}", outcome.message)
        msg = ": ".join(filter(None, words))
        raise NoSolution(msg)
    return values["f"] / float(values["F"])


def refuse_restricted(context: Context, method: str) -> None:
    """Refuse a path set other than that of all simple paths.

    Raises
    ------
    MethodMismatch
        If the path set is not that of all simple paths.
    """
    if not context.data.routing.rule.unrestricted:
        msg = f"{method} may extract any path, not only {context.data.routing.rule}; use paths=all without lmax"
        raise MethodMismatch(msg)


def run_master_child(context: Context) -> Answer:
    """The link MCF by one child LP per source, in parallel, as in the paper.

    The optimum of the link MCF is that of the master LP, which is solved first.
    """
    return decomposed(context, child_flows)


MASTER_CHILD = Method(
    name="master-child",
    title="Master LP, then child LPs in parallel",
    summary="the paper's decomposition: source flows first, then one LP per source splits them by destination",
    serves=("alltoall.link-mcf",),
    same_as="alltoall.master",
    # torus:4x4 15,361 variables in 0.9 s, 0.7 by this; genkautz:n=24,d=3 39,745 in 2.2 s, 0.9 by this (whole commands).
    takes_over=(
        Beyond(
            "alltoall.link-mcf",
            16_000,
            60_000,
            most=100_000_000,
            suits=lambda _problem, task, _size: "printed" not in task.settings,
        ),
    ),
    parameters=(
        Parameter("master", str, default="auto", help="method for the master LP"),
        Parameter("solver", str, default="highs-simplex", help="LP solver for the children"),
        Parameter(
            "jobs", int, default=0, help="processes for the children; 0 for as many as threads, or one for few flows"
        ),
        Parameter("dask", str, default="", help="scheduler of a Dask cluster for the children, instead of processes"),
    ),
    run=run_master_child,
)


def path_flows(context: Context, g: F64, F: float) -> Divided:
    """Split every source's flow into paths, and add them up by commodity."""
    flow = context.data.flow
    by_source = ConcurrentFlow.by_source(flow.topology, flow.traffic)
    found = from_flow(by_source, g)
    flows = np.zeros((flow.topology.arcs, flow.groups))
    owner = np.repeat(np.arange(found.rate.size), found.paths.length)
    np.add.at(flows, (found.paths.arcs, found.paths.pair[owner]), found.rate[owner])
    return Divided({"f": flows, "F": np.asarray(found.F)}, "path stripping", found.summary)


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
    serves=("alltoall.link-mcf", "alltoall.path-mcf"),
    parameters=(Parameter("master", str, default="auto", help="method for the master LP"),),
    run=run_flow_decomposition,
)


def split_paths(context: Context, g: F64, F: float) -> Divided:
    """Split every source's flow into the weighted paths of the path model."""
    found = from_flow(context.data.flow, g)
    context.remaining()
    order = np.lexsort((found.paths.length, found.paths.pair))
    values = {"f": found.rate[order], "F": np.asarray(found.F), **to_arrays(reordered(found.paths, order))}
    return Divided(values, "path stripping", found.summary)


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
    topology, link = context.instance, str(context.parameters["link"])
    flow = context.solve(context.part("alltoall.link-mcf", method=link, settings=demand_of(context.task)))
    failed = unsolved(flow)
    if failed is not None:
        return failed
    assert flow.values is not None
    F = float(flow.values["F"])
    sources, targets = context.data.routing.commodities
    demand = context.data.routing.amount.tolist()
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
    summary="weighted paths from the link MCF's flow, widest first; with paths=all",
    serves=("alltoall.path-mcf",),
    parameters=(Parameter("link", str, default="flow-decomposition", help="method that solves alltoall.link-mcf"),),
    run=run_mcf_extp,
)


METHODS = (MASTER_CHILD, FLOW_DECOMPOSITION, MCF_EXTP)
