"""Algorithm 1's program with bounds, routes and starts: constructed schedules are feasible as they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from slow_cases import marked

from opticoll.errors import BadInput
from opticoll.formulations.lumorph import rounds, rounds_solution
from opticoll.instances import parse
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.methods.lumorph.round_program import _constructed, _program, column_vector
from opticoll.solvers.methods.method import Context
from opticoll.solvers.solve import solve
from opticoll.solvers.task import Task
from opticoll.solvers.verify import pack


def context(spec, **given):
    data = rounds.RoundModel.prepare(parse(spec), given)
    return Context(
        task=Task(rounds.NAME, spec, settings=given),
        data=data,
        instance=data.topology,
        parameters={"candidates": "routes", "search_s": 0.1, "solver": "highs"},
        deadline=None,
        solve=solve,
        save=lambda *_: None,
    )


MESHES = ("lightpath:2x2,lasers=2", "lightpath:2x3,lasers=1,waveguides=2", "lightpath:2x3,lasers=3+fail=1")
#: The collectives, each with the mesh on which it is quick.
QUICK = {
    "broadcast": MESHES[1],
    "all-gather": MESHES[2],
    "all-to-all": MESHES[0],
    "reduce-scatter": MESHES[2],
    "all-reduce": MESHES[0],
}


@pytest.mark.parametrize(
    ("spec", "collective"),
    [marked(spec, collective, slow=spec != QUICK[collective]) for collective in QUICK for spec in MESHES],
)
def test_a_constructed_schedule_is_a_feasible_start(spec, collective):
    current = context(spec, collective=collective)
    starts = _constructed(current)
    programs = tuple(_program(current, k, each) for k, each in enumerate(starts))
    stated = replace(current.data, symmetry=False, given=programs)
    C = np.concatenate([column_vector(program, each) for program, each in zip(programs, starts, strict=True)])
    form = compile_model(stated.cvxpy())
    x = pack(form, {"C": C, "H": rounds_solution.made_by(stated, C), "R": np.ones(sum(each.rounds for each in starts))})
    assert (form.A @ x <= form.row_upper + 1e-9).all()
    assert (form.A @ x >= form.row_lower - 1e-9).all()
    assert form.cost @ x == sum(each.rounds for each in starts)
    back = rounds_solution.schedule_of(stated, form.values(x))
    assert max(current.data.residuals(back.values()).values()) == 0


@pytest.mark.parametrize("given", [{}, {"candidates": "min-overlap"}, {"wavelengths": "fixed"}])
def test_it_proves_what_the_program_alone_proves(given):
    result = {"collective": "all-to-all", **given}
    run = solve(Task(rounds.NAME, "lightpath:2x2,lasers=1", method="round-program", settings=result, time_limit_s=600))
    assert run.verified
    assert run.objective == 3 or "wavelengths" in given
    assert run.record["metrics"]["start_rounds"][0] >= run.objective


def test_fixed_wavelengths_have_their_own_routes():
    run = Task(
        rounds.NAME,
        "lightpath:2x2,lasers=2",
        method="round-program",
        settings={"wavelengths": "fixed", "candidates": "min-overlap"},
    )
    with pytest.raises(BadInput, match="fixed"):
        solve(run)
