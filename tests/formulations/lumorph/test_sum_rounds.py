"""Sums in rounds: exhaustive search, a schedule shorter than two phases, wrong solutions, divide and conquer."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from reference import refused

from opticoll.errors import MethodMismatch, NotApplicable
from opticoll.formulations.lumorph import sum_rounds as model
from opticoll.formulations.rounds.round_schedule import violations
from opticoll.instances import parse
from opticoll.solvers.solve import solve
from opticoll.solvers.task import Task

NAME = "lumorph.sum-rounds"


def searched(n, lasers, pre, post):
    """The fewest rounds of one chunk on n vertices, by breadth-first search over all sets of transfers."""
    moves = list(itertools.permutations(range(n), 2))
    rounds = [
        chosen
        for size in range(1, n * lasers + 1)
        for chosen in itertools.combinations(moves, size)
        if max(sum(s == v for s, _ in chosen) for v in range(n)) <= lasers
        and max(sum(d == v for _, d in chosen) for v in range(n)) <= lasers
    ]
    start, goal = tuple(frozenset({v} & set(pre)) for v in range(n)), frozenset(pre)
    seen, front, count = {start}, [start], 0
    while not any(all(state[v] == goal for v in post) for state in front):
        count += 1
        front = list({after for state in front for chosen in rounds for after in played(state, chosen, n)} - seen)
        seen |= set(front)
    return count


def played(state, chosen, n):
    """The states after a round of transfers: every receiver either adds to its sum or replaces it."""
    if not all(state[s] for s, _ in chosen):
        return
    options = []
    for v in range(n):
        got = [state[s] for s, d in chosen if d == v]
        keep = []
        for kept in [state[v], frozenset()] if got else [state[v]]:
            parts = [kept, *got]
            if sum(map(len, parts)) == len(frozenset().union(*parts)):
                keep.append(frozenset().union(*parts))
        options.append(keep)
    yield from itertools.product(*options)


@pytest.mark.parametrize(("lasers", "pre", "post"), [(1, [0, 1, 2], [0, 1, 2]), (1, [0, 2], [1, 2])])
def test_the_optimum_is_that_of_exhaustive_search(tmp_path, lasers, pre, post):
    path = tmp_path / "sum.json"
    path.write_text(json.dumps({"sum": True, "chunks": [{"pre": pre, "post": post}]}))
    least = searched(3, lasers, pre, post)
    settings = {"collective": f"file:{path}", "rmax": least + 1, "bounds": False}
    run = solve(Task(NAME, f"lightpath:1x3,lasers={lasers},waveguides=4", "highs", form="cvxpy", settings=settings))
    assert (run.termination, run.verified) == ("optimal", True)
    assert run.objective == least


def test_four_tiles_need_three_rounds_where_two_phases_need_four():
    """Three by the program; the bound says so for any routes and any composition."""
    task = Task(NAME, "lightpath:2x2,lasers=2", "highs", form="cvxpy", settings={"rmax": 3})
    run = solve(task)
    assert (run.proof, run.objective) == ("optimal", 3)
    assert run.record["metrics"]["composition_bound"] == 4
    assert run.record["metrics"]["unrestricted_proven"]


def hand_made():
    """One chunk on 1x3 tiles: 0 and 2 add to 1 in turn, which then replaces their sums by the total."""
    data = model.SumModel.prepare(parse("lightpath:1x3,lasers=1"), {"collective": "all-reduce", "rmax": 4, "pieces": 1})
    sends = [(0, 0, 1), (1, 2, 1), (2, 1, 0), (3, 1, 2)]
    transfers, drops = data.index_sets["transfer"], data.index_sets["replacement"].labels
    C, F, columns = np.zeros(len(transfers)), np.zeros(len(drops)), [(r, s, d, c) for r, s, d, c, _, _ in transfers]
    for r, s, d in sends:
        C[columns.index((r, s, d, 0))] = 1
    for r, d in ((2, 0), (3, 2)):
        F[drops.index((r, d, 0))] = 1
    return data, C, F


def test_a_hand_made_sum_is_decoded_and_replayed():
    data, C, F = hand_made()
    schedule = data.rounds({"C": C, "F": F})
    assert schedule.transfer_adds.tolist() == [True, True, False, False]
    result = violations(data.topology, data.collective, data.limits, schedule)
    assert result.pop("post") == 6, "chunks 1 and 2 are not summed"
    assert max(result.values()) == 0
    assert schedule.rounds == 4


def test_every_wrong_solution_is_noticed():
    data, C, F = hand_made()
    right = data.residuals({"C": C, "F": F})
    for values, position in [(C, k) for k in np.flatnonzero(C)] + [(F, k) for k in np.flatnonzero(F)]:
        values[position] = 0
        worse = data.residuals({"C": C, "F": F})
        assert sum(worse.values()) > sum(right.values())
        values[position] = 1
    F[0] = 1
    assert data.residuals({"C": C, "F": F})["columns"] == np.inf, "a sum that nothing replaces"
    assert refused(data, {"C": C[:-1], "F": F})
    assert data.residuals({"C": 0.5 * C, "F": 0 * F})["binary"] == 0.5


@pytest.mark.parametrize(
    ("spec", "settings", "words"),
    [
        ("lightpath:2x2", {"collective": "all-gather"}, "copies and does not sum"),
        ("ring:4", {}, "no lasers"),
    ],
)
def test_other_tasks_are_refused(spec, settings, words):
    with pytest.raises(NotApplicable, match=words):
        model.SumModel.prepare(parse(spec), settings)


def test_too_few_rounds_are_refuted():
    data = model.SumModel.prepare(parse("lightpath:2x2,lasers=2"), {"rmax": 2})
    assert data._refute().value == 3
    assert model.SumModel.prepare(parse("lightpath:2x2,lasers=2"), {"rmax": 3})._refute() is None


def test_squares_by_the_program_and_by_the_fixed_exchange():
    """4x4 tiles, 16 lasers: 2 rounds a square instead of 4, then 2 for both exchanges; two phases take 2 in all."""
    spec = "lightpath:4x4,waveguides=20"
    result = {}
    for square in ("program", "exchange"):
        run = solve(Task(NAME, spec, "squares", settings={"square": square, "program_s": 0.0}))
        assert run.verified
        result[square] = (run.objective, run.record["metrics"]["square_rounds"])
    assert result == {"program": (4, 2), "exchange": (6, 4)}
    with pytest.raises(MethodMismatch, match="even sides"):
        solve(Task(NAME, "lightpath:3x4", "squares"))
