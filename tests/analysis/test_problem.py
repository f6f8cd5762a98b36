"""A formulation on an instance, asked for bounds, checker and models, and solved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import opticoll as oc

RING = "ring:4"  # T = 2 for uniform demand: half of the 8 shards of two hops pass each way


@pytest.mark.parametrize("version", ["counts", "switches"])
def test_sizes_are_those_of_the_version_of_the_model(version: str) -> None:
    spec = "servers:n=6,degree=8,traffic=random,seed=1"
    size = oc.problem("sipml.ocs-circuits", spec, model=version).size()
    assert size is not None
    assert size["variables"] == oc.model("sipml.ocs-circuits", spec, model=version).matrix.A.shape[1]


def test_bounds_and_size_without_a_solve() -> None:
    problem = oc.problem("alltoall.link-mcf", RING)
    assert {bound.name: bound.value for bound in problem.bounds()}["closed-form"] == pytest.approx(0.5)
    form = oc.model("alltoall.link-mcf", RING).matrix
    size = problem.size()
    assert size is not None
    assert size["variables"] == form.A.shape[1]
    assert form.A.shape[0] <= size["constraints"] < 1.5 * form.A.shape[0], "about: rows that are left out may count"


def test_a_solution_is_checked_by_the_formulations_own_checker() -> None:
    problem = oc.problem("alltoall.master", RING)
    found = problem.solve()
    assert max(problem.residuals(found).values()) <= 1e-9
    assert problem.objective(found) == pytest.approx(0.5)
    assert found.values is not None
    doubled = {**found.values, "F": 2 * np.asarray(found.values["F"])}
    assert problem.objective(doubled) == pytest.approx(1.0)
    assert max(problem.residuals(doubled).values()) == pytest.approx(1.0, rel=0.5)


def test_duals_of_ones_prove_the_bound_of_hop_distances() -> None:
    problem = oc.problem("alltoall.master", RING)
    bound = problem.certify({"capacity": np.ones(8)})
    assert bound is not None
    assert bound.value == pytest.approx(8 / 16)  # 8 links for 16 hops of 12 pairs


def test_demand_and_parameters_reach_models_and_solve() -> None:
    demand = np.zeros((4, 4))
    demand[0, 1] = 3.0
    problem = oc.problem("alltoall.link-mcf", RING, demand=demand)
    assert problem.solve().value == pytest.approx(2 / 3)  # both ways around
    assert problem.model("cvxpy").solve().value == pytest.approx(2 / 3)
    assert problem.cvxpy().is_dcp()
    assert problem.pyomo().name
    assert "demand" in problem.lines()["parameters"]


def test_a_record_is_that_of_solve() -> None:
    assert oc.problem("alltoall.master", RING).solve().record.key == oc.solve("alltoall.master", RING).record.key


def test_it_prints_what_it_is() -> None:
    text = repr(oc.problem("alltoall.path-mcf", RING, paths="shortest"))
    assert text.splitlines()[0].startswith("alltoall.path-mcf: ")
    assert "paths=shortest" in text
    assert "0.5   (moore)" in text


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "required array 'g' is missing"),
        ({"g": np.zeros((8, 3)), "F": 0.0}, r"its shape is \(8, 3\), expected \(8, 4\)"),
        ({"g": np.full((8, 4), np.nan), "F": 0.0}, "not finite"),
        ({"g": np.zeros((8, 4)), "F": 0.0, "h": 1.0}, "no array 'h'"),
    ],
)
def test_other_arrays_are_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(oc.BadInput, match=message):
        oc.problem("alltoall.master", RING).residuals(values)  # type: ignore[arg-type]


def test_a_bound_of_a_plug_in_is_listed_and_proves_nothing(tmp_path: Path) -> None:
    plugin = tmp_path / "my_bounds.py"
    plugin.write_text("def tiny(instance):\n    return 0.25\n\n\nBOUNDS = {'alltoall.master': [tiny]}\n")
    oc.load_plugin(plugin)
    problem = oc.problem("alltoall.master", RING)
    assert problem.bounds()[-1].value == 0.25
    assert problem.lines()["bound"].startswith("0.5 ")


MESH = "lightpath:2x2,lasers=4,waveguides=1"


@pytest.mark.parametrize(
    ("formulation", "instance", "settings"),
    [
        ("alltoall.path-mcf", RING, {"k": 3}),
        ("alltoall.channels", RING, {"paths": "shortest", "k": 2}),
        ("lumorph.min-overlap", MESH, {"lmax": 3}),
        ("lumorph.min-overlap", MESH, {"circuits": "all", "seed": 1}),
        ("lumorph.rounds", MESH, {"root": 1}),
        ("lumorph.forwarded-rounds", MESH, {"root": 1}),
        ("lumorph.sum-rounds", MESH, {"root": 1}),
        ("optree.tree", "wdm-ring:n=16,wavelengths=4", {"conversion": "serial"}),
        ("sipml.ring-wavelengths", "servers:n=4,degree=2", {"volume": 2.0}),
        ("topoopt.topology", "servers:n=4,degree=2,traffic=alltoall", {"rings": "default"}),
        ("topoopt.topology", "servers:n=4,degree=2,traffic=alltoall", {"all_reduce": "trees"}),
        ("topoopt.utility", "servers:n=4,degree=3,traffic=alltoall", {"traffic": "direct"}),
        ("lumorph.iteration", "training:random,gpus=4,calls=3,seed=1,stages=2", {"overlap": "false", "first": "calls"}),
    ],
)
def test_parameters_without_effect_are_refused(formulation: str, instance: str, settings: dict[str, object]) -> None:
    stated = list(settings.items())[-1]
    with pytest.raises(oc.BadInput, match=f"{stated[0]}={stated[1]} has no effect"):
        oc.problem(formulation, instance, **settings)  # type: ignore[arg-type]
    allowed = dict(list(settings.items())[:-1])
    assert oc.problem(formulation, instance, **allowed).size()  # type: ignore[arg-type]


def test_a_formulation_without_bounds_from_duals_says_so() -> None:
    with pytest.raises(oc.BadInput, match=r"gives no bound from duals; bounds\(\) gives analytic ones"):
        oc.problem("lumorph.rounds", MESH).certify({})


def test_a_result_without_duals_says_so() -> None:
    problem = oc.problem("optree.tree", "wdm-ring:n=7,wavelengths=2")
    with pytest.raises(oc.BadInput, match=r"the result of \S+ has no duals; its bound is result.bound"):
        problem.certify(problem.solve())


def test_a_missing_name_of_the_package_is_answered_by_the_one_that_was_meant() -> None:
    with pytest.raises(AttributeError, match="'slove'; did you mean 'solve'"):
        oc.slove  # noqa: B018


class Knapsack(oc.Formulation):
    """Fractional knapsack: max sum x, 0 <= x <= 1, weight: sum (v + 1) x_v <= 3, for the vertices v of a topology."""

    name = "own.knapsack"
    sense = "max"
    problem = "LP"

    def pyomo(self):
        import pyomo.environ as pyo

        n = self.instance.n
        model = pyo.ConcreteModel()
        model.x = pyo.Var(range(n), bounds=(0, 1))
        model.number = pyo.Objective(expr=sum(model.x[v] for v in range(n)), sense=pyo.maximize)
        model.weight = pyo.Constraint(expr=sum((v + 1) * model.x[v] for v in range(n)) <= 3)
        return model

    def residuals(self, values):
        x = values["x"]
        over = float(np.arange(1, x.size + 1) @ x) - 3
        return {"weight": max(over, 0.0), "bounds": float(max(-x.min(), x.max() - 1, 0.0))}

    def objective(self, values):
        return float(values["x"].sum())

    def certify(self, duals):
        price = max(float(duals["weight"]), 0.0)
        weights = np.arange(1, self.instance.n + 1)
        return oc.Bound("price", 3 * price + float(np.maximum(1 - price * weights, 0.0).sum()), "weak duality")


def test_duals_of_ones_own_formulation_are_those_of_its_rows(tmp_path: Path) -> None:
    problem = oc.problem(Knapsack, RING)
    found = problem.solve()
    assert found.value == pytest.approx(2.0)
    bound, other = problem.certify(found), problem.certify({"weight": 0.5})
    assert bound is not None
    assert other is not None
    assert bound.value == pytest.approx(2.0)
    assert other.value == pytest.approx(2.0)
    loaded = oc.load(found.save(tmp_path / "found.json"), formulation=Knapsack)
    assert loaded.proof == found.proof == "optimal"
    with pytest.raises(oc.BadInput, match=r"own.knapsack': certify rejected the duals: KeyError: 'weight'"):
        problem.certify({})
    with pytest.raises(oc.BadInput, match=r"its shape is \(4\), expected \(\)"):
        problem.certify({"weight": np.ones(4)})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"g": np.ones((8, 4)) * 1j, "F": 1.0}, "values.g: must be an array of real numbers"),
        ({"g": "abc", "F": 1.0}, "values.g: must be an array of real numbers, not 'abc'"),
        ([1.0], "values: must be a mapping of names"),
    ],
)
def test_values_and_duals_that_are_no_real_numbers_are_refused(given, message) -> None:
    problem = oc.problem("alltoall.master", RING)
    duals = {"capacity": given["g"]} if isinstance(given, dict) else given
    for ask, arrays, said in (
        (problem.residuals, given, message),
        (problem.certify, duals, message.replace("values.g", "duals.capacity").replace("values", "duals")),
    ):
        with pytest.raises(oc.BadInput, match=said):
            ask(arrays)
    if isinstance(given, dict):
        with pytest.raises(oc.BadInput, match="'g': must be an array of real numbers"):
            oc.solve("alltoall.master", RING, start=given)


def test_complex_capacities_are_no_change_of_a_model() -> None:
    for capacity in (1j, np.ones(8) * 1j):
        with pytest.raises(oc.BadInput, match="is no number"):
            oc.model("alltoall.master", RING).update(capacity=capacity)


def test_a_solve_keeps_parameters_with_the_names_of_its_options() -> None:
    """The circuits of seeds 3 and 0 overlap twice and once."""
    problem = oc.problem("lumorph.min-overlap", "lightpath:2x2,lasers=3", seed=3, model="path", k=1)
    asked = oc.Task("lumorph.min-overlap", problem.instance, settings=problem.settings)
    assert [problem.solve(seed=1).value, problem.solve().value, oc.solve(asked).value] == [2.0, 2.0, 2.0]
    stated = oc.solve("lumorph.min-overlap", "lightpath:2x2,lasers=3", seed=3, model="path", k=1)
    assert (stated.value, dict(stated.task.settings)) == (2.0, {"seed": 3, "model": "path", "k": 1})
    every = oc.solve("lumorph.min-overlap", "lightpath:2x2,lasers=3", seed=3, circuits="all")
    assert (every.task.seed, dict(every.task.settings)) == (3, {"circuits": "all"})
    timed = {"delay": "1us", "shard": "1MB", "bandwidth": "100Gb/s"}
    stands = oc.problem("topology.sequence", "servers:n=3,degree=2", start="ring:3", configurations=1, **timed)
    assert "T_s" in stands.solve(start=stands.solve()).metrics
