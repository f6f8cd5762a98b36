"""LuMorph's Algorithm 1: two independent builds of one matrix, optima proven by the program, symmetries, bad input."""

from __future__ import annotations

import io
import json
from functools import cache

import numpy as np
import pytest
from case_families import each
from hypothesis import given, settings
from hypothesis import strategies as st
from pyomo.core.expr.visitor import identify_variables
from reference import optimum

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.errors import BadInput, NotApplicable
from opticoll.formulations.lumorph import rounds
from opticoll.formulations.lumorph.collective_bounds import sum_bounds
from opticoll.formulations.lumorph.mesh_symmetries import delivery_symmetries
from opticoll.formulations.lumorph.route_sets import candidate_routes
from opticoll.formulations.lumorph.sufficient_rounds import sufficient_rounds
from opticoll.formulations.lumorph.sum_rounds import SumModel
from opticoll.formulations.rounds.collectives import COLLECTIVES
from opticoll.formulations.rounds.round_schedule import direct
from opticoll.instances import parse
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.solve import solve
from opticoll.solvers.task import Task

NAME = "lumorph.rounds"


def prepared(spec, **parameters):
    return rounds.RoundModel.prepare(
        parse(spec) if isinstance(spec, str) else spec, {k: str(v) for k, v in parameters.items()}
    )


@cache
def optimum_of(spec, **parameters):
    """The program's optimum by a solver that is none of the adapters, its schedule replayed."""
    data = prepared(spec, **parameters)
    form = compile_model(data.cvxpy())
    value, x = optimum(form)
    result = data.residuals(data._unfold(form.values(x)))
    assert max(result.values()) < 1e-6, result
    return round(value)


def proven(spec, *, method="highs", form="cvxpy", **parameters):
    """The optimum, proven without any analytic bound."""
    output = {"bounds": "false", **{k: str(v) for k, v in parameters.items()}}
    run = solve(Task(NAME, spec, method=method, form=form, settings=output, time_limit_s=600))
    assert run.proof == "optimal", (spec, parameters, run.record["message"], run.objective, run.bound)
    assert run.record["bound_source"] == "relaxation"
    return run.objective


def test_constraints_read_as_in_the_paper():
    model = prepared("lightpath:2x2,lasers=2").pyomo().model
    text = io.StringIO()
    model.laser[1, 0, 1].pprint(text)
    # Tile 0 sends chunks 0..3, the last three of which it forwards, to 1, 2 and on two routes to 3.
    assert "C[1,0,3,0,0,1] + C[1,0,3,0,1,1]" in text.getvalue()
    assert "- R[1] :" in text.getvalue()
    variables = [v.name for v in identify_variables(model.laser[1, 0, 1].body)]
    assert all(name.startswith("C[1,0,") and name.endswith(",1]") for name in variables if name != "R[1]")
    assert set(model.laser.index_set()) == {(r, s, w) for r in range(2) for s in range(4) for w in range(2)}
    assert str(model.hold[1, 0, 3, 2].expr) == (
        "C[1,0,3,2,0,0] + C[1,0,3,2,0,1] + C[1,0,3,2,1,0] + C[1,0,3,2,1,1] - H[2,0,0]  <=  0"
    )


@each(
    ("spec", "collective", "best"),
    [
        # Straight from the definition: who holds the chunk doubles (L = 1), or grows by L + 1.
        ("lightpath:1x4,lasers=1", "broadcast", 2),
        ("lightpath:2x2,lasers=1", "broadcast", 2),
        ("lightpath:1x3,lasers=2,waveguides=2", "broadcast", 1),
        # One source sends everything, one sink receives everything.
        ("lightpath:1x4,lasers=1", "scatter", 3),
        ("lightpath:1x4,lasers=1", "gather", 3),
        ("lightpath:1x4,lasers=2", "scatter", 2),
        # Everybody receives n - 1 chunks; the middle of a path is crossed by 4 of 12 shards.
        ("lightpath:2x2,lasers=1", "all-gather", 3),
        ("lightpath:2x2,lasers=3,waveguides=2", "all-gather", 1),
        ("lightpath:1x4,lasers=1", "all-to-all", 4),
        ("lightpath:1x4,lasers=1,waveguides=2", "all-to-all", 3),
        ("lightpath:1x3,lasers=1", "all-to-all", 2),
        # Reductions are copies backwards.
        ("lightpath:2x2,lasers=1", "reduce-scatter", 3),
        ("lightpath:2x2,lasers=1", "all-reduce", 6),
        ("lightpath:2x2,lasers=1", "reduce", 2),
    ],
)
def test_known_optima(spec, collective, best):
    assert optimum_of(spec, collective=collective, bounds="false") == best
    assert max(bound.value for bound in prepared(spec, collective=collective).bounds()) == best
    assert prepared(spec, collective=collective).metrics(best)["unrestricted_proven"]


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_options_of_the_model_leave_its_optimum(collective):
    spec = "lightpath:2x2,lasers=2"
    options = ({}, {"symmetry": "false"}, {"routes": "yen"}, {"bounds": "false"})
    assert len({optimum_of(spec, collective=collective, **option) for option in options}) == 1


