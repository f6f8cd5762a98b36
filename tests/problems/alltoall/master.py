"""Problems of alltoall.master for the tests of all formulations: see :mod:`problems`."""

CASES = [
    ("path:3", {}),
    ("mesh:2x2", {}),
    ("hypercube:2+host=1.5", {}),
    ("dgx1", {}),
    ("ring:4", {"demand": "permutation:1"}),
    ("genkautz:n=5,d=2+scale=2.5", {"demand": "random:4"}),
]
CERTIFIED = ("genkautz:n=7,d=2", {}, "orbit-lp")
