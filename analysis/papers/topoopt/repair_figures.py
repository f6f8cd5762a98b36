"""What a failed circuit costs (section 7 of the TopoOpt paper, handling failures)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from opticoll.analysis.papers.paper_figure import Figures, frame
from opticoll.analysis.plots.marks import marks, reference
from opticoll.analysis.plots.panels import one_panel
from opticoll.analysis.plots.style import series
from opticoll.formulations.topoopt.topology import Wiring
from opticoll.instances import parse
from opticoll.solvers.methods.topoopt import link_repair
from opticoll.solvers.methods.topoopt.topology_finder import topology_finder

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


FIGURES = Figures("topoopt")
SERVERS, DEGREE = 8, 4
JOBS = ("candle", "dlrm", "ncf")
#: Servers whose circuits fail, one at a time.
SENDERS = (0, 1)
_WORDS = {
    "reroute": "forwarded over the other circuits",
    "spread": "share moved to the other rings",
    "least": "least over the circuits left",
}


@cache
def failed(job: str) -> tuple[tuple[str, float], ...]:
    """Maximum load after the failure of every circuit over that before it, by repair."""
    pool = parse(f"servers:n={SERVERS},degree={DEGREE},traffic={job}")
    design = topology_finder(pool)
    pairs = [pair for pair in link_repair.pairs_of(design) if pair[0] in SENDERS]
    results = []
    for one in link_repair.failures(Wiring.prepare(pool), design, pairs):
        for way, load in {**one.loads, "least": one.least}.items():
            if load is not None:
                results.append((way, load / design.max_load))
    return tuple(results)


def _rows(_: pd.DataFrame) -> pd.DataFrame:
    return frame([{"job": job, "repair": way, "load": load} for job in JOBS for way, load in failed(job)])


def _draw(rows: pd.DataFrame) -> Figure:
    with one_panel(6.6, 4.0, x="job", y="largest load, after ÷ before the failure [–]") as (figure, axes, handles):
        for number, (way, words) in enumerate(_WORDS.items()):
            for place, job in enumerate(JOBS):
                loads = rows[(rows["job"] == job) & (rows["repair"] == way)]["load"]
                x = place + 0.18 * (number - 1)
                axes.plot([x, x], [loads.min(), loads.max()], color=series(number)[0], linewidth=2)
                drawn = marks(axes, [x], [loads.median()], number, words, markersize=7)
                if place == 0:
                    handles += drawn
        reference(axes, y=1.0)
        axes.set_xticks(range(len(JOBS)), list(JOBS))
        axes.grid(visible=True)
    return figure


@FIGURES.drawn("topoopt-repair", _rows, _draw)
def _finding(rows: pd.DataFrame) -> str:
    parts = []
    for job, group in rows.groupby("job"):
        median = group.groupby("repair")["load"].median()
        parts.append(
            f"{job}: forwarded {median['reroute']:.3g}, moved to the other rings {median['spread']:.3g}, "
            f"least {median['least']:.3g}"
        )
    swaps = int((rows["repair"] == "swap").sum())
    return (
        f"Median over the failures, times the load before: {'; '.join(parts)}. Data parallel, d / (d - 1) is least. "
        f"{swaps} of the failures can be repaired with ports that no ring uses."
    )
