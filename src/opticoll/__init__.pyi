"""Optimization models of optical and direct-connect interconnects, solved by any solver and certified."""

# For type checkers and the completion of editors; at run time, __init__.py loads each name when it is first used.
from opticoll.analysis.bounds.bounded_quantity import bound_on as bound_on
from opticoll.analysis.bounds.instance_bounds import bounds as bounds
from opticoll.analysis.bounds.sweep import sweep as sweep
from opticoll.analysis.catalog import solver_table as solver_table
from opticoll.analysis.plots.network_plots import plot_topology as plot_topology
from opticoll.analysis.problem.model import Model as Model
from opticoll.analysis.problem.model import model as model
from opticoll.analysis.problem.problem import Problem as Problem
from opticoll.analysis.problem.problem import problem as problem
from opticoll.analysis.result.result import Result as Result
from opticoll.analysis.result.result import solve as solve
from opticoll.analysis.result.saved_results import check as check
from opticoll.analysis.result.saved_results import load as load
from opticoll.analysis.store import Store as Store
from opticoll.analysis.study.study_table import study as study
from opticoll.errors import BadInput as BadInput
from opticoll.errors import NoSolution as NoSolution
from opticoll.errors import NotApplicable as NotApplicable
from opticoll.errors import SolverUnavailable as SolverUnavailable
from opticoll.extension_functions import *
from opticoll.formulations.builders import Cvx as Cvx
from opticoll.formulations.builders import Pyo as Pyo
from opticoll.formulations.index import Index as Index
from opticoll.formulations.model import Bound as Bound
from opticoll.formulations.model import Formulation as Formulation
from opticoll.formulations.parameters import Parameter as Parameter
from opticoll.formulations.variables import vertex_axis as vertex_axis
from opticoll.instances import Topology as Topology
from opticoll.instances import parse as parse
from opticoll.instances.readers.files import save_topology as save_topology
from opticoll.instances.readers.objects import topology as topology
from opticoll.instances.spec import Dimensions as Dimensions
from opticoll.instances.spec import family as family
from opticoll.plugins import load_plugin as load_plugin
from opticoll.solvers.adapters.interface import Adapter as Adapter
from opticoll.solvers.adapters.interface import Capabilities as Capabilities
from opticoll.solvers.adapters.interface import set_solution as set_solution
from opticoll.solvers.export import export as export
from opticoll.solvers.methods.method import Answer as Answer
from opticoll.solvers.methods.method import Method as Method
from opticoll.solvers.task import Outcome as Outcome
from opticoll.solvers.task import Task as Task
from opticoll.solvers.task import Termination as Termination
