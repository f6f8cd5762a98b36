"""Every formulation, as it is stated in Pyomo and in CVXPY, has the value that its certified method proves."""

from __future__ import annotations

import pytest

import opticoll as oc
from opticoll.formulations import formulations

#: Formulation: instance, settings, and the method of another kind whose value both stated models must attain. Where
#: there is no such method, settings under which another model has the same optimum.
CASES = {
    "alltoall.master": ("genkautz:n=7,d=2", {}, "orbit-lp"),
    "alltoall.link-mcf": ("path:4+scale=2.5", {}, "master-child"),
    "alltoall.child": ("ring:4", {}, "certified-pdlp"),
    "alltoall.path-mcf": ("ring:5", {"paths": "all"}, "column-generation"),
    "alltoall.sccl": ("ring:3", {"chunks": 2}, "source-flows"),
    "alltoall.timestep-mcf": ("mesh:2x2", {}, {"aggregate": "source"}),
    "alltoall.timestep-child": ("path:3", {"steps": 3}, "certified-pdlp"),
    "alltoall.all-gather": ("mesh:2x3", {}, "worst-cut"),
    "alltoall.broadcast": ("mesh:2x3", {"root": 1}, "tree-packing"),
    "alltoall.reduce-scatter": ("mesh:2x3", {}, "tree-packing"),
    "alltoall.all-reduce": ("hypercube:2+host=2", {}, "tree-packing"),
    "alltoall.min-congestion": ("ring:4", {}, "exact-routing"),
    "alltoall.virtual-channels": ("ring:3,directed", {"layers": 2}, "layer-assignment"),
    "alltoall.channels": ("ring:4", {"layers": 1}, "channel-search"),
    "lumorph.min-overlap": ("lightpath:2x3", {}, "negotiated-rerouting"),
    "lumorph.co-scheduling": ("training:ncf,gpus=4", {}, "independent-sets"),
    "lumorph.rounds": ("lightpath:2x2", {}, "certified-rounds"),
    "lumorph.iteration": ("training:random,gpus=8,calls=6,seed=3,stages=3", {}, "boundary-batches"),
    "lumorph.forwarded-rounds": ("lightpath:2x2,lasers=2", {}, "index-algorithm"),
    "lumorph.sum-rounds": ("lightpath:1x3,lasers=2", {}, "combined-rounds"),
    "optree.tree": ("wdm-ring:n=12,wavelengths=2", {}, "tree-search"),
    "optree.one-stage": ("wdm-line:n=4,wavelengths=1", {}, "cycle-cover"),
    "sipml.ocs-circuits": ("servers:n=4,degree=5,traffic=random,seed=1", {"model": "switches"}, "koenig-bisection"),
    "sipml.ring-wavelengths": ("servers:n=5,degree=4,traffic=random,seed=1", {}, "ring-sets"),
    "sipml.placement": ("op-graph:model=chain,splits=1x2x2", {"k": 2}, "placement-enumeration"),
    "topoopt.topology": ("servers:n=3,degree=2,traffic=dlrm", {}, "design-search"),
    "topoopt.utility": ("servers:n=5,degree=3,traffic=random,seed=1", {}, "transportation"),
    "topology.design": ("servers:n=4,degree=2", {}, "symmetric-search"),
    "topology.sequence": ("servers:n=3,degree=1", {"configurations": 2, "directed": True}, "sequence-search"),
    "topology.matchings": ("servers:n=4,degree=3", {"demand": "permutation:2"}, "matching-search"),
    "topology.steps": ("ring:8", {"algorithm": "shifts", "delay": 0.5}, "step-choice"),
    "topoopt.routing": ("servers:n=5,degree=2,traffic=dlrm", {}, "certified-pdlp"),
    "topoopt.strategy": ("servers:n=4,degree=2,traffic=bert", {"memory": 0.5}, "strategy-front"),
}
STATED = (("highs", "pyomo"), ("scip", "cvxpy"))


def test_every_formulation_has_a_case():
    assert set(CASES) == formulations().keys() - {"matrix.program"}


@pytest.mark.parametrize("name", CASES)
def test_stated_is_certified(name):
    spec, settings, other = CASES[name]
    runs = [oc.solve(oc.Task(name, spec, method, form=form, settings=settings)) for method, form in STATED]
    if isinstance(other, dict):
        runs.append(oc.solve(oc.Task(name, spec, "highs", settings=other)))
    else:
        runs.append(oc.solve(oc.Task(name, spec, other, settings=settings)))
    assert [run.verified for run in runs] == [True] * 3
    assert [run.termination for run in runs[:2]] == ["optimal", "optimal"]
    assert runs[-1].proof in {"optimal", "exact"}
    assert [run.objective for run in runs] == pytest.approx([runs[-1].objective] * 3, rel=1e-5)
