"""Functions of the extensions, for type checkers and editors; at run time, extensions name them."""

from opticoll.analysis.conjectures.conjecture import Conjecture as Conjecture
from opticoll.analysis.conjectures.conjecture import conjecture as conjecture
from opticoll.analysis.designs.design import design as design
from opticoll.analysis.designs.envelope import envelope as envelope
from opticoll.analysis.designs.pods import pod_design as pod_design
from opticoll.analysis.designs.reconfigure import reconfigure as reconfigure
from opticoll.analysis.designs.sequence_records import best_sequence as best_sequence
from opticoll.analysis.papers.figure import figure as figure
from opticoll.analysis.training.cluster import cluster as cluster
from opticoll.analysis.training.iteration import iteration as iteration
