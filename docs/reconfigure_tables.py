"""Tables and figures of the page ``docs/guide/reconfigure.md``, from the table of sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from blocks import replaced, table

from opticoll.analysis.designs.envelope import Envelope, cyclic_records, direct_records, envelope
from opticoll.analysis.designs.reconfiguration_plots import draw_envelope
from opticoll.analysis.designs.sequence_records import sequence_records
from opticoll.analysis.plots.panels import styled_figure
from opticoll.analysis.plots.style import GRID, PALETTE, legend_mark, svg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from opticoll.analysis.designs.sequence_records import SequenceRecord

PAGE = "docs/guide/reconfigure.md"
NODES, DEGREES = (8, 16, 32, 64, 128, 256, 512, 1024), (1, 2, 4, 8)
#: Numbers of configurations of the table.
SHOWN = (1, 2, 3, 4, 6, 8)
#: With more numbers of nodes, every other one is written.
MOST_TICKS = 5
#: Published delays of a change [s], and where they come from.
DELAYS = ((3.7e-6, "3.7 µs (LuMorph)"), (25e-6, "25 µs (SiP-ML)"), (10e-3, "10 ms (TopoOpt)"))
#: Bytes that every node sends in all, and the bandwidth of a link [bytes / s].
BUFFERS, LINK = ((1e6, "1 MB"), (64e6, "64 MB"), (1e9, "1 GB")), 100e9 / 8
VERDICTS = {"stay": "staying is best", "change": "changing is best", "open": "open"}


def with_tables(text: str) -> str:
    """Text of the page with its tables."""
    for name, body in BLOCKS.items():
        text = replaced(text, name, body())
    return text


def figures() -> dict[str, str]:
    """SVG figures of the page by name."""
    one = envelope(64, 4)
    listed = [envelope(n, d) for d in DEGREES for n in NODES if n > d and (n, d, False) in sequence_records()]
    return {
        "reconfigure-envelope": svg(draw_envelope(one)),
        "reconfigure-regions": svg(draw_regions(listed)),
    }


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


def _envelopes() -> list[Envelope]:
    return [
        envelope(n, d, directed=directed)
        for n in NODES
        for d in DEGREES
        for directed in (False, True)
        if (n, d, directed) in sequence_records()
    ]


def records_table() -> str:
    """T by nodes, ports and configurations."""
    rows = [row for listed in sequence_records().values() for row in listed]
    small = [row for row in rows if row.n <= 64 and row.degree <= 4 and row.configurations <= 8]
    proven = [row for row in rows if row.best_possible]
    lines = [
        f"The table has {len(rows)} sequences, up to {max(row.n for row in rows)} nodes; "
        f"{len(proven)} are proven best over all sequences of as many configurations, of the {len(small)} with at most "
        f"64 nodes, 4 ports and 8 configurations {sum(row in proven for row in small)}.",
        "",
    ]
    cells = [(_case(one), *(_cell(one.best.get(K)) for K in SHOWN)) for one in _envelopes()]
    return "\n".join([*lines, *table(("n, d", *(f"K = {K}" for K in SHOWN)), (row for row in cells if any(row[1:])))])


def _case(one: Envelope) -> str:
    return f"{one.n}, {one.degree}, {'one-way' if one.directed else 'two-way'}"


def _cell(row: SequenceRecord | None) -> str:
    if row is None:
        return ""
    return f"**{row.time:.5g}**" if row.best_possible else f"{row.time:.5g} ({float(row.bound):.5g})"


def thresholds_table() -> str:
    """Delays from which, and up to which, a choice is proven."""
    rows = (
        (_case(one), *(f"{value:.4g}" for value in (one.always_below, one.change_below, one.stay_from)))
        for one in _envelopes()
        if one.bounds[0] != float("inf")
    )
    heads = ("n, d", "as often as direct circuits, up to", "some change, up to", "staying, from")
    return "\n".join(table(heads, rows, numbers=3))


def delays_table() -> str:
    """The best known number of configurations at published delays."""
    rows = []
    for n, degree in ((16, 4), (64, 4), (256, 4), (1024, 8)):
        one = envelope(n, degree)
        for buffer, name in BUFFERS:
            shard_s = buffer / n / LINK
            cells = []
            for delay, _ in DELAYS:
                choice = one.at(delay / shard_s)
                time = f"{1e6 * choice.value * shard_s:,.4g} µs"
                cells.append(
                    f"K = {choice.configurations}, {time} ({VERDICTS[choice.verdict]}; gap {100 * choice.gap:.1f} %)"
                )
            rows.append((_case(one), name, *cells))
    return "\n".join(table(("n, d", "each node sends", *(name for _, name in DELAYS)), rows))


def schemes_table() -> str:
    """Loss of rings, index algorithms and direct circuits over the best known sequence, at several delays."""
    delays = (0.05, 0.5, 2.0, 10.0, 100.0)
    rows: list[tuple[object, ...]] = []
    for n, degree, directed in ((64, 1, True), (64, 4, True), (64, 4, False), (256, 4, True), (256, 2, False)):
        one = envelope(n, degree, directed=directed)
        named = [
            ("index algorithm" if row.configurations > 1 else "rings", row)
            for row in cyclic_records(n, degree, directed)
        ]
        named += [("direct circuits in turn", direct_records(n, degree, directed)[0])]
        for name, row in named:
            K, T = row.configurations, row.time
            losses = [100 * ((T + delay * (K - 1)) / one.at(delay).value - 1) for delay in delays]
            rows.append((_case(one), name, K, f"{T:.5g}", *(f"{max(loss, 0):.0f} %" for loss in losses)))
    heads = ("n, d", "circuits", "K", "T", *(f"δ = {delay:g}" for delay in delays))
    return "\n".join(table(heads, rows, numbers=2 + len(delays)))


#: Blocks of the page, in its order.
BLOCKS = {
    "thresholds": thresholds_table,
    "delays": delays_table,
    "schemes": schemes_table,
    "sequences": records_table,
}
