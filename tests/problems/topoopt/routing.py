"""Problems of topoopt.routing for the tests of all formulations: see :mod:`problems`."""

CASES = [("servers:n=3,degree=2,traffic=vgg", {}), ("servers:n=5,degree=2,traffic=dlrm", {})]
CORRUPTED = [
    ("servers:n=4,degree=3,traffic=alltoall", {}, ()),
]
CERTIFIED = ("servers:n=5,degree=2,traffic=dlrm", {}, "certified-pdlp")
