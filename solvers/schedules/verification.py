"""Verify a schedule file on a topology: execute it, and compare its time with the best bound on the fluid time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadFile, refuse
from opticoll.instances.readers import reading
from opticoll.solvers.schedules import interpreter
from opticoll.solvers.schedules.collective_steps import COLLECTIVES, CollectiveSteps, pair_capacity
from opticoll.solvers.schedules.link_schedule import run_routes, ways_between
from opticoll.solvers.schedules.moves_execution import run_moves
from opticoll.solvers.schedules.msccl_xml import read_xml
from opticoll.solvers.schedules.program_arrays import ProgramArrays
from opticoll.solvers.schedules.runtimes import TARGETS, exceeded
from opticoll.solvers.schedules.schedule_check import FREE_STEPS, Cost, ScheduleCheck, format_of, refused
from opticoll.solvers.schedules.schedule_json import FORMAT, read_schedule

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from opticoll.instances.topology import F64, Topology
    from opticoll.solvers.schedules.program import Program


#: Largest file [bytes].
MAX_BYTES = 512 << 20


def is_schedule(document: Any, path: Path) -> bool:
    """Whether a JSON document has the format of a schedule, ours or that of another tool."""
    return (isinstance(document, dict) and document.get("format") == FORMAT) or format_of(document, path) is not None


def verify_file(
    path: Path,
    topology: Topology,
    collective: str = "alltoall",
    *,
    traffic: F64 | None = None,
    root: int = 0,
    cost: Cost = FREE_STEPS,
) -> ScheduleCheck:
    """Execute the schedule in an ``.xml`` (MSCCL) or JSON file on a topology; also in those of other tools.

    ``traffic`` is the demand between ranks, ``(N, N)``, that an all-to-all must send; None for 1 shard between all.
    ``root`` is the rank of a broadcast, counted from 0.

    Raises
    ------
    BadFile
        If the file is malformed, too large, or for another instance.
    """
    if path.suffix.lower() == ".xml":
        if traffic is not None:
            return refused("demand", "MSCCL XML holds equal shards between all ranks, and the demand is another")
        if (other := format_of(None, path)) is not None:
            return _with_bound(other.check(None, path, topology, collective), topology, collective)
        return verify_program(read_xml(path), topology, collective, cost=cost)
    document = reading.read_json(path, MAX_BYTES, "name a schedule file")
    return verify_document(document, path, topology, collective, traffic=traffic, root=root, cost=cost)


def verify_document(
    document: Any,
    path: Path,
    topology: Topology,
    collective: str = "alltoall",
    *,
    traffic: F64 | None = None,
    root: int = 0,
    cost: Cost = FREE_STEPS,
) -> ScheduleCheck:
    """Execute the schedule in a JSON document; errors as in :func:`verify_file`."""
    if (form := format_of(document, path)) is not None:
        verdict = form.check(document, path, topology, collective)
        if verdict.valid and collective == "alltoall":
            verdict = _other_demand(None, topology, traffic) or verdict
        return _with_bound(verdict, topology, collective, traffic)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        refuse(path, f"not a schedule (format {FORMAT!r})", BadFile)
    schedule = read_schedule(document, path, topology)
    performed = schedule.collective if isinstance(schedule, CollectiveSteps) else "alltoall"
    if performed != collective:
        return refused("collective", f"the file is a schedule for {performed}, not for {collective}")
    if performed == "alltoall" and (other := _other_demand(schedule.demand, topology, traffic)) is not None:
        return other
    if isinstance(schedule, CollectiveSteps):
        verdict = run_moves(schedule, topology, root, cost=cost)
    else:
        verdict = run_routes(schedule, topology)
    return _with_bound(verdict, topology, collective, traffic, root)


def _other_demand(
    demand: dict[tuple[int, int], float] | None, topology: Topology, traffic: F64 | None
) -> ScheduleCheck | None:
    """The first pair for which a schedule states another amount than ``traffic``, as a verdict."""
    if demand is None and traffic is None:
        return None
    ends = topology.terminals
    uniform = np.ones((ends.size, ends.size)) - np.eye(ends.size)
    expected, actual = uniform if traffic is None else traffic, uniform
    if demand is not None:
        actual, place = np.zeros_like(uniform), {v: rank for rank, v in enumerate(ends.tolist())}
        for (s, t), amount in demand.items():
            if s not in place or t not in place:
                return refused("demand", f"the file states a demand of {s} to {t}, which are not both ranks", rank=s)
            actual[place[s], place[t]] = amount
    differs = np.argwhere(np.abs(actual - expected) > 1e-9 * np.maximum(expected, actual))
    if not differs.size:
        return None
    s, t = differs[0].tolist()
    names = [topology.labels[ends[rank]] for rank in (s, t)]
    msg = (
        f"the file sends {actual[s, t]:g} from {names[0]} to {names[1]}, and the demand is {expected[s, t]:g}; "
        "give the demand of the file"
    )
    return refused("demand", msg, rank=int(ends[s]))


def verify_program(program: Program, topology: Topology, collective: str, *, cost: Cost = FREE_STEPS) -> ScheduleCheck:
    """Execute a program with rank r on the r-th terminal of the topology, over arcs and through forwarding vertices."""
    if program.collective != collective:
        return refused("collective", f"the file is a schedule for {program.collective}, not for {collective}")
    if len(program.ranks) != topology.num_ranks:
        msg = f"the file has {len(program.ranks)} ranks, {topology.spec} has {topology.num_ranks}"
        return refused("ranks", msg)
    verdict = execute_program(program, topology, cost=cost)
    verdict = with_limits(verdict, program, ProgramArrays.of(program).usage()) if verdict.valid else verdict
    return _with_bound(verdict, topology, collective)


def with_limits(verdict: ScheduleCheck, program: Program, used: Mapping[str, int]) -> ScheduleCheck:
    """The verdict on a program with the limits of runtimes, of which it uses so much."""
    excess = {name: exceeded(program, target, used) for name, target in TARGETS.items()}
    fits = [name for name, result in excess.items() if not result]
    over = {name: "; ".join(result) for name, result in excess.items() if result}
    return replace(verdict, metrics={**verdict.metrics, "fits_runtime": fits, "exceeds": over})


def execute_program(program: Program, topology: Topology, *, cost: Cost = FREE_STEPS) -> ScheduleCheck:
    """As :func:`verify_program`, without limits of runtimes and bounds."""
    number = {int(v): r for r, v in enumerate(topology.terminals)}
    ways = {(number[u], number[v]): those for (u, v), those in ways_between(topology).items()}
    # The buffer of an all-reduce is one shard for every rank.
    shards = len(program.ranks) if program.collective == "allreduce" else 1
    return interpreter.run(program, pair_capacity(topology), ways, cost=cost._replace(beta=cost.beta * shards))


def _with_bound(
    verdict: ScheduleCheck, topology: Topology, collective: str, traffic: F64 | None = None, root: int = 0
) -> ScheduleCheck:
    """Add ``T_bound``, the best analytic lower bound on the fluid time, and ``over_bound`` to a valid verdict."""
    if not verdict.valid:
        return verdict
    time = verdict.time
    bound = _fluid_bound(topology, collective, traffic, root)
    metrics = {**verdict.metrics, "T_bound": bound}
    if bound and time is not None:
        metrics["over_bound"] = time / bound
    return replace(verdict, metrics=metrics)


def _fluid_bound(topology: Topology, collective: str, traffic: F64 | None, root: int) -> float:
    from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow, all_to_all_topology
    from opticoll.formulations.flows.flow_bounds import bounds, closed_forms
    from opticoll.formulations.registry import formulation

    if collective in COLLECTIVES.values():
        model = formulation(next(name for name, performed in COLLECTIVES.items() if performed == collective))
        settings = {"root": root} if collective == "broadcast" else {}
        return max(bound.value for bound in model.prepare(topology, settings).bounds())
    data = ConcurrentFlow.by_source(all_to_all_topology(topology, "alltoall") if traffic is None else topology, traffic)
    # A known optimum is the nearest float above it, so that no other bound is smaller.
    return max(1.0 / bound.value for bound in closed_forms(data) or bounds(data) if bound.value > 0)
