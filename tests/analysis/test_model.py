"""Models that are changed by hand, updated, and solved again; models from elsewhere."""

import json

import cvxpy as cp
import numpy as np
import pyomo.environ as pyo
import pytest

import opticoll as oc
from opticoll.instances import parse
from opticoll.instances.link_changes import changed_capacities, with_links_of
from opticoll.solvers.compile.recompiled import Recompiler
from opticoll.solvers.compile.user_models import compiled

FORMS = ("pyomo", "cvxpy")
FLOWS = ("alltoall.master", "alltoall.link-mcf", "alltoall.path-mcf")


def with_capacities(net, changes):
    return with_links_of(net, changed_capacities(net, changes, net.capacity))


def limited(model, value):
    """Add F <= value to a model by hand."""
    if model.form == "pyomo":
        model.pyomo.limit = pyo.Constraint(expr=value >= model.pyomo.F)
    else:
        F = model.cvxpy.var_dict["F"]
        model.cvxpy = cp.Problem(model.cvxpy.objective, [*model.cvxpy.constraints, value >= F])
    return model


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FLOWS)
def test_a_changed_model_is_solved_as_it_says(name, form):
    model = oc.model(name, "ring:4", form=form)
    assert not model.changed
    free = model.solve()
    assert (free.record.formulation, free.proof) == (name, "optimal")
    result = limited(model, 0.1).solve()
    assert model.changed
    assert "changed by hand" in repr(model)
    assert result.record.formulation == "matrix.stated-model"
    assert result.record.instance == f"{name} on ring:4, changed by hand"
    assert "changed by hand" in result.record.message
    assert (result.proof, result.record.bound_source) == ("optimal", "lp-dual")
    assert result.objective == pytest.approx(0.1)
    assert result.metrics["T"] == pytest.approx(10.0)
    assert result.metrics["original_violation"] <= 1e-9
    assert max(result.check().values()) <= 1e-9
    loads = result.link_loads()
    assert list(loads.index) == list(free.link_loads().index)
    F = model.pyomo.F.value if form == "pyomo" else model.cvxpy.var_dict["F"].value
    assert float(F) == pytest.approx(0.1)


def test_a_solution_that_breaks_the_original_is_named():
    model = oc.model("alltoall.master", "ring:4")
    for row in model.pyomo.capacity.values():
        row.set_value(row.body <= 2.0)
    result = model.solve()
    assert result.objective == pytest.approx(2 * oc.solve("alltoall.master", "ring:4").objective)
    assert result.proof == "optimal"
    assert result.metrics["original_violated"] == "capacity"
    assert "T" not in result.metrics


def test_another_objective_keeps_no_time():
    model = oc.model("alltoall.master", "ring:4")
    model.pyomo.F.fix(0.2)
    model.pyomo.objective.deactivate()
    model.pyomo.least = pyo.Objective(expr=pyo.quicksum(model.pyomo.g[key] for key in model.pyomo.g))
    result = model.solve()
    assert result.record.sense == "min"
    assert result.objective == pytest.approx(0.2 * 4 * (1 + 1 + 2))  # every shard over a shortest path
    assert "T" not in result.metrics
    assert result.metrics["original_objective"] == pytest.approx(0.2)


def test_added_variables_are_labelled():
    model = oc.model("alltoall.master", "ring:4")
    model.pyomo.spare = pyo.Var(["north", "south"], domain=pyo.NonNegativeReals)
    model.pyomo.least = pyo.Constraint(expr=sum(model.pyomo.spare.values()) >= 1 + model.pyomo.F)
    model.pyomo.most = pyo.Constraint(expr=model.pyomo.spare["north"] <= 0)
    result = model.solve()
    assert result.frame("spare").to_numpy().tolist() == [["south", pytest.approx(1.5)]]
    assert list(result.frame("g").columns) == ["arc", "source", "g"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FLOWS)
def test_updates_change_the_data_in_place(name, form):
    model = oc.model(name, "ring:4", form=form)
    before = model.stated
    model.solve()
    for capacity in (0.5, 0.25, 2.0):
        result = model.update(capacity={"0->1": capacity}).solve()
        fresh = oc.solve(name, model.instance)
        assert model.stated is before
        assert not model.changed
        assert result.record.formulation == name
        assert result.objective == pytest.approx(fresh.objective, rel=1e-6)
        assert result.proof == "optimal"
    assert result.record.method == "highs"  # from the basis before


