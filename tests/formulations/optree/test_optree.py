"""OpTree: wavelengths of an all-to-all, trees with integer radices, schedules circuit by circuit, the theorems."""

from __future__ import annotations

import math

import numpy as np
import pytest
from case_families import each
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import refused

import opticoll as oc
from opticoll.analysis.papers.optree import table_one
from opticoll.errors import BadInput, NotApplicable
from opticoll.formulations.optree import one_stage, one_stage_solution, step_counts, step_times, tree
from opticoll.formulations.optree.radix_trees import Fabric
from opticoll.formulations.optree.step_counts import COUNTS
from opticoll.formulations.optree.tree_schedules import (
    interval_colours,
    tree_schedule,
    violations,
)
from opticoll.formulations.rounds import wavelengths
from opticoll.instances import WdmRing, parse
from opticoll.solvers import solve
from opticoll.solvers.methods.optree import best_trees
from opticoll.solvers.methods.optree.best_trees import best_by_depth, best_tree, uniform_tree
from opticoll.solvers.task import Proof, Task

ONE, TREE = "optree.one-stage", "optree.tree"


def ring(n, w=2):
    return parse(f"wdm-ring:n={n},wavelengths={w}")


def line(n, w=2):
    return parse(f"wdm-line:n={n},wavelengths={w}")


