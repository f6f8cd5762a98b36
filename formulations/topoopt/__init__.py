"""Topologies and traffic of distributed training on direct-connect optics (paper: TopoOpt)."""

PAPER = "TopoOpt: co-optimizing network topology and parallelization strategy for distributed training jobs"
