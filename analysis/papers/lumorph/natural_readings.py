"""Natural readings of the LuMorph paper's claims, fixed before measuring."""

from __future__ import annotations

from opticoll.analysis.ledger.verdict import natural_reading

#: What a sentence about LUMORPH without a number is about.
FASTER = "the faster variant"
FASTER_VARIANT = natural_reading(
    FASTER,
    "A sentence about LUMORPH without a number is about the variant that one would choose.",
    {"variant, buffer of figure 8a": FASTER, "variant, 256 GPUs": FASTER},
)
SECTION_5_POINT = natural_reading(
    "up to: the most over both baselines where section 5 compares them, 256 GPUs and 64 MB",
    "Faster is a gain in speed, and section 5 names one point and two baselines, ring and tree.",
    {"64 MB, as in section 5": "gain in speed, the most over ring and tree"},
)
LARGEST_GAIN = natural_reading(
    "the largest gain",
    "Section 6.1 writes up to.",
    {"average or largest": "largest over models, sizes and variants (section 6.1: up to)"},
)
DIGITS = natural_reading(
    "printed digits are rounded", "Rounding is the rule unless said otherwise.", {"digits": "rounded"}
)
EVERY_SIZE = natural_reading(
    "at every size, against every rival",
    "Section 5 names no range of sizes.",
    {"sizes and rivals; better of the two variants": "every size, every rival"},
)
BINARY_UNITS = natural_reading(
    "MB and GB are powers of two",
    "The paper writes MB and GB/s; a buffer in memory is counted in powers of two.",
    {"units": "MiB and GiB/s"},
)
APPENDIX_B = natural_reading(
    "the volume of appendix B",
    "Section 4.1 and appendix B use the whole egress bandwidth; no other share is printed.",
    {"share of the bandwidth in use": "whole bandwidth, as appendix B"},
)
PLOTTED_256 = natural_reading(
    "sizes plotted for 256 GPUs", "The sentence is about figure 7 and 256 GPUs.", {"GPUs, sizes of figure 7": "256"}
)
WHOLE_LASERS = natural_reading(
    "circuits are bundles of whole lasers",
    "Section 4.1 splits a GPU's bandwidth over circuits of its 16 lasers.",
    {"bandwidth in use": "bundles of whole lasers of 16"},
)
CORRECTED_PROGRAM = natural_reading(
    "the program that the text describes",
    "The formulas of Algorithm 1 have misprints (lumorph.algorithm-1); the text of section 3 has none.",
    {"program, solved by HiGHS": "printed, with its indices corrected"},
)
PART_OF_LARGER = natural_reading(
    "a grid that is part of the larger one",
    "Section 3 grows one interconnect; every grid of the paper contains its smaller ones.",
    {"smaller interconnect": "a grid that is part of the larger one, like the grids of the paper"},
)
ONE_PEER = natural_reading(
    "one peer in a round",
    "Section 4 states the bound for electrical interconnects and lifts the assumption later.",
    {"peers per round": "as section 4 assumes"},
)
ALL_DATA_SENT = natural_reading(
    "all data that a GPU sends",
    "Appendix B calls the sum the total amount of data sent.",
    {"data sent": "by a GPU over its three circuits"},
)
NO_FORWARDING = natural_reading(
    "no forwarding in any collective",
    "Section 3 says it of LUMORPH, and appendix C schedules an all-to-all with LUMORPH.",
    {"no forwarding": "holds for the index algorithm too"},
)
COVERED_GPUS = natural_reading(
    "until the sets cover the GPUs",
    "Appendix C: until a cover set over the set of GPUs is obtained.",
    {"until a cover set is obtained": "until every GPU is covered"},
)
LOGGED_MODELS = natural_reading(
    "the all-reduces of the paper's models",
    "Appendix C describes the executor that simulates them.",
    {"calls": "models"},
)
ROWS = natural_reading(
    "GPUs numbered by rows, routes as section 5 describes them",
    "The paper prints neither numbering nor shape; rows are the usual order, and a wafer has four rows. Section 5 "
    "selects one of the shortest paths at random.",
    {
        "numbering and shape": "rows, 8 GPUs on 4x2",
        "random routes": "uniform shortest paths",
        "GPUs numbered by": "rows",
    },
)
FIGURE_5 = natural_reading(
    "from the smallest to the largest size",
    "Section 5: the number of overlaps increases as the interconnect scales to 256 GPUs.",
    {
        "increases": "from the smallest to the largest size",
        "quadrupling against doubling": "figure 5",
        "least overlap computed, GPUs numbered": ["rows", "squares"],
    },
)
BEST_ROUTES_BOTH_WAYS = natural_reading(
    "routes of least overlap, both directions together",
    "Figure 5 counts both directions of an edge together; the algorithms of LUMORPH choose routes of least overlap.",
    {"circuits counted": "routes of least overlap, both directions"},
)
ALL_CURVES = natural_reading(
    "all schedules of figure 6 together",
    "Section 5 speaks of schedules in general.",
    {"all curves of figure 6": "reconfigurations in total"},
)
DRAWN_TIMES = natural_reading(
    "the times of figure 3",
    "Section 3.2 refers to figure 3.",
    {"Algorithm 2 by Gurobi, as drawn in figure 3": ["Lumorph-2", "Lumorph-4"]},
)
MEAN_CALL = natural_reading(
    "the mean size of a call",
    "Section 6.1 explains throughput by sizes; the mean decides how long the calls take together.",
    {
        "size of the calls": "mean",
        "small": "mean below every other model's",
        "many": "more calls than every other model",
    },
)
SHARED_CALLS = natural_reading(
    "calls among more than one GPU",
    "An all-reduce of one GPU moves nothing.",
    {"all-reduces of one GPU": "left out"},
)
LASERS_OF_A_TILE = natural_reading(
    "all lasers of a tile",
    "Section 3: GPUs can drive the eight lasers on the tile.",
    {"the eight lasers on the tile": "all lasers of a tile"},
)
SHOWN_RATES = natural_reading(
    "the range that section 7 shows",
    "Section 5 gives the ends of a range and refers to section 7.",
    {"range": "ends at the highest rate shown"},
)