def test_fixed_wavelengths_are_no_better_and_hold_to_their_wave():
    spec = "lightpath:2x2,lasers=2"
    free = optimum_of(spec, collective="all-to-all")
    run = solve(
        Task(
            NAME,
            spec,
            method="highs",
            form="cvxpy",
            settings={"collective": "all-to-all", "wavelengths": "fixed"},
            time_limit_s=600,
        )
    )
    assert run.verified
    assert run.objective >= free
    data = prepared(spec, collective="all-to-all", wavelengths="fixed")
    assert data.residuals(run.values)["wave"] == 0
    moved = {**run.values, "circuit_wavelength": 1 - run.values["circuit_wavelength"]}
    assert data.residuals(moved)["wave"] > 0


def test_the_paper_gives_up_here():
    """Eight GPUs, which the paper's solver does not solve in days."""
    assert proven("lightpath:2x4,lasers=4,waveguides=2") == 2


#: Sufficient rounds are exact here: around a ring, by halving, by shifts, from one sender.
EXACT = [
    ("lightpath:2x4,lasers=1", "all-gather", 7),
    ("lightpath:2x6,lasers=2", "all-gather", 6),
    ("lightpath:1x5,lasers=1", "all-gather", 4),
    ("lightpath:4x4,lasers=1", "broadcast", 4),
    ("lightpath:3x3,lasers=2", "all-to-all", 4),
    ("lightpath:1x12,lasers=4", "all-to-all", 9),
    ("lightpath:2x4,lasers=4,waveguides=2", "all-to-all", 2),
    ("lightpath:3x3,lasers=3", "scatter", 3),
    ("lightpath:3x3,lasers=4", "gather", 2),
    ("ring:6", "all-gather", 5),
]


@each(("spec", "collective", "best"), EXACT)
def test_closed_forms_of_sufficient_rounds_that_are_exact(spec, collective, best):
    own = {} if spec.startswith("lightpath") else {"lasers": 1, "waveguides": 1}
    data = prepared(spec, collective=collective, **own)
    assert data.least == [program.rounds for program in data.programs] == [best]


@settings(max_examples=8, deadline=None)
@given(
    st.sampled_from(
        [
            "lightpath:2x3,lasers=2",
            "lightpath:2x3,lasers=1+fail=2,seed=1",
            "lightpath:1x5",
            "lightpath:4x3,lasers=3,waveguides=2",
            "lightpath:3x5,lasers=2+fail=3,seed=2",
            "lightpath:4x4,lasers=4",
        ]
    ),
    st.sampled_from(COLLECTIVES),
    st.integers(1, 3),
    st.sampled_from(["free", "fixed"]),
    st.sampled_from(["straight", "yen"]),
)
def test_sufficient_rounds_are_at_least_the_bounds_and_at_most_one_a_delivery(spec, collective, pieces, waves, routes):
    data = prepared(spec, collective=collective, pieces=pieces, wavelengths=waves, routes=routes)
    for phase, least in zip(data.phases, data.least, strict=True):
        assert least <= sufficient_rounds(data.program(phase, 1)) <= len(phase.copying.deliveries)


