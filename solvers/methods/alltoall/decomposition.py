"""Decompositions of the link MCF: master LP with child LPs, flow decomposition, and MCF-extP.

The optimum of the link MCF is that of the master LP, which master-child and flow-decomposition solve first.

master-child: one child LP per source, in parallel, as in the paper.

flow-decomposition: each source's flow is split into paths without child LPs. A single-source flow without cycles
decomposes into at most N + m paths from the source (Ford & Fulkerson); the paths that end at t carry exactly what t
receives.

mcf-extp: the link MCF's flow turned into weighted paths by widest paths (all-to-all paper, 3.2.1). It solves the *path*
model ``alltoall.path-mcf`` over all simple paths, whose checker verifies that the paths carry the full flow within the
capacities. The parameter ``link`` names the method that solves the link MCF.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import MethodMismatch
from opticoll.formulations.flows.concurrent_flow import commodities
from opticoll.formulations.flows.path_sets import path_set_of, to_arrays
from opticoll.formulations.flows.single_source import strip_paths
from opticoll.formulations.flows.weighted_paths import extract_paths
from opticoll.formulations.model import Parameter
from opticoll.solvers.memory import MOST_ENTRIES
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import Task, Termination

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.instances.digraph import Topology
    from opticoll.solvers.methods.method import Context
    from opticoll.solvers.task import Run, SolveRequest


def solve_master(context: Context) -> Run:
    """Solve ``alltoall.master`` on the context's instance with its parameter ``master``."""
    task = context.task
    return context.solve(
        Task(
            "alltoall.master", task.instance, method=context.parameters["master"], form=task.form or "matrix",
            time_limit_s=context.remaining(), memory_limit_gib=task.memory_limit_gib, tol=task.tol,
            seed=task.seed, threads=task.threads,
        )
    )  # fmt: skip


def unsolved(master: Run) -> Answer | None:
    """The answer when the master gave no verified flow, None if it did."""
    if master.verified and master.values is not None:
        return None
    termination = master.termination
    if termination is Termination.OPTIMAL:
        termination = Termination.TOLERANCE
    return Answer(
        termination, bound=master.bound, bound_source=master.record["bound_source"],
        message=f"the master LP ended with {master.termination}: {master.record['message']}",
    )  # fmt: skip


def run_master_child(context: Context) -> Answer:
    """Solve the master, then the children through the executor; join their flows.

    Every child's flow is made exact for its own source flow; the common F is what the joint load allows.
    """
    from opticoll.errors import MethodMismatch
    from opticoll.solvers.executor import make_executor
    from opticoll.solvers.task import SolveRequest, Termination

    topology: Topology = context.instance
    ranks = topology.ranks
    if ranks * (ranks - 1) * topology.arcs > MOST_ENTRIES:
        msg = f"master-child: {ranks} ranks on {topology.arcs} arcs are too many to keep every commodity's flow"
        raise MethodMismatch(msg)
    begun = time.monotonic()
    master = solve_master(context)
    failed = unsolved(master)
    if failed is not None:
        return failed
    assert master.values is not None
    g = master.values["g"]
    proven = time.monotonic()
    cluster = str(context.parameters["dask"]) or None
    jobs = int(context.parameters["jobs"])
    columns: list[NDArray[np.float64] | None] = [None] * ranks
    with make_executor(jobs=jobs or (None if cluster else context.task.threads), dask=cluster) as executor:
        request = SolveRequest(context.remaining(), threads=1, seed=context.task.seed)
        items = [
            Child(topology, i, g[:, i], str(context.parameters["solver"]), request, alone=executor.shares_files)
            for i in range(ranks)
        ]
        for index, found in executor.map_unordered(solve_child, items):
            context.remaining()
            if isinstance(found, BaseException):
                raise found
            columns[index] = found
    # Unit flows: every target gets 1; F follows from their joint load.
    flows = np.concatenate([c for c in columns if c is not None], axis=1)
    F = float((topology.capacity / np.maximum(flows.sum(axis=1), 1e-300)).min())
    return Answer(
        Termination.OPTIMAL if master.termination is Termination.OPTIMAL else master.termination,
        values={"f": flows * F, "F": np.asarray(F)},
        bound=master.bound,
        bound_source=master.record["bound_source"],
        solver={**master.record["solver"], "algorithm": f"{master.record['method']}, then {ranks} child LPs"},
        metrics={"children": ranks, "master_s": proven - begun, "decompose_s": time.monotonic() - proven},
    )


@dataclass(frozen=True)
class Child:
    """A child LP to solve: the number of its source, the source flow ``(m,)``, and the solver.

    ``alone`` means that the executing process uses no other solver, which a cluster's may.
    """

    topology: Topology
    number: int
    capacity: NDArray[np.float64]
    solver: str
    request: SolveRequest
    alone: bool


