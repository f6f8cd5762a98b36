"""Problems of alltoall.reduce-scatter for the tests of all formulations: see :mod:`problems`."""

CASES = [("path:3", {}), ("star:4", {}), ("hypercube:2+host=1.5", {}), ("ring:4+scale=3", {})]
CERTIFIED = ("mesh:2x3", {}, "tree-packing")
