"""Exact optima on the orbits of symmetries, against those of linear programs in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from slow_cases import marked

import opticoll as oc
from opticoll.errors import BadInput, NoSolution
from opticoll.formulations.alltoall.master import Master
from opticoll.instances import Topology, as_instance
from opticoll.solvers.exact import orbit_check, orbit_optimum, prove
from opticoll.solvers.methods.flows import flow_orbits


@pytest.mark.parametrize(
    ("spec", "optimum"),
    [
        ("kautz:d=2,D=4", "10/389"),
        marked("kautz:d=2,D=5", "5/501", slow=True),
        ("petersen", "1/5"),
        ("mesh:4x4", "1/16"),
        ("torus:3x3+host=2.0", "1/6"),
        ("torus:3x3+fail=2", "2/9"),
        ("random-regular:n=16,d=3,seed=1", "1/21"),
        marked("random-regular:n=32,d=4,seed=1", "1/24", slow=True),
        ("nvswitch:2", "25/4"),
    ],
)
def test_what_is_too_large_to_be_stated_is_proven_on_orbits(spec, optimum, monkeypatch, tmp_path):
    """The optima are those of the linear program in fractions (docs/guide/exact.md)."""
    monkeypatch.setattr(prove, "MOST_NONZEROS", 1)
    result = oc.solve("alltoall.master", spec, exact=True)
    assert (result.objective_exact, result.proof) == (Fraction(optimum), "exact")
    assert result.metrics["T_exact"] == str(1 / Fraction(optimum))
    with pytest.raises(BadInput, match="too large for a VIPR file"):
        result.save(tmp_path / "a.vipr")


#: The rotation by two keeps the capacities. Flows of the vertices 0 and 1 by arc, times 2.
RING = Topology(4, [0, 1, 2, 3], [1, 2, 3, 0], [1.0, 2.0, 1.0, 2.0])
ROTATION = np.array([[2, 3, 0, 1]])
FLOWS = np.array([[6, 0], [4, 6], [2, 4], [0, 2]], dtype=object)
#: The narrow arcs have length 1. Distances from 0 and 1.
LENGTHS = np.array([1, 0, 1, 0], dtype=object)
DISTANCES = np.array([[0, 1], [1, 0], [1, 0], [2, 1]], dtype=object)


def checked(images=ROTATION, sources=(0, 1), flows=FLOWS, lengths=LENGTHS, potentials=DISTANCES, below=2):
    capacity = [Fraction(value) for value in RING.capacity.tolist()]
    return orbit_check.interval(RING, capacity, images, np.array(sources), flows, below, lengths, potentials)


def test_flows_and_lengths_on_orbits_prove_an_interval():
    assert checked() == (6, 6)
    assert checked(flows=2 * FLOWS) == (6, 12), "more than the demand is delivered"
    assert checked(flows=FLOWS * 2**70, below=2**71) == (6, 6), "numbers of any length"
    assert checked(potentials=DISTANCES // 2) == (1, 6)
    trivial = np.array([[0, 1, 2, 3]])
    every = [np.roll(FLOWS[:, 0], s) for s in range(4)], [np.roll([0, 1, 2, 3], s) for s in range(4)]
    one, hops = (np.array(part, dtype=object).T for part in every)
    ones = np.ones(4, dtype=object)
    assert checked(trivial, range(4), one, ones, hops) == (Fraction(24, 6), 6)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"images": np.array([[1, 2, 3, 0]])}, "does not keep the capacities"),
        ({"images": np.array([[2, 3, 0, 0]])}, "no permutation"),
        ({"images": np.array([[2, 1, 0, 3]])}, "does not keep the ends"),
        ({"lengths": np.array([1, 0, 2, 0], dtype=object)}, "lengths differ on an orbit"),
        ({"lengths": -LENGTHS, "potentials": -DISTANCES}, "above a distance"),
        ({"potentials": DISTANCES + 1}, "above a distance"),
        ({"sources": (0, 2)}, "not one rank of each orbit"),
        ({"sources": (1, 0)}, "does not deliver"),
    ],
)
def test_what_proves_nothing_is_refused(change, reason):
    with pytest.raises(NoSolution, match=reason):
        checked(**change)


def test_no_smaller_flow_and_no_larger_potential_is_accepted():
    for part, step in ((FLOWS, -1), (DISTANCES, 1)):
        for place in np.ndindex(part.shape):
            changed = part.copy()
            changed[place] += step
            name = "flows" if part is FLOWS else "potentials"
            with pytest.raises(NoSolution):
                checked(**{name: changed})


def test_misread_shortest_paths_leave_an_interval(monkeypatch):
    monkeypatch.setattr(prove, "MOST_NONZEROS", 1)
    monkeypatch.setattr(orbit_optimum, "ZEROS", ())
    result = oc.solve("alltoall.master", "genkautz:n=16,d=4", exact=True)
    assert (result.objective_exact, result.proof) == (None, "optimal")
    bound = Fraction(result.metrics["bound_exact"])
    assert Fraction(7, 53) <= bound < Fraction(7, 53) * (1 + Fraction(1, 10**6))
    assert f"only the bound {bound} and a solution of value" in result.record.message


def test_averaged_flows_have_the_averaged_loads():
    data = Master.prepare(as_instance("mesh:3x3"), {}).flow
    orbits = flow_orbits.find(data)
    flows = np.random.default_rng(0).random((data.topology.arcs, data.groups))
    mean = orbits.averaged(flows)
    assert np.allclose(orbits.fold(mean @ orbits.weight), orbits.fold(flows.sum(axis=1)))
    balance = data.topology.incidence() @ flows
    for r, group in enumerate(orbits.representative.tolist()):
        if orbits.weight[r] == 1:
            assert np.allclose(data.topology.incidence() @ mean[:, r], balance[:, group])