@pytest.mark.parametrize(
    ("spec", "parameters"),
    [
        ("lightpath:2x3,lasers=1+fail=2,seed=1", {"collective": "all-gather"}),
        ("lightpath:2x3,lasers=2+fail=1,seed=2", {"collective": "all-to-all", "paths": 1}),
        ("lightpath:2x3,lasers=2", {"collective": "all-to-all", "wavelengths": "fixed"}),
        ("lightpath:2x2,lasers=3", {"collective": "all-gather", "wavelengths": "fixed", "pieces": 2}),
        ("lightpath:1x4,lasers=2,waveguides=2", {"collective": "all-to-all"}),
        ("lightpath:2x2,lasers=2", {"collective": "broadcast", "pieces": 5, "paths": 1}),
        ("lightpath:3x2,lasers=1", {"collective": "broadcast", "root": 3}),
        ("lightpath:1x5,lasers=2", {"collective": "broadcast", "root": 2, "pieces": 2}),
    ],
)
def test_the_program_has_a_solution_within_sufficient_rounds(spec, parameters):
    """Solved without any bound, so the default of R_max alone limits the rounds."""
    data = prepared(spec, bounds="false", **parameters)
    assert optimum_of(spec, bounds="false", **parameters) <= sum(program.rounds for program in data.programs)


def test_symmetries_are_checked_not_assumed():
    whole = prepared("lightpath:3x3,lasers=2").programs[0]
    assert len(delivery_symmetries(whole)) == 7
    assert len(delivery_symmetries(prepared("lightpath:2x3,lasers=2").programs[0])) == 3
    for image in delivery_symmetries(whole):
        assert np.array_equal(np.sort(image), np.arange(image.size))
    assert delivery_symmetries(prepared("lightpath:3x3,lasers=2+fail=1,seed=3").programs[0]) == []
    cornered = prepared("lightpath:3x3,lasers=2", collective="broadcast", root=0).programs[0]
    assert len(delivery_symmetries(cornered)) <= 1  # the diagonal alone keeps a corner


@settings(max_examples=8, deadline=None)
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
        visited = [int(routes.sources[routes.pair[p]]), *mesh.head[path].tolist()]
        assert visited[:-1] == mesh.tail[path].tolist()
        assert visited[-1] == routes.targets[routes.pair[p]]
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


def test_an_exchange_of_whole_buffers_is_no_reduce_scatter_and_all_gather():
    """Two tiles add each other's shards in one round: all sums are correct, though two phases take two rounds."""
    spec = "lightpath:1x2,lasers=2"
    data = SumModel.prepare(parse(spec), {"collective": "all-reduce"})
    mesh = data.topology
    there = int(np.flatnonzero(mesh.tail == 0)[0])
    s, c, w = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([0, 1, 0, 1])
    arcs = np.where(s == 0, there, 1 - there)
    whole = direct(0 * s, s, 1 - s, c, w, np.arange(5), arcs, adds=True)
    assert max(data.residuals(whole.values()).values()) == 0
    assert max(bound.value for bound in data.bounds()) == 1
    phased = prepared(spec, collective="all-reduce")
    assert phased.residuals(whole.values())["phases"] > 0
    assert max(bound.value for bound in phased.bounds()) == 2 == optimum_of(spec, collective="all-reduce")


@pytest.mark.parametrize(
    ("spec", "proven", "short"),
    [
        ("lightpath:2x4,lasers=16,waveguides=20", 2, "receives 56 contributions with room for 16"),
        ("lightpath:2x4,lasers=55,waveguides=64", 2, "receives 56 contributions"),
        ("lightpath:2x4,lasers=56,waveguides=64", 1, None),
        ("lightpath:2x2,lasers=16,waveguides=20", 1, None),
        ("lightpath:2x2,lasers=11,waveguides=20", 2, "receives 12 contributions"),
        ("lightpath:1x2,lasers=2", 1, None),
    ],
)
def test_an_all_reduce_takes_one_round_only_where_all_contributions_find_room(spec, proven, short):
    """In one round nothing is summed on the way: 8 chunks of 7 others are 56 receptions at every tile."""
    result = solve(Task("lumorph.sum-rounds", spec, method="combined-rounds"))
    assert (result.objective, result.bound, result.proof) == (proven, proven, "optimal")
    assert result.verified
    assert result.record["metrics"]["unrestricted_proven"]
    bound = next(b for b in SumModel.prepare(parse(spec)).bounds() if b.name == "one-round")
    assert bound.value == proven
    assert short is None or short in bound.reason


