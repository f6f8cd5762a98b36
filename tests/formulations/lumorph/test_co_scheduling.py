"""Co-scheduling of all-reduces: exhaustive search, the logs' gain of 0 with its proof, wrong solutions, bad input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from case_families import each
from reference import partitions, refused

from opticoll.errors import NotApplicable
from opticoll.formulations.lumorph import co_scheduling as model
from opticoll.formulations.lumorph import co_scheduling_solution
from opticoll.instances import parse
from opticoll.instances.published.lumorph_numbers import GPUS, MODELS
from opticoll.instances.training.training_iteration import AllReduceCall, TrainingIteration
from opticoll.solvers.solve import solve
from opticoll.solvers.task import Task

NAME = "lumorph.co-scheduling"
GIVEN = {"algorithm": "lumorph-4", "variant": "plotted"}


def prepared(spec):
    return model.CallBatches.prepare(parse(spec), GIVEN)


def exhausted(spec):
    """The least time over all partitions of the calls into sets of pairwise disjoint groups."""
    data, calls = prepared(spec), parse(spec).calls
    time = dict(zip(data.call.tolist(), data.time.tolist(), strict=True))
    return min(
        sum(max(time[k] for k in block) for block in blocks)
        for blocks in partitions(list(time))
        if all(
            not set(calls[a].ranks) & set(calls[b].ranks)
            for block in blocks
            for a, b in itertools.combinations(block, 2)
        )
    )


@pytest.mark.parametrize("seed", [2, 5])
def test_the_optimum_is_that_of_exhaustive_search(seed):
    spec = f"training:random,gpus=8,calls=7,seed={seed}"
    run = solve(Task(NAME, spec, method="highs", form="cvxpy"))
    assert run.proof == "optimal"
    assert run.objective == pytest.approx(exhausted(spec), abs=1e-6)
    greedy = solve(Task(NAME, spec, method="independent-sets"))
    assert greedy.verified
    assert greedy.objective >= run.objective - 1e-9
    assert prepared(spec).bounds()[0].value <= run.objective + 1e-9


@each("name", MODELS)
@each("gpus", GPUS)
def test_the_logs_gain_nothing(name, gpus):
    """All calls of more than one GPU use all GPUs: the bound is the time of one after the other."""
    data = prepared(f"training:{name},gpus={gpus}")
    assert data.conflicts.all()
    (bound,) = data.bounds()
    assert bound.value == pytest.approx(data.time.sum(), rel=1e-12)
    assert data.metrics(float(data.time.sum()))["saved"] == 0


def test_a_proof_for_one_log():
    run = solve(Task(NAME, "training:inception,gpus=256", method="independent-sets"))
    assert (run.proof, run.record["metrics"]["saved"], run.record["metrics"]["batches"]) == ("optimal", 0.0, 190)
    assert run.objective == pytest.approx(7407, abs=1), "as in the README of the data"


def test_disjoint_calls_run_together():
    calls = [((0, 1), 2**20), ((2, 3), 2**22), ((1, 2), 2**20), ((3,), 2**30)]
    job = TrainingIteration(4, [AllReduceCall(ranks, size) for ranks, size in calls])
    data = model.CallBatches.prepare(job, GIVEN)
    values = co_scheduling_solution.values_of(data, [[0, 1], [2]])
    assert max(data.residuals(values).values()) == 0
    (j, k), taken = data.pairs, values["x"] > 0.5
    batches = [sorted(data.call[k[taken & (j == first)]].tolist()) for first in np.unique(j[taken])]
    assert sorted(batches) in ([[0, 1], [2]], [[0], [1, 2]])
    assert data.objective(values) == pytest.approx(data.time[0] + data.time[2])
    assert data.call.tolist() == [1, 0, 2], "longest first, the call of one GPU left out"


def test_every_wrong_solution_is_noticed():
    data = prepared("training:random,gpus=8,calls=6,seed=3")
    right = co_scheduling_solution.values_of(data, [[k] for k in range(6)])
    assert max(data.residuals(right).values()) == 0
    for position in range(right["x"].size):
        wrong = {"x": right["x"].copy()}
        wrong["x"][position] = 1 - wrong["x"][position]
        assert max(data.residuals(wrong).values()) >= 1
    assert data.residuals({"x": 0.5 * right["x"]})["binary"] == 0.5
    assert refused(data, {"x": np.zeros(3)})


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("ring:4", "needs an iteration"),
        ("training:random,gpus=16,calls=2001", "use 1 to 2000"),
    ],
)
def test_other_instances_are_refused(spec, words):
    with pytest.raises(NotApplicable, match=words):
        prepared(spec)
