"""Natural readings of the all-to-all paper's claims, fixed before measuring."""

from __future__ import annotations

from opticoll.analysis.ledger.verdict import natural_reading

LARGE_N = natural_reading(
    "close to the bound at large N",
    "Section 6.4 says that the ratio approaches 1 for large N, and appendix B that it remains so at larger degrees.",
    {"sizes": "large N"},
)
STEPS = natural_reading(
    "as many steps as a schedule needs",
    "Section 3.1.3 leaves the number of steps free, at least the diameter.",
    {"number of steps L": "free"},
)
SIMPLEX = natural_reading(
    "the solver's usual algorithm, at the largest of the small sizes",
    "Section 6.3 names MOSEK, not the algorithm; simplex is what HiGHS chooses for programs of this size.",
    {"algorithm, ratio at the largest size": "simplex"},
)
DISJOINT = natural_reading(
    "equal on every network, as far as a plot shows",
    "Section 6.3 reads the equality off figure 7 and conjectures it for practical use; a plot shows about 1 %.",
    {"equal": "within 1 %", "networks": "all networks"},
)
SSSP = natural_reading(
    "the routing of the cited work, on every network",
    "Section 6.3 cites the heuristic for figure 7 and names no network; appendix D's sentence is about its own "
    "variant.",
    {
        "SSSP": "a tree to every destination (Domke et al.)",
        "networks": "all",
        "appendix D: more than 2 times": "pair by pair (appendix D)",
    },
)
ROUTES = natural_reading(
    "the routes",
    "Appendix D says that the order does not affect the routes, not only their lengths.",
    {"what does not change": "the routes"},
)
ALL_TESTBEDS = natural_reading(
    "on all three networks",
    "Section 6.2 compares the schedules on all networks of figure 4.",
    {"networks of figure 4": "on all"},
)
EVEN_SPLIT = natural_reading(
    "paths of a pair may coincide",
    "Neighbours have one short path; listed twice it is still an even split over two paths.",
    {"the paths of a pair": "may coincide"},
)
SMALL_EPSILON = natural_reading("small epsilon", "Section 2.3 stresses small epsilon.", {"epsilon": "the smallest"})
EVERY_ORDER = natural_reading(
    "the algorithm as printed, in every order",
    "Appendix E returns a d-regular graph and states no condition on the order.",
    {"order of pairs": ["source by source", "all pairs at random"]},
)
HOSTS_FORWARD = natural_reading(
    "hosts forward",
    "Section 3.2.3 forces all data that enter a node through its host.",
    {"who forwards": "hosts (section 3.2.3)"},
)