@pytest.mark.parametrize("form", FORMS)
def test_a_basis_that_is_far_from_the_new_optimum_is_given_up(form, monkeypatch):
    for name, value in (("SIMPLEX_VARIABLES", 0), ("FEWEST_STEPS", 0), ("ROWS_A_STEP", 1000)):
        monkeypatch.setattr(f"opticoll.analysis.problem.model.{name}", value)
    model = oc.model("alltoall.master", "genkautz:n=6,d=2", form=form)
    methods = []
    for capacity in (2.0, 2.0, 0.2, 0.1):
        result = model.update(capacity={"5->1": capacity}).solve()
        methods.append(result.record.method)
        assert result.proof == "optimal"
        assert result.objective == pytest.approx(oc.solve("alltoall.master", model.instance).objective)
    usual = oc.solve("alltoall.master", model.instance).record.method
    assert methods == ["highs-ipx", "highs", usual, usual]


def test_a_constraint_may_take_the_name_of_a_parameter():
    model = oc.model("alltoall.master", "ring:4", form="pyomo")
    bound = pyo.Constraint(expr=model.pyomo.F <= 0.1)
    model.pyomo.del_component("c")
    model.pyomo.c = bound
    assert model.changed
    assert model.solve().objective == pytest.approx(0.1)
    with pytest.raises(oc.BadInput, match="changed by hand"):
        model.update(capacity=2.0)


def test_a_change_by_hand_outlives_an_update():
    model = limited(oc.model("alltoall.master", "ring:4"), 0.4)
    slower = {"0->1": 0.05, "1->0": 0.05}
    result = model.update(capacity=slower).solve()
    assert model.changed
    kept = oc.solve("alltoall.master", with_capacities(parse("ring:4"), slower))
    assert result.objective == pytest.approx(min(0.4, kept.objective))
    assert model.update(capacity=1.0).solve().objective == pytest.approx(0.4)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FLOWS)
def test_demands_change_in_place(name, form):
    model = oc.model(name, "ring:4", form=form)
    before = model.stated
    twice = np.ones((4, 4)) - np.eye(4)
    for amount in (3.0, 2.0):
        twice[0, 2] = amount
        result = model.update(demand=twice).solve()
        assert model.stated is before
        assert not model.changed
        assert result.proof == "optimal"
        assert result.objective == pytest.approx(oc.solve(name, "ring:4", demand=twice).objective)


def test_other_data_build_the_model_again():
    model = oc.model("alltoall.master", "ring:4")
    before = model.stated
    result = model.update(capacity={"0->1": 0}).solve()  # a link less
    assert model.stated is not before
    assert model.instance.arcs == 7
    assert result.objective == pytest.approx(oc.solve("alltoall.master", model.instance).objective)
    with pytest.raises(oc.BadInput, match="changed by hand; build it again"):
        limited(model, 0.1).update(capacity={"1->0": 0})


@pytest.mark.parametrize("form", FORMS)
def test_a_link_of_capacity_0_can_come_back(form):
    model = oc.model("alltoall.master", "ring:4", form=form)
    whole = model.solve().T
    assert whole < model.update(capacity={"0->1": 0}).solve().T
    assert pytest.approx(whole) == model.update(capacity={"0->1": 1}).solve().T
    without = model.update(capacity={"0->1": 0, "1->0": 0.5}).solve().T
    fresh = oc.solve("alltoall.master", with_capacities(parse("ring:4"), {"0->1": 0, "1->0": 0.5}))
    assert without == pytest.approx(fresh.T)
    assert pytest.approx(whole) == model.update(capacity=parse("ring:4").capacity).solve().T


def test_a_parameter_set_by_hand_is_a_change():
    model = oc.model("alltoall.master", "ring:4")
    model.pyomo.c["0->1"] = 0.5
    assert model.changed
    assert model.solve().record.formulation == "matrix.stated-model"