def trees(n, product=1, before=()):
    """All trees of whole radices on n nodes."""
    if product >= n:
        yield before
        return
    for m in range(2, -(-n // product) + 1):
        yield from trees(n, product * m, (*before, m))


# one stage ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_ring", [True, False])
def test_assignments_meet_the_bound_for_every_n(is_ring):
    for n in [*range(2, 34), 47, 64]:
        for mirrored in (False, True):
            pairs = wavelengths.assign(n, ring=is_ring, mirrored=mirrored)
            assert wavelengths.conflicts(n, pairs, ring=is_ring) == 0
            assert (
                pairs.wavelengths
                == wavelengths.wavelengths_needed(n, ring=is_ring)
                == wavelengths.load_bound(n, ring=is_ring)
            )


def test_lemma_1_is_one_too_large_on_rings_of_odd_size_alone():
    excess = {
        n: wavelengths.lemma_1(n, ring=True) - wavelengths.wavelengths_needed(n, ring=True) for n in range(3, 500)
    }
    assert all(value == n % 2 for n, value in excess.items())
    assert all(wavelengths.lemma_1(n, ring=False) == wavelengths.load_bound(n, ring=False) for n in range(2, 500))


@pytest.mark.slow
@pytest.mark.parametrize("n", [7, 8])
def test_the_milp_proves_larger_rings(n):
    run = solve.solve(Task(ONE, f"wdm-ring:n={n},wavelengths=2", method="highs", time_limit_s=600.0))
    assert (run.objective, run.proof) == (wavelengths.wavelengths_needed(n, ring=True), Proof.OPTIMAL)


def test_too_few_colours_are_refuted_at_once():
    for instance in (ring(5), line(4)):
        needed = wavelengths.wavelengths_needed(instance.n, ring=instance.circular)
        run = solve.solve(Task(ONE, instance, settings={"colours": str(needed - 1)}))
        assert (run.termination, run.objective, run.bound, run.exit_status) == ("infeasible", None, needed, 3)
        few, enough = (oc.bounds(instance, ONE, {"colours": needed - less}) for less in (1, 0))
        assert not few["exact"].any()
        assert enough["exact"].any()
        assert solve.solve(Task(ONE, instance, settings={"colours": str(needed)})).proof == Proof.OPTIMAL


@pytest.mark.parametrize(
    "spec", ["wdm-ring:n=11,wavelengths=2", "wdm-ring:n=64,wavelengths=4", "wdm-line:n=17,wavelengths=3"]
)
def test_cycle_cover_is_proven_through_the_runner(spec):
    run = solve.solve(Task(ONE, spec))
    metrics = run.record["metrics"]
    assert (run.record["method"], run.proof, run.verified) == ("cycle-cover", Proof.OPTIMAL, True)
    assert run.objective == wavelengths.wavelengths_needed(run.plan.instance.n, ring=run.plan.instance.circular)
    assert metrics["rounds"] == math.ceil(run.objective / run.plan.instance.wavelengths)


@pytest.mark.parametrize("instance", [ring(7), ring(8), line(6)])
def test_corrupted_assignments_are_refused(instance):
    data = one_stage.AllToAll.prepare(instance)
    good = one_stage_solution.values_of(data)["route_colour"]
    assert max(data.residuals({"route_colour": good}).values()) == 0
    taken = np.flatnonzero(good >= 0)
    swapped = good.copy()
    swapped[taken[0]] = good[taken[1]] if good[taken[0]] != good[taken[1]] else (good[taken[0]] + 1) % 3
    missing, doubled, far = good.copy(), good.copy(), good.copy()
    missing[taken[0]] = -1
    far[taken[0]] = 1e9
    cases = [missing, good + 0.4, np.full_like(good, np.nan), good[:-1], far, np.where(good >= 0, 0.0, -1.0), swapped]
    if instance.circular:
        doubled[np.flatnonzero(good < 0)[0]] = 0
        cases.append(doubled)
    for broken in cases:
        assert refused(data, {"route_colour": broken})
    x = np.zeros((data.routes, data.colours))
    x[taken, good[taken].astype(int)] = 1.0
    assert max(data.residuals({"x": x}).values()) == 0
    x[taken[0], (int(good[taken[0]]) + 1) % data.colours] = 1.0
    assert data.residuals({"x": x})["choose"] == 1
    assert refused(data, {})


# theorems -----------------------------------------------------------------------------------------------------------


def test_theorems_on_the_papers_numbers():
    assert [step_counts.theorem_2(n) for n in (512, 1024, 2048, 4096)] == [6, 6, 7, 8]
    assert step_counts.theorem_1(16, 2, 2) == pytest.approx(12)
    assert step_counts.theorem_1(1024, 64, 1) == 2048
    printed = {"Ring": 1023, "NE": 512, "WRHT": 259, "One-stage": 2048, "OpTree": 70}
    assert {a.name: round(a.steps(1024, 64)) for a in table_one.TABLE_I} == printed
    assert [table_one.wrht_steps(1024, w) for w in (96, 128)] == [387, 515]
    assert 70 * step_times.step_time(5e9, delay=0.0) == pytest.approx(70.0)


@given(n=st.integers(8, 10**6))
def test_theorem_2s_root_is_where_the_derivative_vanishes(n):
    k = step_counts.theorem_2_root(n)
    steps = [step_counts.theorem_1(n, 64, x) for x in (k * (1 - 1e-3), k, k * (1 + 1e-3))]
    assert steps[1] <= min(steps) * (1 + 1e-12)
    assert abs(table_one.best_depth(n) - k) < 1


@given(n=st.integers(2, 5000), depth=st.integers(1, 12))
def test_uniform_radix_is_the_smallest_that_suffices(n, depth):
    m = best_trees.uniform_radix(n, depth)
    assert m**depth >= n
    assert m == 2 or (m - 1) ** depth < n


# trees --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("is_ring", [True, False])
def test_dynamic_program_against_all_trees(count, is_ring):
    for n in (*range(2, 26), 36):
        for w in (1, 2, 7):
            fabric = Fabric(n, w, is_ring, count)
            all_of_them = {r: sum(fabric.stages(r)) for r in trees(n)}
            result = best_by_depth(fabric)
            assert set(result) == {len(r) for r in all_of_them}
            for depth, best in result.items():
                assert best.steps == min(s for r, s in all_of_them.items() if len(r) == depth)
                assert all_of_them[best.radices] == best.steps
            assert best_tree(fabric).steps == min(all_of_them.values())


def test_the_papers_example():
    """Sixteen nodes, two wavelengths: 16 steps in one stage, 4 + 8 by the 4-ary tree."""
    fabric = Fabric(16, 2)
    assert fabric.stages([16]) == [16]
    assert fabric.stages([4, 4]) == [4, 8]
    assert sum(fabric.stages(uniform_tree(fabric, 3).radices)) > 12
    assert best_tree(fabric).steps == 12


@pytest.mark.parametrize(("count", "steps"), [("lemma", 72), ("exact", 70), ("printed", 70)])
def test_the_integer_optimum_of_table_1(count, steps):
    run = solve.solve(Task(TREE, "wdm-ring:n=1024,wavelengths=64", "tree-search", settings={"count": count}))
    assert (run.objective, run.proof, run.record["method"]) == (steps, Proof.OPTIMAL, "tree-search")
    metrics = run.record["metrics"]
    assert metrics["rounds"] == steps
    assert math.prod(metrics["radices"]) >= 1024
    assert metrics["depth"] == len(metrics["radices"])
    assert sum(metrics["stage_steps"]) == steps
    assert metrics["steps_by_depth"]["1"] == 2048


def test_any_potentials_bound_the_optimum():
    data = tree.TreeChoice.prepare(ring(40, 3))
    best = best_tree(data.fabric).steps
    random = np.random.default_rng(0)
    for scale in (0.1, 1.0, 30.0):
        u = random.normal(size=40) * scale
        assert data.certify({"walk": u}).value <= best
    exact = np.min(data.layers, axis=0)[1:].astype(float)
    for sign in (1.0, -1.0):
        assert data.certify({"walk": sign * exact}).value == best
    assert data.certify({"walk": u[:-1]}) is None
    assert data.certify({}) is None


@pytest.mark.parametrize(
    "values",
    [
        {"radices": [4, 3]},
        {"radices": [4, 4, 2]},
        {"radices": [1, 16]},
        {"radices": [2.5, 8]},
        {"radices": [[4, 4]]},
        {"radices": [np.nan, 4]},
        {"radices": [1e300]},
        {},
        {"y": np.ones(3)},
    ],
)
def test_corrupted_trees_are_refused(values):
    data = tree.TreeChoice.prepare(ring(16))
    assert refused(data, {name: np.asarray(array, dtype=float) for name, array in values.items()})
    assert tree.TreeChoice.prepare(ring(16), {"depth": 3}).residuals({"radices": np.array([4.0, 4.0])})["stages"] == 1
    y = np.zeros(data.graph.arcs)
    y[[0, 1]] = 1.0  # two stages from the same product
    assert np.isinf(max(data.residuals({"y": y}).values()))
    with pytest.raises(NotApplicable, match="not a tree"):
        data.rounds({"radices": np.array([3.0])})


# schedules ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fibres", [ring, line])
def test_every_tree_is_an_all_gather_within_its_count(fibres):
    """All radices on up to 11 nodes: conflict-free, complete, and in no more rounds than ``exact``."""
    for n in range(3, 12):
        for w in (1, 3):
            instance = fibres(n, w)
            fabric = Fabric(n, w, instance.circular, "exact")
            for radices in trees(n):
                schedule = tree_schedule(instance, radices)
                assert not any(violations(instance, schedule).values()), (n, w, radices)
                assert schedule.transfers == n * (n - 1)
                assert schedule.rounds <= sum(fabric.stages(radices)), (n, w, radices)


@pytest.mark.parametrize("n", [8, 9, 16])
def test_one_stage_takes_the_lemmas_rounds(n):
    for w in (1, 2, 5):
        schedule = tree_schedule(ring(n, w), [n])
        assert not any(violations(ring(n, w), schedule).values())
        assert schedule.rounds == math.ceil(wavelengths.wavelengths_needed(n, ring=True) / w)


def test_the_other_algorithms_run():
    for n in (4, 6, 10, 16):
        for make, steps in (
            (table_one.ring_schedule, table_one.ring_steps),
            (table_one.neighbour_exchange_schedule, table_one.neighbour_exchange_steps),
        ):
            schedule = make(ring(n))
            assert not any(violations(ring(n), schedule).values())
            assert schedule.rounds == steps(n)


@pytest.mark.slow
def test_the_paper_s_size_is_scheduled_and_checked():
    instance = ring(1024, 64)
    data = tree.TreeChoice.prepare(instance, {"count": "exact"})
    schedule = data.rounds({"radices": np.array([5.0, 3, 3, 2, 3, 4])})
    assert not any(violations(instance, schedule).values())
    assert schedule.rounds == 70


@settings(max_examples=24, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12)), min_size=1, max_size=60))
def test_interval_colours_are_fewest(intervals):
    first = np.array([a for a, _ in intervals])
    last = first + np.array([b for _, b in intervals])
    colour = interval_colours(first, last)
    load = max(int(((first <= x) & (x < last)).sum()) for x in range(50))
    assert np.unique(colour).size == load == colour.max() + 1
    for c in range(load):
        indices = np.flatnonzero(colour == c)
        order = indices[np.argsort(first[indices])]
        assert (last[order[:-1]] <= first[order[1:]]).all()


