"""Topologies and traffic of distributed training on direct-connect optics (paper: TopoOpt)."""
