"""WHAT is solved: topologies, collectives and photonic parameters, each a frozen value with a one-line spec."""

from instances.errors import BadFile, BadInput, BadSpec, OpticollError
from instances.spec import parse
from instances.topology import Topology

__all__ = ["BadFile", "BadInput", "BadSpec", "OpticollError", "Topology", "parse"]
