"""Natural readings of the TopoOpt paper's claims, fixed before measuring.

Claims about one section share its conventions: sections 5.4 and 5.5 its circuits, routes and counts of bytes, section
5.2 its rule for prices.
"""

from __future__ import annotations

from opticoll.analysis.ledger.verdict import natural_reading

#: Structure of the DLRM in List 1, and the count of all-reduce bytes.
NO_LAYER, GRADIENTS = "features at the bottom, no such layer", "gradients"
#: Rules for NICs: appendix G counts two NICs of two ports as one of four, and one NIC per host of a fat-tree.
NIC_RULES = (
    "one NIC per interface",
    "one NIC per two interfaces",
    "one NIC per two interfaces, per host of the ideal switch",
    "NICs not counted",
)
FIBRES = "fibres of an interface with two patch panels"

PRICES = natural_reading(
    "two NICs of two ports count as one of four, one NIC per host of a fat-tree, one fibre per interface",
    "Appendix G counts NICs this way, and each interface uses one fibre at a time. The rule is one for all of section "
    "5.2, whose figure has links of 100 and 200 Gb/s.",
    {"NICs": NIC_RULES[2], FIBRES: "1", "link": ["100 Gb/s", "200 Gb/s"]},
)
LIST_1 = natural_reading(
    "the model of List 1 with no layer added, all-reduce counted as gradients",
    "List 1 mentions no layer between its stacks; the labels compare sizes of tensors. One-digit labels may be rounded "
    "up.",
    {"structure": NO_LAYER, "all-reduce bytes": GRADIENTS, "rounding": ["up", "nearest, two digits"]},
)
TWICE_THE_DATA = natural_reading(
    "an all-reduce counts twice the data",
    "The two numbers of section 2.1 are twice the sizes that it states.",
    {"all-reduce of the data": "twice the data, one reduction and one broadcast"},
)
LINKS_BOTH_WAYS = natural_reading(
    "links in both directions, the two shortest paths of a pair, all-reduce counted as gradients",
    "Algorithm 1 matches pairs of servers, which gives links; line 20 routes over k shortest paths, k at least 2; "
    "List 1 has no layer between its stacks. Figures 13 and 14 show one network.",
    {
        "circuits": "links in both directions",
        "paths of a pair": "2 shortest",
        "paths": "2 shortest",
        "all-reduce bytes": GRADIENTS,
        "DLRM": NO_LAYER,
    },
)
EQUATION_1 = natural_reading(
    "Eq. (1): no overlap, all-reduce counted as gradients, routes by CoinChangeMod",
    "Section 5.4 explains its times by Eq. (1), whose footnote assumes no overlap; Algorithm 4 routes.",
    {
        "all-reduce bytes": GRADIENTS,
        "overlap": "no overlap",
        "routing": ["TopologyFinder, CoinChangeMod", "coin-change"],
        "bandwidth of the fat-tree": "5.7/1.4, section 5.5",
    },
)
SHARED_CLUSTER = natural_reading(
    "a fat-tree of the bandwidth that section 5.5 implies, against TopoOpt's published times",
    "Section 5.5 takes 5.7 and 1.4 for the overheads over an ideal switch and a fat-tree; the times of figure 16 are "
    "published for TopoOpt alone.",
    {"bandwidth of the fat-tree": "5.7/1.4, section 5.5", "TopoOpt's times": "published"},
)
ACTIVE_JOBS = natural_reading(
    "jobs drawn 40, 30, 20 and 10 %, a number of them kept active; every job counts once",
    "Section 5.6: the number of active jobs represents the load, and the shares of the models are printed. The "
    "published samples are runs with that many jobs, one iteration of each.",
    {"jobs": "kept active", "shares of the models": "as printed", "average": "over jobs"},
)
KNOWN_SEQUENCE = natural_reading(
    "the sequence of jobs is known beforehand; several minutes are three",
    "Appendix C: the sequence of job arrivals is known. Three is the least that is called several.",
    {"jobs are known": "beforehand", "set-up": "several minutes"},
)
SHORTEST_PATHS = natural_reading(
    "average length of shortest paths",
    "Section 5.5 speaks of the average path length of figure 14, over all server pairs.",
    {"average path length": "of shortest paths"},
)
LIST_1_LAYERS = natural_reading(
    "the models of List 1; slower for some, faster for none",
    "Section 4.1 says likely, of the models that section 5 simulates.",
    {
        "strategies": "layers of List 1",
        "likely": "for some models slower than alternating, for none faster",
    },
)
SPARE_LINK = natural_reading(
    "a circuit of no ring in place of the failed one",
    "Section 7: a link dedicated to MP traffic.",
    {"replacement": "a circuit of no ring"},
)
EXACTLY = natural_reading(
    "the number itself", "Appendix E.2 writes an equality.", {"statement": "kappa(n-1) = d x exactly"}
)
COINS = natural_reading(
    "the number of coins",
    "The comment of Algorithm 4 says so.",
    {"distance": "number of coins, as its comment says"},
)
EIGHT_BYTES = natural_reading(
    "entries of 8 bytes",
    "Appendix D: double-precision floating parameters.",
    {"bytes of an entry": "8 bytes, as in appendix D"},
)
BINARY_MEGABYTES = natural_reading(
    "MB are 2^20 bytes",
    "Appendix D multiplies 16, 8192, 512 and 8, powers of two, to 32 MB.",
    {"MB": "2^20 bytes"},
)
SEVERAL_MINUTES = natural_reading(
    "several minutes are three", "The least that is called several.", {"several minutes": "3 min"}
)
