"""Matrix-free first-order solver for concurrent flows grouped by source, see :mod:`solvers.methods.certified_pdhg`."""
