"""Figures as ``opticoll list figures`` and ``opticoll describe`` show them, and the schedules that a paper proposes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from opticoll.analysis.describe import Description
from opticoll.analysis.papers.alltoall.schedule_choice import FABRICS, schedules
from opticoll.analysis.papers.paper_figure import figures

if TYPE_CHECKING:
    from opticoll.instances import Topology

#: Maximum number of vertices of a topology whose schedules are listed; that takes its shortest paths.
LARGEST_CHOSEN = 1000


class FigureRow(TypedDict):
    """A figure of a paper, and the study that produces its runs; None for a figure without runs."""

    name: str
    paper: str
    where: str
    title: str
    study: str | None


def listed() -> list[FigureRow]:
    """The figures."""
    return [
        {"name": one.name, "paper": one.paper, "where": one.where, "title": one.title, "study": one.study}
        for one in figures()
    ]


def describe(name: str) -> Description | None:
    """The figure of that name; None if there is none."""
    figure = next((one for one in figures() if one.name == name), None) if "-" in name else None
    if figure is None:
        return None
    return Description(
        kind="figure",
        name=name,
        title=figure.title,
        text=f"The paper: {figure.says}",
        source=f"{figure.paper}, {figure.where}",
        example=f"opticoll figure {name} --out {name}.pdf",
        facts={"study": figure.study, "without runs": figure.basis or None, "counts": figure.counts or None},
    )


def proposed_schedules(topology: Topology) -> dict[str, str]:
    """The all-to-all schedule of every fabric, where all vertices are ranks."""
    if topology.num_ranks < max(topology.n, 2) or not topology.connected or topology.n > LARGEST_CHOSEN:
        return {}
    return {
        f"all-to-all, {FABRICS[one.fabric]}": f"{one.schedule}: {one.command} ({one.where}: {one.reason})"
        for one in schedules(topology)
    }
