"""Problems of alltoall.timestep-child for the tests of all formulations: see :mod:`problems`."""

CASES = [
    ("path:3", {}),
    ("ring:4,directed+scale=0.5", {"source": "2", "steps": "4"}),
    ("hypercube:2+host=1.5", {}),
    ("path:3+host=2", {"relays": "step"}),
]
CERTIFIED = ("path:3", {"steps": 3}, "certified-pdlp")
