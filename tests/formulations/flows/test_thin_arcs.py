"""A small arc next to a large one: an overload is refused however small it is relative to the largest capacity."""

import numpy as np
import pytest

from opticoll.instances import Topology
from opticoll.solvers import verify
from opticoll.solvers.solve import solve
from opticoll.solvers.task import Task

MODELS = ["alltoall.master", "alltoall.link-mcf", "alltoall.path-mcf"]


def data_of(name, topology, **settings):
    run = solve(Task(name, topology, method="highs", settings=settings))
    return run.plan.problem, run


def barbell(thin: float) -> Topology:
    """Two pairs of vertices with links of capacity 1, joined by one of ``thin`` each way."""
    ends = [(0, 1), (2, 3), (1, 2)]
    tail = [u for u, v in ends] + [v for u, v in ends]
    head = [v for u, v in ends] + [u for u, v in ends]
    return Topology(4, tail, head, [1.0, 1.0, thin] * 2)


@pytest.mark.parametrize("name", MODELS)
def test_overloads_and_negative_flows_on_thin_arcs_are_violations(name):
    data, run = data_of(name, barbell(1e-7))
    assert run.verified
    assert run.objective == pytest.approx(0.25e-7, rel=1e-6)
    assert max(data.residuals(run.values).values()) < 1e-9

    double = {key: array if key.startswith("path_") else 2 * array for key, array in run.values.items()}
    result = data.residuals(double)
    assert result["capacity"] > 0.5, "twice the flow of an optimum overloads the thin arc by its whole capacity"

    flow = next(key for key in run.values if key in "gf")
    negative = {**run.values, flow: np.array(run.values[flow])}
    negative[flow][...] = -1e-8
    assert data.residuals(negative)["nonnegative"] > verify.FEASIBLE


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_violations_do_not_depend_on_the_unit_of_capacity(scale):
    data, run = data_of("alltoall.master", barbell(0.5))
    scaled, _ = data_of("alltoall.master", barbell(0.5).scaled(scale))
    broken = {key: 1.25 * array for key, array in run.values.items()}
    moved = {key: array * scale for key, array in broken.items()}
    assert scaled.residuals(moved) == pytest.approx(data.residuals(broken))


def test_the_printed_relaxation_keeps_thin_arcs_too():
    data, run = data_of("alltoall.link-mcf", barbell(1e-7), printed=True)
    assert run.verified
    thin = int(np.argmin(data.flow.capacity))
    for more, block in ((1e-7, "capacity"), (-1e-7, "nonnegative")):
        broken = {**run.values, "f": np.array(run.values["f"])}
        broken["f"][thin] += more
        assert data.residuals(broken)[block] > 0.5


@pytest.mark.parametrize(
    "name",
    [
        "alltoall.all-gather",
        "alltoall.broadcast",
        "alltoall.reduce-scatter",
        "alltoall.all-reduce",
        "alltoall.timestep-mcf",
        "alltoall.min-congestion",
    ],
)
def test_times_do_not_depend_on_the_unit_of_capacity(name):
    """Capacities that are coefficients: below 1e-9 solvers drop them, and a ring was called infeasible."""
    plain, tiny = (solve(Task(name, spec, method="highs")) for spec in ("ring:5", "ring:5+scale=1e-12"))
    assert tiny.verified
    assert tiny.termination == "optimal"
    assert tiny.objective == pytest.approx(plain.objective * 1e12, rel=1e-9)
    if name != "alltoall.min-congestion":
        assert tiny.bound == pytest.approx(tiny.objective, rel=1e-6)


def test_interior_points_in_large_units_are_verified():
    """Noise of 1e-11 of a capacity of 1e6 is more than a column's absolute 1e-6 in the matrix."""
    random = np.random.default_rng(3)
    topology = Topology(
        6,
        np.repeat(np.arange(6), 3),
        (np.repeat(np.arange(6), 3) + np.tile([1, 2, 4], 6)) % 6,
        1e6 * random.uniform(0.02, 1.0, 18),
    )
    run = solve(Task("alltoall.master", topology, method="clarabel"))
    assert run.verified
    assert run.proof == "optimal"


@pytest.mark.parametrize("unit", [1e-10, 1e6])
def test_children_do_not_depend_on_the_unit_of_capacity(unit):
    capacity = unit * np.random.default_rng(3).uniform(0.3, 2.0, 9)
    arcs = Topology(4, [0, 1, 2, 3, 0, 2, 1, 3, 0], [1, 2, 3, 0, 2, 0, 3, 1, 3], capacity)
    run = solve(Task("alltoall.link-mcf", arcs, method="master-child"))
    assert run.proof == "optimal"
    assert run.objective == pytest.approx(solve(Task("alltoall.master", arcs, method="highs")).objective, rel=1e-6)


def test_columns_with_tiny_coefficients_are_rescaled():
    """Same optimum, duals and bound after the way back; other columns and integers stay as they are."""
    import scipy.sparse as sp

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.solvers.compile.scaling import in_units
    from opticoll.solvers.task import Outcome, Termination

    def form(tiny, integer=False):
        return StandardForm(
            A=sp.csc_array(np.array([[-1.0, tiny], [1.0, 0.0]])),
            row_lower=np.array([0.0, 3.0]),
            row_upper=np.array([np.inf, 3.0]),
            col_lower=np.zeros(2),
            col_upper=np.array([np.inf, 8.0 / tiny]),
            cost=np.array([0.0, 2.0]),
            sense="min",
            offset=5.0,
            integer=np.array([False, integer]),
        )

    assert in_units(form(1.0)) is None
    kept = in_units(form(1e-9, integer=True)).form
    assert kept.col_upper[1] == 8.0 / 1e-9
    given = form(1e-9)
    step = in_units(given)
    assert 0.25 <= step.form.A.toarray()[0, 1] <= 4
    assert np.abs(step.form.cost).max() <= 2
    y = np.array([3.0, 3.0 / step.form.A.toarray()[0, 1]])
    duals = np.linalg.solve(step.form.A.toarray().T, step.form.cost)
    back = step.recover(
        Outcome(Termination.OPTIMAL, x=y, row_duals=duals, objective=step.form.cost @ y, bound=step.form.cost @ y)
    )
    assert back.x == pytest.approx([3.0, 3e9])
    assert back.objective == pytest.approx(6e9 + 5)
    assert back.bound == pytest.approx(6e9 + 5)
    assert verify.dual_bound(given, back.row_duals) == pytest.approx(6e9 + 5)
    assert given.A.toarray()[0, 1] == 1e-9, "the matrix that is checked against stays as it was"
