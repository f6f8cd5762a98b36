"""Plots of the question whether to reconfigure: the least time by the delay of a change, and what is proven best."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.plots.marks import note, reference
from opticoll.analysis.plots.panels import one_panel
from opticoll.analysis.plots.style import INK, PALETTE, log_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from opticoll.analysis.designs.envelope import Envelope

#: Delays of the curves, per decade.
POINTS = 40
#: Number of configurations is written at most so often along the envelope.
MOST_NOTES = 9
#: Least ratio of two delays at which it is written.
APART = 1.25
UNIT = "shards / link bandwidth"


def delays_of(envelope: Envelope) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Delays from where direct circuits in turn are best to where nothing changes, evenly on a logarithmic scale."""
    stay = envelope.stay_from
    high = 3.0 * (stay if 0 < stay < math.inf else envelope.n)
    low = min(0.1, envelope.always_below / 3 or 0.1)
    return np.geomspace(low, high, int(POINTS * math.log10(high / low)) + 2)


def draw_envelope(envelope: Envelope) -> Figure:
    """Least known time and bound by the delay of a change, with the number of configurations."""
    from matplotlib.ticker import LogLocator

    delays = delays_of(envelope)
    choices = [envelope.at(float(delay)) for delay in delays]
    values, bounds = [one.value for one in choices], [one.bound for one in choices]
    way = "one-way" if envelope.directed else "two-way"
    with one_panel(7.2, 4.6, x=f"Delay of a change [{UNIT}]", y=f"Time of an all-to-all [{UNIT}]", columns=2) as (
        figure,
        axes,
        handles,
    ):
        axes.fill_between(delays, bounds, values, color=PALETTE[0], alpha=0.25, lw=0)
        handles += axes.plot(delays, values, color=PALETTE[0], lw=2.2, label="best known sequence")
        handles += axes.plot(delays, bounds, color=INK, lw=1, label="bound on every sequence")
        for delay, name, side in (
            (envelope.change_below, "some change is proven better", "right"),
            (envelope.stay_from, "staying is proven best", "left"),
        ):
            if 0 < delay < delays[-1]:
                reference(axes, x=delay)
                offset = (-4, 6) if side == "right" else (4, 6)
                note(axes, name, (delay, 0.0), offset, fraction="y", ha=side, va="bottom")
        log_axes(axes)
        axes.set_ylim(bottom=0.75 * min(bounds))
        axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
        for at in _noted(delays.tolist(), [one.configurations for one in choices]):
            axes.plot(delays[at], values[at], color=PALETTE[0], marker="o", ms=4)
            note(axes, f"K = {choices[at].configurations}", (float(delays[at]), values[at]), (2, -11), color=INK)
        axes.set_title(f"{envelope.n} nodes, {envelope.degree} {way} {'port' if envelope.degree == 1 else 'ports'}")
    return figure


def _noted(delays: list[float], used: list[int]) -> list[int]:
    """Places where the number of configurations changes for a while, at most ``MOST_NOTES``."""
    starts = [0, *(at for at in range(1, len(used)) if used[at] != used[at - 1])]
    ends = [*starts[1:], len(used) - 1]
    lasting = [at for at, end in zip(starts, ends, strict=True) if delays[end] > APART * delays[at]]
    return lasting[:: -(-len(lasting) // MOST_NOTES)]
