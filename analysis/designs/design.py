"""Topologies for a given number of nodes and ports, with their gap to a bound on all such topologies.

The answer comes from a table of records or from a search (:mod:`opticoll.solvers.methods.topology.symmetric_search`).
Either way T is solved and verified again as ``alltoall.master`` on the topology, and compared with the bound that holds
for every topology of the degree (:mod:`opticoll.formulations.topology.design`).
"""

from __future__ import annotations

import csv
import time
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.rendering import Printed, number
from opticoll.analysis.result.progress_line import progress_here
from opticoll.arguments import number as finite_number
from opticoll.arguments import whole_number
from opticoll.errors import BadInput, refuse
from opticoll.formulations.topology.design import Design
from opticoll.formulations.topology.design_bounds import least_time
from opticoll.instances.families.regular_graphs import digraph_spec
from opticoll.instances.topology import Topology
from opticoll.solvers.task import Proof, Task

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opticoll.solvers.methods.topology.symmetric_search import SearchResult
    from opticoll.types import Json, Seconds


#: Maximum number of nodes of a design.
MOST_NODES = 4096
TABLE = "topology_records.csv"
#: Maximum number of nodes of a topology whose line digraphs are tried.
MOST_LINED = 1024


@dataclass(frozen=True)
class Timed:
    """A topology and its all-to-all time T, verified; ``proof`` states whether T is its optimum."""

    topology: str
    T: float | None
    proof: str


@dataclass(frozen=True, repr=False)
class TopologyDesign(Printed):
    """A topology of given degree, its time, and the bound on all topologies of that degree.

    ``gap`` is T / bound - 1; ``source`` is ``table`` or ``search``.
    """

    n: int
    degree: int
    directed: bool
    topology: str
    T: float
    bound: float
    gap: float
    proof: str
    reason: str
    source: str

    @property
    def best_possible(self) -> bool:
        """Whether no topology of the degree can be faster, within the tolerance of the solve."""
        return self.proof == Proof.OPTIMAL and self.gap <= 1e-6

    def lines(self) -> dict[str, str]:
        """The design in words, by name of the line, as ``opticoll design`` prints it."""
        return {
            "topology": f"{self.topology}   (from the {self.source})",
            "T": f"{number(self.T)}   ({self.proof} for this topology)",
            "T bound": f"{number(self.bound)}   for any topology: {self.reason}",
            "gap": "none: best possible" if self.best_possible else f"{100 * self.gap:.2f} %",
        }

    def document(self) -> dict[str, Json]:
        """The design as ``--json`` prints it."""
        return asdict(self) | {"best_possible": self.best_possible}

    def summary(self) -> dict[str, str]:
        """Those of :meth:`lines`, cut to a width, the gap first."""
        lines = super().summary()
        return {"gap": lines["gap"], **lines}

    @property
    def _title(self) -> str:
        return f"topology of {self.n} nodes, degree {self.degree}, links {'one way' if self.directed else 'both ways'}"


@dataclass(frozen=True)
class RecordRow:
    """A row of the table of records.

    ``genkautz`` is T of the generalized Kautz digraph of the size, and ``one_failure`` the worst T of the topology
    after one link has failed, where they are known. Where all topologies of the size without parallel links have been
    enumerated, and none is faster, ``enumerated`` is the number of those that their distances left, of which each was
    bounded by prices of its links (:mod:`opticoll.solvers.methods.topology.graph_enumeration`).
    """

    directed: bool
    topology: str
    time: float
    bound: Fraction
    genkautz: float | None
    one_failure: float | None
    enumerated: int | None = None

    @property
    def gap(self) -> float:
        """T / bound - 1."""
        return self.time / float(self.bound) - 1.0

    @property
    def best_possible(self) -> bool:
        """Whether T attains the bound, to the digits of the table, or all topologies have been enumerated."""
        return self.gap <= 1e-8 or self.enumerated is not None


