"""The paper's decomposition: master LP, then one child LP a source, the children in parallel."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from formulations.base import Parameter
from solvers.methods.base import Answer, Method
from solvers.methods.master_solution import MOST_ENTRIES, solve_master, unsolved

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from instances.topology import Topology
    from solvers.methods.base import Context
    from solvers.outcome import SolveRequest


def run(context: Context) -> Answer:
    """Solve the master, then the children through the executor; join their flows.

    Every child's flow is made exact for its own source flow; the common F is what the joint load allows.
    """
    from solvers.errors import MethodMismatch
    from solvers.executor import make_executor
    from solvers.outcome import SolveRequest, Termination

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
    # Unit flows: every target gets 1; their joint load says how much all of them can get at once.
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
    """A child LP to solve: whose, over which source flow ``(m,)``, by what.

    ``alone`` says that the process that gets it solves nothing else, with no other solver; a cluster's may.
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
    from formulations.alltoall import child
    from solvers.compile import compile_model
    from solvers.errors import NoSolution
    from solvers.isolation import solve_here, solve_isolated
    from solvers.methods.time_form import reformulate

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


METHOD = Method(
    name="master-child",
    title="Master LP, then child LPs in parallel",
    summary="the paper's decomposition: source flows first, then one LP a source splits them by destination",
    applies=lambda formulation: formulation.name == "alltoall.link-mcf",
    parameters=(
        Parameter("master", str, default="auto", help="method for the master LP"),
        Parameter("solver", str, default="highs-simplex", help="LP solver for the children"),
        Parameter("jobs", int, default=0, help="processes for the children; 0 for as many as threads"),
        Parameter("dask", str, default="", help="scheduler of a Dask cluster for the children, instead of processes"),
    ),
    run=run,
)