# bad input ----------------------------------------------------------------------------------------------------------


@each(
    ("name", "spec", "given_settings", "word"),
    [
        (TREE, "ring:8", {}, "wdm-ring"),
        (ONE, "torus:3x3", {}, "wdm-ring"),
        (TREE, "servers:n=4,degree=2", {}, "wdm"),
        (TREE, "wdm-ring:n=8,wavelengths=2", {"depth": "9"}, "depth 1 to 3"),
        (TREE, "wdm-ring:n=8,wavelengths=2", {"depth": "-1"}, "depth 1 to 3"),
        (TREE, "wdm-ring:n=8,wavelengths=2+fail=1,seed=0", {}, "modifiers"),
        (ONE, "wdm-ring:n=8,wavelengths=2+fail=1,seed=0", {}, "modifiers"),
        (TREE, "wdm-ring:n=300000,wavelengths=2", {}, "fewer"),
        (ONE, "wdm-ring:n=5000,wavelengths=2", {}, "at most"),
    ],
)
def test_bad_tasks_are_refused(name, spec, given_settings, word):
    with pytest.raises(BadInput, match=word):
        solve.solve(Task(name, spec, settings=given_settings))


@each(
    "call",
    [
        lambda: Fabric(1, 1),
        lambda: Fabric(4, 0),
        lambda: table_one.neighbour_exchange_steps(7),
        lambda: table_one.ring_schedule(line(4)),
        lambda: table_one.neighbour_exchange_schedule(ring(7)),
        lambda: table_one.neighbour_exchange_schedule(ring(8, 1)),
        lambda: tree_schedule(ring(8), [2, 2]),
        lambda: tree_schedule(ring(3000, 64), [3000]),
        lambda: tree_schedule(parse("wdm-ring:n=8,wavelengths=2+fail=1,seed=0"), [8]),
        lambda: best_tree(Fabric(8, 1), 7),
    ],
)
def test_bad_arguments_are_refused(call):
    with pytest.raises(BadInput):
        call()