@cache
def records() -> dict[tuple[int, int, bool], RecordRow]:
    """The table of records, by nodes, degree and whether links may run one way only."""
    text = files("opticoll.analysis.designs").joinpath(TABLE).read_text(encoding="utf-8")
    result = {}
    for row in csv.DictReader(text.splitlines()):
        directed = row["directed"] == "yes"
        kautz, failed = (float(row[name]) if row[name] else None for name in ("genkautz", "one_failure"))
        result[int(row["nodes"]), int(row["degree"]), directed] = RecordRow(
            directed,
            row["topology"],
            float(Fraction(row["time"])),
            Fraction(row["bound"]),
            kautz,
            failed,
            int(row["enumerated"]) if row["enumerated"] else None,
        )
    return result


def design(
    n: int,
    degree: int,
    *,
    directed: bool = False,
    table: bool = True,
    starts: int = 8,
    time_limit: Seconds | None = None,
    seed: int = 0,
) -> TopologyDesign:
    """Find a topology of n nodes with ``degree`` ports each that has a small all-to-all time.

    Parameters
    ----------
    n, degree
        Nodes and links of a node, each of capacity 1; at most ``MOST_NODES`` nodes.
    directed
        Whether links may run one way only; otherwise every link runs both ways.
    table
        Whether to use the record of the table, if there is one; otherwise a search is run.
    starts
        Descents of the search for each group.
    time_limit
        Limit [s] of the search and of the solve that verifies T, for which :func:`verifying_s` is reserved.
    seed
        Seed of the search.

    Raises
    ------
    BadInput
        For sizes out of range, if the limit is too short to verify T, or if nothing is found.
    """
    began = time.monotonic()
    n, degree = whole_number(n, "design: n"), whole_number(degree, "design: degree")
    starts, seed = whole_number(starts, "design: starts", 1), whole_number(seed, "design: seed", 0)
    if time_limit is not None:
        finite_number(time_limit, "design: time_limit", positive=True)
    if n > MOST_NODES:
        refuse("design", f"n={n} exceeds the limit of {MOST_NODES} nodes; use fewer")
    data = Design.of_nodes(n, degree, directed)
    if not directed:
        _refuse_odd(n, degree)
    record = records().get((n, degree, directed)) if table else None
    last_s = verifying_s(n, degree)
    least_s = LEAST_SEARCH_S + last_s
    if record is None and time_limit is not None and time_limit < least_s:
        msg = (
            f"design: {n} nodes of degree {degree} take at least {least_s:.1f} s, of which {last_s:.1f} s to verify T; "
            "set"
        )
        raise BadInput(msg, remedy={"time_limit": float(np.ceil(2 * least_s))})
    with progress_here(f"design n={n} degree={degree}"):
        if record is None:
            until = None if time_limit is None else began + time_limit - last_s
            timed = _fastest(_searched(data, starts, until, seed), until)
        else:
            timed = solved(record.topology)
    spec = timed.topology
    if timed.T is None:
        refuse("design", f"{spec} could not be solved ({timed.proof}); run opticoll solve alltoall.master {spec}")
    least, reason = least_time(data)
    bound = float(least)
    if record is not None and record.enumerated is not None:
        bound, reason = record.time, f"{enumeration(data)}; distances leave {record.enumerated}, none is faster"
    return TopologyDesign(
        n,
        degree,
        directed,
        spec,
        timed.T,
        bound,
        timed.T / bound - 1.0,
        timed.proof,
        reason,
        "search" if record is None else "table",
    )


def enumeration(data: Design) -> str:
    """What was enumerated, in words."""
    links = f"{data.degree} links in and out" if data.directed else f"{data.degree} links"
    return f"all topologies of {data.n} nodes with at most {links} each, none parallel, are enumerated"


