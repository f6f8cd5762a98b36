r"""LuMorph: collectives on programmable photonic meshes, in rounds of circuits.

Circuit lists, and cut bounds on their overlap.

Source  LuMorph, section 4 and Appendix B (recursive doubling, quadrupling), Appendix A (arbitrary pairs), section 3.1
        (overlap); the bounds are our own
Data    k = (s_k, d_k) circuits, k in L; s_k != d_k vertices, pairs may repeat; arcs a of a topology

Lists
-----
recursive-doubling:STEP     partners differ in binary digit STEP of their rank, STEP = 0 .. log2 N - 1
recursive-quadrupling:STEP  partners differ in one digit in base 4: three peers each
recursive:RADIX:STEP        the same in base RADIX: RADIX - 1 peers each, in one of ceil(log_RADIX N) steps. N must be
                            RADIX^m q with 1 <= q < RADIX; the groups of the last step have q members
permutation                 every rank to its image under a random permutation (``seed``), without fixed points
all                         all ordered pairs
file:PATH                   a CSV of lines ``source,destination`` or a JSON list of such pairs, by label or number

Ranks are the terminals in ascending order: row-major on a mesh.

Bounds
------
Every circuit with s_k inside a vertex set S and d_k outside crosses an arc that leaves S. Hence, for every S,

    max_a load_a >= ceil( |{k : s_k in S, d_k not in S}| / |{a : tail in S, head not in S}| ).

All axis-parallel rectangles of a grid are evaluated at once, on every topology whose vertices have grid positions
(arcs may be missing or wrap around, since any S gives a bound on any graph). Straight cuts are the rectangles that span
the grid. The bounding boxes of circuits and arcs are counted in a 4-D histogram whose cumulative sums give the number
inside each rectangle, in O(R^2 C^2).

Closed form. On an intact R x C mesh with row-major ranks, where the groups of a recursive exchange align with the rows
(they divide a row, fill rows, or are whole rows apart), the busiest arc of a step carries exactly

    max( sigma_c g_r floor(g_c^2 / 4),  sigma_r g_c floor(g_r^2 / 4) )

circuits: a group spans g_c positions sigma_c apart in a row and g_r rows sigma_r apart. The straight cut through the
middle of a group gives the bound, and row-first (XY) routes attain it.

Costs of an all-reduce and of transfers between layers according to LuMorph's authors, by variant.

Source  LuMorph, sections 4 and 6.1, appendix B, figures 7, 8a, 8b; the published simulator (commit 53cbbf7), as
        described by its readers

N GPUs, buffer B: T = rounds (alpha + r) + volume B / rate, see :func:`formula`.

    printed  sections 4 and 6.1, appendix B: alpha 0.7 us, r 3.7 us, 300 GB/s; the paper prints no formula for tree, D&C
    plotted  figures 7, 8a and 8b: 300 GiB/s, LUMORPH-4 with 4/3 of the volume, the tree without r and with 4 B, D&C
             with log2 N - 1 rounds of the whole buffer
    coded    the published simulator: as plotted, but LUMORPH-4 has r = 5 us, and the tree pays r; D&C is not coded
"""