@pytest.mark.parametrize(
    "spec", ["lightpath:1x3,lasers=1", "lightpath:2x2,lasers=2", "lightpath:2x3,lasers=1,waveguides=2"]
)
@pytest.mark.parametrize("collective", ["reduce", "reduce-scatter", "all-reduce"])
def test_bounds_of_sums_are_no_more_than_the_compositions_optimum(spec, collective):
    data = prepared(spec, collective=collective)
    best = optimum_of(spec, collective=collective)
    for bound in (*data.bounds(), *sum_bounds(data.topology, data.collective, data.limits)):
        assert bound.value <= best, bound


@pytest.mark.parametrize(
    ("spec", "chunks", "best"),
    [
        ("lightpath:2x2,lasers=1", [{"pre": [2, 3], "post": [0, 1, 2, 3]}], 3),  # one round of sums, two of copies
        ("lightpath:1x3,lasers=1", [{"pre": [1], "post": []}, {"pre": [1], "post": [1, 2]}], 1),
        ("lightpath:1x3,lasers=1", [{"pre": [0, 1], "post": [0]}, {"pre": [1], "post": [1, 2]}], 2),
        ("lightpath:1x3,lasers=1", [{"pre": [1], "post": [0, 2]}], 2),
    ],
)
@pytest.mark.parametrize("method", ["auto", "highs"])
def test_sums_for_some_of_the_vertices_are_copied_to_those_without_them(tmp_path, spec, chunks, best, method):
    path = tmp_path / "sums.json"
    path.write_text(json.dumps({"sum": True, "chunks": chunks}))
    result = oc.solve("lumorph.rounds", spec, method=method, collective=f"file:{path}")
    assert (result.value, result.proof) == (best, "optimal")


@each("name", ["lumorph.rounds", "lumorph.sum-rounds", "lumorph.forwarded-rounds"])
@each("chunk", [{"pre": [1], "post": []}, {"pre": [1], "post": [1]}])
def test_a_collective_that_sends_nothing_is_refused(tmp_path, name, chunk):
    path = tmp_path / "nothing.json"
    path.write_text(json.dumps({"sum": name == "lumorph.sum-rounds", "chunks": [chunk]}))
    with pytest.raises(NotApplicable, match="'nothing' has no deliveries"):
        oc.solve(name, "wdm-ring:n=3,wavelengths=1", collective=f"file:{path}")


def test_rmax_below_a_bound_is_refuted_at_once(capsys):
    for method in ("highs", "cp-sat"):
        assert main(["solve", NAME, "lightpath:8x8,lasers=4", "--set", "rmax=3", "--method", method, "--json"]) == 3
        record = json.loads(capsys.readouterr().out)
        assert (record["termination"], record["proof"], record["bound"]) == ("infeasible", "bound-only", 16)
        assert "rmax=3" in record["message"]


def test_more_rounds_than_rmax_are_no_solution():
    """A pipelined tree needs more rounds than a user allows, though no bound says so."""
    task = {"rmax": "8", "compact": "false"}
    run = solve(Task(NAME, "lightpath:2x4,lasers=1", method="tree", settings=task))
    assert run.objective > 8
    assert run.record["violations"]["rmax"] == run.objective - 8
    assert (run.verified, run.proof, run.exit_status) == (False, "bound-only", 3)
    free = solve(Task(NAME, "lightpath:2x4,lasers=1", method="tree", settings={**task, "rmax": "0"}))
    assert free.verified


@pytest.mark.parametrize("parameters", [{"rmin": 5}, {"rmin": 5, "rmax": 6}, {"rmin": 4, "rmax": 3}])
def test_an_rmin_that_a_schedule_undercuts_proves_nothing(parameters):
    """Three rounds suffice for four tiles: a program that assumes five would "prove" five."""
    output = {k: str(v) for k, v in parameters.items()}
    with pytest.raises(BadInput, match="rmin"):
        solve(Task(NAME, "lightpath:2x2,lasers=1", method="highs", form="cvxpy", settings=output))


