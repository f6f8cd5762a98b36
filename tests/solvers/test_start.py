"""Solves that start from a known solution."""

import json
from pathlib import Path

import cvxpy as cp
import numpy as np
import pyomo.environ as pyo
import pytest

import opticoll as oc
from opticoll.instances.readers.program_files import read_program

NAME, SPEC = "alltoall.min-congestion", "hypercube:3"


@pytest.fixture(scope="module")
def solved():
    return oc.solve(NAME, SPEC, method="highs")


@pytest.mark.parametrize("method", ["highs", "scip", "cp-sat", "certified-branching"])
def test_solvers_begin_with_it_and_the_record_says_so(solved, method):
    result = oc.solve(NAME, SPEC, method=method, start=solved)
    assert result.record.start.used == [method]
    assert result.record.start.objective == solved.objective
    assert result.proof == "optimal"
    assert f"{method} began with it" in result.lines()["start"]


def test_it_is_returned_if_nothing_better_is_found(solved):
    result = oc.solve(NAME, SPEC, method="highs", start=solved, mip_max_nodes=0, time_limit=1e-3)
    assert result.verified
    assert result.objective <= solved.objective


def test_routes_as_paths_start_the_arc_form():
    routed = oc.solve("lumorph.min-overlap", "lightpath:3x3", circuits="all", method="negotiated-rerouting")
    assert "path_arcs" in routed.values
    result = oc.solve("lumorph.min-overlap", "lightpath:3x3", circuits="all", method="highs", start=routed)
    assert (result.record.start.used, result.record.start.objective) == (["highs"], routed.objective)


def test_files_and_values(solved, tmp_path):
    path = solved.save(tmp_path / "known.json")
    assert oc.solve(NAME, SPEC, method="highs", start=path).record.start.source == f"start {path}"
    assert oc.solve(NAME, SPEC, method="highs", start=solved.values).record.start.source == "start"
    with pytest.raises(oc.BadInput, match="is a solution for hypercube:3, not for ring:4"):
        oc.solve(NAME, "ring:4", start=path)
    with pytest.raises(oc.BadInput, match="is a solution for kappa=1, but kappa=2 was requested"):
        oc.solve(NAME, SPEC, start=path, kappa=2)


def test_what_is_no_solution_is_refused(solved):
    wrong = {name: np.zeros_like(array) for name, array in solved.values.items()}
    with pytest.raises(oc.BadInput, match=r"start is no solution of .*: choose is violated by 1"):
        oc.solve(NAME, SPEC, start=wrong)
    with pytest.raises(oc.BadInput, match="must be a result, named values or a file, not int"):
        oc.solve(NAME, SPEC, start=3)
    with pytest.raises(oc.BadInput, match="no array 'y'"):
        oc.solve(NAME, SPEC, start={"y": 1.0})


def test_a_solution_file_of_a_solver_for_a_program(tmp_path):
    program = tmp_path / "p.mps"
    program.write_text(
        "NAME p\nROWS\n N obj\n L room\nCOLUMNS\n M1 'MARKER' 'INTORG'\n x obj -3 room 2\n y obj -2 room 2\n"
        " M2 'MARKER' 'INTEND'\nRHS\n rhs room 3\nENDATA\n"
    )
    solution = tmp_path / "p.sol"
    solution.write_text("=obj= -2\ny 1\n")
    result = oc.solve("matrix.program", f"mps:{program}", start=solution, method="highs")
    assert (result.objective, result.record.start.objective, result.record.start.kept) == (-3.0, -2.0, False)


def test_a_linear_program_keeps_a_start_that_no_solver_takes():
    best = oc.solve("alltoall.master", "ring:4", method="highs")
    result = oc.solve("alltoall.master", "ring:4", method="highs", start=best)
    assert result.record.start.used == []
    assert "highs did not begin with it" in result.lines()["start"]
    assert json.loads(json.dumps(result.record.start.objective)) == best.objective


def test_a_start_in_other_variables_than_the_stated_model_is_named():
    network = "servers:n=4,degree=2,traffic=alltoall"
    known = oc.solve("topoopt.topology", network, method="design-search")
    result = oc.solve("topoopt.topology", network, method="highs", start=known)
    assert result.record.start.used == []
    assert "has no value for some variable of the stated model" in result.record.message
    assert "did not begin with it" in result.lines()["start"]


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({"opn": [0, 1]}, "no array 'opn'; its arrays are open"),
        ({"open": [1]}, "its shape is"),
        ({"open": {"a": 1}}, "'open': must be an array of real numbers"),
        ({}, "the required array 'open' is missing"),
    ],
)
def test_a_start_that_does_not_fit_a_model_of_ones_own(start, message):
    model = pyo.ConcreteModel()
    model.open = pyo.Var(["a", "b"], domain=pyo.Binary)
    model.least = pyo.Objective(expr=model.open["a"])
    model.one = pyo.Constraint(expr=model.open["a"] + model.open["b"] >= 1)
    with pytest.raises(oc.BadInput, match=message):
        oc.solve(model, start=start)
    assert oc.solve(model, start={"open": [0, 1]}).record.start.kept is False


def test_a_parameter_named_start_is_none_of_a_solution():
    result = oc.solve(
        "topology.sequence", "servers:n=4,degree=1", configurations=2, start="ring:4,directed", directed=True
    )
    assert result.record.settings["start"].startswith("ring:4")
    assert result.record.start is None


