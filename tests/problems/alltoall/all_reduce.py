"""Problems of alltoall.all-reduce for the tests of all formulations: see :mod:`problems`."""

CASES = [("path:3", {}), ("star:4", {}), ("hypercube:2+host=1.5", {}), ("ring:4+scale=3", {})]
CERTIFIED = ("hypercube:2+host=2", {}, "tree-packing")
