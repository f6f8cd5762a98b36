"""Instances to be solved: topologies, server pools and computation graphs, each a frozen value with a spec."""

from opticoll.instances.matrix_program import MatrixProgram
from opticoll.instances.photonics import LightpathMesh, WdmLine, WdmRing
from opticoll.instances.readers.files import read_topology, save_topology
from opticoll.instances.readers.graph_formats import to_networkx
from opticoll.instances.readers.objects import as_instance, topology
from opticoll.instances.servers import ServerPool
from opticoll.instances.spec import describe, parse
from opticoll.instances.topology import Instance, Topology
from opticoll.instances.training.training_iteration import TrainingIteration

__all__ = [
    "Instance",
    "LightpathMesh",
    "MatrixProgram",
    "ServerPool",
    "Topology",
    "TrainingIteration",
    "WdmLine",
    "WdmRing",
    "as_instance",
    "describe",
    "parse",
    "read_topology",
    "save_topology",
    "to_networkx",
    "topology",
]
