"""Formulations of a user that declare axes: labels, loads, prices, demands, schedules, saving and loading."""

import re
import types
from pathlib import Path
from typing import ClassVar

import cvxpy as cp
import numpy as np
import pytest

import opticoll as oc
from opticoll.errors import ModelError
from opticoll.formulations.model import counts_shards
from opticoll.solvers.verify import residuals, violated

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "extend" / "collective.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def hops():
    """The class of the tutorial."""
    module = types.ModuleType("hops")
    exec(re.search(r"```python\n(# hops\.py\n.*?)```", PAGE, re.DOTALL)[1], vars(module))
    return module.FORMULATION


def test_a_concurrent_flow_says_what_follows_from_it(hops):
    assert (hops.sense, counts_shards(hops)) == ("max", True)
    assert hops.units == {"f": "link bandwidths", "F": "link bandwidths / shard"}
    assert hops.meaning == "concurrent flow F [link bandwidths / shard]; T = 1/F"


def test_negative_flow_is_rejected_without_a_word_in_the_checker(hops):
    problem = hops.prepare(oc.parse("ring:4"), {"hops": 2, "demand": "uniform"})
    values = dict(oc.solve(hops, "ring:4").values)
    assert violated(residuals(problem, values)) is None
    values["f"] = values["f"].copy()
    values["f"][0, 2, 1] = -0.5
    assert residuals(problem, values)["nonnegative"] == 0.5


@pytest.mark.parametrize("spec", ["ring:5", "genkautz:n=6,d=2", "hypercube:2+host=1.5"])
def test_enough_hops_give_the_all_to_all(hops, spec):
    many = oc.parse(spec).n
    ours, known = oc.solve(hops, spec, hops=many), oc.solve("alltoall.master", spec)
    assert ours.proof == "optimal"
    assert pytest.approx(known.T, rel=1e-6) == ours.T
    assert list(ours.link_loads().index) == list(known.link_loads().index)


def test_fewer_hops_take_longer(hops):
    times = [oc.solve(hops, "ring:5,directed", hops=most).T for most in (4, 5)]
    assert times == pytest.approx([10.0, 10.0])


@pytest.mark.parametrize("method", ["auto", "highs"])
def test_no_flow_at_all_is_an_optimum_of_0(hops, method):
    result = oc.solve(hops, "ring:5,directed", hops=3, method=method)
    assert (result.value, result.proof, result.T) == (0.0, "optimal", None)
    assert result.record.requested.method == method


def test_labels_and_prices(hops):
    net = oc.topology([("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")], name="line of three")
    result = oc.solve(hops, net, hops=2, method="highs")
    assert result.record.instance == "custom:line of three"
    assert set(result.frame("f")["source"]) <= {"a", "b", "c"}
    loads = result.link_loads()
    assert net.capacity @ loads["price"] == pytest.approx(-result.T)
    result.plot()


def test_demands(hops):
    demand = np.arange(25.0).reshape(5, 5)
    np.fill_diagonal(demand, 0)
    for given in ("permutation:1", demand):
        ours = oc.solve(hops, "ring:5", hops=4, demand=given)
        assert pytest.approx(oc.solve("alltoall.master", "ring:5", demand=given).T, rel=1e-6) == ours.T
    with pytest.raises(oc.BadInput, match="demand"):
        oc.solve(hops, "ring:5", demand=np.ones((3, 3)))


def test_schedules_deliver_within_the_hops(hops):
    result = oc.solve(hops, "genkautz:n=6,d=2", hops=3, method="highs")
    schedule = result.schedule()
    assert schedule.check() is None
    assert schedule.time >= result.T * (1 - 1e-9)


@pytest.mark.parametrize("name", ["own.json", "own.routes.json", "own.xml"])
def test_schedules_are_saved_and_say_which_rows_they_keep(hops, tmp_path, name):
    schedule = oc.solve(hops, "ring:5", hops=4).schedule()
    facts = schedule.save(tmp_path / name)
    assert facts["delivers"]
    assert facts["keeps"] == f"demands and capacities, not other rows of {hops.name}"
    assert repr(schedule).endswith(f"it keeps {facts['keeps']}")
    assert "keeps" not in repr(oc.solve("alltoall.master", "ring:5").schedule())


def test_saved_solutions_are_loaded_by_class(hops, tmp_path):
    result = oc.solve(hops, "ring:5", hops=4, demand="permutation:1")
    path = result.save(tmp_path / "own.json")
    again = oc.load(path, formulation=hops)
    assert again.verified
    assert pytest.approx(result.T) == again.T
    assert again.link_loads()["load"].sum() == pytest.approx(result.link_loads()["load"].sum())
    with pytest.raises(oc.BadInput, match=r"is a solution of own\.hop-limited, not of alltoall\.master"):
        oc.load(path, formulation=type(oc.model("alltoall.master", "ring:4").formulation))
    with pytest.raises(oc.BadInput, match=rf"write oc\.load\('{path}', formulation=YOUR_CLASS\)") as refused:
        oc.load(path)
    assert "known" not in str(refused.value)
    with pytest.raises(oc.BadInput, match=r"load your own file with oc\.load_plugin \(--plugin FILE\.py\)$"):
        oc.check("own.hop-limited", "ring:5", path)


