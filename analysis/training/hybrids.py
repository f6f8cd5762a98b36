"""Model and data parallelism of a training job on circuits: ``opticoll hybrids``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opticoll.analysis.plots.style import counted
from opticoll.analysis.rendering import Listing, Printed
from opticoll.arguments import number, whole_number
from opticoll.errors import BadInput
from opticoll.instances import parse
from opticoll.instances.families.op_graphs import OpGraph
from opticoll.instances.topology import parse_rate
from opticoll.solvers.methods.sipml import degree_aware
from opticoll.solvers.task import Fields

if TYPE_CHECKING:
    from opticoll.types import Gibibytes, Rate

#: Bandwidth of a circuit if none is given.
LINK = "100Gb/s"


class HybridRow(Fields, frozen=True, kw_only=True):
    """Groups of ``k`` GPUs, ``replicas`` of them: the step of a group, then the all-reduce between groups.

    ``bound_us`` is a lower bound on ``time_us`` of every placement with this k.
    """

    k: int
    replicas: int
    step_us: float
    all_reduce_us: float
    time_us: float
    bound_us: float


class Hybrids(Printed, Fields, frozen=True, kw_only=True):
    """All ways to divide the GPUs, by increasing k.

    ``best`` is the k of least time; no placement with a k of the rows takes less than ``bound_us``. ``omitted`` are the
    other divisors of the number of GPUs.
    """

    graph: str
    gpus: int
    batch: int
    degree: int
    link: str
    best: int
    time_us: float
    bound_us: float
    omitted: list[int]
    rows: list[HybridRow]

    @property
    def _title(self) -> str:
        return f"{self.graph} on {self.gpus} GPUs with {counted(self.degree, 'circuit')} of {self.link}"

    def lines(self) -> dict[str, str]:
        """The best way, in words, by name of the line."""
        return {
            "best": f"k = {self.best}, {self.time_us:.6g} us",
            "bound": f"{self.bound_us:.6g} us, over all k of the table",
            **({"omitted": f"k = {', '.join(map(str, self.omitted))}"} if self.omitted else {}),
        }

    def tables(self) -> list[Listing]:
        """A row for every k."""
        return [Listing(None, ["k", "replicas", "step_us", "all_reduce_us", "time_us", "bound_us"], self.rows)]


def hybrids(
    graph: str, gpus: int, batch: int, *, degree: int = 4, link: Rate | None = None, memory: Gibibytes = 0.0
) -> Hybrids:
    """Compare all k-way model and l-way data parallelisms with k l GPUs (SiP-ML, section 3.2).

    Every group of k GPUs runs the whole graph on its share of the batch, placed by Algorithm 1; then every GPU sums the
    parameters of its sub-operations with its l - 1 counterparts on a ring, over one circuit, without overlap.

    Parameters
    ----------
    graph
        Computation graph, ``op-graph:model=..``, without parts and batch, which follow from k and l.
    gpus, batch
        Number of GPUs, and samples of all of them in an iteration.
    degree
        Circuits of a GPU, D; with several groups one of them is for the ring.
    link
        Bandwidth of a circuit, such as ``100Gb/s`` (the default).
    memory
        Memory of a GPU [GiB]; 0: no limit.

    Returns
    -------
    Hybrids
        Times and lower bounds [us]. A k is omitted where l does not divide the batch, where degree, memory or the
        number of sub-operations is too small, or where Algorithm 1 finds no placement.

    Raises
    ------
    BadInput
        For numbers out of range, something that is not a computation graph, or if every k is omitted.
    """
    for name, value in (("gpus", gpus), ("batch", batch), ("degree", degree)):
        whole_number(value, f"hybrids: {name}", 1)
    number(memory, "hybrids: memory")
    if not isinstance(graph, str) or not isinstance(parse(graph), OpGraph):
        msg = f"hybrids: {graph} is not a computation graph; use op-graph:model=..."
        raise BadInput(msg)
    given = {part.partition("=")[0].strip() for part in graph.partition(":")[2].split(",")}
    if given & {"parts", "batch"}:
        msg = f"hybrids: {graph} states parts or batch, which follow from gpus= and batch=; omit them"
        raise BadInput(msg)
    rate = link or LINK
    tried = degree_aware.hybrids(
        graph, gpus, batch, degree=degree, bandwidth=parse_rate(rate, "link") / 8, memory=memory
    )
    if not tried:
        msg = f"hybrids: no way to divide {gpus} GPUs has a placement; raise degree, memory or batch, or use fewer GPUs"
        raise BadInput(msg)
    rows = [
        HybridRow(
            k=one.k,
            replicas=one.replicas,
            step_us=one.makespan,
            all_reduce_us=one.all_reduce,
            time_us=one.time,
            bound_us=one.bound,
        )
        for one in tried
    ]
    best = min(rows, key=lambda row: row.time_us)
    divisors = [k for k in range(1, gpus + 1) if gpus % k == 0]
    return Hybrids(
        graph=graph,
        gpus=gpus,
        batch=batch,
        degree=degree,
        link=rate,
        best=best.k,
        time_us=best.time_us,
        bound_us=min(row.bound_us for row in rows),
        omitted=sorted(set(divisors) - {row.k for row in rows}),
        rows=rows,
    )
