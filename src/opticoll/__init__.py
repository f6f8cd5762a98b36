"""Optimization models of optical and direct-connect interconnects, solved by any solver and certified.

``import opticoll as oc`` is the public interface; each name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opticoll.analysis.bounds import bounds
    from opticoll.analysis.catalog import solver_table
    from opticoll.analysis.conjectures import Conjecture, conjecture
    from opticoll.analysis.design import design
    from opticoll.analysis.hybrids import hybrids
    from opticoll.analysis.iteration import iteration
    from opticoll.analysis.model import Model, model
    from opticoll.analysis.papers.figure import figure
    from opticoll.analysis.plots.network_plots import plot_topology
    from opticoll.analysis.reconfiguration.envelope import envelope
    from opticoll.analysis.reconfiguration.reconfigure import reconfigure
    from opticoll.analysis.reconfiguration.sequence_records import best_sequence
    from opticoll.analysis.result import Result, solve
    from opticoll.analysis.result_files import check, load
    from opticoll.analysis.store import Store
    from opticoll.analysis.study.study_table import study
    from opticoll.analysis.sweep import sweep
    from opticoll.errors import BadInput, NoSolution, SolverUnavailable
    from opticoll.formulations.bounded_quantity import bound_on
    from opticoll.formulations.model import Bound, Formulation, NotApplicable, Parameter
    from opticoll.instances import Topology, parse, topology
    from opticoll.instances import write_topology as save_topology
    from opticoll.instances.plugins import load_plugin
    from opticoll.instances.spec import family
    from opticoll.solvers.adapters.interface import Adapter, Capabilities, set_solution
    from opticoll.solvers.methods.method import Answer, Method
    from opticoll.solvers.solve import export
    from opticoll.solvers.task import Outcome, Task, Termination

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
    "save_topology": ("opticoll.instances", "write_topology"),
    "set_solution": ("opticoll.solvers.adapters.interface", "set_solution"),
    "solve": ("opticoll.analysis.result", "solve"),
    "solver_table": ("opticoll.analysis.catalog", "solver_table"),
    "study": ("opticoll.analysis.study.study_table", "study"),
    "sweep": ("opticoll.analysis.sweep", "sweep"),
    "topology": ("opticoll.instances", "topology"),
}

__all__ = [
    "Adapter",
    "Answer",
    "BadInput",
    "Bound",
    "Capabilities",
    "Conjecture",
    "Formulation",
    "Method",
    "Model",
    "NoSolution",
    "NotApplicable",
    "Outcome",
    "Parameter",
    "Result",
    "SolverUnavailable",
    "Store",
    "Task",
    "Termination",
    "Topology",
    "best_sequence",
    "bound_on",
    "bounds",
    "check",
    "conjecture",
    "design",
    "envelope",
    "export",
    "family",
    "figure",
    "hybrids",
    "iteration",
    "load",
    "load_plugin",
    "model",
    "parse",
    "plot_topology",
    "reconfigure",
    "save_topology",
    "set_solution",
    "solve",
    "solver_table",
    "study",
    "sweep",
    "topology",
]


def __getattr__(name: str) -> Any:
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
