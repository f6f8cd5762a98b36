"""Exact optima on the orbits of symmetries, against those of linear programs in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from slow_cases import marked

import opticoll as oc
from opticoll.errors import BadInput
from opticoll.formulations.alltoall.master import Master
from opticoll.formulations.flows import flow_orbits
from opticoll.instances import as_instance
from opticoll.solvers.exact import orbit_optimum, prove


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
    path = result.save(tmp_path / "a.proof.json")
    assert oc.check("alltoall.master", spec, path)["objective_exact"] == optimum
    with pytest.raises(BadInput, match=r"too large for a VIPR file; name it \.proof\.json"):
        result.save(tmp_path / "a.vipr")


def test_misread_shortest_paths_leave_an_interval(monkeypatch):
    monkeypatch.setattr(prove, "MOST_NONZEROS", 1)
    monkeypatch.setattr(orbit_optimum, "ZEROS", ())
    result = oc.solve("alltoall.master", "genkautz:n=16,d=4", exact=True)
    assert (result.objective_exact, result.proof) == (None, "optimal")
    bound = Fraction(result.metrics["bound_exact"])
    assert Fraction(7, 53) <= bound < Fraction(7, 53) * (1 + Fraction(1, 10**6))
    assert f"only the bound {bound} and a solution of value" in result.record.message


def test_averaged_flows_have_the_averaged_loads():
    data = Master.prepare(as_instance("mesh:3x3"), {})
    orbits = flow_orbits.find(data)
    flows = np.random.default_rng(0).random((data.topology.arcs, data.groups))
    mean = orbits.averaged(flows)
    assert np.allclose(orbits.fold(mean @ orbits.weight), orbits.fold(flows.sum(axis=1)))
    balance = data.topology.incidence() @ flows
    for r, group in enumerate(orbits.representative.tolist()):
        if orbits.weight[r] == 1:
            assert np.allclose(data.topology.incidence() @ mean[:, r], balance[:, group])