def test_a_parameter_that_is_stated_twice_is_refused():
    pair = (oc.Parameter("k", int, 1, "first"), oc.Parameter("k", int, 2, "second"))
    for make in (
        lambda: type("Twice", (Shared,), {"name": "own.twice", "parameters": pair}),
        lambda: oc.Method("twice", "title", "summary", serves=("own.shared",), parameters=pair, run=print),
    ):
        with pytest.raises(oc.BadInput, match="the parameter 'k' is stated 2 times; give each a name of its own"):
            make()


def test_names_of_topologies():
    assert oc.topology([("a", "b"), ("b", "a")], name="my lab").spec == "custom:my lab"
    with pytest.raises(oc.BadInput, match="must consist of letters"):
        oc.topology([("a", "b")], name="a/b")


class Stepped(oc.Formulation):
    """All-to-all in two steps of free length, in which shards are held; counts amounts."""

    name, meaning = "own.stepped", "time T [shards / link bandwidth]"
    variables: ClassVar = {"f": ("arc", "source", "step"), "t": ("step",)}

    def cvxpy(self):
        net, t = self.instance, cp.Variable(2, name="t", nonneg=True)
        f = cp.Variable((net.arcs, net.n, 2), name="f", nonneg=True)
        ends = np.zeros((2, net.n, net.arcs))
        ends[0, net.tail, range(net.arcs)] = ends[1, net.head, range(net.arcs)] = 1
        held, rows = [net.n * np.eye(net.n)], []
        for k in range(2):
            rows += [ends[0] @ f[:, :, k] <= held[-1], cp.sum(f[:, :, k], axis=1) <= cp.multiply(net.capacity, t[k])]
            held.append(held[-1] + (ends[1] - ends[0]) @ f[:, :, k])
        return cp.Problem(cp.Minimize(cp.sum(t)), [*rows, held[-1] >= 1])

    def objective(self, values):
        return float(values["t"].sum())

    def residuals(self, values):
        room = self.instance.capacity[:, None] * values["t"]
        return {"capacity": float((values["f"].sum(axis=1) - room).max())}

    def metrics(self, value):
        return {"T": value}


class Timeless(Stepped):
    """The same without a time."""

    name = "own.timeless"
    variables: ClassVar = Stepped.variables

    def metrics(self, value):
        return {}


class Amounts(Timeless):
    """The same, with a unit."""

    name = "own.amounts"
    variables: ClassVar = Stepped.variables
    units: ClassVar = {"f": "shards"}


@pytest.mark.parametrize("kind", [Stepped, Amounts])
def test_amounts_of_steps_are_carried_in_the_time_of_all_and_keep_their_proof(kind, tmp_path):
    """The full links of a ring are busy all the time, not nine halves of it."""
    result = oc.solve(kind, "ring:5", method="highs")
    assert (result.value, result.proof, result.record.bound_source) == (pytest.approx(3), "optimal", "lp-dual")
    loads = result.link_loads()
    assert loads["load"].sum() >= 30 * (1 - 1e-6), "20 shards over 1 or 2 hops"
    assert loads["utilisation"].to_numpy() == pytest.approx(loads["load"] / 3)
    assert loads["utilisation"].max() == pytest.approx(1)
    assert result.plot().axes[0].get_xlim()
    again = oc.load(result.save(tmp_path / "own.json"), formulation=kind)
    assert (again.proof, again.record.bound_source) == ("optimal", "lp-dual")
    assert again.bound == pytest.approx(3)


def test_rates_above_capacities_are_no_rates():
    result = oc.solve(Timeless, "ring:5", method="highs")
    with pytest.raises(oc.BadInput, match=r"f is 3 times the capacity of a link.*state units = \{'f': 'shards'\}"):
        result.link_loads()