@each(
    ("spec", "parameters", "word"),
    [
        ("ring:4", {}, "lasers"),
        ("lightpath:2x2,lasers=1", {"collective": "broadcast", "root": 4}, "root"),
        ("lightpath:2x2,lasers=1", {"paths": -1}, "paths"),
        ("lightpath:2x2,lasers=1", {"routes": "algorithm-2", "paths": 2}, "one route per pair"),
        ("lightpath:3x4,lasers=1+fail=2,seed=3", {"routes": "algorithm-2", "rmax": 9}, "not proven optimal"),
        ("lightpath:2x2,lasers=1", {"program": "coded", "symmetry": False}, "no effect with program=coded"),
        ("lightpath:2x2,lasers=1", {"program": "printed", "symmetry": False}, "no effect with program=printed"),
        ("lightpath:2x2,lasers=1+fail=4", {}, "no path"),
        ("lightpath:8x8,lasers=8", {}, "too many"),
        ("servers:n=4,degree=2,traffic=alltoall", {}, "topology"),
    ],
)
def test_bad_tasks_are_refused(spec, parameters, word):
    with pytest.raises(BadInput, match=word):
        assert prepared(spec, **parameters).programs[0].columns


@pytest.mark.parametrize(
    ("spec", "collective", "overlap"),
    [
        ("lightpath:2x3,lasers=1", "scatter", 3),
        ("lightpath:2x3,lasers=1+fail=1,seed=2", "scatter", None),
        ("lightpath:2x2,lasers=1", "all-gather", 2),
    ],
)
def test_routes_of_algorithm_2_are_an_optimum_of_algorithm_2(spec, collective, overlap, tmp_path):
    """The routes of all pairs that move, against the program of Algorithm 2 by branch and bound."""
    program = prepared(spec, collective=collective, routes="algorithm-2").program(
        prepared(spec, collective=collective).phases[0], 1
    )
    routes = candidate_routes(program.topology, *np.divmod(program.pairs, program.topology.n), "algorithm-2", 1)
    load = np.bincount(routes.arcs).max()
    rows = [f"{s},{d}" for s, d in zip(routes.sources.tolist(), routes.targets.tolist(), strict=True)]
    file = tmp_path / "circuits.csv"
    file.write_text("\n".join(["source,target", *rows]), encoding="utf-8")
    run = solve(Task("lumorph.min-overlap", spec, method="highs", form="cvxpy", settings={"circuits": f"file:{file}"}))
    assert (run.objective, run.proof) == (load, "optimal")
    assert overlap in (None, load)
    for k, (s, d) in enumerate(zip(routes.sources.tolist(), routes.targets.tolist(), strict=True)):
        path, t = routes.path(k), program.topology
        assert [s, *t.head[path].tolist()] == [*t.tail[path].tolist(), d]


def test_with_routes_of_algorithm_2_a_schedule_may_need_more_rounds():
    """One route per pair is a restriction of two: never fewer rounds, and the value is proven by the program."""
    for collective in ("scatter", "all-to-all"):
        both = [
            proven("lightpath:2x2,lasers=2", collective=collective, routes=kind) for kind in ("straight", "algorithm-2")
        ]
        assert both[0] <= both[1] <= both[0] + 1


def test_any_topology_is_accepted_if_lasers_are_given():
    run = solve(Task(NAME, "ring:4", method="highs", form="cvxpy", settings={"lasers": "1", "waveguides": "1"}))
    assert (run.objective, run.proof) == (3, "optimal")
    with pytest.raises(NotApplicable, match="contain no schedule"):
        run.plan.problem.rounds({})


@pytest.mark.parametrize(
    ("name", "spec", "method"),
    [
        ("lumorph.rounds", "lightpath:2x2,lasers=2", "certified-rounds"),
        ("lumorph.sum-rounds", "lightpath:2x2,lasers=1", "auto"),
    ],
)
def test_a_schedule_without_the_columns_of_the_program_is_a_start(name, spec, method):
    found = oc.solve(name, spec, method=method)
    schedule = {one: array for one, array in found.values.items() if one.startswith(("circuit_", "transfer_"))}
    again = oc.solve(name, spec, start=schedule)
    assert again.value == found.value
    assert again.record.start.objective == found.value
