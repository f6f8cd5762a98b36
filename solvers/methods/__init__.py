"""Methods: decompositions, reformulations, heuristics and certifications, found by name."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from opticoll.instances.registry import contributed
from opticoll.solvers.methods.method import Method

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations.model import Formulation

#: Name of a method and the module of this package whose ``METHODS`` has it.
MODULES = {
    "alternating": "topoopt.alternating",
    "certified-branching": "certified_branching",
    "certified-pdhg": "flows.certified_pdhg",
    "certified-pdlp": "flows.certified_pdlp",
    "certified-rounds": "lumorph.certified_rounds",
    "column-generation": "flows.column_generation",
    "cycle-cover": "optree.tree_methods",
    "degree-aware": "sipml.degree_aware",
    "design-search": "topoopt.design_search",
    "divide-and-conquer": "lumorph.round_algorithms",
    "double-binary-tree": "lumorph.round_algorithms",
    "exact-routing": "flows.exact_routing",
    "flow-decomposition": "alltoall.decomposition",
    "koenig-bisection": "sipml.koenig_bisection",
    "layer-assignment": "alltoall.layer_assignment",
    "layer-to-layer": "lumorph.round_algorithms",
    "lp-rounding": "alltoall.single_paths",
    "master-child": "alltoall.decomposition",
    "mcf-extp": "alltoall.decomposition",
    "negotiated-rerouting": "lumorph.overlap_routes",
    "ocs-reconfig": "topoopt.topology_finder",
    "orbit-lp": "flows.orbit_lp",
    "placement-enumeration": "sipml.placement_enumeration",
    "random-shortest": "lumorph.overlap_routes",
    "recursive": "lumorph.round_algorithms",
    "ring": "lumorph.round_algorithms",
    "ring-first-fit": "sipml.ring_sets",
    "ring-sets": "sipml.ring_sets",
    "round-program": "lumorph.certified_rounds",
    "screened-lp": "flows.orbit_lp",
    "sssp": "alltoall.single_paths",
    "strategy-front": "topoopt.alternating",
    "time-form": "flows.time_form",
    "topology-finder": "topoopt.topology_finder",
    "tree": "lumorph.round_algorithms",
    "tree-search": "optree.tree_methods",
    "uniform-tree": "optree.tree_methods",
    "worst-cut": "alltoall.worst_cut",
    "xy-routes": "lumorph.overlap_routes",
}


@cache
def methods() -> dict[str, Method]:
    """All methods by name."""
    modules = sorted({f"{__name__}.{module}" for module in MODULES.values()})
    return {one.name: one for one in sorted(contributed(modules, "METHODS"), key=lambda one: one.name)}


@cache
def method_named(name: str) -> Method | None:
    """The method called ``name``, None if there is none; imports its module alone."""
    if name not in MODULES:
        return None
    return next(one for one in contributed((f"{__name__}.{MODULES[name]}",), "METHODS") if one.name == name)


def methods_for(formulation: Formulation) -> dict[str, Method]:
    """The methods that take a formulation, by name."""
    return {name: method for name, method in methods().items() if method.applies(formulation)}


def prepared(
    formulation: Formulation, instance: object, parameters: Mapping[str, Any], needed: Mapping[str, Any] | None = None
) -> Any:
    """The data of a formulation: of its instance, with a method's construction or a needed solution if it takes one."""
    if formulation.given_by is not None:
        method = method_named(str(parameters[formulation.given_by]))
        assert method is not None
        return formulation.prepare(instance, parameters, method.construct)
    return formulation.prepare(instance, parameters, *(() if needed is None else (needed,)))


__all__ = ["Method", "method_named", "methods", "methods_for", "prepared"]
