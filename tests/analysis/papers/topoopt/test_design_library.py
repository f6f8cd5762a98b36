"""The table of the network-design library: wirings, exact values and bounds, checked by linear programs of scipy."""

from __future__ import annotations

import json
from fractions import Fraction

import design_library
import numpy as np
import pytest
from case_families import each
from design_library import (
    counts,
    library_demand,
    library_pool,
    library_rows,
    written,
)
from reference import flow_time

from opticoll.errors import BadInput
from opticoll.solvers import solution_json
from opticoll.solvers.solve import solve
from opticoll.solvers.task import Task

ROWS = list(library_rows().values())


@each("row", ROWS)
def test_wirings_are_simple_and_have_the_value_that_is_stated(row):
    count = counts(row.topology)
    assert len(count) == row.nodes
    assert (count.sum(axis=0) == 2).all()
    assert (count.sum(axis=1) == 2).all()
    assert count.max() == 1
    assert not np.diagonal(count).any()
    demand = library_demand()[: row.nodes, : row.nodes]
    assert float(row.value) == pytest.approx(flow_time(count, demand), rel=1e-8)
    assert row.bound <= float(row.value)
    assert row.bound <= row.best_published + 1e-3
    assert row.gap == pytest.approx(float(row.value) / row.bound - 1)


def exact_load(topology, n):
    """The least maximum load of a problem over given circuits, in fractions."""
    settings = {"demand": library_pool(n).point_to_point}
    return 1 / Fraction(solve(Task("alltoall.master", topology, settings=settings, exact=True)).record.objective_exact)


def test_values_are_exact_and_optima_are_those_published():
    for row in ROWS:
        if row.nodes in {5, 12, 24}:
            assert exact_load(row.topology, row.nodes) == row.value
        if row.proven:
            assert row.against_published == 0.0
        assert row.against_published == pytest.approx(float(row.value) / row.best_published - 1, abs=1e-5)
    assert [row.nodes for row in ROWS] == list(range(5, 25))


def test_a_design_without_a_path_is_refused():
    with pytest.raises(BadInput, match="no problem of 4 nodes"):
        library_pool(4)
    with pytest.raises(BadInput, match="is not a topology"):
        counts("servers:n=5,degree=2")


def test_files_are_accepted_by_the_checker_unless_changed(tmp_path):
    rows = [row for row in ROWS if row.nodes in {5, 13}]
    for row, (demand, path) in zip(rows, written(tmp_path / "designs", rows), strict=True):
        given = np.loadtxt(demand, delimiter=",")
        assert (given == library_demand()[: row.nodes, : row.nodes]).all()
        spec = f"servers:n={row.nodes},degree=2,traffic=file:{demand}"
        record = solution_json.check("topoopt.topology", spec, path, {"parallel": 1})
        assert record["verified"]
        assert record["objective"] == pytest.approx(float(row.value), rel=1e-7)
        document = json.loads(path.read_text())
        document["values"]["route_bytes"]["value"][0] *= 1.5
        path.write_text(json.dumps(document))
        assert not solution_json.check("topoopt.topology", spec, path, {"parallel": 1})["verified"]


def test_the_command_says_how_to_check_what_it_writes(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(design_library, "library_rows", lambda: {5: ROWS[0]})
    design_library.main([str(tmp_path)])
    assert capsys.readouterr().out.startswith("opticoll check topoopt.topology servers:n=5")
