"""Small instances and settings of every formulation, read by the tests that hold for all formulations.

Their builds are compared as matrices on every case; the first one, which is small, is also solved, stored, exported,
mutated and drawn.
"""

from __future__ import annotations

from pathlib import Path

#: A sum that is required by a vertex that contributes nothing.
PARTIAL = Path(__file__).resolve().parent / "data" / "partial-sum.json"

Settings = dict[str, str]

#: Cases (instance, settings) by formulation.
CASES: dict[str, list[tuple[str, Settings]]] = {
    "alltoall.master": [
        ("path:3", {}),
        ("mesh:2x2", {}),
        ("hypercube:2+host=1.5", {}),
        ("dgx1", {}),
        ("ring:4", {"demand": "permutation:1"}),
        ("genkautz:n=5,d=2+scale=2.5", {"demand": "random:4"}),
    ],
    "alltoall.link-mcf": [
        ("path:3", {}),
        ("path:3", {"printed": "true"}),
        ("kautz:d=2,D=2", {}),
        ("star:4", {"printed": "true"}),
        ("ring:4+scale=0.3", {}),
        ("hypercube:2+host=1.5", {"printed": "true"}),
    ],
    "alltoall.child": [("path:3", {}), ("ring:4", {"source": "2"}), ("hypercube:2+host=1.5", {})],
    "alltoall.path-mcf": [
        ("ring:3", {}),
        ("ring:4", {"paths": "all"}),
        ("dgx1", {}),
        ("star:4", {"paths": "shortest"}),
        ("hypercube:3", {"paths": "k", "k": "3"}),
        ("ring:5+scale=2.5", {"paths": "all", "lmax": "3"}),
    ],
    "alltoall.sccl": [
        ("path:3", {}),
        ("ring:4,directed+scale=1.5", {"chunks": "2", "steps": "4"}),
        ("genkautz:n=5,d=2", {}),
        ("path:3", {"model": "sources", "chunks": "2"}),
        ("complete:3+scale=0.4", {"steps": "2"}),
    ],
    "alltoall.timestep-mcf": [
        ("path:3", {}),
        ("path:3", {"steps": "4", "aggregate": "source"}),
        ("ring:4,directed+scale=0.5", {}),
        ("hypercube:2+host=1.5", {"aggregate": "source"}),
        ("star:4", {"steps": "3"}),
        ("complete:3", {}),
        ("path:3+host=2", {"relays": "step"}),
        ("path:3+host=0.7,relay=nic", {"steps": "2"}),
    ],
    "alltoall.timestep-child": [
        ("path:3", {}),
        ("ring:4,directed+scale=0.5", {"source": "2", "steps": "4"}),
        ("hypercube:2+host=1.5", {}),
        ("path:3+host=2", {"relays": "step"}),
    ],
    "alltoall.all-gather": [("path:3", {}), ("star:4", {}), ("hypercube:2+host=1.5", {}), ("ring:4+scale=3", {})],
    "alltoall.broadcast": [
        ("path:3", {}),
        ("star:4", {"root": "2"}),
        ("hypercube:2+host=1.5", {"root": "1"}),
        ("ring:4+scale=3", {}),
    ],
    "alltoall.reduce-scatter": [("path:3", {}), ("star:4", {}), ("hypercube:2+host=1.5", {}), ("ring:4+scale=3", {})],
    "alltoall.all-reduce": [("path:3", {}), ("star:4", {}), ("hypercube:2+host=1.5", {}), ("ring:4+scale=3", {})],
    "alltoall.min-congestion": [
        ("ring:3", {}),
        ("ring:4", {"paths": "all"}),
        ("dgx1", {"paths": "shortest"}),
        ("ring:3+scale=0.5", {}),
        ("ring:4", {"paths": "all", "kappa": "2"}),
        ("hypercube:3", {"kappa": "3"}),
    ],
    "alltoall.virtual-channels": [
        ("ring:4", {"layers": "2"}),
        ("complete:3", {}),
        ("ring:4", {"layers": "1"}),
        ("ring:5", {"layers": "3"}),
    ],
    "alltoall.channels": [
        ("ring:4", {"layers": "1"}),
        ("ring:3", {"objective": "channels", "load": "1"}),
        ("path:3", {"objective": "channels", "layers": "1", "paths": "all"}),
        ("complete:3", {"paths": "all"}),
        ("ring:4+scale=2.5", {"demand": "random:2", "paths": "disjoint"}),
        ("path:2", {}),
    ],
    "lumorph.min-overlap": [
        ("lightpath:2x2", {"seed": "2"}),
        ("ring:4,directed", {"circuits": "all"}),
        ("lightpath:2x3", {}),
        ("lightpath:2x2", {"model": "path", "circuits": "all"}),
        ("lightpath:2x4+fail=1,seed=0", {"model": "path", "k": "2", "circuits": "recursive-doubling:1"}),
        ("lightpath:2x1,waveguides=2,wafers=2,fibres=3", {"seed": "2"}),
        ("lightpath:2x2,waveguides=4,wafers=2,fibres=1", {"model": "path", "paths": "shortest", "circuits": "all"}),
    ],
    "lumorph.co-scheduling": [
        ("training:random,gpus=8,calls=6,seed=3", {}),
        ("training:random,gpus=6,calls=4,seed=1", {"algorithm": "ring"}),
    ],
    "lumorph.rounds": [
        ("lightpath:2x2,lasers=2", {}),
        ("lightpath:1x3,lasers=1", {"collective": "all-to-all"}),
        ("lightpath:1x3,lasers=2", {"collective": "all-reduce", "rmax": "3"}),
        ("lightpath:2x2,lasers=3", {"wavelengths": "fixed", "rmax": "2"}),
        ("lightpath:1x2,lasers=1,waveguides=2,wafers=2,fibres=1", {"collective": "all-to-all", "rmax": "2"}),
        ("lightpath:2x1,lasers=1,waveguides=1,wafers=2,fibres=2", {"collective": "all-reduce", "rmax": "2"}),
        ("wdm-ring:n=3,wavelengths=2", {"rmax": "2"}),
        ("wdm-line:n=3,wavelengths=1,fibres=2", {"collective": "all-to-all"}),
        ("wdm-line:n=2,wavelengths=1", {"collective": "all-to-all"}),
        ("lightpath:1x3,lasers=2", {"program": "coded", "rmax": "4", "rmin": "2"}),
        ("lightpath:2x2,lasers=1", {"program": "coded", "collective": "broadcast", "root": "2", "rmax": "3"}),
        ("lightpath:1x3,lasers=1", {"program": "printed", "rmax": "4", "rmin": "2"}),
        ("lightpath:1x3,lasers=1", {"program": "printed", "collective": "scatter", "rmax": "4", "rmin": "2"}),
    ],
    "lumorph.sum-rounds": [
        ("lightpath:1x2,lasers=1", {"rmax": "2"}),
        ("lightpath:1x3,lasers=2", {"collective": f"file:{PARTIAL}", "rmax": "2", "bounds": "false"}),
        ("lightpath:1x3,lasers=1", {"collective": "reduce-scatter", "rmax": "3"}),
        ("lightpath:2x1,lasers=1,waveguides=2,wafers=2,fibres=1", {"rmax": "2"}),
    ],
    "lumorph.iteration": [
        ("training:random,gpus=4,calls=3,seed=1,stages=1", {}),
        ("training:random,gpus=6,calls=4,seed=2,stages=3", {"variant": "printed"}),
        ("training:random,gpus=6,calls=4,seed=2,stages=3", {"first": "calls", "algorithm": "ring"}),
        ("training:random,gpus=8,calls=4,seed=5,stages=3", {"overlap": "false"}),
        ("training:random,gpus=6,calls=3,seed=4,stages=4", {"batches": "false"}),
        ("training:random,gpus=4,calls=3,seed=6,stages=2", {"boundaries": "stages"}),
        ("training:random,gpus=4,calls=3,seed=6,stages=6", {"boundaries": "stages"}),
        ("training:random,gpus=4,calls=3,seed=6,stages=6", {"boundaries": "stages", "first": "calls"}),
    ],
    "lumorph.forwarded-rounds": [
        ("lightpath:1x2,lasers=1", {}),
        ("lightpath:1x3,lasers=1", {"bounds": "false"}),
        ("lightpath:2x2,lasers=2", {"collective": "scatter", "root": "1", "rmax": "2"}),
        ("lightpath:2x1,lasers=1,waveguides=1,wafers=2,fibres=2", {"rmax": "2"}),
        ("wdm-ring:n=3,wavelengths=2", {"rmax": "2", "collective": "all-gather"}),
    ],
    "optree.tree": [
        ("wdm-ring:n=4,wavelengths=2", {"depth": "2"}),
        ("wdm-ring:n=7,wavelengths=2", {}),
        ("wdm-line:n=6,wavelengths=1", {"depth": "1"}),
        ("wdm-ring:n=9,wavelengths=3", {"count": "printed"}),
    ],
    "optree.one-stage": [
        ("wdm-ring:n=3,wavelengths=2", {"colours": "2"}),
        ("wdm-line:n=4,wavelengths=1", {}),
        ("wdm-ring:n=4,wavelengths=1", {}),
        ("wdm-line:n=3,wavelengths=1", {"colours": "1"}),
    ],
    "sipml.ocs-circuits": [
        ("servers:n=3,degree=4,traffic=random,seed=1", {}),
        ("servers:n=3,degree=3,traffic=random,seed=2", {"model": "switches"}),
        ("servers:n=4,degree=7,traffic=alltoall", {"bandwidth": "1e9"}),
        ("servers:n=4,degree=3,traffic=alltoall", {}),
    ],
    "sipml.ring-wavelengths": [
        ("wdm-ring:n=3,wavelengths=3", {"traffic": "random"}),
        ("wdm-ring:n=3,wavelengths=2", {"model": "arcs"}),
        ("servers:n=6,degree=4,traffic=random,seed=1", {}),
        ("wdm-ring:n=5,wavelengths=4", {}),
        ("wdm-ring:n=4,wavelengths=3", {"model": "arcs", "traffic": "random", "seed": "3"}),
    ],
    "sipml.placement": [
        ("op-graph:model=chain,splits=1x3", {"k": "3", "degree": "2", "rule": "degree", "bandwidth": "1e9"}),
        ("op-graph:model=chain,splits=1x3", {"k": "3", "degree": "2"}),
        ("op-graph:model=chain,splits=1x2x2", {"k": "2"}),
        ("op-graph:model=chain,splits=1x2x2", {"k": "4", "degree": "3", "bandwidth": "1e9"}),
        ("op-graph:model=chain,splits=1x1", {"k": "1"}),
        (
            "op-graph:model=chain,splits=1x2x2",
            {"k": "3", "degree": "3", "bandwidth": "1e6", "memory": "2.7939677238464355e-09"},
        ),
    ],
    "topology.design": [
        ("servers:n=3,degree=2", {}),
        ("servers:n=4,degree=2", {"directed": "true"}),
        ("servers:n=5,degree=3", {}),
        ("servers:n=5,degree=3", {"rack": "2", "cables": "1", "uplinks": "2"}),
        ("servers:n=4,degree=2", {"rack": "2", "uplinks": "1", "directed": "true"}),
    ],
    "topology.sequence": [
        ("servers:n=3,degree=2", {"delay": "0.5", "configurations": "3", "charge": "changed", "overlap": "true"}),
        ("servers:n=3,degree=1", {"directed": "true"}),
        ("servers:n=4,degree=2", {"directed": "true", "relays": "step", "parallel": "1", "delay": "1"}),
        ("servers:n=4,degree=2", {"start": "ring:4", "delay": "0.25", "overlap": "true", "charge": "changed"}),
        ("servers:n=3,degree=3", {"demand": "permutation:1", "configurations": "0", "delay": "0.25"}),
        ("servers:n=4,degree=1", {"configurations": "3", "relays": "step", "delay": "0.125", "overlap": "true"}),
        ("servers:n=4,degree=1", {"configurations": "1", "directed": "true", "demand": "gravity:2"}),
        ("servers:n=3,degree=1", {"startup": "2ms", "delay": "1us", "shard": "1MB", "bandwidth": "8Gb/s"}),
        ("servers:n=5,degree=2", {"rack": "2", "cables": "1", "uplinks": "2", "startup": "0.5"}),
        ("servers:n=4,degree=1", {"rack": "2", "uplinks": "1", "directed": "true", "configurations": "3"}),
    ],
    "topology.matchings": [
        ("servers:n=3,degree=2", {"configurations": "2", "delay": "0.5"}),
        ("servers:n=3,degree=1", {"first": "false", "delay": "0.25", "demand": "gravity:1"}),
        ("servers:n=4,degree=3", {"demand": "permutation:2", "delay": "2"}),
        ("servers:n=4,degree=2", {"switches": "1", "configurations": "1", "first": "false", "demand": "permutation:0"}),
        ("servers:n=3,degree=1", {"switches": "2", "delay": "0"}),
    ],
    "topology.steps": [
        ("ring:3", {"algorithm": "ring", "delay": "0.5", "startup": "0.25"}),
        ("ring:4", {}),
        ("genkautz:n=5,d=2", {"algorithm": "shifts", "delay": "0.75", "reuse": "false"}),
        ("ring:6", {"algorithm": "retri", "between": "genkautz:n=6,d=2;complete:6", "ports": "1"}),
        ("ring:4,directed", {"algorithm": "bruck:2", "delay": "0"}),
    ],
    "topoopt.topology": [
        ("servers:n=3,degree=2,traffic=vgg", {}),
        ("servers:n=4,degree=2,traffic=dlrm", {"flows": "pair"}),
        ("servers:n=4,degree=2,traffic=alltoall", {"objective": "bandwidth-tax"}),
        ("servers:n=4,degree=3,traffic=dlrm", {"rings": "default"}),
        ("servers:n=4,degree=3,traffic=vgg", {"objective": "bandwidth-tax", "flows": "pair"}),
        ("servers:n=3,degree=2,traffic=dlrm", {"all_reduce": "trees"}),
        ("servers:n=4,degree=2,traffic=dlrm", {"all_reduce": "trees", "flows": "pair"}),
    ],
    "topoopt.utility": [
        ("servers:n=3,degree=2,traffic=random,seed=1", {}),
        ("servers:n=4,degree=3,traffic=alltoall", {"discount": "factorial"}),
        ("servers:n=5,degree=2,traffic=dlrm", {"discount": "every"}),
        ("servers:n=4,degree=2,traffic=dlrm", {"discount": "first", "traffic": "direct"}),
    ],
    "topoopt.routing": [("servers:n=3,degree=2,traffic=vgg", {}), ("servers:n=5,degree=2,traffic=dlrm", {})],
    "topoopt.strategy": [
        ("servers:n=4,degree=2,traffic=bert", {"memory": "20"}),
        ("servers:n=4,degree=2,traffic=bert", {}),
        ("servers:n=6,degree=3,traffic=dlrm", {"alpha": "1.5", "computing": "0.1"}),
        ("servers:n=16,degree=4,traffic=dlrm,section=5.6", {"operators": "measured"}),
    ],
}


def first_case(name: str) -> tuple[str, Settings]:
    """The first case of a formulation."""
    return CASES[name][0]
