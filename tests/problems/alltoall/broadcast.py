"""Problems of alltoall.broadcast for the tests of all formulations: see :mod:`problems`."""

CASES = [
    ("path:3", {}),
    ("star:4", {"root": "2"}),
    ("hypercube:2+host=1.5", {"root": "1"}),
    ("ring:4+scale=3", {}),
]
CERTIFIED = ("mesh:2x3", {"root": 1}, "tree-packing")
