"""The path MCF: builds agree, all simple paths give the link MCF, fewer give less; column generation and MCF-extP."""

from __future__ import annotations

import time

import networkx as nx
import numpy as np
import pytest
from reference import MEDIUM, SMALL, compiled, optimum, optimum_of, solved
from slow_cases import marked

from opticoll.errors import BadInput, MethodMismatch, NotApplicable
from opticoll.formulations import formulation
from opticoll.formulations.flows import path_bounds, path_flow
from opticoll.formulations.flows.path_sets import MOST_PATHS, PathRule, count_all
from opticoll.instances import Topology, parse
from opticoll.solvers import solve
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.methods.method import Context
from opticoll.solvers.plan import make_plan
from opticoll.solvers.schedules.weighted_paths import extract_paths, widest_path
from opticoll.solvers.solution_document import SolutionDocument
from opticoll.solvers.solution_json import check
from opticoll.solvers.task import Proof, Task, Termination

UP_TO_16 = [spec for spec in (*SMALL, *MEDIUM) if parse(spec).n <= 16]
NAME = "alltoall.path-mcf"


def with_failures(spec):
    """The topology with three random links removed, for the first seed that leaves it connected; None if none does."""
    for seed in range(40):
        try:
            result = parse(f"{spec}+fail=3,seed={seed}")
        except BadInput:
            return None
        if result.connected:
            return result.spec
    return None


@pytest.mark.parametrize("spec", [marked(spec, slow=parse(spec).n > 10) for spec in UP_TO_16])
def test_over_all_simple_paths_it_is_the_link_mcf(spec):
    assert over_all_paths(spec) == pytest.approx(optimum_of("alltoall.master", spec), rel=1e-6)


def over_all_paths(spec):
    """The optimum over all simple paths where they are few enough; else what is refused, with its count."""
    topology = parse(spec)
    count, _, complete = count_all(topology, PathRule("all"))
    if complete and count <= MOST_PATHS:
        return solved(NAME, spec, paths="all")[1]
    with pytest.raises(NotApplicable, match=f"{count:,}" if complete else "more than 20,000,000"):
        compiled(NAME, spec, paths="all")
    return optimum_of("alltoall.master", spec)


@pytest.mark.parametrize("spec", ["genkautz:n=12,d=4", "mesh:3x3", "torus:3x4", "hypercube:3"])
def test_fewer_paths_give_no_more_and_their_bounds_hold(spec):
    best = optimum_of("alltoall.master", spec)
    for parameters in (
        {"paths": "shortest"},
        {"paths": "k", "k": 2},
        {"paths": "disjoint"},
        {"paths": "all", "lmax": 4},
    ):
        data, form = compiled(NAME, spec, **parameters)
        F, _ = optimum(form)
        assert best * (1 + 1e-9) >= F
        assert all(bound.value >= F * (1 - 1e-9) for bound in data.bounds())
        lengths = np.random.default_rng(0).random(data.topology.arcs)
        assert path_bounds.length_bound(data.routing, lengths) >= F * (1 - 1e-9)


@pytest.mark.parametrize("spec", ["dragonfly:a=2,h=1", "kautz:d=2,D=3", "torus:3x4", "mesh:3x3+fail=1,seed=2"])
def test_equal_split_is_the_betweenness_of_links(spec):
    """Betweenness centrality counts every shortest path of a pair by its share."""
    topology = parse(spec)
    run = solve.solve(Task(NAME, spec, "equal-split", settings={"paths": "shortest"}))
    graph = nx.DiGraph(list(zip(topology.tail.tolist(), topology.head.tolist(), strict=True)))
    loads = nx.edge_betweenness_centrality(graph, normalized=False)
    assert run.verified
    assert run.record["metrics"]["T"] == pytest.approx(max(loads.values()))
    assert run.objective <= solved(NAME, spec, paths="shortest")[1] * (1 + 1e-9)


def test_the_bound_with_a_longest_path_is_that_of_the_listed_set():
    data = formulation(NAME).prepare(parse("genkautz:n=12,d=4"), {"paths": "all", "lmax": 4})
    lengths = np.random.default_rng(1).random(data.topology.arcs)
    np.testing.assert_allclose(
        path_bounds.shortest_lengths(data.routing, lengths), data.routing.paths.shortest(lengths), rtol=1e-12
    )


def test_a_set_is_named_counted_and_held_against_the_unrestricted_bound():
    run = solve.solve(Task(NAME, "genkautz:n=16,d=4", settings={"paths": "shortest"}))
    metrics = run.record["metrics"]
    assert run.proof is Proof.OPTIMAL  # of its set
    assert (metrics["path_set"], metrics["paths"]) == ("all shortest paths", 240)
    assert metrics["F"] == pytest.approx(1 / 9, rel=1e-9)
    assert metrics["unrestricted_bound"] >= 7 / 53 > metrics["F"]