class Shared(oc.Formulation):
    """All-to-all in which no pair takes more than a part of a link."""

    name, concurrent = "own.shared", "F"
    variables: ClassVar = {"f": ("arc", "pair"), "F": ()}
    labels: ClassVar = ("balance", "capacity", "part")

    def __init__(self, instance, *, part: float = 0.5):
        self.instance, self.part = instance, part

    def supply(self):
        """What the pairs send at the vertices."""
        ends = self.instance.terminals
        pairs = [(s, t) for s in ends for t in ends if s != t]
        result = np.zeros((self.instance.n, len(pairs)))
        for p, (s, t) in enumerate(pairs):
            result[s, p], result[t, p] = -1.0, 1.0
        return result

    def cvxpy(self):
        net, sent = self.instance, self.supply()
        f, F = cp.Variable((net.arcs, sent.shape[1]), name="f", nonneg=True), cp.Variable(name="F", nonneg=True)
        most = np.repeat(self.part * net.capacity[:, None], sent.shape[1], axis=1)
        rows = [net.incidence() @ f == F * sent, cp.sum(f, axis=1) <= net.capacity, f <= most]
        for label, row in zip(self.labels, rows, strict=False):
            row.set_label(label)
        return cp.Problem(cp.Maximize(F), rows)

    def residuals(self, values):
        net, f, F = self.instance, values["f"], values["F"]
        return {
            "balance": abs(net.incidence() @ f - F * self.supply()).max(),
            "capacity": (f.sum(axis=1) - net.capacity).max(),
            "part": (f - self.part * net.capacity[:, None]).max(),
        }


def test_the_bottleneck_names_the_rows_that_bind():
    result = oc.solve(Shared, "ring:5", part=0.1, method="highs")
    assert result.bottleneck().reason == "bound 0.2 by the duals of the rows balance, part"
    assert "price" not in result.link_loads()
    unnamed = oc.solve(
        type("Unnamed", (Shared,), {"name": "own.unnamed", "labels": ()}), "ring:5", part=0.1, method="highs"
    )
    assert unnamed.bottleneck().reason == "bound 0.2 by the duals of the rows constraint0, constraint2"
    steps = oc.solve("alltoall.timestep-mcf", "ring:5", steps=3, method="highs")
    assert steps.bottleneck().reason == "bound 3 by the duals of the rows capacity, balance"


def test_axes_of_other_variables_or_in_another_order_are_named():
    swapped = type("Swapped", (Shared,), {"name": "own.swapped", "variables": {"f": ("pair", "arc"), "F": ()}})
    wanted = (
        r"'own.swapped': f is declared with the axes pair \(12\), arc \(8\), but has the shape \(8, 12\) in the build; "
        r"write variables = \{'f': \('arc', 'pair'\), \.\.\.\}$"
    )
    for solve in (lambda: oc.solve(swapped, "ring:4"), oc.model(swapped, "ring:4").solve):
        with pytest.raises(ModelError, match=wanted):
            solve()
    fewer = type("Fewer", (Shared,), {"name": "own.fewer", "variables": {"f": ("arc",), "F": ()}})
    with pytest.raises(ModelError, match=r"axes arc \(8\), but has .* in the build; correct one of them$"):
        oc.solve(fewer, "ring:4")
    other = type("Other", (Shared,), {"name": "own.other", "variables": {"g": ("arc", "pair"), "F": ()}})
    with pytest.raises(oc.BadInput, match=r"variables names 'g', which is no variable of the model: (f, F|F, f)"):
        oc.solve(other, "ring:4")


def test_labels_of_constraints_give_prices_of_links():
    result = oc.solve(Shared, "ring:5", part=1.0, method="highs")
    assert result.link_loads()["price"].sum() == pytest.approx(-result.T)


def stated(given, counted=None):
    class Own(oc.Formulation):
        name, sense = "own.axes", "max"
        variables, units = given, counted or {}

        def pyomo(self):
            raise NotImplementedError

        def residuals(self, values):
            return {}

        def objective(self, values):
            return 0.0

    return Own


def test_loads_of_two_variables_need_units():
    ring, values = oc.parse("ring:3"), {"x": np.ones(6), "f": np.full(6, 2.0)}
    both = {"x": ("arc",), "f": ("arc",)}
    with pytest.raises(oc.BadInput, match="the variables x, f have an axis 'arc'; state units"):
        stated(both)(ring).links(values)
    assert stated(both, {"f": "link bandwidths"})(ring).links(values).load.tolist() == [2.0] * 6


def test_axes_without_an_instance_are_refused_in_one_line():
    own = stated({"f": ("arc",)})(oc.parse("ring:3"))
    del own.instance
    with pytest.raises(oc.BadInput, match=r"keep it: self\.instance = topology$"):
        own._arrays(("f",))


class BySource(Shared):
    """All-to-all by sources, whose flow may hold circulations."""

    name, labels = "own.by-source", ("balance", "capacity")
    variables: ClassVar = {"f": ("arc", "source"), "F": ()}

    def supply(self):
        """What the sources send at the vertices."""
        size = self.instance.n
        return np.ones((size, size)) - size * np.eye(size)


def test_loads_of_links_hold_no_circulations():
    result = oc.solve(BySource, "ring:4", part=1.0, method="highs")
    loads = result.link_loads()["load"]
    around = dict(result.values)
    around["f"] = around["f"].copy()
    spare = 1.0 - loads.max()
    around["f"][:, 0] += max(spare, 0.0) + 0.25
    links = result.plan.problem.links(around)
    assert links.load == pytest.approx(loads.to_numpy())
    assert around["f"].sum() > loads.sum() + 1.9  # the solution itself is left as it is
