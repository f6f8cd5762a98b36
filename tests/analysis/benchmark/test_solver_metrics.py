"""How solvers compare: hand-computed means, profiles and integrals; censoring; the benchmark set."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from case_families import each
from hypothesis import given, settings
from hypothesis import strategies as st

from opticoll.analysis.benchmark import benchmark_set, comparison, solver_metrics
from opticoll.analysis.benchmark.benchmark_set import BestKnown
from opticoll.errors import BadFile, BadInput

LIMIT = 60.0


def run(problem="p", solver="a", seconds=1.0, **changes):
    """A stored run as the view gives it: solved, unless stated otherwise."""
    known = {
        "problem": problem,
        "solver": solver,
        "linear": False,
        "termination": "optimal",
        "verified": True,
        "sense": "min",
        "value": 10.0,
        "bound": 10.0,
        "gap": 0.0,
        "violation": 0.0,
        "kkt_primal": np.nan,
        "kkt_dual": np.nan,
        "kkt_gap": np.nan,
        "build_s": 0.1,
        "compile_s": 0.2,
        "seconds": seconds,
        "limit_s": LIMIT,
        "tol": 1e-6,
        "incumbents": None,
    }
    return {**known, **changes}


def table_of(*runs, best=None, **options):
    return solver_metrics.verdicts(pd.DataFrame(runs), best or {}, **options)


def verdict(**changes):
    best = {"p": BestKnown(10.0, 10.0, "optimal", "min", "m", "b", "h", "easy", 1.0, 20.0, {}, "0")}
    (row,) = table_of(run(**changes), best=best).to_dict("records")
    return row


# what a run showed --------------------------------------------------------------------------------------------------


@each(
    ("changes", "expected"),
    [
        ({}, "solved"),
        ({"value": 10.0 + 5e-4, "verified": True}, "inexact"),
        ({"value": 10.1}, "wrong"),  # worse than the proven optimum by 1 %
        ({"value": 9.9, "verified": False}, "wrong"),  # better than what can be
        ({"violation": 0.01, "verified": False}, "wrong"),
        ({"violation": np.inf, "verified": False}, "wrong"),
        ({"violation": 1e-5, "verified": False}, "inexact"),
        ({"value": None, "verified": False}, "wrong"),
        ({"termination": "infeasible", "value": None, "verified": False}, "wrong"),
        ({"termination": "time-limit"}, "limit"),
        ({"termination": "unbounded", "value": None, "verified": False}, "wrong"),
        ({"termination": "memory-limit", "value": None, "verified": False}, "memory"),
        ({"termination": "refused", "value": None, "verified": False}, "memory"),
        ({"termination": "iteration-limit", "value": 12.0}, "inexact"),
        ({"termination": "iteration-limit"}, "solved"),  # a heuristic at the proven optimum
        ({"termination": "iteration-limit", "linear": True}, "solved"),  # without duals, by the certified gap
        ({"linear": True}, "solved"),
        ({"linear": True, "value": 10.0 + 5e-5}, "inexact"),
        ({"linear": True, "violation": 1e-5, "verified": False}, "inexact"),
        ({"termination": "crashed", "value": None, "verified": None, "violation": 0.0}, "failed"),
        ({"termination": "error", "value": None, "verified": False, "violation": 0.0}, "failed"),
        ({"termination": "unavailable", "value": None, "verified": None}, "unavailable"),
    ],
)
def test_verdicts(changes, expected):
    row = verdict(**changes)
    assert row["verdict"] == expected
    assert np.isfinite(row["seconds"]) == (expected == "solved")


def test_a_maximum_is_wrong_the_other_way_round():
    best = {"p": BestKnown(10.0, 10.0, "optimal", "max", "m", "b", "h", "easy", 1.0, 20.0, {}, "0")}
    table = {v: table_of(run(sense="max", value=v), best=best)["verdict"].item() for v in (9.9, 10.0, 10.1)}
    assert table == {9.9: "wrong", 10.0: "solved", 10.1: "wrong"}


def test_without_a_proven_value_the_best_of_the_runs_stands_in():
    rows = [
        run(solver="a", value=10.0),
        run(solver="b", value=12.0),
        run(solver="c", value=1.0, verified=False, violation=1.0),
    ]
    table = table_of(*[{**row, "bound": None} for row in rows]).set_index("solver")["verdict"]
    assert table.to_dict() == {"a": "solved", "b": "wrong", "c": "wrong"}


def test_a_value_past_the_bound_makes_no_exact_answer_wrong():
    loose = run(solver="loose", value=10.0 - 5e-6, violation=5e-7)
    exact = run(solver="exact", tol=1e-9)
    table = table_of(loose, exact).set_index("solver")
    assert list(table["verdict"]) == ["solved", "solved"]
    assert (table.loc["exact", "best"], table.loc["exact", "error"]) == (10.0, 0.0)


def test_a_heuristic_at_the_best_known_value_has_solved_nothing_that_no_bound_proves():
    rows = [
        run(solver=name, value=10.0, bound=bound, termination="iteration-limit")
        for name, bound in (("a", 9.0), ("b", None))
    ]
    assert table_of(*rows)["verdict"].tolist() == ["inexact", "inexact"]
    assert table_of(*rows, run(solver="c", bound=10.0))["verdict"].tolist() == ["solved"] * 3


@pytest.mark.parametrize(("accuracy", "expected"), [(1e-4, "solved"), (1e-6, "inexact"), (1e-9, "inexact")])
def test_linear_programs_count_at_the_accuracy_they_reached(accuracy, expected):
    row = run(linear=True, kkt_primal=1e-12, kkt_dual=2e-5, kkt_gap=1e-7)
    table = table_of(row, accuracy=accuracy)
    assert table["verdict"].item() == expected
    assert table["residual"].item() == 2e-5
    assert table_of({**row, "kkt_gap": np.nan}, accuracy=accuracy)["verdict"].item() == "inexact"


def test_accuracy_counts_whether_the_tolerance_was_reached_or_not_but_not_beyond_the_time_limit():
    row = run(linear=True, kkt_primal=1e-8, kkt_dual=1e-8, kkt_gap=1e-8, tol=1e-9)
    table = {
        word: table_of({**row, "termination": word})["verdict"].item()
        for word in ("tolerance-not-reached", "iteration-limit", "time-limit", "memory-limit")
    }
    assert table == {
        "tolerance-not-reached": "solved",
        "iteration-limit": "solved",
        "time-limit": "limit",
        "memory-limit": "memory",
    }


def test_an_optimum_of_nothing_is_missed_by_differences_and_not_by_ratios():
    best = {"p": BestKnown(0.0, 0.0, "optimal", "min", "m", "b", "h", "easy", 1.0, 20.0, {}, "0")}
    values = [table_of(run(value=v, bound=None), best=best)["verdict"].item() for v in (0.0, 1e-9, 0.1)]
    assert values == ["solved", "solved", "wrong"]


def test_of_several_tolerances_the_fastest_that_reached_the_accuracy_counts():
    def at(tol, seconds, residual):
        return run("p", "pdlp", seconds, linear=True, tol=tol, kkt_primal=0.0, kkt_dual=0.0, kkt_gap=residual)

    rows = (at(1e-4, 1.0, 5e-5), at(1e-6, 2.0, 5e-6), at(1e-9, 7.0, 5e-8))
    kept = [
        solver_metrics.one_each(table_of(*rows, accuracy=accuracy))[["verdict", "tol"]].to_numpy().tolist()
        for accuracy in (1e-4, 1e-6, 1e-9)
    ]
    assert kept == [[["solved", 1e-4]], [["solved", 1e-9]], [["inexact", 1e-9]]]


# means --------------------------------------------------------------------------------------------------------------


def test_shifted_geometric_mean_by_hand():
    assert solver_metrics.shifted_geometric_mean([3.0, 0.0], shift=1.0) == pytest.approx(1.0)  # sqrt(4 * 1) - 1
    assert solver_metrics.shifted_geometric_mean([2.0, 8.0], shift=0.0) == pytest.approx(4.0)
    assert np.isnan(solver_metrics.shifted_geometric_mean([]))
    with pytest.raises(ValueError, match="censored"):
        solver_metrics.shifted_geometric_mean([1.0, np.nan])


@given(st.lists(st.floats(1e-3, 1e4), min_size=1, max_size=12), st.floats(1e-2, 1e2), st.randoms())
def test_means_ignore_order_and_scale_with_time(times, factor, random):
    mean = solver_metrics.shifted_geometric_mean(times, shift=1.0)
    mixed = list(times)
    random.shuffle(mixed)
    assert solver_metrics.shifted_geometric_mean(mixed, shift=1.0) == pytest.approx(mean)
    scaled = solver_metrics.shifted_geometric_mean([factor * t for t in times], shift=factor)
    assert scaled == pytest.approx(factor * mean, rel=1e-9, abs=1e-9 * factor)
    assert min(times) - 1e-9 <= mean <= max(times) + 1e-9


def three_problems():
    """``fast`` solves p and q, is stopped on r; ``slow`` solves all; ``part`` has no licence for q, ``rare`` only p."""
    return table_of(
        run("p", "fast", 1.0),
        run("q", "fast", 3.0),
        run("r", "fast", 60.0, termination="time-limit"),
        run("p", "slow", 3.0),
        run("q", "slow", 7.0),
        run("r", "slow", 15.0),
        run("p", "part", 0.5),
        run("q", "part", None, termination="unavailable", verified=None, value=None),
        run("r", "part", 1.0),
        run("p", "rare", 0.1),
    )


def test_summary_by_hand():
    table = solver_metrics.summary(solver_metrics.one_each(three_problems()), shift=1.0).set_index("solver")
    assert list(table.index) == ["slow", "part", "fast", "rare"]
    assert table.loc["fast", ["problems", "solved", "limit", "wrong"]].tolist() == [3, 2, 1, 0]
    # over p and r, on which all ran that ran on half as many problems as any
    assert table.loc["fast", "mean_penalised_s"] == pytest.approx((2 * 601) ** 0.5 - 1)
    assert table.loc["slow", "mean_penalised_s"] == pytest.approx((4 * 16) ** 0.5 - 1)
    assert table.loc["part", "mean_penalised_s"] == pytest.approx((1.5 * 2) ** 0.5 - 1)
    assert table.loc[["slow", "part", "fast"], "mean_common_s"].tolist() == pytest.approx([3.0, 0.5, 1.0])  # on p
    assert table["compared"].tolist() == [2, 2, 2, 0]
    assert table["common"].tolist() == [1] * 4
    assert (table.loc["part", "problems"], table.loc["rare", "problems"]) == (2, 1)
    assert np.isnan(table.loc["rare", ["mean_penalised_s", "mean_common_s"]].astype(float)).all()


@settings(max_examples=8, deadline=None)
@given(st.permutations(range(10)))
def test_order_of_rows_does_not_matter(order):
    table = three_problems()
    mixed = table.iloc[list(order)].reset_index(drop=True)
    one, other = (solver_metrics.summary(solver_metrics.one_each(rows)) for rows in (mixed, table))
    pd.testing.assert_frame_equal(one, other)
    pd.testing.assert_frame_equal(solver_metrics.performance_profile(mixed), solver_metrics.performance_profile(table))


# profiles -----------------------------------------------------------------------------------------------------------


def test_solvers_are_compared_where_all_ran_that_ran_on_half_of_the_problems():
    result = solver_metrics.performance_profile(three_problems())
    curves = {name: list(zip(group["ratio"], group["share"], strict=True)) for name, group in result.groupby("solver")}
    assert curves == {
        "part": [(1.0, 1.0)],
        "fast": [(1.0, 0.0), (2.0, 0.5)],
        "slow": [(1.0, 0.0), (6.0, 0.5), (15.0, 1.0)],
    }


@settings(max_examples=8, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.01, 50), st.floats(0.01, 50), st.booleans()), min_size=1, max_size=8),
    st.floats(0.1, 10),
)
def test_profiles_rise_to_the_share_solved_and_ignore_units(times, factor):
    def profile(scale):
        rows = []
        for number, (a, b, stopped) in enumerate(times):
            rows.append(run(f"p{number}", "a", scale * a, termination="time-limit" if stopped else "optimal"))
            rows.append(run(f"p{number}", "b", scale * b))
        return solver_metrics.performance_profile(table_of(*rows))

    result, scaled = profile(1.0), profile(factor)
    assert result["share"].tolist() == scaled["share"].tolist()
    assert result["ratio"].tolist() == pytest.approx(scaled["ratio"].tolist())
    for name, group in result.groupby("solver"):
        assert group["ratio"].iloc[0] == 1.0
        assert (group["share"].diff().dropna() > 0).all()
        solved = sum(not stopped for *_, stopped in times) if name == "a" else len(times)
        assert group["share"].iloc[-1] == pytest.approx(solved / len(times))


def test_problems_that_no_solver_solved_stay_in_the_profile():
    table = table_of(run("p"), run("q", termination="time-limit"))
    assert solver_metrics.performance_profile(table)["share"].tolist() == [0.5]


# limits and integrals -----------------------------------------------------------------------------------------------


def test_a_run_stopped_by_its_limit_has_the_gap_to_the_best_known_value():
    best = {"p": BestKnown(10.0, 10.0, "optimal", "min", "m", "b", "h", "easy", 1.0, 20.0, {}, "0")}
    table = table_of(
        run(termination="time-limit", value=12.0, gap=0.5),
        run(solver="b", termination="time-limit", value=None, verified=False),
        run(solver="c"),
        best=best,
    )
    result = table[table["verdict"] == "limit"].set_index("solver")
    assert set(result.index) == {"a", "b"}
    assert result.loc["a", "best_gap"] == pytest.approx(0.2)
    assert result.loc["a", "certified_gap"] == 0.5
    assert np.isnan(result.loc["b", "best_gap"])


def test_primal_integral_by_hand():
    # 1 until 2 s, then |20 - 10| / 20 until 5 s, then 0
    assert solver_metrics.primal_integral([(2.0, 20.0), (5.0, 10.0)], 10.0, 60.0) == pytest.approx(2 + 0.5 * 3)
    assert solver_metrics.primal_integral([], 10.0, 60.0) == 60.0
    assert solver_metrics.primal_integral([(0.0, 10.0)], 10.0, 60.0) == 0.0
    assert solver_metrics.primal_integral([(70.0, 10.0)], 10.0, 60.0) == 60.0
    assert solver_metrics.primal_gap(-1.0, 1.0) == 1.0
    assert solver_metrics.primal_gap(0.0, 0.0) == 0.0


def test_integrals_of_runs():
    solved = verdict(seconds=4.0, incumbents=np.array([[2.0, 20.0]]))
    assert solved["integral"] == pytest.approx(2 + 0.5 * 2)  # the answer itself ends the trail
    stopped = verdict(termination="time-limit", value=20.0, incumbents=[[10.0, 20.0]])
    assert stopped["integral"] == pytest.approx(10 + 0.5 * 50)
    assert np.isnan(verdict(linear=True)["integral"])
    nothing = {"value": None, "verified": False}
    assert verdict(termination="time-limit", **nothing)["integral"] == LIMIT  # the worst there is, and not left out
    assert verdict(termination="memory-limit", seconds=3.0, **nothing)["integral"] == LIMIT
    assert np.isnan(verdict(termination="unavailable", **nothing)["integral"])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"termination": "infeasible", "value": None, "verified": False}, "claims infeasible"),
        ({"termination": "unbounded", "value": None, "verified": False}, "claims unbounded"),
        ({"value": None, "verified": False}, "claims an optimum without values"),
        ({"violation": 1.0, "verified": False}, "violates constraints by 1"),
        ({"value": 13.0}, "worse than the best known value by 3"),
        ({"value": 7.0, "verified": False}, "better than the best bound by 3"),
    ],
)
def test_wrong_answers_have_a_reason(changes, reason):
    table = table_of(run(**changes), run(solver="b"), best={})
    assert solver_metrics.wrong_answers(table)["reason"].tolist() == [reason]
    assert solver_metrics.one_each(table)["reason"].dropna().tolist() == [reason]


# the set ------------------------------------------------------------------------------------------------------------


def test_the_set_is_graded_and_covers_most_formulations():
    from opticoll.formulations import formulations

    problems = benchmark_set.problems()
    assert len(problems) >= 120
    assert len({one.name for one in problems}) == len(problems)
    assert all(one.name.replace("-", "").isalnum() for one in problems)
    assert len({one.formulation for one in problems}) >= 28
    assert {one.threads for one in problems} == {1}
    best = benchmark_set.best_known()
    new = " ".join(sorted({one.name for one in problems} - best.keys()))
    assert not new, f"without a best known value; solve and submit {new}"
    assert set(best) == {one.name for one in problems}
    grades = [one.grade for one in best.values()]
    assert set(grades) == set(benchmark_set.GRADES)
    assert benchmark_set.GRADES[1] == sorted(grades, key=benchmark_set.GRADES.index)[len(grades) // 2]
    integer = [best[one.name] for one in problems if formulations()[one.formulation].problem == "MILP"]
    assert sum(one.grade != "easy" for one in integer) >= 40
    assert sum(one.grade == "hard" for one in integer) >= 10
    assert max(one.size["nonzeros"] for one in best.values()) >= 1e7


def test_best_known_values_are_proven_and_of_these_instances():
    from opticoll.instances import parse

    best = benchmark_set.best_known()
    problems = [one for one in benchmark_set.problems() if one.name in best]
    hashes = {one.instance: parse(one.instance).hash for one in problems}
    for one in problems:
        assert best[one.name].instance_hash == hashes[one.instance]
        if best[one.name].proof == "optimal":
            assert best[one.name].value == pytest.approx(best[one.name].bound, rel=1e-6)
        if best[one.name].value is not None and best[one.name].bound is not None:
            flip = 1.0 if best[one.name].sense == "min" else -1.0
            assert flip * best[one.name].bound <= flip * best[one.name].value, one.name
    assert sum(one.proof == "optimal" for one in best.values()) >= 40


def test_a_damaged_file_of_values_is_refused(tmp_path):
    assert benchmark_set.best_known(tmp_path / "none.json") == {}
    for text in ("no JSON", '{"a": {"value": 1}}', "[1]"):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(BadFile, match="not a file of best known values"):
            benchmark_set.best_known(tmp_path / "bad.json")


# comparisons --------------------------------------------------------------------------------------------------------


def results():
    """Runs of two solvers on two problems of the set."""
    rows = []
    for one in [p for p in benchmark_set.problems() if p.name in {"master-ring-16", "min-congestion-petersen"}]:
        best = benchmark_set.best_known()[one.name]
        for solver, seconds, ending in (("highs", 0.5, "optimal"), ("scip", one.limit_s, "time-limit")):
            rows.append(
                run(
                    one.name,
                    solver,
                    seconds,
                    termination=ending,
                    linear=one.formulation == "alltoall.master",
                    limit_s=one.limit_s,
                    sense=best.sense,
                    value=best.value,
                    bound=best.bound,
                    kkt_primal=1e-9,
                    kkt_dual=0.0,
                    kkt_gap=1e-8,
                    variables=10,
                    constraints=5,
                    nonzeros=20,
                    integers=0,
                )
            )
    return pd.DataFrame(rows)


def compare(rows):
    return comparison.Comparison.of(rows)


@pytest.fixture(scope="module")
def made():
    """A comparison and its figures; read only."""
    result = compare(results())
    return result, comparison.figures(result)


def test_figures_show_what_was_measured_and_every_curve_is_exported(made):
    result, drawn = made
    assert {one.name for one in drawn} == {"solvers-profile-linear", "solvers-profile-integer"}
    assert all(axes.get_xlabel() for one in drawn for axes in one.figure.axes)
    assert all(one.figure.axes[0].get_ylabel() for one in drawn)
    tables = result.tables
    assert {f"solvers-profile-{name}" for name in ("linear", "integer")} <= set(tables)
    assert tables["solvers-summary-integer"].set_index("solver")["solved"].to_dict() == {"highs": 1, "scip": 0}


def test_an_incomplete_study_compares_solvers_only_on_problems_that_all_have_run():
    rows = results()
    rows = rows[(rows["solver"] == "highs") & (rows["problem"] == "master-ring-16")]
    two = "master-genkautz-n-32-d-4"
    other = {**rows.iloc[0].to_dict(), "problem": two, "solver": "scip", "value": 4 / 85, "bound": 4 / 85}
    table = compare(pd.concat([rows, pd.DataFrame([other])], ignore_index=True))
    assert "linear" not in table.profiles  # highs saw one problem, scip the other
    assert table.summaries["linear"]["mean_penalised_s"].isna().all()
    assert "solvers-profile-linear" not in {one.name for one in comparison.figures(table)}


def test_ranks_of_other_seeds_and_orders():
    runs = [run(p, s, t) for p in ("p", "q") for s, t in (("a", 1.0), ("b", 2.0))]
    runs += [run(p, s, t) for p in ("p", "q") for s, t in (("a", 4.0), ("b", 3.0))]
    runs += [run("r", "a", 1.0), run("p", "c", 1.0)]  # r has one variant, and so has c
    variants = pd.Series(["0/0"] * 4 + ["0/1"] * 4 + ["0/0"] * 2)
    made = solver_metrics.sensitivity(table_of(*runs), variants).set_index("solver")
    assert set(made.index) == {"a", "b"}
    assert made.loc["a", ["variants", "problems", "rank_min", "rank_max"]].tolist() == [2, 2, 1, 2]
    assert made.loc["a", ["mean_min_s", "mean_max_s"]].tolist() == pytest.approx([1.0, 4.0])
    assert solver_metrics.sensitivity(table_of(run()), pd.Series(["0/0"])).empty


def test_an_unknown_problem_is_refused_with_the_nearest_name(tmp_path):
    with pytest.raises(BadInput, match="master-ring-16"):
        benchmark_set.problems_named(["master-ring-61"])


def test_no_problem_of_a_grade_is_an_error():
    best = benchmark_set.best_known()
    easy, hard = (next(name for name, one in best.items() if one.grade == grade) for grade in ("easy", "hard"))
    assert [one.name for one in benchmark_set.problems_named([easy, hard], ["hard"])] == [hard]
    with pytest.raises(BadInput, match="none of the problems is graded hard"):
        benchmark_set.problems_named([easy], ["hard"])
