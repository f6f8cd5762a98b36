"""Instances to be solved: topologies, server pools and computation graphs, each a frozen value with a spec."""

from opticoll.instances.matrix_program import MatrixProgram
from opticoll.instances.photonics import LightpathMesh, WdmLine, WdmRing
from opticoll.instances.servers import ServerPool
from opticoll.instances.spec import parse
from opticoll.instances.topology import Instance, Topology

__all__ = [
    "Instance",
    "LightpathMesh",
    "MatrixProgram",
    "ServerPool",
    "Topology",
    "WdmLine",
    "WdmRing",
    "parse",
]
