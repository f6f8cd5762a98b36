"""Method ``step-orbits``: the value of the whole LP by source, flows that its checker accepts, and a bound to match."""

from __future__ import annotations

import numpy as np
import pytest
from contexts import context_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import optimum

from opticoll.errors import MethodMismatch
from opticoll.formulations.alltoall.timestep_mcf import StepFlow
from opticoll.instances import parse
from opticoll.solvers import solve
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.methods.alltoall.step_orbits import METHOD, run_step_orbits
from opticoll.solvers.plan import make_plan
from opticoll.solvers.task import Proof, Task


def task(instance, **parameters):
    return Task(StepFlow.name, instance, METHOD.name, settings={"aggregate": "source", **parameters})


def check(topology, **parameters):
    """Compare the method with the whole LP, and return its answer."""
    answer = run_step_orbits(context_of(task(topology, **parameters)))
    data = StepFlow.prepare(topology, {"aggregate": "source", **parameters})
    value, _ = optimum(compile_model(data.pyomo()))
    assert data.objective(answer.values) == pytest.approx(value, rel=1e-7)
    assert max(data.residuals(answer.values).values()) < 1e-9
    assert data.certify(answer.duals).value == pytest.approx(value, rel=1e-7)
    return answer


@pytest.mark.parametrize(
    ("spec", "parameters"),
    [
        ("ring:6", {}),
        ("torus:3x3", {}),
        ("hypercube:3", {"steps": 4}),
        ("genkautz:n=9,d=2", {}),
        ("star:5", {}),
        ("torus:3x3+fail=1", {"steps": 5}),
        ("hypercube:2+host=1.5", {}),
        ("hypercube:2+host=1.5", {"relays": "step"}),
        ("ring:6", {"demand": "permutation:3", "steps": 5}),
        ("path:4", {}),
    ],
)
def test_the_value_is_that_of_the_whole_lp(spec, parameters):
    check(parse(spec), **parameters)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(4, 8), st.booleans(), st.integers(2, 7), st.integers(0, 1))
def test_circulants_have_the_value_of_the_whole_lp(n, directed, jump, extra):
    further = f"x{2 + jump % (n // 2 - 1)}" if n > 5 else ""
    topology = parse(f"circulant:n={n},offsets=1{further},directed={directed}")
    answer = check(topology, steps=int(topology.diameter) + extra)
    assert answer.metrics["source_orbits"] == 1


def test_a_vertex_transitive_network_has_one_source():
    run = solve.solve(task("torus:4x4"))
    assert (run.proof, run.record.bound_source) == (Proof.OPTIMAL, "step-prices")
    assert (run.record.metrics["source_orbits"], run.record.metrics["arc_orbits"]) == (1, 1)
    assert np.ptp(run.values["f"].sum(axis=1), axis=0).max() < 1e-9, "all arcs are loaded alike in every step"
    assert run.objective == pytest.approx(8.0)


def test_auto_takes_it_where_the_lp_is_large_and_symmetric():
    def method(spec, **parameters):
        return make_plan(Task(StepFlow.name, spec, settings=parameters)).method_name

    assert method("torus:8x8", aggregate="source") == "step-orbits"
    assert method("torus:4x4", aggregate="source") != "step-orbits"
    assert method("random-regular:n=60,d=4,seed=1", aggregate="source") != "step-orbits"
    assert method("torus:8x8") == "timestep-children"


def test_one_flow_per_pair_is_refused():
    with pytest.raises(MethodMismatch, match="aggregate=source"):
        run_step_orbits(context_of(Task(StepFlow.name, "ring:4", "step-orbits")))
