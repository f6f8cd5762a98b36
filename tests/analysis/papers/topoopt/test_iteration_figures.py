"""The figures of simulated iteration times: rows of the table are simulated again, and drawn."""

from __future__ import annotations

import pandas as pd
import pytest
from case_families import each

from opticoll.analysis.papers.topoopt import iteration_figures as figures
from opticoll.analysis.papers.topoopt import simulated_iterations


def key(row):
    return tuple((name, row[name]) for name in simulated_iterations.FIELDS[:-1])


ROWS = {key(row): row["seconds"] for row in simulated_iterations.table()}
CELLS = list(simulated_iterations.cells())


def test_the_table_has_a_row_for_every_cell():
    assert set(ROWS) == {key(simulated_iterations._row(cell)) for cell in CELLS}
    assert {cell["figure"] for cell in CELLS} == {11, 12, 16, 17, 27, 28}


CHEAP = [
    cell
    for cell in CELLS
    if cell["figure"] == 16
    or (cell["figure"] == 11 and cell["model"] in {"vgg", "resnet50"} and cell["link"] in {10, 200})
]


@each("cell", CHEAP[::4])
def test_rows_are_simulated_again(cell):
    row = simulated_iterations.record(cell)
    assert float(row["seconds"]) == pytest.approx(float(ROWS[key(row)]), rel=1e-5)


def test_two_processes_find_the_same_times(monkeypatch, tmp_path):
    cells = [cell for cell in CELLS if cell["figure"] == 16 and cell["model"] == "vgg"]
    monkeypatch.setattr(simulated_iterations, "cells", lambda: iter(cells))
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    for path, jobs in ((one, 1), (two, 2)):
        simulated_iterations.write_table(path, jobs=jobs)
    assert one.read_text() == two.read_text()
    networks = [row.split(",")[3:5] for row in one.read_text().splitlines()[1:]]
    assert networks == [[cell["network"], str(cell["degree"])] for cell in cells]


@pytest.mark.parametrize("name", ["topoopt-11", "topoopt-27"])
def test_no_network_is_faster_than_the_ideal_switch_by_more_than_its_latency(name):
    rows = next(one for one in figures.FIGURES if one.name == name).select(pd.DataFrame())
    times = rows.pivot_table(index=["model", "link_gbps"], columns="network", values="seconds")
    assert times.shape == (30, 7)
    assert times.notna().all(axis=None)
    for network in simulated_iterations.NETWORKS:
        assert not (times[network] < times["Ideal Switch"] * 0.99).any()
