"""A thin arc beside a thick one: what overloads it is refused however small it is against the largest capacity."""

import numpy as np
import pytest

from formulations import formulation
from instances import Topology
from solvers import verify
from solvers.runner import solve
from solvers.task import Task

MODELS = ["alltoall.master", "alltoall.link-mcf", "alltoall.path-mcf"]


def data_of(name, topology, **settings):
    run = solve(Task(name, topology, method="highs", settings=settings))
    return formulation(name), run.plan.data, run


def barbell(thin: float) -> Topology:
    """Two pairs of vertices with links of capacity 1, joined by one of ``thin`` each way."""
    ends = [(0, 1), (2, 3), (1, 2)]
    tail = [u for u, v in ends] + [v for u, v in ends]
    head = [v for u, v in ends] + [u for u, v in ends]
    return Topology(4, tail, head, [1.0, 1.0, thin] * 2)


@pytest.mark.parametrize("name", MODELS)
def test_overloads_and_negative_flows_on_thin_arcs_are_violations(name):
    chosen, data, run = data_of(name, barbell(1e-7))
    assert run.verified
    assert run.objective == pytest.approx(0.25e-7, rel=1e-6)
    assert max(chosen.residuals(data, run.values).values()) < 1e-9

    double = {key: array if key.startswith("path_") else 2 * array for key, array in run.values.items()}
    found = chosen.residuals(data, double)
    assert found["capacity"] > 0.5, "twice the flow of an optimum overloads the thin arc by its whole capacity"

    flow = next(key for key in run.values if key in "gf")
    negative = {**run.values, flow: np.array(run.values[flow])}
    negative[flow][...] = -1e-8
    assert chosen.residuals(data, negative)["nonnegative"] > verify.FEASIBLE


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_violations_do_not_depend_on_the_unit_of_capacity(scale):
    chosen, data, run = data_of("alltoall.master", barbell(0.5))
    other, scaled, _ = data_of("alltoall.master", barbell(0.5).scaled(scale))
    broken = {key: 1.25 * array for key, array in run.values.items()}
    moved = {key: array * scale for key, array in broken.items()}
    assert other.residuals(scaled, moved) == pytest.approx(chosen.residuals(data, broken))


def test_the_printed_relaxation_keeps_thin_arcs_too():
    chosen, data, run = data_of("alltoall.link-mcf", barbell(1e-7), printed=True)
    assert run.verified
    thin = int(np.argmin(data.flow.capacity))
    for more, block in ((1e-7, "capacity"), (-1e-7, "nonnegative")):
        broken = {**run.values, "f": np.array(run.values["f"])}
        broken["f"][thin] += more
        assert chosen.residuals(data, broken)[block] > 0.5
