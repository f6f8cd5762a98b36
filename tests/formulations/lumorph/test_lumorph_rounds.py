"""LuMorph's Algorithm 1: one matrix in three layers, optima proven by the program alone, symmetries, bad input."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import assert_one_matrix, optimum

from opticoll.analysis.cli import main
from opticoll.errors import BadInput
from opticoll.formulations.lumorph import rounds
from opticoll.formulations.lumorph.round_bounds import sum_bounds
from opticoll.formulations.lumorph.round_rows import delivery_symmetries, sufficient_rounds
from opticoll.formulations.lumorph.route_sets import candidate_routes
from opticoll.formulations.model import NotApplicable
from opticoll.formulations.rounds.collectives import COLLECTIVES
from opticoll.formulations.rounds.round_schedule import direct
from opticoll.instances import parse
from opticoll.solvers.compile import compile_model
from opticoll.solvers.runner import solve
from opticoll.solvers.task import Task

NAME = rounds.NAME


def prepared(spec, **parameters):
    return rounds.prepare(parse(spec) if isinstance(spec, str) else spec, {k: str(v) for k, v in parameters.items()})


def optimum_of(spec, **parameters):
    """The program's optimum by a solver that is none of the adapters, its schedule replayed."""
    data = prepared(spec, **parameters)
    form = compile_model(rounds.build_matrix(data))
    value, x = optimum(form)
    found = rounds.residuals(data, rounds.unfold(data, form.values(x)))
    assert max(found.values()) < 1e-6, found
    return round(value)


def proven(spec, *, method="highs", form="matrix", **parameters):
    """The optimum, proven without any analytic bound."""
    told = {"bounds": "false", **{k: str(v) for k, v in parameters.items()}}
    run = solve(Task(NAME, spec, method=method, form=form, settings=told, time_limit_s=600))
    assert run.proof == "optimal", (spec, parameters, run.record["message"], run.objective, run.bound)
    assert run.record["bound_source"] == "relaxation"
    return run.objective


@pytest.mark.parametrize("parameters", [
    {}, {"collective": "all-to-all", "paths": 1}, {"collective": "all-reduce", "rmax": 3},
    {"collective": "broadcast", "root": 2, "wavelengths": "fixed"}, {"rmin": 2, "rmax": 3, "symmetry": "false"},
])  # fmt: skip
def test_every_build_is_the_same_matrix(parameters):
    data = prepared("lightpath:2x2,lasers=2", **parameters)
    assert_one_matrix(*(compile_model(rounds.FORMULATION.build[form](data)) for form in ("pyomo", "cvxpy", "matrix")))


@pytest.mark.parametrize(("spec", "collective", "best"), [
    # Straight from the definition: who holds the chunk doubles (L = 1), or grows by L + 1.
    ("lightpath:1x4,lasers=1", "broadcast", 2),
    ("lightpath:2x2,lasers=1", "broadcast", 2),
    ("lightpath:1x3,lasers=2,waveguides=2", "broadcast", 1),
    # One source sends everything, one sink receives everything.
    ("lightpath:1x4,lasers=1", "scatter", 3), ("lightpath:1x4,lasers=1", "gather", 3),
    ("lightpath:1x4,lasers=2", "scatter", 2),
    # Everybody receives n - 1 chunks; the middle of a path is crossed by 4 of 12 shards.
    ("lightpath:2x2,lasers=1", "all-gather", 3), ("lightpath:2x2,lasers=3,waveguides=2", "all-gather", 1),
    ("lightpath:1x4,lasers=1", "all-to-all", 4), ("lightpath:1x4,lasers=1,waveguides=2", "all-to-all", 3),
    ("lightpath:1x3,lasers=1", "all-to-all", 2),
    # Reductions are copies backwards.
    ("lightpath:2x2,lasers=1", "reduce-scatter", 3), ("lightpath:2x2,lasers=1", "all-reduce", 6),
    ("lightpath:2x2,lasers=1", "reduce", 2),
])  # fmt: skip
def test_known_optima(spec, collective, best):
    assert optimum_of(spec, collective=collective, bounds="false") == best
    assert max(bound.value for bound in rounds.bounds(prepared(spec, collective=collective))) == best
    assert rounds.metrics(prepared(spec, collective=collective), best)["unrestricted_proven"]


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_options_of_the_model_leave_its_optimum(collective):
    spec = "lightpath:2x2,lasers=2"
    options = ({}, {"symmetry": "false"}, {"routes": "yen"}, {"bounds": "false"})
    assert len({optimum_of(spec, collective=collective, **option) for option in options}) == 1