def test_changed_parameters_are_compiled_again_and_others_are_not():
    model = oc.model("alltoall.master", "genkautz:n=5,d=2")
    compile_again = Recompiler(model._built)
    first = compile_again(model.pyomo)
    assert compile_again(model.pyomo) is first
    key = next(iter(model.pyomo.c))
    model.pyomo.c[key] = 0.25
    ours, whole = compile_again(model.pyomo).form, compiled(model.pyomo, model._built).form
    assert (ours.A != whole.A).nnz == 0
    assert np.array_equal(ours.row_upper, whole.row_upper)
    assert not np.array_equal(ours.row_upper, first.form.row_upper) or (ours.A != first.form.A).nnz


def test_integer_models_start_from_the_solution_before():
    model = oc.model("alltoall.min-congestion", "ring:4")
    first = model.solve(method="highs")
    again = model.solve(method="highs")
    assert again.record.start.used == ["highs"]
    assert again.record.start.objective == first.objective


def test_a_pyomo_model_from_elsewhere():
    model = pyo.ConcreteModel("knapsack")
    model.x = pyo.Var(["a", "b"], domain=pyo.Binary)
    model.value = pyo.Objective(expr=3 * model.x["a"] + 2 * model.x["b"], sense=pyo.maximize)
    model.room = pyo.Constraint(expr=model.x["a"] + model.x["b"] <= 1)
    result = oc.solve(model)
    assert (result.record.instance, result.proof, result.objective) == ("pyomo:knapsack", "optimal", 3.0)
    assert model.x["a"].value == 1
    assert result.frame("x").to_numpy().tolist() == [["a", 1.0]]
    assert oc.solve(model, method="certified-branching").proof == "optimal"


def test_refusals_name_what_to_do():
    model = oc.model("alltoall.master", "ring:4", form="cvxpy")
    with pytest.raises(oc.BadInput, match=r"write oc\.model"):
        model.pyomo  # noqa: B018
    with pytest.raises(oc.BadInput, match=r"must be a cp\.Problem"):
        model.cvxpy = 3
    with pytest.raises(oc.BadInput, match="no parameter 'demnd'; did you mean 'demand'"):
        model.update(demnd="uniform")
    with pytest.raises(oc.BadInput, match=r"no such link; did you mean '0->1'"):
        model.update(capacity={"0->11": 1})
    nonlinear = pyo.ConcreteModel()
    nonlinear.x = pyo.Var()
    nonlinear.o = pyo.Objective(expr=nonlinear.x**2)
    with pytest.raises(oc.BadInput, match="the objective 'o'"):
        oc.solve(nonlinear)
    with pytest.raises(oc.BadInput, match="pass no instance"):
        oc.solve(nonlinear, "ring:4")
    with pytest.raises(oc.BadInput, match=r"solved by its own solve: m\.solve"):
        oc.solve(model)
    with pytest.raises(oc.BadInput, match="'100Gb/s' is no number, and ring:4 has no unit of capacity"):
        model.update(capacity={"0->1": "100Gb/s"})
    none = limited(oc.model("alltoall.master", "ring:4"), 1.0)
    none.pyomo.wish = pyo.Constraint(expr=none.pyomo.F >= 9)
    for look in (none.solve().plot, none.solve().link_loads):
        with pytest.raises(oc.NoSolution, match=r"ended with infeasible; result\.conflict\(\) says why"):
            look()


def test_a_model_that_does_not_fit_in_memory_is_refused(monkeypatch):
    def full(*_args, **_named):
        raise MemoryError

    monkeypatch.setattr("opticoll.solvers.compile.user_models.from_cvxpy", full)
    with pytest.raises(oc.BadInput, match="not enough memory to compile it; use a smaller instance"):
        oc.model("alltoall.master", "ring:4", form="cvxpy").solve()


def test_links_have_several_names():
    net = oc.topology([("a", "b"), ("a", "b"), ("b", "a")], directed=True)
    for links, changed in (
        (("a->b", ("a", "b"), (0, 1)), [3.0, 3.0, 1.0]),  # by numbers, where no label is one
        (("a -> b#2", "a->b#2", 1), [1.0, 3.0, 1.0]),
        (("a--b", "b -- a"), [3.0, 3.0, 3.0]),
    ):
        assert all(with_capacities(net, {link: 3.0}).capacity.tolist() == changed for link in links)
    with pytest.raises(oc.BadInput, match=r"link 'a->c': .* has no such link; did you mean"):
        with_capacities(net, {("a", "c"): 3.0})
    assert with_capacities(net, 2.0).capacity.tolist() == [2.0, 2.0, 2.0]
    for wrong in (-1.0, np.nan, [1.0], {"a->b": "fast"}):
        with pytest.raises(oc.BadInput, match="capacit"):
            with_capacities(net, wrong)


