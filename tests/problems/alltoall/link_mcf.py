"""Problems of alltoall.link-mcf for the tests of all formulations: see :mod:`problems`."""

CASES = [
    ("path:3", {}),
    ("path:3", {"printed": "true"}),
    ("kautz:d=2,D=2", {}),
    ("star:4", {"printed": "true"}),
    ("ring:4+scale=0.3", {}),
    ("hypercube:2+host=1.5", {"printed": "true"}),
]
CERTIFIED = ("path:4+scale=2.5", {}, "master-child")
