"""Table of the methods that ``auto`` chooses, and of the formulations that can replace one another."""

from __future__ import annotations

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