def test_names_that_differ_by_blanks_alone_are_different_links():
    net = oc.topology([("a b", "c"), ("ab", "c"), ("c", "a b"), ("c", "ab")], directed=True)
    at = list(zip(net.tail.tolist(), net.head.tolist(), strict=True))
    for name in ("a b->c", "ab->c", "a b -> c", ("ab", "c")):
        ends = ("ab" if name in ("ab->c", ("ab", "c")) else "a b", "c")
        changed = with_capacities(net, {name: 3.0}).capacity
        assert np.flatnonzero(changed == 3.0).tolist() == [at.index(tuple(map(net.labels.index, ends)))]
    with pytest.raises(oc.BadInput, match="no such link"):
        with_capacities(net, {"a  b->c": 3.0})
    spaced = oc.topology([("n 0", "n 1"), ("n 1", "n 0")], directed=True)
    assert with_capacities(spaced, {"n0->n1": 3.0}).capacity.tolist() == [3.0, 1.0]


def test_a_changed_model_has_seconds_where_units_are_known():
    net = oc.topology([("a", "b"), ("b", "c"), ("c", "a")], unit="100Gb/s", directed=False)
    m = oc.model("alltoall.link-mcf", net)
    plain = m.solve(shard="1MB")
    m.pyomo.slower = pyo.Constraint(expr=0.9 * plain.value >= m.pyomo.F)
    changed = m.solve(shard="1MB")
    assert m.changed
    assert changed.metrics["T_s"] == pytest.approx(plain.metrics["T_s"] / 0.9)
    assert changed.link_loads()["load [Gb/s]"].max() <= 100 * (1 + 1e-6)
    in_bytes = oc.model("alltoall.link-mcf", net, demand={("a", "b"): "1MB", ("c", "b"): "1MB"})
    in_bytes.pyomo.any = pyo.Constraint(expr=in_bytes.pyomo.F >= 0)
    assert in_bytes.solve().metrics["T_s"] == pytest.approx(8e-5)


def test_a_cvxpy_problem_has_a_value_and_a_status():
    x = cp.Variable(2, name="x", nonneg=True)
    problem = cp.Problem(cp.Maximize(x[0] + 2 * x[1]), [x[0] + x[1] <= 4, x[1] <= 3])
    result = oc.solve(problem)
    assert problem.value == pytest.approx(7.0) == pytest.approx(result.value)
    assert problem.status == "optimal"
    none = cp.Problem(cp.Maximize(x[0]), [x[0] <= 1, x[0] >= 2])
    oc.solve(none)
    assert (none.status, none.value) == ("infeasible", -np.inf)


def test_demands_in_a_solve_of_a_model_are_refused():
    m = oc.model("alltoall.link-mcf", "ring:4")
    with pytest.raises(oc.BadInput, match=r"change it by m\.update\(demand=\.\.\.\)"):
        m.solve(demand="random:1")
    with pytest.raises(oc.BadInput, match="changed in place"):
        m.pyomo = m.pyomo


def test_capacities_have_units_where_the_topology_has():
    net = oc.topology([("a", "b"), ("b", "a")], unit="100Gb/s")
    m = oc.model("alltoall.master", net)
    assert m.update(capacity={"a->b": "200Gb/s"}).instance.capacity.tolist() == [2.0, 1.0]
    with pytest.raises(oc.BadInput, match="'200Gb/s' is no number"):
        oc.model("alltoall.master", "ring:4").update(capacity={"0->1": "200Gb/s"})
    with pytest.raises(oc.BadInput, match="'50%' is no number; give a capacity"):
        m.update(capacity={"a->b": "50%"})


def test_a_result_says_its_seconds_and_exports_take_objects(tmp_path):
    net = oc.topology([("a", "b"), ("b", "a")], unit="100Gb/s")
    result = oc.solve("alltoall.master", net, shard="1MB")
    assert result.T_s == result.metrics["T_s"] == pytest.approx(8e-5)
    assert oc.solve("alltoall.master", net).T_s is None
    oc.export("alltoall.master", net, str(tmp_path / "net.mps"))
    assert (tmp_path / "net.mps").stat().st_size > 0
    with pytest.raises(oc.BadInput, match="needs a file, not Result"):
        oc.check("alltoall.master", net, result)


