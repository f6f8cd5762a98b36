"""Problems of alltoall.path-mcf for the tests of all formulations: see :mod:`problems`."""

CASES = [
    ("ring:3", {}),
    ("ring:4", {"paths": "all"}),
    ("dgx1", {}),
    ("star:4", {"paths": "shortest"}),
    ("hypercube:3", {"paths": "k", "k": "3"}),
    ("ring:5+scale=2.5", {"paths": "all", "lmax": "3"}),
]
CORRUPTED = [
    ("ring:4", {}, ()),
    ("ring:4", {"paths": "all"}, ("path_arcs",)),
]
CERTIFIED = ("ring:5", {"paths": "all"}, "column-generation")
