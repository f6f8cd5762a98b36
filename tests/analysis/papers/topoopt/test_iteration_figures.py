"""The figures of simulated iteration times: rows of the table are simulated again, and drawn."""

from __future__ import annotations

import pandas as pd
import pytest
from case_families import each

from opticoll.analysis.papers.topoopt import iteration_figures as figures
from opticoll.analysis.papers.topoopt import simulated_iterations
from opticoll.errors import BadInput


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


def few(monkeypatch):
    """Three cells of a job of 16 servers instead of all."""
    cells = [cell for cell in CELLS if cell["figure"] == 16 and cell["model"] == "vgg"][:3]
    monkeypatch.setattr(simulated_iterations, "cells", lambda: iter(cells))
    return cells


def test_a_table_resumes_where_it_was_interrupted(monkeypatch, tmp_path, capsys):
    cells, path, simulated = few(monkeypatch), tmp_path / "times.csv", []
    record = simulated_iterations.record

    def counted(cell):
        simulated.append(cell)
        if len(simulated) == 3:
            msg = "interrupted"
            raise BadInput(msg)
        return record(cell)

    monkeypatch.setattr(simulated_iterations, "record", counted)
    with pytest.raises(BadInput, match="interrupted"):
        simulated_iterations.write_table(path)
    assert len(path.read_text().splitlines()) == 1 + 2
    simulated_iterations.main(["--out", str(path), "--figures", "16"])
    assert simulated[2:] == [simulated[2]] * 2, "two cells are not simulated again"
    whole = path.read_text()
    assert [row.split(",")[3:5] for row in whole.splitlines()[1:]] == [[c["network"], str(c["degree"])] for c in cells]
    simulated_iterations.write_table(path, figures=[11])
    assert path.read_text() == whole
    assert len(simulated) == 4


def test_two_processes_find_the_same_times(tmp_path):
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    rows = [row for row in simulated_iterations.table() if row["figure"] != "16" or row["model"] != "vgg"]
    assert len(rows) == len(CELLS) - 4
    for path, jobs in ((one, 1), (two, 2)):
        simulated_iterations._write(path, {key(row): row["seconds"] for row in rows})
        simulated_iterations.write_table(path, jobs=jobs)
    assert one.read_text() == two.read_text()
    assert {key(row) for row in simulated_iterations._rows(one)} == set(ROWS)


def test_simulated_means_are_near_the_published_ones():
    rows = next(one for one in figures.FIGURES if one.name == "topoopt-16").select(pd.DataFrame())
    for degree in (4, 8):
        means = figures.shared_means(rows, degree)
        off = (means["simulated"] / means["published"] - 1).abs()
        assert off.max() < 0.07
        assert off.max() > 0.0


@pytest.mark.parametrize("name", ["topoopt-11", "topoopt-27"])
def test_no_network_is_faster_than_the_ideal_switch_by_more_than_its_latency(name):
    rows = next(one for one in figures.FIGURES if one.name == name).select(pd.DataFrame())
    times = rows.pivot_table(index=["model", "link_gbps"], columns="network", values="seconds")
    assert times.shape == (30, 7)
    assert times.notna().all(axis=None)
    for network in simulated_iterations.NETWORKS:
        assert not (times[network] < times["Ideal Switch"] * 0.99).any()
