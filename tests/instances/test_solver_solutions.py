"""Solution files: of GLPK by number, compressed ones, and files that are not whole."""

from __future__ import annotations

import gzip

import pytest

from opticoll.errors import BadFile
from opticoll.instances.readers.solver_solutions import begins_as_solution, parse_sol, read_sol

MIP = "c Problem:\nc Objective:  Obj = 4 (MINimum)\nc\ns mip 1 2 o 4\ni 1 2\nj 1 0.5\nj 2 3\ne o f\n"
BASIC = "c Problem:\nc\ns bas 1 2 f f 4\ni 1 l 2 -0.5\nj 1 b 0.5 0\nj 2 l 0 1\ne o f\n"
INTERIOR = "c Problem:\nc\ns ipt 1 2 o 4\ni 1 2 -0.5\nj 1 0.5 0\nj 2 0 1\ne o f\n"


def test_glpk_by_number():
    solution = parse_sol(MIP, "a").named(["x", "y"], ["r"], "a")
    assert (solution.values, solution.duals, solution.objective) == ({"x": 0.5, "y": 3.0}, None, 4.0)
    assert solution.status == "optimal"
    for text in (BASIC, INTERIOR):
        solution = parse_sol(text, "a").named(["x", "y"], ["r"], "a")
        assert (solution.values, solution.duals) == ({"x": 0.5, "y": 0.0}, {"r": -0.5})


@pytest.mark.parametrize(
    ("status", "solved", "word"),
    [("o", True, "optimal"), ("f", True, "feasible"), ("n", False, "infeasible"), ("u", False, "")],
)
def test_states_of_glpk(status, solved, word):
    solution = parse_sol(MIP.replace(" o 4", f" {status} 4"), "a").named(["x", "y"], ["r"], "a")
    assert (solution.solved, solution.status) == (solved, word)
    assert bool(solution.values) == solved


def test_states_of_glpk_with_a_basis():
    for letters, solved, word in (("f u", True, "feasible"), ("n f", False, "infeasible"), ("f n", False, "unbounded")):
        solution = parse_sol(BASIC.replace("f f", letters), "a")
        assert (solution.solved, solution.status, solution.duals) == (solved, word, None)


@pytest.mark.parametrize("text", [MIP, BASIC, INTERIOR])
def test_no_part_of_a_file_of_glpk_is_taken_for_the_whole(text):
    for size in range(len("c Problem:\n"), len(text)):
        try:
            solution = parse_sol(text[:size], "a")
            if solution.solved:
                solution.named(["x", "y"], ["r"], "a")
        except BadFile:
            continue
        assert not solution.solved or size >= text.index("e o f") - 3


def test_the_report_of_glpk_is_refused_for_its_digits():
    with pytest.raises(BadFile, match="glpsol -w"):
        parse_sol("Problem:    a\nRows:       1\nColumns:    2\nNon-zeros:  2\nStatus:     OPTIMAL\n", "a")


def test_compressed_files(tmp_path):
    path = tmp_path / "a.sol.gz"
    path.write_bytes(gzip.compress(b"=obj= 4\nx 1\n"))
    assert read_sol(path).values == {"x": 1.0}
    path.write_bytes(b"no gzip")
    with pytest.raises(BadFile, match="not a gzip file"):
        read_sol(path)


def test_a_file_of_highs_that_ends_early_is_refused():
    text = "Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 4\n# Columns 2\nx 1\ny 3\n"
    assert parse_sol(text, "a").values == {"x": 1.0, "y": 3.0}
    with pytest.raises(BadFile, match=r"a: ends after 2 of 9{18} columns; write it again"):
        parse_sol(text.replace("Columns 2", f"Columns {'9' * 5000}"), "a")
    with pytest.raises(BadFile, match="a: ends after 1 of 2 columns; write it again"):
        parse_sol(text[:-4], "a")


def test_a_file_of_cplex_is_recognised_below_its_style_sheet():
    text = '<?xml version="1.0"?>\n<?xml-stylesheet href="a.xsl"?>\n<CPLEXSolution><variable name="x" value="1"/>'
    assert begins_as_solution(text)
    assert parse_sol(f"{text}</CPLEXSolution>", "a").values == {"x": 1.0}