def test_solvers_agree_and_the_modelling_layers_too():
    found = {
        proven("lightpath:2x3,lasers=2", method=method, form=form, collective="all-to-all")
        for method, form in (("highs", "pyomo"), ("cp-sat", "matrix"))
    }
    assert found == {3.0}


def test_fixed_wavelengths_are_no_better_and_hold_to_their_wave():
    spec = "lightpath:2x2,lasers=2"
    free = optimum_of(spec, collective="all-to-all")
    run = solve(Task(NAME, spec, method="highs", form="matrix",
                     settings={"collective": "all-to-all", "wavelengths": "fixed"}, time_limit_s=600))  # fmt: skip
    assert run.verified
    assert run.objective >= free
    data = prepared(spec, collective="all-to-all", wavelengths="fixed")
    assert rounds.residuals(data, run.values)["wave"] == 0
    moved = {**run.values, "circuit_wavelength": 1 - run.values["circuit_wavelength"]}
    assert rounds.residuals(data, moved)["wave"] > 0


def test_the_paper_gives_up_here():
    """Eight GPUs, which the paper's solver does not settle in days."""
    assert proven("lightpath:2x4,lasers=4,waveguides=2") == 2


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(["lightpath:2x3,lasers=2", "lightpath:2x3,lasers=1+fail=2,seed=1", "lightpath:1x5"]),
    st.sampled_from(COLLECTIVES), st.integers(1, 2), st.sampled_from(["free", "fixed"]),
)  # fmt: skip
def test_the_default_of_rmax_is_enough(spec, collective, pieces, wavelengths):
    data = prepared(spec, collective=collective, pieces=pieces, wavelengths=wavelengths)
    for program, least in zip(data.programs, data.least, strict=True):
        assert least <= sufficient_rounds(program) == program.rounds <= len(program.collective.deliveries)


def test_symmetries_are_checked_not_assumed():
    whole = prepared("lightpath:3x3,lasers=2").programs[0]
    assert len(delivery_symmetries(whole)) == 7
    assert len(delivery_symmetries(prepared("lightpath:2x3,lasers=2").programs[0])) == 3
    for image in delivery_symmetries(whole):
        assert np.array_equal(np.sort(image), np.arange(image.size))
    assert delivery_symmetries(prepared("lightpath:3x3,lasers=2+fail=1,seed=3").programs[0]) == []
    cornered = prepared("lightpath:3x3,lasers=2", collective="broadcast", root=0).programs[0]
    assert len(delivery_symmetries(cornered)) <= 1  # the diagonal alone keeps a corner


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 4), st.integers(0, 50), st.integers(1, 4))
def test_candidate_routes_are_distinct_simple_chains(rows, columns, failed, seed, k):
    if rows * columns < 2:
        return
    links = rows * (columns - 1) + columns * (rows - 1)
    mesh = parse(f"lightpath:{rows}x{columns}+fail={min(failed, links)},seed={seed}")
    s, d = (a.ravel() for a in np.indices((mesh.n, mesh.n)))
    s, d = s[s != d], d[s != d]
    reachable = np.isfinite(mesh.hops)[s, d]
    if not reachable.any():
        return
    routes = candidate_routes(mesh, s[reachable], d[reachable], "straight", k)
    assert np.array_equal(np.unique(routes.pair), np.arange(reachable.sum()))
    seen = set()
    for p in range(routes.paths):
        path = routes.path(p)
        visited = [int(routes.source[routes.pair[p]]), *mesh.head[path].tolist()]
        assert visited[:-1] == mesh.tail[path].tolist()
        assert visited[-1] == routes.target[routes.pair[p]]
        assert len(set(visited)) == len(visited)
        assert (int(routes.pair[p]), tuple(path)) not in seen
        seen.add((int(routes.pair[p]), tuple(path)))
    assert np.diff(routes.first).max() <= k


def test_corrupted_solutions_are_refused(tmp_path, capsys):
    spec, file = "lightpath:2x2,lasers=2", tmp_path / "solution.json"
    assert main(["solve", NAME, spec, "--method", "highs", "--no-store", "--solution", str(file)]) == 0
    assert main(["check", NAME, spec, str(file)]) == 0
    document = json.loads(file.read_text())
    for name, at, value in (("transfer_round", 0, 1), ("circuit_arcs", 0, 3), ("circuit_wavelength", 1, 5)):
        broken = json.loads(file.read_text())
        target = broken["values"][name]["value"]  # of what is not zero
        target[at] = value if target[at] != value else value + 1
        file.with_name("broken.json").write_text(json.dumps(broken))
        assert main(["check", NAME, spec, str(file.with_name("broken.json"))]) == 3
    assert document["values"]


