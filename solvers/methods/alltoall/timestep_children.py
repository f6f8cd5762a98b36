"""Method ``timestep-children``: the all-to-all in time steps by source, then split by destination."""

from __future__ import annotations

import math
import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import MethodMismatch, refuse
from opticoll.formulations.alltoall.time_expansion import flow_of_source, over_time
from opticoll.formulations.alltoall.timestep_child import StepChild
from opticoll.formulations.alltoall.timestep_mcf import StepFlow
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
from opticoll.formulations.parameters import Parameter
from opticoll.solvers.methods.alltoall.decomposition import solve_children, unsolved
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.process.memory import GIB, TooLarge, available_bytes
from opticoll.solvers.schedules.timed_paths import timed_paths

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.instances.topology import F64
    from opticoll.solvers.methods.method import Context
    from opticoll.solvers.run import Run

#: Flows by source are split column by column, which are then joined: two arrays of numbers [bytes per entry].
SPLIT = 16


def run_timestep_children(context: Context) -> Answer:
    """The time-stepped LP by commodity as the LP by source, whose flows are then split by destination.

    The optimum is that of the LP by source, which is solved first; its bound is the method's. A flow is split into
    paths of the time-expanded graph: no path enters a vertex twice or passes its destination, since it can wait there.
    ``split=lp`` solves the child LP of every source instead, in parallel, as in the paper.

    Raises
    ------
    MethodMismatch
        If the model has one flow per source (``aggregate=source``), which nothing needs to split.
    TooLarge
        If the flows by commodity, ``(m, |K|, L)``, exceed the available memory.
    """
    data: StepFlow = context.data
    if data.aggregate != "commodity":
        msg = f"timestep-children: aggregate={data.aggregate} has nothing to split; set aggregate=commodity"
        raise MethodMismatch(msg)
    needed, there = SPLIT * math.prod(data.shape) / GIB, available_bytes() / GIB
    if needed > there:
        msg = (
            f"timestep-children: the flows of {data.groups.groups:,} commodities need {needed:.3g} GiB of memory and "
            f"this machine has {there:.3g} GiB left; set aggregate=source, which has the same optimum and schedules"
        )
        raise TooLarge(msg)
    begun = time.monotonic()
    master = _by_source(context)
    failed = unsolved(master)
    if failed is not None:
        return failed
    assert master.values is not None
    proven = time.monotonic()
    topology = data.topology
    shards = None if data.groups.uniform else data.groups.traffic
    by_source = StepFlow(ConcurrentFlow.by_source(topology, shards), data.steps, "source", relays=data.relays)
    split = path_flows if context.parameters["split"] == "paths" else child_flows
    f, how = split(context, by_source, master.values)
    values = {"f": f, "U": (f.sum(axis=1) / topology.capacity[:, None]).max(axis=0)}
    return Answer(
        master.termination,
        values=values,
        bound=master.bound,
        bound_source=master.record["bound_source"],
        solver={
            **master.record["solver"],
            "algorithm": f"{master.record['method']} by source, then {how}",
        },
        metrics={
            "children": by_source.groups.groups,
            "master_s": proven - begun,
            "decompose_s": time.monotonic() - proven,
        },
    )


def _by_source(context: Context) -> Run:
    """Solve the model with ``aggregate=source`` on the context's instance, demand, steps and relays."""
    task, data = context.task, context.data
    settings = {name: value for name, value in task.settings.items() if name in ("steps", "relays", "demand")}
    settings["aggregate"], master = "source", str(context.parameters["master"])
    return context.solve(context.part(data.name, method=master, form=task.form, settings=settings))


def child_flows(context: Context, by_source: StepFlow, values: Mapping[str, F64]) -> tuple[F64, str]:
    """Split the flows of all sources by one LP each: f ``(m, |K|, L)``, and what split it."""
    flow, groups = np.asarray(values["f"], dtype=float), by_source.groups
    numbers = np.searchsorted(by_source.topology.terminals, groups.sources).tolist()
    children = [(number, partial(_child, by_source, k, flow[:, k])) for k, number in enumerate(numbers)]
    moving = by_source.unrolled.moving
    entries = by_source.topology.arcs * by_source.steps * int(np.count_nonzero(groups.demand))
    columns = [one[moving].transpose(0, 2, 1) for one in solve_children(context, children, entries)]
    return np.concatenate(columns, axis=1), f"{len(children)} child LPs"


def _child(by_source: StepFlow, column: int, flow: F64) -> StepChild:
    return StepChild(*flow_of_source(by_source, column, flow), 1.0)


def path_flows(context: Context, by_source: StepFlow, values: Mapping[str, F64]) -> tuple[F64, str]:
    """Split the flows of all sources into paths of the time-expanded graph, without an LP: f, and what split it."""
    exact = by_source.repair(values)
    if exact is None:
        refuse("timestep-children", "the flows by source cannot be divided into paths; set split=lp", MethodMismatch)
    flow, columns = over_time(by_source, exact["f"]), []
    for column in range(by_source.groups.groups):
        context.remaining()
        split = list(timed_paths(by_source, flow, column))
        f = np.zeros((by_source.topology.arcs, len(split), by_source.steps))
        for k, (_, paths) in enumerate(split):
            for path in paths:
                np.add.at(f, (list(path.arcs), k, list(path.steps)), path.amount)
        columns.append(f)
    return np.concatenate(columns, axis=1), "paths"


METHOD = Method(
    name="timestep-children",
    title="Time-stepped LP by source, split by destination",
    summary="the paper's decomposition in time steps: flows by source first, then split into paths or by one LP each",
    serves=("alltoall.timestep-mcf",),
    # n=40: 748,803 variables in 11 s; n=45: 1,069,203 in 51 s, GK(n,4) on two busy cores.
    takes_over=(
        Beyond(
            "alltoall.timestep-mcf",
            900_000,
            2_800_000,
            most=100_000_000,
            suits=lambda problem, _task, _size: problem.aggregate == "commodity",  # type: ignore[attr-defined]
        ),
    ),
    parameters=(
        Parameter("master", str, default="auto", help="method for the LP by source"),
        Parameter(
            "split",
            str,
            default="paths",
            choices=("paths", "lp"),
            help="how the flow of a source is split by destination: into paths, or by its child LP (the paper's)",
        ),
        Parameter("solver", str, default="highs-ipx", help="LP solver for the children"),
        Parameter(
            "jobs", int, default=0, help="processes for the children; 0 for as many as threads, or one for few flows"
        ),
        Parameter("dask", str, default="", help="scheduler of a Dask cluster for the children, instead of processes"),
    ),
    run=run_timestep_children,
)
