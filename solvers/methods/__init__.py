"""Methods: decompositions, reformulations, heuristics and certifications, found by name."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from opticoll.instances.registry import contributed
from opticoll.solvers.methods.method import Method

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations.model import Formulation

#: Method that ``auto`` uses for a formulation whatever the size of the instance. Formulations that are not listed get
#: a method by problem class, size and tolerance (:func:`opticoll.solvers.plan.choose`).
PREFERRED_METHODS = {
    "alltoall.min-congestion": "exact-routing",
    "alltoall.virtual-channels": "layer-assignment",
    "lumorph.min-overlap": "negotiated-rerouting",
    "lumorph.rounds": "certified-rounds",
    "optree.one-stage": "cycle-cover",
    "optree.tree": "tree-search",
    "sipml.ocs-circuits": "koenig-bisection",
    "sipml.placement": "degree-aware",
    "sipml.ring-wavelengths": "ring-sets",
    "topoopt.strategy": "strategy-front",
    "topoopt.topology": "design-search",
}
#: Parameter of a formulation that names the method for the formulation it takes its data from.
METHOD_PARAMETERS = {"alltoall.virtual-channels": "routes"}
#: Formulation with the same optimum and a smaller matrix.
SMALLER_FORMULATIONS = {"alltoall.link-mcf": "alltoall.master"}

#: LPs of up to this many variables are solved by simplex as stated, larger ones by interior point.
SIMPLEX, SIMPLEX_VARIABLES = "highs-simplex", 4000
#: LPs of more variables than this are certified faster by first-order methods than by interior point. Below this
#: tolerance, interior point finishes on the arcs that remain. Measured on GK(N,4), N = 64 ... 1000, see
#: notes/benchmarks-pdhg.md.
FIRST_ORDER_VARIABLES, FIRST_ORDER_TOL = 100_000, 1e-5
FIRST_ORDER, SCREENED = "certified-pdhg", "screened-lp"
#: The reduction to orbits is fastest up to this many flow variables (arcs times orbits of sources), see
#: notes/benchmarks-pdhg.md.
ORBIT, ORBIT_VARIABLES = "orbit-lp", 30_000

#: Name of a method and the module of this package whose ``METHODS`` has it.
MODULES = {
    "alternating": "topoopt.alternating",
    "certified-branching": "certified_branching",
    "certified-pdhg": "flows.certified_pdhg",
    "certified-pdlp": "flows.certified_pdlp",
    "certified-rounds": "lumorph.certified_rounds",
    "column-generation": "flows.column_generation",
    "cycle-cover": "optree",
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
    "tree-search": "optree",
    "uniform-tree": "optree",
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
