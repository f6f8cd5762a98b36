"""Builders of stated models: what they make of the declared axes, and what they refuse."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import opticoll as oc
from opticoll.errors import BadInput, ModelError
from opticoll.formulations import formulation
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.model import Formulation
from opticoll.instances import parse
from opticoll.solvers.compile.comparison import differences
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.evidence import check_values
from opticoll.solvers.run import Solved
from opticoll.solvers.task import Outcome, Termination


class Cube(Formulation):
    """Arrays of three axes, whose bounds, masks and coefficients all differ."""

    sense, problem = "min", "MILP"
    variables = {"x": ("row", "tube", "step"), "y": ("row",), "t": ()}  # noqa: RUF012
    constraints = {"each": ("row", "tube", "step"), "some": ("row", "tube"), "one": ()}  # noqa: RUF012

    def sets(self):
        return {"row": ["a", "b"], "tube": [("p", 0), ("q", 1), ("r", 2)], "step": range(2)}

    mask = np.arange(12).reshape(2, 3, 2) % 5 != 0
    upper = np.arange(12.0).reshape(2, 3, 2) + 1

    def cvxpy(self):
        import cvxpy as cp

        b = Cvx(self)
        x, y, t = (
            b.var("x", upper=self.upper, where=self.mask),
            b.var("y", lower=-1, upper=[2, 3], integer=True),
            b.var("t"),
        )
        b.row("each", x <= t + y[:, None, None], where=self.upper > 3)
        b.row("some", cp.sum(x, axis=2) >= 1, where=[[True], [False]])
        b.row("one", cp.sum(y) == 1)
        return b.minimize(t + 2 * y[0])

    def pyomo(self):
        b, (R, K, T) = Pyo(self), Pyo(self).sets("row", "tube", "step")
        at = {
            key: self.mask[i, j, t] for i, r in enumerate(R) for j, k in enumerate(K) for t in T for key in [(r, *k, t)]
        }
        most = {
            key: self.upper[i, j, t]
            for i, r in enumerate(R)
            for j, k in enumerate(K)
            for t in T
            for key in [(r, *k, t)]
        }
        x = b.var("x", upper=self.upper, where=lambda *key: at[key])
        y, t = b.var("y", lower=-1, upper=np.array([2, 3]), integer=True), b.var("t")
        b.row("each", lambda r, p, n, s: x[r, p, n, s] <= t + y[r], where=lambda *key: most[key] > 3)
        b.row("some", lambda r, p, n: sum(x[r, p, n, s] for s in T) >= 1, where=lambda r, p, n: r == "a")
        b.row("one", lambda: sum(y[r] for r in R) == 1)
        return b.minimize(t + 2 * y["a"])


def test_both_layers_make_one_matrix_of_arrays_with_three_axes():
    forms = [compile_model(build()) for build in (Cube(None).cvxpy, Cube(None).pyomo)]
    assert differences(*forms) == []
    assert [forms[0].A.shape[1], forms[0].size["integers"]] == [9 + 2 + 1, 2]
    x = forms[0].columns["x"]
    assert x.shape == (2, 3, 2)
    assert (x.index.reshape(x.shape) >= 0).tolist() == Cube.mask.tolist()


def test_variables_of_a_class_from_outside_are_those_of_pyomo():
    import pyomo.environ as pyo

    b = Pyo(Cube(None))
    y = b.var("y")
    y.setub(3.0)
    b.row("one", lambda: pyo.sum_product({"a": 1.0, "b": 2.0}, y) + pyo.quicksum(y[:]) >= 6)
    form = compile_model(b.minimize(pyo.quicksum(y[r] for r in y.index_set())))
    assert (form.A.toarray().tolist(), form.col_upper.tolist()) == ([[2.0, 3.0]], [3.0, 3.0])


def test_positions_and_masks_state_the_same_variables_and_rows():
    class Listed(Cube):
        def cvxpy(self):
            import cvxpy as cp

            b, at = Cvx(self), Index.of_mask("row tube step", self.mask)
            x, y, t = (
                b.var("x", upper=self.upper, over=at),
                b.var("y", lower=-1, upper=[2, 3], integer=True),
                b.var("t"),
            )
            each, some = Index.of_mask("row tube step", self.upper > 3), Index.grid(row=2, tube=3)
            b.row("each", each.of(at) @ x <= t + each.of(Index.grid(row=2)) @ y, over=each)
            some = some.where(some["row"] == 0)
            b.row("some", some.of(at) @ x >= 1, over=some)
            b.row("one", cp.sum(y) == 1)
            return b.minimize(t + 2 * y[0])

    assert differences(compile_model(Listed(None).cvxpy()), compile_model(Cube(None).cvxpy())) == []


@pytest.mark.parametrize("layer", [Cvx, Pyo])
def test_undeclared_names_and_axes_without_members_are_refused(layer):
    with pytest.raises(ModelError, match="'z', which is none of its variables: x, y, t"):
        layer(Cube(None)).var("z")

    class Open(Formulation):
        variables = {"f": ("arc", "hop")}  # noqa: RUF012

    with pytest.raises(ModelError, match=r"the axis 'hop' of f needs its members: return them from sets\(\)"):
        layer(Open(parse("ring:3"))).var("f")


def test_names_of_pyomo_itself_are_refused():
    class Loads(Cube):
        variables = {"clone": ("row",)}  # noqa: RUF012
        constraints = {"load": ()}  # noqa: RUF012

    b = Pyo(Loads(None))
    with pytest.raises(ModelError, match="Pyomo's models have an attribute 'clone' already; give 'clone' another name"):
        b.var("clone")
    with pytest.raises(ModelError, match="attribute 'load' already"):
        b.row("load", lambda: (0, 1, 2))


def test_rows_of_another_shape_are_refused():
    b = Cvx(Cube(None))
    x = b.var("x")
    with pytest.raises(ModelError, match=r"some has rows of the shape \(2, 3, 2\), and \(2, 3\) by their axes"):
        b.row("some", x <= 1)


def test_an_index_that_no_axis_has_is_an_error():
    b = Pyo(Cube(None))
    x = b.var("x", where=lambda r, *_: r == "a")
    assert x["b", "p", 0, 1] == 0
    for wrong in (("c", "p", 0, 1), ("b", "p", 1, 1), ("b", "p", 0, 2), ("b", "p", 0), ("b", "p", 0, 1, 1)):
        with pytest.raises(KeyError):
            x[wrong]
        with pytest.raises(ModelError, match="which its axes do not have"):
            b.row("each", lambda *_: x["a", "p", 0, 1] <= 1, over=[wrong])
    again = b.model.clone()  # whose index sets refer to copies of the indices
    assert list(again.x) == list(b.model.x)
    assert ("a", "p", 0, 1) in again.x.index_set()


def test_a_row_that_holds_without_its_terms_is_left_out():
    b = Pyo(Cube(None))
    x = b.var("x", where=lambda r, *_: r == "a")
    b.row("some", lambda r, p, n: x[r, p, n, 0] + x[r, p, n, 1] <= 1)
    assert len(b.model.some) == 3


def test_rows_and_variables_along_an_axis_without_members_are_left_out():
    class Sparse(Cube):
        variables = {"y": ("row",), "h": ("pair",)}  # noqa: RUF012
        constraints = {"each": ("pair",), "one": ()}  # noqa: RUF012

        def sets(self):
            return {"row": range(2), "pair": Index.of_mask("row to", np.zeros((2, 2), dtype=bool))}

        def cvxpy(self):
            b, pairs = Cvx(self), self.sets()["pair"]
            y, h = b.var("y", upper=1), b.var("h")
            b.row("each", pairs.of(Index.grid(row=2)) @ y - h <= 0)
            b.row("one", y[0] + y[1] == 1)
            return b.minimize(y[0])

        def pyomo(self):
            b = Pyo(self)
            y, h = b.var("y", upper=1), b.var("h", over=[])
            b.row("each", lambda u, v: y[u] - h[u, v] <= 0, over=[])
            b.row("one", lambda: y[0] + y[1] == 1)
            return b.minimize(y[0])

    forms = [compile_model(build()) for build in (Sparse(None).cvxpy, Sparse(None).pyomo)]
    assert differences(*forms) == []
    assert [(list(form.rows), list(form.columns)) for form in forms] == [(["one"], ["y"])] * 2


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (lambda b: (b.var("y"), b.var("y")), "y is stated twice"),
        (lambda b: [b.row("one", t == k) for t in [b.var("t")] for k in range(2)], "one is stated twice"),
        (lambda b: b.var("y", where=lambda r: r == "a"), r"true or false along its axes, \(2,\), not a function"),
        (lambda b: b.var("y", where=np.ones(3)), r"not an array of the shape \(3,\)"),
        (lambda b: b.var("y", where=np.ones(2), over=Index.grid(row=2)), "where= and over=; give one of them"),
        (lambda b: b.row("eachs", b.var("y") >= 1, over=Index.grid(row=2)), "did you mean 'each'"),
        (lambda b: b.var("x", over=Index.grid(row=2, tube=3)), r"the axes \('row', 'tube', 'step'\), but its index"),
        (lambda b: b.var("y", over=[0, 1]), "over= of y must be an Index"),
        (lambda b: b.row("one", np.zeros(2) <= 1), "one has no variable; leave out rows"),
        (lambda b: b.row("one", False), "one has no variable; leave out rows"),
        (lambda b: b.data("c"), r"the data 'c'; changeable\(\) returns nothing"),
        (lambda b: b.row("one", b.var("t") - 1), "one has .* no comparison such as a <= b, of arrays"),
        (lambda b: b.var("y", integer="no"), "integer= of y must be True or False, not 'no'"),
        (
            lambda b: b.row("some", b.var("y")[[0, 0]] >= 1, over=Index.table("row tube", {"row": 0, "tube": [1, 1]})),
            "twice",
        ),
    ],
)
def test_what_would_be_dropped_or_taken_for_something_else_is_refused(step, words):
    with pytest.raises(ModelError, match=words):
        step(Cvx(Cube(None)))


@pytest.mark.parametrize(
    ("row", "error", "words"),
    [
        (lambda y: y["a", 2] <= 1, KeyError, "'a', 2"),
        (lambda y: None, ModelError, "'None', no comparison such as a <= b"),
        (lambda y: y["a"] + 1, ModelError, "no comparison such as a <= b"),
        (lambda y: y["a"] < 1, ModelError, "no comparison such as a <= b"),
        (lambda y: 2 <= 1, ModelError, r"the row some\['a', 'p', 0\] has no variable and does not hold"),
    ],
)
def test_a_wrong_row_in_pyomo_is_one_error_without_a_log(row, error, words, caplog):
    b = Pyo(Cube(None))
    y = b.var("y")
    with pytest.raises(error, match=words):
        b.row("some", lambda *_: row(y), over=[("a", "p", 0)])
    assert not caplog.records


def test_a_row_without_axes_is_the_row_itself_in_pyomo_too(caplog):
    b = Pyo(Cube(None))
    y = b.var("y")
    b.row("one", y["a"] + y["b"] == 1)
    form = compile_model(b.minimize(y["a"]))
    assert (form.A.toarray().tolist(), form.row_lower.tolist()) == ([[1.0, 1.0]], [1.0])
    with pytest.raises(ModelError, match="the row each has axes; give a function of their labels that returns the row"):
        b.row("each", y["a"] <= 1)
    assert not caplog.records


@pytest.mark.parametrize("layer", [Cvx, Pyo])
@pytest.mark.parametrize("bounds", [{"upper": np.ones(3)}, {"lower": [0, 0, 0]}, {"upper": np.ones((2, 2))}])
def test_bounds_of_another_shape_are_refused(layer, bounds):
    words = rf"{next(iter(bounds))}= of y has the shape \({3 if 'lower' in bounds else '[23]'}"
    with pytest.raises(ModelError, match=words):
        layer(Cube(None)).var("y", **bounds)
    with pytest.raises(ModelError, match=words):
        layer(Cube(None)).var("y", over=Index.grid(row=2), **bounds)


@pytest.mark.parametrize("layer", [Cvx, Pyo])
@pytest.mark.parametrize(
    ("members", "words"),
    [
        ((name for name in "ab"), r"sets\(\) returns generator for 'row'; return a list"),
        (["a", "b", "a"], r"sets\(\) has 'a' twice in 'row'"),
    ],
)
def test_members_that_are_no_list_or_listed_twice_are_refused(layer, members, words):
    class Wrong(Cube):
        def sets(self):
            return {**super().sets(), "row": members}

    with pytest.raises((BadInput, ModelError), match=words):
        layer(Wrong(None)).var("y")


def test_pyomo_refuses_the_same():
    class Without(Cube):
        def sets(self):
            return {"row": ["a", "b"]}

    b = Pyo(Cube(None))
    b.var("y")
    with pytest.raises(ModelError, match="y is stated twice"):
        b.var("y")
    b.row("one", lambda: b.model.y["a"] == 1)
    with pytest.raises(ModelError, match="one is stated twice"):
        b.row("one", lambda: b.model.y["b"] == 1)
    with pytest.raises(ModelError, match="did you mean 'each'"):
        b.row("eachs", lambda r: b.model.y[r] >= 1, over=["a"])
    with pytest.raises(ModelError, match="where= and over=; give one of them"):
        b.row("some", lambda *_: b.model.y["a"] >= 1, where=lambda *_: True, over=[("a", "p", 0)])
    with pytest.raises(ModelError, match="'step' of the build needs its members"):
        Pyo(Without(parse("ring:3"))).sets("step")
    with pytest.raises(ModelError, match="along the axes"):
        b.by_label(np.ones(3), "row")


def test_columns_of_an_index_set_are_found_by_the_names_of_the_axes():
    swapped = Index.table("tube row", {"row": [0, 1, 1], "tube": [2, 0, 1]})
    b = Cvx(Cube(None))
    b.row("some", b.var("y")[[0, 1, 1]] >= 1, over=swapped)
    assert b.constraints["some"].index.tolist() == [2, 3, 4]


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({"concurrent": "f"}, "has the axes"),
        ({"concurrent": "F", "sense": "min"}, "is maximised"),
        ({"constraints": {"cap": ("arc")}}, "must be a tuple of names"),
        ({"units": {"f": 3}}, r"units\['f'\] must be a text such as 'shards', not 3"),
        ({"units": {"g": "s"}}, "units names 'g', which is none of the variables: f, F"),
        ({"concurrent": "G"}, "concurrent names 'G'"),
        ({"variables": {"f": ("arc", "sorce")}}, r"variables\['f'\] has 'sorce'; did you mean 'source'"),
        ({"variables": {"f": "arc"}}, "must be a tuple of names"),
        (
            {"name": "own.flow", "sence": "max", "pyomo": len, "residuals": len, "objective": len},
            "did you mean 'sense'",
        ),
    ],
)
def test_classes_that_state_another_problem_than_they_say_are_refused(stated, words):
    with pytest.raises(BadInput, match=words):
        type("Flow", (Formulation,), {"variables": {"f": ("arc", "source"), "F": ()}, **stated})


def test_a_derived_class_says_itself_that_labels_do_not_matter():
    class Rooted(formulation("alltoall.master")):
        name = "own.rooted"

    assert formulation("alltoall.master")._label_invariant({"demand": "uniform"})
    assert not Rooted._label_invariant({"demand": "uniform"})


class Held(formulation("alltoall.master")):
    """The master LP with a bound of its own on F, which the repair that it inherits does not know."""

    name = "own.held"

    def cvxpy(self):
        import cvxpy as cp

        model = super().cvxpy()
        held = (model.variables["F"].item <= 0.1).set_label("held")
        return cp.Problem(model.problem.objective, [*model.problem.constraints, held])

    def residuals(self, values):
        return {**super().residuals(values), "held": float(values["F"]) - 0.1}

    def repair(self, values):
        changed = super().repair(values)
        return changed and {**changed, "F": np.asarray(0.2)}


def test_a_derived_class_with_a_row_more_has_bounds_but_no_optimum_of_its_base():
    run = oc.solve(Held, "ring:5", method="pdlp")
    assert (run.verified, run.proof) == (True, "optimal")
    assert run.objective == pytest.approx(0.1)
    assert {bound.exact for bound in Held.prepare(parse("ring:5")).bounds()} == {False}
    assert Held.prepare(parse("ring:5"))._closed_forms() == []


def test_a_repair_of_the_base_that_breaks_an_added_row_more_than_the_solver_did_is_left_out():
    run = oc.solve(Held, "ring:5", method="highs")
    state = SimpleNamespace(plan=SimpleNamespace(problem=Held.prepare(parse("ring:5"))), notes=[])
    above = {**run.values, "F": run.values["F"] + 1e-4}
    checked = check_values(state, Solved(Outcome(Termination.OPTIMAL), values=above))
    assert (checked.verified, checked.repaired) == (False, None)
    assert checked.objective == pytest.approx(0.1001)


def test_certified_pdlp_keeps_a_flow_that_the_repair_of_the_base_would_break():
    run = oc.solve(Held, "ring:5", method="certified-pdlp")
    assert run.verified
    assert run.objective == pytest.approx(0.1)


@pytest.mark.parametrize("label", ["held", ""])
def test_a_row_that_a_derived_class_adds_in_cvxpy_has_a_name_and_duals(label):
    class Named(Held):
        name = "own.named"

        def cvxpy(self):
            import cvxpy as cp

            built = Held.__base__.cvxpy(self)
            held = built.variables["F"].item <= 0.1
            rows = [*built.problem.constraints, held.set_label(label) if label else held]
            return replace(built, problem=cp.Problem(built.problem.objective, rows))

    run = oc.solve(Named, "ring:5", form="cvxpy", method="highs")
    assert run.proof == "optimal"
    assert {name: float(np.abs(dual).max()) for name, dual in run.duals.items()} == pytest.approx(
        {"balance": 0, "capacity": 0, label or "added0": 1}
    )
    assert run.bottleneck().lines()["reason"] == f"bound 0.1 by the duals of the rows {label or 'added0'}"


def test_what_differs_names_the_build_and_shows_the_row():
    class More(Cube):
        def pyomo(self):
            model = super().pyomo()
            model.model.one.deactivate()
            return model

    forms = compile_model(More(None).cvxpy()), compile_model(More(None).pyomo())
    (found,) = differences(*forms, called=("CVXPY", "Pyomo"))
    assert found.startswith("row one: only in CVXPY, 1 <= 1 y[0] + 1 y[1] <= 1; the other has rows such as each")
