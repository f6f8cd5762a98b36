"""What a plug-in may contribute, and where the layers define it.

The package itself stands above its four layers, so it may name them all; a layer names none above it. The modules are
imported only when a plug-in contributes such an object.
"""

from __future__ import annotations

from opticoll.extensions import Kind, shipped

#: Contributions by the name of the module attribute; its plural is a list of them.
KINDS = {
    "FORMULATION": Kind(
        "opticoll.formulations.model:Formulation",
        "opticoll.formulations.registry:package_names",
        ("name",),
        subclass=True,
    ),
    "ADAPTER": Kind(
        "opticoll.solvers.adapters.interface:Adapter",
        "opticoll.solvers.methods.registry:package_names",
        ("name", "title", "package", "distribution", "algorithm", "capabilities"),
    ),
    "METHOD": Kind("opticoll.solvers.methods.method:Method", "opticoll.solvers.methods.registry:package_names"),
    "EXTENSION": Kind("opticoll.extensions:Extension", "opticoll.extensions:package_names"),
    **{name: kind for one in shipped() for name, kind in one.kinds.items()},
}
#: Methods and solvers share one name space, ``--method``.
SHARED = {"ADAPTER": ("ADAPTER", "METHOD"), "METHOD": ("ADAPTER", "METHOD")}
#: Bounds on formulations, ``{formulation: function or list of functions}``, and the function that checks them.
BOUNDS, CHECK_BOUNDS = "BOUNDS", "opticoll.formulations.registry:check_bounds"