def test_arcs_onward_of_lines_and_rings():
    for instance in (ring(3), ring(9), line(2), line(7)):
        up, down = instance.arcs_onward()
        nodes = np.arange(up.size)
        assert np.array_equal(instance.tail[up], nodes)
        assert np.array_equal(instance.head[up], (nodes + 1) % instance.n)
        assert np.array_equal(instance.tail[down], instance.head[up])
        assert np.array_equal(instance.head[down], nodes)
        assert instance.intact
    assert not parse("wdm-ring:n=8,wavelengths=2+scale=2").intact
    assert isinstance(ring(5), WdmRing)


# claims and figures -------------------------------------------------------------------------------------------------


def test_figures_take_their_rows_from_runs(tmp_path):
    from opticoll.analysis.papers.paper_figure import figures
    from opticoll.analysis.report.findings import collect
    from opticoll.analysis.store import Store

    store = Store(tmp_path / "runs")
    tasks = [Task(ONE, "wdm-ring:n=5,wavelengths=1")]
    for count, depth in (("lemma", 4), ("exact", 5)):
        tasks.append(
            Task(TREE, "wdm-ring:n=512,wavelengths=64", "tree-search", settings={"count": count, "depth": depth})
        )
        tasks.append(Task(TREE, "wdm-ring:n=1024,wavelengths=64", "tree-search", settings={"count": count}))
    for task in tasks:
        store.save(solve.solve(task))
    results = collect(store).results
    result = {}
    for one in figures():
        if one.name.startswith("optree-"):
            rows = one.select(results)
            result[one.name] = (len(rows), one.finding(rows))
            assert one.draw(rows).axes
    assert {name: count for name, (count, _) in result.items()} == {
        "optree-4": 2,
        "optree-5": 2,
        "optree-6": 0,
    }
    assert "exact 31 at depth 5; lemma 32" in result["optree-4"][1]
    assert "exact 70, lemma 72" in result["optree-5"][1]


# step cost ------------------------------------------------------------------------------------------------------------


def test_the_time_of_a_step_in_packets_and_flits():
    """Hand-made: 300 bytes are 3 packets of 25.6 ns; a flit is converted in 2 ns at 500 MHz."""
    cost = step_times.StepCost(clock=500e6)
    assert cost.packets(300) == 3
    assert cost.step(300) == pytest.approx(3 * 25.6e-9 + 25e-6 + 4 * 2e-9, rel=1e-12)
    assert step_times.StepCost(500e6, "serial").step(300) == pytest.approx(3 * 25.6e-9 + 25e-6 + 12 * 2e-9, rel=1e-12)
    assert cost.step(0) == 25e-6
    assert step_times.StepCost().gather(70, 128 * 1000) == pytest.approx(
        70 * step_times.step_time(128 * 1000), rel=1e-12
    )


def test_a_tree_has_a_time():
    data = tree.TreeChoice.prepare(
        parse("wdm-ring:n=16,wavelengths=2"), {"data": 4096.0, "clock": 1e9, "conversion": "serial"}
    )
    result = data.metrics(12.0)
    assert result["packets"] == 32
    assert result["step_us"] == pytest.approx(32 * 0.0256 + 25 + 128e-3)
    assert result["time_us"] == pytest.approx(12 * result["step_us"])
    assert "time_us" not in tree.TreeChoice.prepare(parse("wdm-ring:n=16,wavelengths=2"), {}).metrics(12.0)
    with pytest.raises(NotApplicable, match="no effect without data"):
        tree.TreeChoice.prepare(parse("wdm-ring:n=16,wavelengths=2"), {"clock": 1e9})
