"""Instances to be solved: topologies, server pools and computation graphs, each a frozen value with a spec."""

if __name__ != "opticoll.instances":
    msg = "instances is part of opticoll now: import opticoll.instances"
    raise ImportError(msg)

from opticoll.errors import BadFile, BadInput, BadSpec, OpticollError
from opticoll.instances.digraph import Instance, Topology
from opticoll.instances.photonic import LightpathMesh, WdmLine, WdmRing
from opticoll.instances.readers.files import read_topology, write_topology
from opticoll.instances.readers.networkx_io import from_networkx, to_networkx
from opticoll.instances.servers import ServerPool
from opticoll.instances.spec import describe, parse

__all__ = [
    "BadFile",
    "BadInput",
    "BadSpec",
    "Instance",
    "LightpathMesh",
    "OpticollError",
    "ServerPool",
    "Topology",
    "WdmLine",
    "WdmRing",
    "describe",
    "from_networkx",
    "parse",
    "read_topology",
    "to_networkx",
    "write_topology",
]
