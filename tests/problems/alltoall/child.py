"""Problems of alltoall.child for the tests of all formulations: see :mod:`problems`."""

CASES = [("path:3", {}), ("ring:4", {"source": "2"}), ("hypercube:2+host=1.5", {})]
CERTIFIED = ("ring:4", {}, "certified-pdlp")
