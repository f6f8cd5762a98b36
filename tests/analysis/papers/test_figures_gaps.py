"""Gaps of the papers' heuristics: over the optimum or a bound, with nothing dropped."""

import pandas as pd
import pytest

from opticoll.analysis.papers import gap_figures as gaps
from opticoll.analysis.study import study_file
from opticoll.formulations import formulation
from opticoll.solvers.adapters import adapters
from opticoll.solvers.methods import methods_for


def heuristic_run(problem, method, objective, bound, proof="feasible"):
    return {
        "formulation": "f",
        "instance": problem,
        "problem": problem,
        "method": method,
        "objective": objective,
        "bound": bound,
        "proof": proof,
        "ok": True,
        "sense": "min",
        "requested_settings": "{}",
        "metrics": "{}",
        "termination": "optimal",
        "id": f"{problem}-{method}",
    }


def test_gaps_are_over_the_optimum_where_it_is_proven_and_over_the_best_bound_elsewhere():
    rows = pd.DataFrame(
        [
            heuristic_run("p", "greedy", 12.0, 4.0),
            heuristic_run("p", "exact", 10.0, 10.0, "optimal"),
            heuristic_run("q", "greedy", 12.0, 4.0),
            heuristic_run("q", "exact", 9.0, 8.0, "certified-gap"),
            {**heuristic_run("r", "greedy", 7.0, None), "ok": False},
        ]
    )
    table = gaps.gap_rows(rows, (gaps.Heuristics("f", ("greedy",)),)).set_index("problem")
    assert table["ratio"].dropna().to_dict() == pytest.approx({"p": 1.2, "q": 1.5})
    assert table["proven"].to_dict() == {"p": True, "q": False, "r": False}
    shown = "optimal on 0 of 2, 1 over a bound, 1 without a value or a bound, median 1.35, worst 1.5"
    assert shown in gaps.finding(table.reset_index())
    figure = gaps.draw(table.reset_index())
    axes = figure.axes[0]
    assert "n = 3" in axes.get_yticklabels()[0].get_text()
    assert "runs without a value" in [text.get_text() for text in figure.legends[0].get_texts()]
    assert "1" in [text.get_text() for text in axes.texts], "the failed run is counted at the edge"
    assert axes.get_xlabel()


def test_gaps_over_another_formulation_and_of_a_metric():
    rows = pd.DataFrame(
        [
            {
                **heuristic_run("p", "extract", 0.4, 1.0),
                "formulation": "paths",
                "sense": "max",
                "problem": "p [paths=all]",
            },
            {**heuristic_run("p", "exact", 0.5, 0.5, "optimal"), "formulation": "flow", "sense": "max"},
            {**heuristic_run("p", "chain", 2.0, None), "formulation": "plan", "metrics": '{"time": 6.0}'},
            {**heuristic_run("p", "front", 2.0, 2.0, "optimal"), "formulation": "plan"},
        ]
    )
    wanted = (gaps.Heuristics("paths", ("extract",), over="flow"), gaps.Heuristics("plan", ("chain",), metric="time"))
    table = gaps.gap_rows(rows, wanted).set_index("heuristic")
    assert table["ratio"].to_dict() == pytest.approx({"extract": 1.25, "chain": 3.0})
    assert table["proven"].to_dict() == {"extract": True, "chain": False}, "the optimum only bounds the metric"


@pytest.mark.parametrize("paper", sorted(gaps.HEURISTICS))
def test_gap_studies_ask_for_every_heuristic_that_is_drawn(paper):
    (study,) = {one.study for one in gaps.FIGURES if one.paper == paper}
    asked = {(task.formulation, task.method) for task in study_file.tasks(study_file.find(study))}
    for one in gaps.HEURISTICS[paper]:
        assert {(one.formulation, method) for method in one.methods} <= asked
        if one.over:
            assert one.over in {formulation for formulation, _ in asked}


def test_every_heuristic_drawn_is_a_method_of_its_formulation():
    for one in (one for wanted in gaps.HEURISTICS.values() for one in wanted):
        assert set(one.methods) <= {*methods_for(formulation(one.formulation)), *adapters()}