def test_any_vector_is_repaired_to_a_feasible_flow():
    data, _ = compiled(NAME, "genkautz:n=7,d=3", paths="k")
    random = np.random.default_rng(2)
    count = data.routing.paths.paths
    for f in (random.random(count), np.zeros(count), random.normal(size=count)):
        repaired = data.repair({"f": f, "F": np.asarray(5.0)})
        assert max(data.residuals(repaired).values()) <= 1e-12
        assert data.objective(repaired) > 0


# Column generation


QUICK = ("hypercube:2+host=1.5", "genkautz:n=12,d=4")


def check_agreement(spec):
    """Link MCF, master and column generation agree to 1e-6, and column generation proves it."""
    best = optimum_of("alltoall.master", spec)
    model = formulation("alltoall.link-mcf")
    if parse(spec).arcs * parse(spec).n ** 2 <= 8000:
        assert optimum(compile_model(model.prepare(parse(spec)).cvxpy()))[0] == pytest.approx(best, rel=1e-6)
    for name, settings in ((NAME, {"paths": "all"}), ("alltoall.link-mcf", {}), ("alltoall.master", {})):
        run = solve.solve(Task(name, spec, method="column-generation", settings=settings))
        assert run.proof is Proof.OPTIMAL, run.record
        assert run.objective == pytest.approx(best, rel=1e-6)
        assert run.bound == pytest.approx(best, rel=1e-6)
        assert run.record["bound_source"] == "any-lengths"
        assert {"rounds", "columns", "paths_used"} <= run.record["metrics"].keys()


@pytest.mark.parametrize("spec", [marked(spec, slow=spec not in QUICK) for spec in UP_TO_16])
def test_link_mcf_master_and_column_generation_agree(spec):
    check_agreement(spec)


@pytest.mark.slow
@pytest.mark.parametrize("spec", [spec for spec in UP_TO_16 if "+" not in spec])
def test_they_agree_with_three_links_removed(spec):
    failed = with_failures(spec)
    if failed is None:
        pytest.skip("three links fewer leave it disconnected")
    check_agreement(failed)


@pytest.mark.parametrize("spec", ["sp-expander:n=16,d=4,seed=1"])
def test_three_links_removed(spec):
    failed = with_failures(spec)
    assert failed is not None
    best = optimum_of("alltoall.master", failed)
    run = solve.solve(Task(NAME, failed, method="column-generation", settings={"paths": "all"}))
    assert run.proof is Proof.OPTIMAL
    assert run.objective == pytest.approx(best, rel=1e-6)
    assert solved(NAME, failed, paths="disjoint")[1] <= best * (1 + 1e-9)


@pytest.mark.parametrize("settings", [{"paths": "disjoint"}, {"paths": "all", "lmax": "3"}, {"paths": "k", "k": "3"}])
def test_column_generation_over_a_set_gives_its_optimum(settings):
    run = solve.solve(Task(NAME, "genkautz:n=16,d=4", method="column-generation", settings=settings))
    exact = solved(NAME, "genkautz:n=16,d=4", **{k: v if k == "paths" else int(v) for k, v in settings.items()})[1]
    assert run.proof is Proof.OPTIMAL
    assert run.objective == pytest.approx(exact, rel=1e-6)
    assert run.record["metrics"]["longest_path"] <= int(settings.get("lmax", 99))


@pytest.mark.parametrize("algorithm", ["simplex", "ipx"])
def test_both_algorithms_of_the_master_prove_it(algorithm):
    topology = Topology(4, [0, 1, 2, 3, 0, 2, 0], [1, 2, 3, 0, 2, 0, 1], [1.0, 3.0, 0.5, 2.0, 1e-3, 40.0, 0.25])
    best = solved("alltoall.master", topology)[1]
    run = solve.solve(Task("alltoall.master", topology, method="column-generation", settings={"algorithm": algorithm}))
    assert run.proof is Proof.OPTIMAL
    assert run.objective == pytest.approx(best, rel=1e-6)


def test_a_time_limit_keeps_flow_and_bound():
    task = Task("alltoall.master", "genkautz:n=24,d=3+fail=2,seed=0", method="column-generation", tol=1e-9)
    plan = make_plan(task)

    def late(answer, objective=None):  # however fast the machine: the time is over after the first round
        context.deadline = time.monotonic()

    context = Context(
        task=task,
        data=plan.problem,
        instance=plan.instance,
        parameters=plan.method_parameters,
        deadline=time.monotonic() + 600.0,
        solve=solve.solve,
        save=late,
    )
    answer = plan.procedure(context)
    assert answer.termination is Termination.TIME_LIMIT
    assert max(plan.problem.residuals(answer.values).values()) < 1e-9
    assert 0 < float(answer.values["F"]) <= plan.problem.certify(answer.duals).value


def test_the_printed_link_mcf_has_no_column_generation():
    task = Task("alltoall.link-mcf", "path:4", method="column-generation", settings={"printed": "true"})
    with pytest.raises(MethodMismatch, match="printed"):
        solve.solve(task)