def test_solutions_of_changed_models_and_of_ones_own_are_saved_with_their_matrix(tmp_path):
    lab = pyo.ConcreteModel("lab")
    lab.x = pyo.Var(["a", "b"], [(1, 2), (3, 4)], bounds=(0, 2))
    lab.y = pyo.Var(domain=pyo.Integers, bounds=(0, 7))
    lab.row = pyo.Constraint(["a", "b"], rule=lambda m, i: m.x[i, 1, 2] + m.x[i, 3, 4] + m.y <= 3.5)
    lab.goal = pyo.Objective(expr=sum(lab.x.values()) + 1.5 * lab.y, sense=pyo.maximize)
    z = cp.Variable(3, name="z")
    problem = cp.Problem(cp.Minimize(cp.norm1(z - 2)), [z <= 1])
    changed = limited(oc.model("alltoall.master", "ring:4"), 0.3)
    for number, result in enumerate((oc.solve(lab), oc.solve(problem), changed.solve())):
        path = result.save(tmp_path / f"{number}.json")
        again = oc.load(path)
        assert again.value == pytest.approx(result.value)
        assert (again.verified, again.record.instance) == (True, result.record.instance)
        assert "matrix in the file alone; the model that stated it is not kept" in again.record.message
        assert max(again.check().values()) <= 1e-6
        if number == 2:
            assert (again.proof, again.bound) == ("optimal", pytest.approx(result.value))
        for name in result.values:
            assert again.frame(name)[name].tolist() == result.frame(name)[name].tolist()
        assert oc.load(again.save(tmp_path / "again.json")).record.message == again.record.message
    assert oc.load(tmp_path / "0.json").frame("x").equals(oc.solve(lab).frame("x"))
    with pytest.raises(oc.BadInput, match=r"oc\.load\(PATH\) checks the solution against the matrix"):
        oc.check("matrix.stated-model", "ring:4", path)
    with pytest.raises(oc.BadInput, match="pass no instance"):
        oc.load(path, "ring:4")


def test_the_bound_of_a_loaded_linear_program_is_that_of_its_duals(tmp_path):
    """A file may state any duals: they prove what they prove, whatever bound and proof it states."""
    path = limited(oc.model("alltoall.master", "ring:4"), 0.3).solve().save(tmp_path / "s.json")
    whole = json.loads(path.read_text())
    for factor, bound, proof in ((1.0, 0.3, "optimal"), (2.0, 0.6, "certified-gap")):
        duals = {name: {**one, "value": [factor * y for y in one["value"]]} for name, one in whole["duals"].items()}
        path.write_text(json.dumps({**whole, "duals": duals, "bound": 0.3, "proof": "optimal"}))
        again = oc.load(path)
        assert (again.bound, again.proof) == (pytest.approx(bound), proof)
    path.write_text(json.dumps({**whole, "duals": {}}))
    assert oc.load(path).bound is None
    path.write_text(json.dumps({**whole, "duals": [1]}))
    with pytest.raises(oc.BadInput, match="duals must be an object, not a list"):
        oc.load(path)


def test_a_wrong_matrix_of_a_saved_solution_is_refused(tmp_path):
    path = limited(oc.model("alltoall.master", "ring:3"), 0.3).solve().save(tmp_path / "whole.json")
    whole = json.loads(path.read_text())
    other = tmp_path / "other.json"
    for key, value, message in (
        ("row_upper", [1.0], "row_upper has 1 entries"),
        ("indices", [10**6] * len(whole["program"]["indices"]), "indices has an entry outside"),
        ("indptr", whole["program"]["indptr"][::-1], "indptr must rise"),
        ("variables", {}, "must name each of the"),
        ("sense", "least", "sense"),
        ("cost", [2.0] * len(whole["program"]["cost"]), "instance"),
    ):
        other.write_text(json.dumps({**whole, "program": {**whole["program"], key: value}}))
        with pytest.raises(oc.BadInput, match=message):
            oc.load(other)
    del whole["program"]
    other.write_text(json.dumps(whole))
    with pytest.raises(oc.BadInput, match="has no 'program'"):
        oc.load(other)
