"""Plots of the question whether to reconfigure: the least time by the delay of a change, and what is proven best."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from opticoll.analysis.plots.marks import note, reference
from opticoll.analysis.plots.panels import one_panel, styled_figure
from opticoll.analysis.plots.style import GRID, INK, PALETTE, legend_mark, log_axes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from opticoll.analysis.designs.envelope import Envelope
    from opticoll.analysis.designs.schemes import Scheme

#: Delays of the curves, per decade.
POINTS = 40
#: Number of configurations is written at most so often along the envelope.
MOST_NOTES = 9
#: With more numbers of nodes, every other one is written.
MOST_TICKS = 5
#: Least ratio of two delays at which it is written.
APART = 1.25
UNIT = "shards / link bandwidth"


def delays_of(envelope: Envelope) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Delays from where direct circuits in turn are best to where nothing changes, evenly on a logarithmic scale."""
    stay = envelope.stay_from
    high = 3.0 * (stay if 0 < stay < math.inf else envelope.n)
    low = min(0.1, envelope.always_below / 3 or 0.1)
    return np.geomspace(low, high, int(POINTS * math.log10(high / low)) + 2)


def draw_envelope(envelope: Envelope, schemes: Sequence[Scheme] = ()) -> Figure:
    """Least known time and bound by the delay of a change, with the number of configurations, and known schemes.

    Parameters
    ----------
    envelope
        Times and bounds of sequences of configurations.
    schemes
        Schemes to compare, each a line.
    """
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
        for number, scheme in enumerate(schemes):
            colour = PALETTE[(number + 1) % len(PALETTE)]
            handles += axes.plot(
                delays, [scheme.value(delay) for delay in delays], color=colour, lw=1, ls=(0, (5, 2)), label=scheme.name
            )
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


def draw_regions(envelopes: Sequence[Envelope]) -> Figure:
    """Delays at which it is proven best to stay, to change, and to change as often as direct circuits need, by nodes.

    Parameters
    ----------
    envelopes
        Envelopes of several numbers of nodes and ports; a panel for each number of ports.
    """
    degrees = sorted({one.degree for one in envelopes})
    with styled_figure(2.4 * len(degrees) + 0.8, 3.8, columns=2) as (figure, handles):
        panels = figure.subplots(1, len(degrees), sharey=True, squeeze=False)[0]
        for panel, degree in zip(panels, degrees, strict=True):
            listed = sorted((one for one in envelopes if one.degree == degree), key=lambda one: one.n)
            nodes = [one.n for one in listed]
            stay = np.array([one.stay_from for one in listed])
            change = np.array([one.change_below for one in listed])
            always = np.array([one.always_below for one in listed])
            top = 4 * max(2 * one.n for one in envelopes)
            panel.fill_between(nodes, np.minimum(stay, top), top, color=PALETTE[1], alpha=0.3, lw=0)
            panel.fill_between(nodes, always, np.minimum(change, top), color=PALETTE[0], alpha=0.3, lw=0)
            panel.fill_between(nodes, 1e-2, np.maximum(always, 1e-2), color=PALETTE[2], alpha=0.4, lw=0)
            panel.fill_between(nodes, np.minimum(change, top), np.minimum(stay, top), color=GRID, lw=0)
            for values, colour in ((stay, PALETTE[1]), (change, PALETTE[0]), (always, PALETTE[2])):
                panel.plot(
                    nodes, np.where((values > 0) & (values < top), values, np.nan), color=colour, marker=".", lw=1
                )
            panel.set(xscale="log", yscale="log", ylim=(0.1, top), xlabel="Nodes")
            shown = nodes if len(nodes) <= MOST_TICKS else nodes[::2]
            panel.set_xticks(shown, [str(n) for n in shown])
            panel.minorticks_off()
            panel.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
            panel.set_title(f"{degree} {'port' if degree == 1 else 'ports'}")
        panels[0].set_ylabel("Delay of a change\n[shards / link bandwidth]")
        for name, colour in (
            ("staying is proven best", PALETTE[1]),
            ("some change is proven better than staying", PALETTE[0]),
            ("as many configurations as direct circuits need, proven best", PALETTE[2]),
            ("not decided", GRID),
        ):
            handles.append(legend_mark(name, colour, "s"))
    return figure