def _refuse_odd(n: int, degree: int) -> None:
    """Refuse a number of ports that two-way links cannot use up."""
    if n * degree % 2:
        msg = f"design: {n} x {degree} is odd, so two-way links cannot give every node {degree}; "
        msg += f"use degree={degree - 1} or degree={degree + 1}, or one-way links (directed)"
        raise BadInput(msg)


def _searched(data: Design, starts: int, until: float | None, seed: int) -> list[str]:
    """Specs of the topology that a search finds, and of the known ones of one-way links before it."""
    best = _search(data, starts, until, seed)
    if not best.spec:
        refuse("design", f"no topology of {data.n} nodes and degree {data.degree} was found; raise starts")
    if not data.directed:
        return [best.spec]
    from opticoll.instances import parse

    kautz = f"genkautz:n={data.n},d={data.degree}"  # one of degree 1 may be disconnected
    return [*([kautz] if parse(kautz).connected else []), *line_specs(data.n, data.degree), best.spec]


#: Minimum time [s] of the search.
LEAST_SEARCH_S = 0.5


def verifying_s(n: int, degree: int) -> float:
    """Processor time [s] of solving and verifying T, as measured: 2.7 s for 2000 nodes of degree 4."""
    return 1.7e-7 * degree * n**2


def _fastest(specs: Iterable[str], deadline: float | None) -> Timed:
    """The topology of smallest T among the first one and those started before the deadline."""
    best: Timed | None = None
    for spec in specs:
        if best is not None and deadline is not None and time.monotonic() > deadline:
            break
        timed = solved(spec)
        if best is None or (np.inf if timed.T is None else timed.T) < (np.inf if best.T is None else best.T):
            best = timed
    assert best is not None
    return best


def _search(data: Design, starts: int, deadline: float | None, seed: int) -> SearchResult:
    from opticoll.solvers import solve
    from opticoll.solvers.methods.method import Context
    from opticoll.solvers.methods.topology.symmetric_search import search

    task = Task("alltoall.master", f"servers:n={data.n},degree={data.degree}", seed=seed)
    context = Context(task, data, None, {}, deadline, solve.solve, lambda answer, objective: None)
    return search(context, data, starts=starts)


def line_specs(n: int, degree: int) -> list[str]:
    """Specs of iterated line digraphs with n nodes of this degree, of smaller digraphs with small T.

    The digraphs are the records of n / d^k nodes, and, if n / d^k is at most d, the complete digraph with its arcs
    repeated as often as needed: its line digraphs have the smallest sums of distances if the degree permits it.
    """
    results = []
    base, times = n, 0
    while degree > 1 and base % degree == 0 and base // degree > 1:
        base, times = base // degree, times + 1
        if base <= degree + 1:
            results.append(f"{complete_multigraph(base, degree)}+line={times}")
        record = records().get((base, degree, True))
        if record is not None and base <= MOST_LINED and "+" not in record.topology:
            results.append(f"{record.topology}+line={times}")
    return results


def complete_multigraph(n: int, degree: int) -> str:
    """Spec of a digraph of n nodes, at most degree + 1, with parallel arcs: x to x + 1, x + 2, ... in turn."""
    steps = [1 + k % (n - 1) for k in range(degree)]
    return (
        digraph_spec(Topology(n, np.repeat(np.arange(n), degree), [(x + s) % n for x in range(n) for s in steps])) or ""
    )


def solved(spec: str) -> Timed:
    """T of a topology by ``alltoall.master``, verified like every solve."""
    from opticoll.instances import parse

    return _solved(parse(spec))


def _solved(topology: Topology) -> Timed:
    from opticoll.solvers import solve

    task = Task("alltoall.master", topology, tol=1e-6 if topology.n <= MOST_LINED else 1e-3)
    record = solve.solve(task).record
    T = record.metrics.get("T") if record.verified and record.metrics else None
    return Timed(topology.spec, float(T) if isinstance(T, (int, float)) else None, str(record.proof))
