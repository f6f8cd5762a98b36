"""WHAT is solved: topologies, collectives, photonic parameters; each a frozen value with a one-line spec."""

from instances.errors import BadFile, BadInput, BadSpec, OpticollError
from instances.files import read_topology, write_topology
from instances.instance import Instance
from instances.lightpath import LightpathMesh
from instances.networkx_bridge import from_networkx, to_networkx
from instances.servers import ServerPool
from instances.spec import describe, parse
from instances.topology import Topology
from instances.wdm import WdmLine, WdmRing

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
