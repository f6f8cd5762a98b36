"""Problems of alltoall.timestep-mcf for the tests of all formulations: see :mod:`problems`."""

CASES = [
    ("path:3", {}),
    ("path:3", {"steps": "4", "aggregate": "source"}),
    ("ring:4,directed+scale=0.5", {}),
    ("hypercube:2+host=1.5", {"aggregate": "source"}),
    ("star:4", {"steps": "3"}),
    ("complete:3", {}),
    ("path:3+host=2", {"relays": "step"}),
    ("path:3+host=0.7,relay=nic", {"steps": "2"}),
]
CERTIFIED = ("mesh:2x2", {}, {"aggregate": "source"})
