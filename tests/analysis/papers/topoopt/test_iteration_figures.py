"""The figures of simulated iteration times: rows of the table are simulated again, and drawn."""

from __future__ import annotations

import pandas as pd
import pytest

from opticoll.analysis.papers.topoopt import iteration_figures as figures
from opticoll.analysis.papers.topoopt.time_claims import table

ROWS = {tuple(row[name] for name in figures.FIELDS[:-1]): row["seconds"] for row in table()}
CELLS = list(figures._cells())


def key(row):
    return tuple(str(row[name]) for name in figures.FIELDS[:-1])


def test_the_table_has_a_row_for_every_cell():
    assert len(ROWS) == len(CELLS)


CHEAP = [
    cell for cell in CELLS
    if cell["figure"] == 16
    or (cell["figure"] == 11 and cell["model"] in {"vgg", "resnet50"} and cell["link"] in {10, 200})
]  # fmt: skip


@pytest.mark.parametrize("cell", CHEAP[::4], ids=lambda cell: "-".join(map(str, cell.values())))
def test_rows_are_simulated_again(cell):
    row = figures.record(cell)
    assert float(row["seconds"]) == pytest.approx(float(ROWS[key(row)]), rel=1e-5)


@pytest.mark.parametrize("figure", figures.FIGURES, ids=lambda figure: figure.name)
def test_figures_are_drawn_with_their_numbers(figure):
    rows = figure.select(pd.DataFrame())
    assert len(rows) >= 4
    assert all(axes.get_xlabel() or axes.get_title() for axes in figure.draw(rows).axes)
    assert any(digit in figure.finding(rows) for digit in "123456789")


def test_simulated_means_are_near_the_published_ones():
    rows = next(one for one in figures.FIGURES if one.name == "topoopt-16").select(pd.DataFrame())
    for degree in (4, 8):
        means = figures.shared_means(rows, degree)
        off = (means["simulated"] / means["published"] - 1).abs()
        assert off.max() < 0.07
        assert off.max() > 0.0


def test_no_network_is_faster_than_the_ideal_switch_by_more_than_its_latency():
    rows = next(one for one in figures.FIGURES if one.name == "topoopt-11").select(pd.DataFrame())
    times = rows.pivot_table(index=["model", "link_gbps"], columns="network", values="seconds")
    for network in figures.NETWORKS:
        assert not (times[network] < times["Ideal Switch"] * 0.99).any()