# MCF-extP


def test_the_widest_path_is_the_widest():
    #   0 -> 1 -> 3 has width 2, 0 -> 2 -> 3 width 3, 0 -> 3 width 1
    tails, heads, width = [0, 1, 0, 2, 0], [1, 3, 2, 3, 3], [5.0, 2.0, 3.0, 4.0, 1.0]
    assert widest_path(tails, heads, width, 0, 3) == ([2, 3], 3.0)
    assert widest_path(tails, heads, [0.0] * 5, 0, 3) == ([], 0.0)


def test_extraction_carries_everything_in_falling_rates_and_leaves_cycles():
    topology = Topology(4, [0, 1, 0, 2, 0, 1, 2], [1, 3, 2, 3, 3, 2, 1])
    at = {(u, v): a for a, (u, v) in enumerate(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))}
    flow = np.zeros(topology.arcs)
    for arc, amount in {(0, 1): 2, (1, 3): 2, (0, 2): 3, (2, 3): 3, (0, 3): 1}.items():
        flow[at[arc]] = amount
    flow[[at[1, 2], at[2, 1]]] += 0.5  # a circulation
    result = extract_paths(topology, 0, 3, flow, 6.0)
    assert [path.amount for path in result] == pytest.approx([3, 2, 1])
    with pytest.raises(BadInput, match="carries 6 of 7"):
        extract_paths(topology, 0, 3, flow, 7.0)


@pytest.mark.parametrize(
    ("spec", "link"),
    [
        ("genkautz:n=12,d=4", "flow-decomposition"),
        ("hypercube:2+host=1.5", "highs-simplex"),
    ],
)
def test_mcf_extp_carries_the_link_mcf_whole(spec, link):
    run = solve.solve(Task(NAME, spec, method="mcf-extp", settings={"paths": "all", "link": link}))
    assert run.proof is Proof.OPTIMAL
    assert run.objective == pytest.approx(optimum_of("alltoall.master", spec), rel=1e-6)
    assert run.record["metrics"]["paths_per_commodity"] >= 1
    assert run.record["metrics"]["most_paths_per_commodity"] >= 1


def test_mcf_extp_requires_all_paths():
    with pytest.raises(MethodMismatch, match="paths=all"):
        solve.solve(Task(NAME, "ring:5", method="mcf-extp"))


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"paths": "all", "lmax": "2"}, "diameter 4"),
        ({"path": "all"}, "paths"),
    ],
)
def test_bad_path_sets_are_refused(settings, word):
    with pytest.raises(BadInput, match=word) as caught:
        solve.solve(Task(NAME, "ring:8", settings=settings))
    assert caught.value.exit_status == 2


def test_too_many_paths_are_refused_with_the_count_by_any_solver():
    for method in ("auto", "highs-ipx"):
        with pytest.raises(NotApplicable, match="3,636,276"):
            solve.solve(Task(NAME, "genkautz:n=16,d=4", method=method, settings={"paths": "all"}))


def test_a_written_solution_is_accepted_and_a_changed_one_is_not(tmp_path):
    import json

    run = solve.solve(Task(NAME, "petersen", method="column-generation", settings={"paths": "all"}))
    document = json.loads(json.dumps(SolutionDocument.of(run).as_json()))
    path = tmp_path / "paths.json"
    path.write_text(json.dumps(document))
    assert check(NAME, "petersen", path, {"paths": "all"})["verified"]
    document["values"]["path_arcs"]["value"][0] = 30 if document["values"]["path_arcs"]["value"][0] != 30 else 29
    path.write_text(json.dumps(document))
    assert not check(NAME, "petersen", path, {"paths": "all"})["verified"]


@pytest.mark.parametrize(("spec", "settings"), [("genkautz:n=12,d=4", {}), ("ring:5", {"demand": "random:1"})])
def test_the_masters_flow_splits_into_weighted_paths(spec, settings):
    """The paths serve all pairs at the optimum of the link MCF, without a dense flow of commodities."""
    run = solve.solve(Task(NAME, spec, "flow-decomposition", settings={"paths": "all", **settings}))
    link = solve.solve(Task("alltoall.link-mcf", spec, "highs-simplex", settings=settings))
    assert run.verified
    assert run.objective == pytest.approx(link.objective, rel=1e-6)
    data, metrics = run.plan.problem, run.record["metrics"]
    paths, f = path_flow.known_paths(data.routing, run.values), run.values["f"]
    assert np.bincount(paths.pair, f, paths.pairs) == pytest.approx(run.objective * data.routing.amount)
    assert metrics["paths"] == np.count_nonzero(f > 0)


def test_the_masters_flow_takes_all_paths():
    with pytest.raises(BadInput, match="paths=all"):
        solve.solve(Task(NAME, "ring:5", "flow-decomposition"))