def solve_child(item: Child) -> NDArray[np.float64]:
    """One child LP, in an executor's process: unit flows to every destination, shape ``(m, N-1)``.

    Raises
    ------
    NoSolution
        If the child's LP has no usable solution.
    """
    from opticoll.errors import NoSolution
    from opticoll.formulations.alltoall import child
    from opticoll.solvers.compile import compile_model
    from opticoll.solvers.isolation import solve_here, solve_isolated
    from opticoll.solvers.methods.flows.time_form import reformulate

    # f / F is the same in any unit of capacity, and solvers drop entries that are tiny.
    data = child.child_of(item.topology, item.number, item.capacity / max(item.capacity.max(), 1e-300))
    form = compile_model(child.FORMULATION.build["matrix"](data))
    timed = reformulate(form, child.FORMULATION)
    solve = solve_here if item.alone else solve_isolated
    outcome = timed.recover(solve(timed.form, item.solver, item.request))
    values: dict[str, Any] | None = None
    if outcome.x is not None:
        values = child.FORMULATION.repair(data, form.values(outcome.x))  # type: ignore[misc]
    if values is None:
        msg = f"child LP of rank {item.number} ended with {outcome.termination}: {outcome.message}"
        raise NoSolution(msg)
    return values["f"] / float(values["F"])


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


def run_flow_decomposition(context: Context) -> Answer:
    """Solve the master, split every source's flow into paths, and add them up by commodity."""
    topology = context.instance
    ranks, m = topology.ranks, topology.arcs
    if ranks * (ranks - 1) * m > MOST_ENTRIES:
        msg = (
            f"flow-decomposition: {ranks * (ranks - 1)} commodities on {m} arcs are more than the "
            f"{MOST_ENTRIES} entries kept; solve alltoall.master, whose flow holds the same information"
        )
        raise MethodMismatch(msg)
    begun = time.monotonic()
    master = solve_master(context)
    failed = unsolved(master)
    if failed is not None:
        return failed
    assert master.values is not None
    F = float(master.values["F"])
    proven = time.monotonic()
    flows = np.zeros((m, ranks * (ranks - 1)))
    paths = longest = 0
    for i, source in enumerate(topology.terminals.tolist()):
        context.remaining()
        targets = np.delete(topology.terminals, i)
        for j, found in enumerate(strip_paths(topology, source, master.values["g"][:, i], targets, F)):
            column = i * (ranks - 1) + j
            for path in found:
                flows[path.arcs, column] += path.amount
                longest = max(longest, len(path.arcs))
            paths += len(found)
    return Answer(
        master.termination,
        values={"f": flows, "F": np.asarray(F)},
        bound=master.bound,
        bound_source=master.record["bound_source"],
        solver={**master.record["solver"], "algorithm": f"{master.record['method']}, then path stripping"},
        metrics={
            "paths": paths, "paths_per_commodity": paths / flows.shape[1], "longest_path": longest,
            "master_s": proven - begun, "decompose_s": time.monotonic() - proven,
        },
    )  # fmt: skip


FLOW_DECOMPOSITION = Method(
    name="flow-decomposition",
    title="Master LP, then flow decomposition",
    summary="per-commodity flows of the link MCF from the master's source flows, without child LPs",
    applies=lambda formulation: formulation.name == "alltoall.link-mcf",
    parameters=(Parameter("master", str, default="auto", help="method for the master LP"),),
    run=run_flow_decomposition,
)


def run_mcf_extp(context: Context) -> Answer:
    """Solve the link MCF, then extract the paths of every commodity.

    Raises
    ------
    MethodMismatch
        If the path set is not that of all simple paths.
    """
    if not context.data.rule.unrestricted:
        msg = f"mcf-extp extracts paths of any kind, not of {context.data.rule}; give --set paths=all and no lmax"
        raise MethodMismatch(msg)
    topology, task = context.instance, context.task
    flow = context.solve(
        Task(
            "alltoall.link-mcf", task.instance, method=str(context.parameters["link"]),
            time_limit_s=context.remaining(), memory_limit_gib=task.memory_limit_gib, tol=task.tol, seed=task.seed,
            threads=task.threads,
        )
    )  # fmt: skip
    failed = unsolved(flow)
    if failed is not None:
        return failed
    assert flow.values is not None
    F = float(flow.values["F"])
    sources, targets = commodities(topology)
    paths: list[list[int]] = []
    pair: list[int] = []
    amount: dict[tuple[int, tuple[int, ...]], float] = {}
    most = 0
    for k, (s, t) in enumerate(zip(sources.tolist(), targets.tolist(), strict=True)):
        found = extract_paths(topology, s, t, flow.values["f"][:, k], F)
        most = max(most, len(found))
        for path in found:
            key = (k, tuple(path.arcs))
            if key not in amount:
                paths.append(path.arcs)
                pair.append(k)
            amount[key] = amount.get(key, 0.0) + path.amount
        if k % 1000 == 0:
            context.remaining()
    extracted = path_set_of(topology, paths, pair)
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


METHODS = (
    MASTER_CHILD,
    FLOW_DECOMPOSITION,
    MCF_EXTP,
)