def test_an_all_reduce_may_be_better_than_the_composition_and_the_bounds_know():
    """Two tiles add each other's shards in one round: all sums are right, though the two phases take two rounds."""
    data = prepared("lightpath:1x2,lasers=2", collective="all-reduce")
    mesh = data.topology
    there = int(np.flatnonzero(mesh.tail == 0)[0])
    s, c, w = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([0, 1, 0, 1])
    arcs = np.where(s == 0, there, 1 - there)
    whole = direct(0 * s, s, 1 - s, c, w, np.arange(5), arcs, adds=True)
    assert max(rounds.residuals(data, whole.values()).values()) == 0
    assert max(bound.value for bound in rounds.bounds(data)) == 1
    assert optimum_of("lightpath:1x2,lasers=2", collective="all-reduce") == 2


@pytest.mark.parametrize(
    "spec", ["lightpath:1x3,lasers=1", "lightpath:2x2,lasers=2", "lightpath:2x3,lasers=1,waveguides=2"]
)
@pytest.mark.parametrize("collective", ["reduce", "reduce-scatter", "all-reduce"])
def test_bounds_of_sums_are_no_more_than_the_compositions_optimum(spec, collective):
    data = prepared(spec, collective=collective)
    best = optimum_of(spec, collective=collective)
    for bound in (*rounds.bounds(data), *sum_bounds(data.topology, data.collective, data.limits)):
        assert bound.value <= best, bound


def test_rmax_below_a_bound_is_refuted_at_once(capsys):
    for method in ("highs", "cp-sat"):
        assert main(["solve", NAME, "lightpath:16x16,lasers=16", "--set", "rmax=3", "--method", method, "--json"]) == 3
        record = json.loads(capsys.readouterr().out)
        assert (record["termination"], record["proof"], record["bound"]) == ("infeasible", "bound-only", 16)
        assert "rmax=3" in record["message"]


def test_more_rounds_than_rmax_are_no_solution():
    """A pipelined tree needs more rounds than a user allows, though no bound says so."""
    task = {"rmax": "8", "search_s": "0", "compact": "false"}
    run = solve(Task(NAME, "lightpath:2x4,lasers=1", method="tree", settings=task))
    assert run.objective > 8
    assert run.record["violations"]["rmax"] == run.objective - 8
    assert (run.verified, run.proof, run.exit_status) == (False, "bound-only", 3)
    free = solve(Task(NAME, "lightpath:2x4,lasers=1", method="tree", settings={**task, "rmax": "0"}))
    assert free.verified


@pytest.mark.parametrize("parameters", [{"rmin": 5}, {"rmin": 5, "rmax": 6}, {"rmin": 4, "rmax": 3}])
def test_an_rmin_that_a_schedule_undercuts_proves_nothing(parameters):
    """Three rounds do for four tiles: a program told of five would "prove" five."""
    told = {k: str(v) for k, v in parameters.items()}
    with pytest.raises(BadInput, match="rmin"):
        solve(Task(NAME, "lightpath:2x2,lasers=1", method="highs", form="matrix", settings=told))


@pytest.mark.parametrize(("spec", "parameters", "word"), [
    ("ring:4", {}, "lasers"),
    ("lightpath:2x2,lasers=1", {"collective": "all-gater"}, "all-gather"),
    ("lightpath:2x2,lasers=1", {"collective": "broadcast", "root": 4}, "root"),
    ("lightpath:2x2,lasers=1", {"root": -1}, "negative"),
    ("lightpath:2x2,lasers=1", {"paths": 0}, "paths"),
    ("lightpath:2x2,lasers=1", {"pieces": 0}, "chunks"),
    ("lightpath:2x2,lasers=1", {"routes": "xy"}, "routes"),
    ("lightpath:2x2,lasers=1+fail=4", {}, "no path"),
    ("lightpath:2x2,lasers=0", {}, "lasers"),
    ("lightpath:16x16,lasers=16", {}, "too many"),
    ("servers:n=4,degree=2,traffic=alltoall", {}, "topology"),
])  # fmt: skip
def test_bad_tasks_are_refused_in_one_line(spec, parameters, word):
    with pytest.raises(BadInput, match=word) as refused:
        assert prepared(spec, **parameters).programs[0].columns
    assert "\n" not in str(refused.value)


def test_any_topology_will_do_with_lasers_told():
    run = solve(Task(NAME, "ring:4", method="highs", form="matrix", settings={"lasers": "1", "waveguides": "1"}))
    assert (run.objective, run.proof) == (3, "optimal")
    with pytest.raises(NotApplicable, match="hold no schedule"):
        rounds.decode(run.plan.data, {})