#: A search that finds nothing on its own, and a problem with a known solution: formulation, instance, settings.
SEARCHES = {
    "symmetric-search": ("topology.design", "servers:n=8,degree=2,traffic=alltoall", {}, {"most": 0, "exchanges": 0}),
    "sequence-search": (
        "topology.sequence",
        "servers:n=5,degree=1,traffic=alltoall",
        {"configurations": 2, "directed": True},
        {"moves": 0, "exchanges": 0, "starts": 0},
    ),
    "matching-search": (
        "topology.matchings",
        "servers:n=6,degree=2,traffic=alltoall",
        {"delay": 0.1},
        {"moves": 0, "iterations": 0},
    ),
}


@pytest.mark.parametrize("method", SEARCHES)
def test_searches_of_topologies_sequences_and_matchings_begin_with_the_start(method):
    name, spec, settings, least = SEARCHES[method]
    known = oc.solve(name, spec, method=method, **settings)
    assert known.verified
    again = oc.solve(name, spec, method=method, start=known, **settings, **least)
    assert again.record.start.used == [method]
    assert again.verified
    assert again.T <= known.T * (1 + 1e-9)


def test_a_search_improves_a_topology_from_which_it_starts():
    n, links = 6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5), (0, 2), (3, 5), (1, 4)]  # a prism with twisted ends
    net = oc.topology([(u, v, 1.0) for u, v in links], directed=False)
    flow = oc.solve("alltoall.master", net, method="highs")
    x, g = np.zeros((n, n)), np.zeros((n, n, n))
    x[net.tail, net.head] = 1.0
    g[:, net.tail, net.head] = flow.values["g"].T
    spec = f"servers:n={n},degree=3,traffic=alltoall"
    worse = {"x": x, "g": g * 0.9, "F": np.float64(flow.value * 0.9)}  # its flows are not the best
    kept = oc.solve("topology.design", spec, method="symmetric-search", start=worse, most=1, exchanges=0, partial=0)
    assert kept.value >= flow.value * (1 - 1e-9)
    found = oc.solve("topology.design", spec, method="symmetric-search", start=worse)
    assert found.proof == "optimal"
    assert found.value >= flow.value * (1 - 1e-9)
    with pytest.raises(oc.BadInput, match="both_ways"):
        oc.solve("topology.design", spec, method="symmetric-search", start={**worse, "x": np.triu(x)})


def sol_of(path: Path) -> Path:
    """The file of a solution of a program, under the names in its file."""
    program = read_program(path)
    values = oc.solve("matrix.program", f"mps:{path}", method="highs").values["x"].tolist()
    lines = [f"{name} {value!r}\n" for name, value in zip(program.column_names, values, strict=True)]
    (sol := path.with_suffix(".sol")).write_text("".join(lines), encoding="utf-8")
    return sol


def test_a_model_starts_from_a_solution_of_the_file_that_it_wrote(tmp_path):
    model = oc.model("alltoall.link-mcf", "ring:4", form="pyomo")
    model.export(tmp_path / "a.mps")
    model.update(capacity={"0->1": 0.5})
    model.export(tmp_path / "b.mps")
    assert "f_0_1_0_1" in (tmp_path / "a.mps").read_text()
    assert oc.solve(
        "alltoall.link-mcf", "ring:4", start=sol_of(tmp_path / "a.mps")
    ).record.start.objective == pytest.approx(0.5)
    assert model.solve(start=sol_of(tmp_path / "b.mps")).record.start.objective == pytest.approx(0.375)
    with pytest.raises(oc.BadInput, match="is violated by"):
        model.solve(start=sol_of(tmp_path / "a.mps"))


def test_a_model_of_ones_own_starts_from_a_solution_of_its_file(tmp_path):
    flow, number = cp.Variable(2, name="flow"), cp.Variable(integer=True, name="n")
    limits = [flow >= 0, flow <= 4, number >= 0, number <= 7, cp.sum(flow) + number <= 6.5, flow - number <= 0.5]
    problem = cp.Problem(cp.Maximize(3 * flow[0] + 2 * flow[1] + number - 5), limits)
    solved = oc.solve(problem)
    oc.export("matrix.program", solved.instance, tmp_path / "a.lp")
    again = oc.solve(problem, start=sol_of(tmp_path / "a.lp"), method="highs")
    assert again.record.start.objective == pytest.approx(solved.objective) == pytest.approx(again.objective)


def test_a_start_that_is_better_by_its_digits_alone_is_not_kept(tmp_path):
    """A start of six digits violates rows by less than is allowed, and is better than the optimum by that."""
    path = tmp_path / "a.lp"
    path.write_text("min\n obj: 3 x + y\nst\n a: 3 x >= 1\n b: x + y >= 0.6666666666666667\nend\n", encoding="utf-8")
    start = path.with_suffix(".sol")
    start.write_text("x 0.3333331\ny 0.3333333\n", encoding="utf-8")
    result = oc.solve("matrix.program", f"mps:{path}", start=start, method="highs")
    assert result.record.start.objective < 4 / 3 - 1e-7
    assert (result.record.start.kept, result.proof, result.record.termination) == (False, "optimal", "optimal")
    assert result.objective == pytest.approx(4 / 3, abs=1e-12)
    assert "better only by its violation of" in result.record.message
