"""Plots of a comparison of solvers, from the tables of :mod:`opticoll.analysis.benchmark.solver_metrics`.

Only measured values are drawn: a run without a time is in no curve as one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.plots.panels import styled_figure
from opticoll.analysis.plots.style import ON_SERIES, PALETTE, label, log_axes, series

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from matplotlib.figure import Figure


#: End of the name of a contestant that was run here, beside a published one.
HERE = " (here)"
#: Ratio at which the left panel of a profile ends and the right one begins [-].
_NEAR = 3.0


def profiles(steps: pd.DataFrame, solvers: Sequence[str]) -> Figure:
    """Draw performance profiles: factors near 1 on a linear axis, the tail on a logarithmic one.

    Parameters
    ----------
    steps
        ``solver``, ``ratio``, ``share``, see :func:`opticoll.analysis.benchmark.solver_metrics.performance_profile`.
    solvers
        All solvers of the benchmark, so each has the same colour in every figure.
    """
    shown = [name for name in solvers if (steps["solver"] == name).any()]
    end = {name: steps.loc[steps["solver"] == name, "share"].max() for name in shown}
    start = {name: steps.loc[steps["solver"] == name, "share"].iloc[0] for name in shown}
    far = max(10.0, 1.3 * float(steps["ratio"].max()))
    with styled_figure(7.2, 4.8, columns=2) as (figure, handles):
        near, tail = figure.subplots(1, 2, sharey=True, gridspec_kw={"width_ratios": [1, 1.4]})
        for name in sorted(shown, key=lambda one: -end[one]):
            look = _look(name, solvers)
            selected = steps[steps["solver"] == name]
            ratio = np.append(selected["ratio"].to_numpy(dtype=float), far)
            share = np.append(selected["share"].to_numpy(dtype=float), selected["share"].iloc[-1])
            text = f"{label(name, 24)}: {start[name]:.0%} fastest, {end[name]:.0%} solved"
            for axes in (near, tail):
                (line,) = axes.step(
                    ratio,
                    share,
                    where="post",
                    linewidth=1.5,
                    markersize=4,
                    label=text,
                    **look,
                )
            handles.append(line)
        near.set_xlim(1.0, _NEAR)
        log_axes(tail, "x")
        tail.set_xlim(_NEAR, far)
        for axes in (near, tail):
            axes.set_ylim(-0.02, 1.03)
            axes.grid(visible=True)
            axes.set_axisbelow(True)
        near.set_ylabel("share of problems solved [–]")
        near.set_xlabel("time ÷ fastest time [–]")
        tail.set_xlabel("time ÷ fastest time [–], logarithmic")
    return figure


def _look(name: str, solvers: Sequence[str]) -> dict[str, Any]:
    """Colour, line and marker of a contestant: those of its published runs for its runs ``(here)``, but dotted, hollow.

    No two of 16 contestants have the same colour and line.
    """
    bases = list(dict.fromkeys(one.removesuffix(HERE) for one in solvers))
    number, here = bases.index(name.removesuffix(HERE)), name.endswith(HERE)
    colour, marker = series(number)
    again = number >= len(PALETTE)  # colours repeat
    line: Any = (0, (4, 2)) if again else "-"
    if here:
        line = (0, (4, 1, 1, 1, 1, 1) if again else (1, 1))
    filled = ON_SERIES if here else colour
    return {"color": colour, "marker": marker, "linestyle": line, "markerfacecolor": filled}
