"""Optimization models of optical and direct-connect interconnects, solved by any solver and certified."""

# For type checkers and the completion of editors; at run time, __init__.py loads each name when it is first used.
from opticoll.analysis.bounds import bounds as bounds
from opticoll.analysis.catalog import solver_table as solver_table
from opticoll.analysis.cluster import cluster as cluster
from opticoll.analysis.conjectures import Conjecture as Conjecture
from opticoll.analysis.conjectures import conjecture as conjecture
from opticoll.analysis.design import design as design
from opticoll.analysis.hybrids import hybrids as hybrids
from opticoll.analysis.iteration import iteration as iteration
from opticoll.analysis.model import Model as Model
from opticoll.analysis.model import model as model
from opticoll.analysis.papers.figure import figure as figure
from opticoll.analysis.plots.network_plots import plot_topology as plot_topology
from opticoll.analysis.reconfiguration.envelope import envelope as envelope
from opticoll.analysis.reconfiguration.reconfigure import reconfigure as reconfigure
from opticoll.analysis.reconfiguration.sequence_records import best_sequence as best_sequence
from opticoll.analysis.repair import repair as repair
from opticoll.analysis.result import Result as Result
from opticoll.analysis.result import solve as solve
from opticoll.analysis.result_files import check as check
from opticoll.analysis.result_files import load as load
from opticoll.analysis.store import Store as Store
from opticoll.analysis.study.study_table import study as study
from opticoll.analysis.sweep import sweep as sweep
from opticoll.errors import BadInput as BadInput
from opticoll.errors import NoSolution as NoSolution
from opticoll.errors import SolverUnavailable as SolverUnavailable
from opticoll.formulations.bounded_quantity import bound_on as bound_on
from opticoll.formulations.model import Bound as Bound
from opticoll.formulations.model import Formulation as Formulation
from opticoll.formulations.model import NotApplicable as NotApplicable
from opticoll.formulations.model import Parameter as Parameter
from opticoll.instances import Topology as Topology
from opticoll.instances import parse as parse
from opticoll.instances import topology as topology
from opticoll.instances import write_topology
from opticoll.instances.plugins import load_plugin as load_plugin
from opticoll.instances.spec import family as family
from opticoll.solvers.adapters.interface import Adapter as Adapter
from opticoll.solvers.adapters.interface import Capabilities as Capabilities
from opticoll.solvers.adapters.interface import set_solution as set_solution
from opticoll.solvers.methods.method import Answer as Answer
from opticoll.solvers.methods.method import Method as Method
from opticoll.solvers.solve import export as export
from opticoll.solvers.task import Outcome as Outcome
from opticoll.solvers.task import Task as Task
from opticoll.solvers.task import Termination as Termination

save_topology = write_topology
