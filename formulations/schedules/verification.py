"""Verify a schedule file on a topology, and compare its time with the best lower bound on the fluid time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opticoll.formulations.model import NotApplicable
from opticoll.formulations.schedules import interpreter
from opticoll.formulations.schedules.link_schedule import pair_capacity, run_links, run_routes
from opticoll.formulations.schedules.msccl_xml import read_xml
from opticoll.formulations.schedules.program import Verdict, refused
from opticoll.formulations.schedules.schedule_json import LinkSteps, load, read_schedule
from opticoll.instances.digraph import Topology

if TYPE_CHECKING:
    from pathlib import Path

    from opticoll.formulations.schedules.program import Program


def verify_file(
    path: Path, instance: object, collective: str = "alltoall", *, alpha: float = 0.0, beta: float = 1.0
) -> Verdict:
    """Execute the schedule in an ``.xml`` (MSCCL) or JSON file on a topology.

    Raises
    ------
    BadFile
        If the file is malformed, too large, or for another instance.
    NotApplicable
        If the instance is not a topology.
    """
    if not isinstance(instance, Topology):
        msg = f"{path}: schedules are checked on topologies; {getattr(instance, 'spec', instance)} is not a topology"
        raise NotApplicable(msg)
    if path.suffix.lower() == ".xml":
        return verify_program(read_xml(path), instance, collective, alpha=alpha, beta=beta)
    return verify_document(load(path), path, instance, collective, alpha=alpha, beta=beta)


def verify_document(
    document: Any, path: Path, topology: Topology, collective: str, *, alpha: float = 0.0, beta: float = 1.0
) -> Verdict:
    """Execute the schedule in a JSON document; errors as in :func:`verify_file`."""
    schedule = read_schedule(document, path, topology)
    performed = schedule.collective if isinstance(schedule, LinkSteps) else "alltoall"
    if performed != collective:
        return refused("collective", f"the file is an {performed}, not an {collective}")
    if isinstance(schedule, LinkSteps):
        verdict = run_links(schedule, topology, alpha=alpha, beta=beta)
    else:
        verdict = run_routes(schedule, topology)
    return _with_bound(verdict, topology, collective)


def verify_program(
    program: Program, topology: Topology, collective: str, *, alpha: float = 0.0, beta: float = 1.0
) -> Verdict:
    """Execute a program with rank r on the r-th terminal of the topology, over arcs between terminals only."""
    if program.collective != collective:
        return refused("collective", f"the file is an {program.collective}, not an {collective}")
    if len(program.ranks) != topology.ranks:
        msg = f"the file has {len(program.ranks)} ranks, {topology.spec} has {topology.ranks}"
        return refused("ranks", msg)
    number = {int(v): r for r, v in enumerate(topology.terminals)}
    capacity = {
        (number[u], number[v]): c for (u, v), c in pair_capacity(topology).items() if u in number and v in number
    }
    verdict = interpreter.run(program, capacity, alpha=alpha, beta=beta)
    if verdict.valid:
        from opticoll.formulations.schedules.lowering import fits_runtime

        verdict = replace(verdict, metrics={**verdict.metrics, "fits_runtime": fits_runtime(program)})
    return _with_bound(verdict, topology, collective)


def _with_bound(verdict: Verdict, topology: Topology, collective: str) -> Verdict:
    """Add ``T_bound``, the best analytic lower bound on the fluid time, and ``over_bound`` to a valid verdict."""
    if not verdict.valid:
        return verdict
    time = verdict.metrics.get("time", verdict.metrics.get("async_time"))
    bound = _fluid_bound(topology, collective)
    metrics = {**verdict.metrics, "T_bound": bound}
    if bound and time is not None:
        metrics["over_bound"] = time / bound
    return replace(verdict, metrics=metrics)


def _fluid_bound(topology: Topology, collective: str) -> float:
    if collective == "allgather":
        from opticoll.formulations.alltoall.all_gather import worst_cut

        return worst_cut(topology).time
    from opticoll.formulations.flows.concurrent_flow import all_to_all_topology, by_source
    from opticoll.formulations.flows.flow_bounds import bounds

    data = by_source(all_to_all_topology(topology, "alltoall"))
    return max(1.0 / bound.value for bound in bounds(data) if bound.value > 0)
