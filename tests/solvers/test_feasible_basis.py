"""Bases from which ``auto`` starts the simplex method: feasible by numpy alone, and left out where they do not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyomo.environ as pyo
import pytest
from random_instances import digraph, pool

import opticoll as oc
from opticoll.formulations.alltoall.master import Master
from opticoll.formulations.model import build_model, forms_of
from opticoll.formulations.registry import formulation
from opticoll.instances import Instance, parse
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.methods.topoopt.topology_finder import topology_finder
from opticoll.solvers.model_solve import basis_of
from opticoll.solvers.task import BASIC, UPPER, SimplexBasis

if TYPE_CHECKING:
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64

SPECS = ["ring:5", "path:4", "mesh:2x3", "petersen", "genkautz:n=9,d=2", "torus:3x3+host=2", "fat-tree:k=4", "dgx1"]


def basic_solution(form: StandardForm, basis: SimplexBasis) -> F64:
    """The columns x where all that is not basic is at its bound."""
    A = form.A.toarray()
    x = np.where(basis.columns == UPPER, form.col_upper, form.col_lower)
    basic, fixed = np.flatnonzero(basis.columns == BASIC), np.flatnonzero(basis.rows != BASIC)
    side = np.where(basis.rows == UPPER, form.row_upper, form.row_lower)[fixed]
    x[basic] = 0.0
    x[basic] = np.linalg.solve(A[np.ix_(fixed, basic)], side - A[fixed] @ x)
    return x


def check_feasible(name: str, instance: Instance, settings: dict[str, Any]) -> None:
    model = formulation(name)
    problem = model.prepare(instance, settings)
    for form_name in forms_of(problem):
        form = compile_model(build_model(problem, form_name))
        basis = basis_of(form, problem._feasible_basis())
        assert basis is not None
        x = basic_solution(form, basis)
        values = form.values(x)
        assert values["F"] > 0
        assert max(problem.residuals(values).values()) <= 1e-9
        assert (x >= form.col_lower - 1e-9).all()


@pytest.mark.parametrize("spec", SPECS)
def test_trees_of_shares_are_a_feasible_basis(spec: str) -> None:
    check_feasible("alltoall.master", parse(spec), {})
    check_feasible("alltoall.master", parse(spec), {"demand": "random:3"})


@pytest.mark.parametrize("paths", ["disjoint", "shortest", "k", "all"])
@pytest.mark.parametrize("spec", ["ring:5", "petersen", "mesh:2x3", "dgx1"])
def test_a_path_of_every_pair_is_a_feasible_basis(spec: str, paths: str) -> None:
    check_feasible("alltoall.path-mcf", parse(spec), {"paths": paths, **({"lmax": 3} if paths == "all" else {})})


@pytest.mark.parametrize("seed", range(12))
def test_bases_are_feasible_for_any_capacity_and_demand(seed: int) -> None:
    random = np.random.default_rng(seed)
    network = digraph(random)
    demand = random.uniform(0, 1, (network.n, network.n)) * (random.random((network.n, network.n)) < 0.5)
    np.fill_diagonal(demand, 0.0)
    demand[0, 1] = 2.0
    check_feasible("alltoall.master", network, {"demand": demand})
    check_feasible("alltoall.path-mcf", network, {"demand": demand, "paths": "k", "k": 3})
    servers = pool(random, 3, 6, (2, 3))
    check_feasible("topoopt.routing", servers, {"circuits": lambda pool: topology_finder(pool)})


def test_a_basis_that_does_not_fit_is_left_out() -> None:
    class Capped(Master):
        name = "capped"
        constraints: ClassVar = {**Master.constraints, "cap": ()}

        def pyomo(self) -> Any:
            built = super().pyomo()
            built.model.cap = pyo.Constraint(expr=built.model.F <= 0.1)
            return built

    result = oc.solve(Capped, "ring:4")
    assert result.value == pytest.approx(0.1)
    assert "simplex_strategy" not in result.record.solver.options


def test_auto_starts_from_a_basis_and_a_named_solver_does_not() -> None:
    result = oc.solve("alltoall.master", "path:9")
    assert result.record.solver.options["simplex_strategy"] == 4
    assert result.value == pytest.approx(1 / 20)
    named = oc.solve("alltoall.master", "path:9", method="highs-simplex")
    assert "simplex_strategy" not in named.record.solver.options
