"""Optimization models of optical and direct-connect interconnects, solved by any solver and certified.

``import opticoll as oc`` is the public interface; each name is loaded when it is first used. Editors and type checkers
read ``__init__.pyi``.
"""

#: Public name -> defining module and the name in it.
_HOMES = {
    "Adapter": ("opticoll.solvers.adapters.interface", "Adapter"),
    "Answer": ("opticoll.solvers.methods.method", "Answer"),
    "BadInput": ("opticoll.errors", "BadInput"),
    "Bound": ("opticoll.formulations.model", "Bound"),
    "Capabilities": ("opticoll.solvers.adapters.interface", "Capabilities"),
    "Conjecture": ("opticoll.analysis.conjectures", "Conjecture"),
    "Formulation": ("opticoll.formulations.model", "Formulation"),
    "Method": ("opticoll.solvers.methods.method", "Method"),
    "Model": ("opticoll.analysis.model", "Model"),
    "NoSolution": ("opticoll.errors", "NoSolution"),
    "NotApplicable": ("opticoll.formulations.model", "NotApplicable"),
    "Outcome": ("opticoll.solvers.task", "Outcome"),
    "Parameter": ("opticoll.formulations.model", "Parameter"),
    "Result": ("opticoll.analysis.result", "Result"),
    "SolverUnavailable": ("opticoll.errors", "SolverUnavailable"),
    "Store": ("opticoll.analysis.store", "Store"),
    "Task": ("opticoll.solvers.task", "Task"),
    "Termination": ("opticoll.solvers.task", "Termination"),
    "Topology": ("opticoll.instances", "Topology"),
    "best_sequence": ("opticoll.analysis.reconfiguration.sequence_records", "best_sequence"),
    "bound_on": ("opticoll.formulations.bounded_quantity", "bound_on"),
    "bounds": ("opticoll.analysis.bounds", "bounds"),
    "check": ("opticoll.analysis.result_files", "check"),
    "cluster": ("opticoll.analysis.cluster", "cluster"),
    "conjecture": ("opticoll.analysis.conjectures", "conjecture"),
    "design": ("opticoll.analysis.design", "design"),
    "envelope": ("opticoll.analysis.reconfiguration.envelope", "envelope"),
    "export": ("opticoll.solvers.solve", "export"),
    "family": ("opticoll.instances.spec", "family"),
    "figure": ("opticoll.analysis.papers.figure", "figure"),
    "hybrids": ("opticoll.analysis.hybrids", "hybrids"),
    "iteration": ("opticoll.analysis.iteration", "iteration"),
    "load": ("opticoll.analysis.result_files", "load"),
    "load_plugin": ("opticoll.instances.plugins", "load_plugin"),
    "model": ("opticoll.analysis.model", "model"),
    "parse": ("opticoll.instances", "parse"),
    "plot_topology": ("opticoll.analysis.plots.network_plots", "plot_topology"),
    "reconfigure": ("opticoll.analysis.reconfiguration.reconfigure", "reconfigure"),
    "repair": ("opticoll.analysis.repair", "repair"),
    "save_topology": ("opticoll.instances", "write_topology"),
    "set_solution": ("opticoll.solvers.adapters.interface", "set_solution"),
    "solve": ("opticoll.analysis.result", "solve"),
    "solver_table": ("opticoll.analysis.catalog", "solver_table"),
    "study": ("opticoll.analysis.study.study_table", "study"),
    "sweep": ("opticoll.analysis.sweep", "sweep"),
    "topology": ("opticoll.instances", "topology"),
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    from importlib import import_module  # inside, so that completion does not offer it
    from types import FunctionType

    if name not in _HOMES:
        msg = f"module 'opticoll' has no attribute {name!r}; it offers {', '.join(__all__)}"
        raise AttributeError(msg)
    module, attribute = _HOMES[name]
    value = getattr(import_module(module), attribute)
    if isinstance(value, FunctionType):  # its errors speak of arguments, not of options of the command line
        value = import_module("opticoll.analysis.wording").python_door(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
