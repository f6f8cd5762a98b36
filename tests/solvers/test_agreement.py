"""Every LP adapter, on both builds of the models, gives one optimum, feasible on the matrix and certified."""

from __future__ import annotations

from functools import cache

import pytest
from reference import MEDIUM, SMALL, optimum
from slow_cases import marked

from opticoll.errors import SolverUnavailable
from opticoll.formulations import formulation
from opticoll.formulations.model import build_model, forms_of
from opticoll.instances import parse
from opticoll.solvers import verify
from opticoll.solvers.adapters import adapters
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.process.isolation import call_isolated, probe
from opticoll.solvers.solve import solve
from opticoll.solvers.task import Proof, Task

#: Agreement on F, relative, whatever the algorithm.
AGREE = 1e-6
LP_ADAPTERS = [name for name, result in adapters().items() if result.capabilities.lp]


@cache
def stated_in_forms(name, specs):
    """Each layer's matrix of a formulation on each spec, and its optimum by SciPy."""
    results = []
    for spec in specs:
        data = formulation(name).prepare(parse(spec), {})
        for layer in forms_of(data):
            form = compile_model(build_model(data, layer))
            results.append((spec, layer, data, form, optimum(form)[0]))
    return tuple(results)


@pytest.mark.parametrize(
    ("name", "adapter"),
    [
        # What adapters may do differently shows on one formulation.
        marked(name, adapter, slow=name != "alltoall.master" and adapter != "highs-simplex")
        for name in ("alltoall.master", "alltoall.link-mcf")
        for adapter in LP_ADAPTERS
    ],
)
def test_every_lp_adapter_gives_the_same_verified_optimum(adapter, name):
    state = probe(adapter)
    if not state.usable:
        pytest.skip(f"{adapter}: {state.state}")
    master, exact = name.endswith("master"), adapters()[adapter].capabilities.exact
    jobs = stated_in_forms(name, tuple(s for s in SMALL if master or parse(s).n <= 8)[:: 4 if master else 8])
    if not exact:  # many steps each; that all layers give one matrix is tested with the formulation
        jobs = [job for job in jobs if job[1] == forms_of(job[2])[0]][::2]
    if "size" in state.state:  # a size-limited licence: what fits it
        jobs = [job for job in jobs if max(job[3].A.shape) <= 1000 and job[3].A.nnz <= 4000]
    forms = [job[3].without_blocks() for job in jobs]
    try:
        answer = call_isolated(
            "worker_jobs:solve_many",
            {"adapter": adapter, "forms": forms, "rel_tol": 1e-7 if exact else 1e-8},
            wall_limit_s=900,
        )
    except SolverUnavailable as reason:
        pytest.skip(str(reason))
    assert answer.finished, answer.message
    for (spec, layer, data, form, F), outcome in zip(jobs, answer.values, strict=True):
        where = (adapter, name, spec, layer)
        end = outcome.termination
        # IPX may doubt itself ("Unknown") at an answer that is right to 1e-9: what counts is what we verify.
        assert end == "optimal" or (end == "tolerance-not-reached" and not exact), (*where, outcome.message)
        if exact:  # a first-order solver's own word is only approximate
            assert outcome.objective == pytest.approx(F, rel=AGREE), where
        values = form.values(outcome.x)
        if max(data.residuals(values).values()) > 1e-9:
            values = data.repair(values)
        assert max(data.residuals(values).values()) < 1e-9, where
        assert data.objective(values) == pytest.approx(F, rel=AGREE), where
        assert max(verify.matrix_violations(form, verify.pack(form, values)).values()) < 1e-9, where
        bound = data.certify(form.duals(outcome.row_duals))
        assert bound.value >= F * (1 - 1e-9), where
        assert bound.value == pytest.approx(F, rel=AGREE), where


@pytest.mark.slow
@pytest.mark.parametrize("adapter", LP_ADAPTERS)
@pytest.mark.parametrize(("name", "specs"), [("alltoall.master", MEDIUM), ("alltoall.link-mcf", SMALL)])
def test_every_lp_adapter_on_medium_topologies(adapter, name, specs):
    state = probe(adapter)
    if not state.usable:
        pytest.skip(f"{adapter}: {state.state}")
    if "size" in state.state:
        pytest.skip(f"{adapter}: {state.state}")
    jobs = [job for job in stated_in_forms(name, tuple(specs)) if job[1] == "cvxpy"]
    arguments = {"adapter": adapter, "forms": [job[3].without_blocks() for job in jobs]}
    answer = call_isolated("worker_jobs:solve_many", arguments, wall_limit_s=900)
    assert answer.finished, answer.message
    for job, outcome in zip(jobs, answer.values, strict=True):
        gap = AGREE if "pdlp" in adapter else 0.0  # a first-order method ends at a gap relative to 1 + |objective|
        assert outcome.objective == pytest.approx(job[4], rel=AGREE, abs=gap), (adapter, job[0])


@pytest.mark.slow
@pytest.mark.parametrize("spec", SMALL)
def test_both_decompositions_on_every_small_family(spec):
    best = {}
    for method in ("highs-simplex", "master-child", "flow-decomposition"):
        run = solve(Task("alltoall.link-mcf", spec, method=method))
        assert run.proof is Proof.OPTIMAL, (spec, method, run.record)
        best[method] = run.objective
    assert max(best.values()) == pytest.approx(min(best.values()), rel=AGREE)
