"""The equations of an optimum give its last digits, and a wrong reading of them does no harm."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from reference import optimum_of

from opticoll.analysis.result.result import solve
from opticoll.formulations import formulation
from opticoll.instances import parse
from opticoll.solvers.methods.flows import flow_orbits
from opticoll.solvers.methods.flows.flow_orbits import ReducedSolution
from opticoll.solvers.methods.flows.orbit_lp import solve_reduced
from opticoll.solvers.methods.flows.sharpening import sharpened
from opticoll.solvers.task import SolveRequest, Termination

SPECS = (
    "genkautz:n=30,d=3",
    "genkautz:n=17,d=2",
    "random-regular:n=20,d=4,seed=3",
    "mesh:3x4",
    "torus:3x5+fail=1,seed=0",
)


def orbits_of(spec):
    return flow_orbits.find(formulation("alltoall.master").prepare(parse(spec), {}).flow)


def blurred(orbits, size, seed):
    """A pair inside the optimal face of the reduced program, with flow and lengths off by about ``size``."""
    rng = np.random.default_rng(seed)
    request = SolveRequest(threads=1, rel_tol=1e-9, seed=0)
    known = solve_reduced(SimpleNamespace(request=lambda: request), orbits, None, "highs-ipx")
    flows = known.flows * np.maximum(1 + size * rng.standard_normal(known.flows.shape), 0.0)
    return near(orbits, flows, known.lengths * (1 + size * rng.standard_normal(orbits.arc_orbit.size)))


def near(orbits, flows, lengths):
    from opticoll.formulations.flows.single_source import unit_flow

    reduced = orbits.reduced
    lengths = orbits.fold(np.maximum(lengths, 0.0))
    flows = orbits.settle(unit_flow(reduced.topology, reduced.sources, reduced.demand / orbits.weight, flows))
    upper = float((orbits.fold(flows @ orbits.weight) / reduced.capacity).max())
    return ReducedSolution(Termination.TOLERANCE, flows, lengths, upper, 1.0 / reduced.length_bound(lengths))


def assert_exact(orbits, solution):
    """The bounds belong to the flow and the lengths, by dense sums over every source and arc."""
    reduced, flows = orbits.reduced, solution.flows
    topology = reduced.topology
    assert flows.min() >= 0
    into, out = np.zeros((topology.n, reduced.groups)), np.zeros((topology.n, reduced.groups))
    np.add.at(into, topology.head, flows)
    np.add.at(out, topology.tail, flows)
    want = reduced.demand / orbits.weight
    kept = np.ones_like(want, dtype=bool)
    kept[reduced.sources, np.arange(reduced.groups)] = False
    np.testing.assert_allclose((into - out)[kept], want[kept], rtol=0, atol=1e-9 * want.max() * topology.n)
    every = orbits.lift(flows)
    assert (every.sum(axis=1) / orbits.data.capacity).max() == pytest.approx(solution.upper, rel=1e-12)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("size", [1e-4, 1e-7])
def test_digits_are_gained(spec, size):
    orbits = orbits_of(spec)
    start = blurred(orbits, size, seed=1)
    after = sharpened(orbits, start, 0.0)
    assert after.gap <= 1e-11 < start.gap
    assert after.lower * (1 - 1e-11) <= 1.0 / optimum_of("alltoall.master", spec) <= after.upper * (1 + 1e-9)
    assert_exact(orbits, after)


@pytest.mark.parametrize("seed", range(8))
def test_a_wrong_reading_does_no_harm(seed):
    spec, rng = SPECS[seed % len(SPECS)], np.random.default_rng(seed)
    orbits = orbits_of(spec)
    flows = rng.random((orbits.arc_orbit.size, orbits.representative.size)) ** 4
    flows[orbits.reduced.blocked] = 0.0
    start = near(orbits, flows, rng.random(orbits.arc_orbit.size))
    after = sharpened(orbits, start, 0.0)
    assert start.lower <= after.lower <= after.upper <= start.upper
    assert after.lower * (1 - 1e-9) <= 1.0 / optimum_of("alltoall.master", spec) <= after.upper * (1 + 1e-9)
    assert_exact(orbits, after)


def test_what_is_closed_or_lacks_a_side_stays():
    orbits = orbits_of("genkautz:n=17,d=2")
    start = blurred(orbits, 1e-3, seed=2)
    assert sharpened(orbits, start, 1e-1) is start
    for without in (replace(start, flows=None, upper=np.inf), replace(start, lengths=None, lower=0.0)):
        assert sharpened(orbits, without, 0.0) is without


def test_twelve_digits_through_the_front_door():
    result = solve("alltoall.master", "random-regular:n=40,d=4,seed=1", method="screened-lp", tol=1e-12)
    assert result.proof == "optimal"
    assert result.gap <= 1e-12
