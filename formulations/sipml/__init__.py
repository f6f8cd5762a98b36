r"""Placement, circuits and wavelengths of optically connected GPUs (paper: SiP-ML).

Sets of disjoint arcs of a ring are modelled as walks; :func:`heaviest_set` finds the heaviest one. A wavelength of one
direction carries a set of circuits that share no segment of the ring. Cut the ring at node 0, and call node 0 at the
other end n. At most one circuit crosses the cut: (u,k) with 1 <= k < u. So a set is a walk on the line from k, over
circuits and idle segments, to u, and the crossing circuit back; or from 0 to n if nothing crosses. Sets with the same k
are one commodity: walks that leave k and end at any u, so n commodities contain all sets of a direction (independent
sets of the conflict graph: by columns in Yetginer, Liu & Rouskas, J. Opt. Commun. Netw. 3(7), 2011, here by arcs).
Integer flows of a commodity split into its sets, because the line has no cycles. The size does not depend on the number
of wavelengths, and wavelengths are not symmetric copies.

Sets    d in {0 clockwise, 1 anticlockwise}; (u,w) the ends of pair p in direction d on the cut line, w = n for node 0;
        X_d pairs with w < u, which cross the cut; k in K_d = {0} + {w: (u,w) in X_d} commodities; e_k = n for k = 0,
        else the largest u of a crossing pair with w = k
        f_dkp    circuits on the line, p with k <= u < w <= e_k
        idle_dka segments a -> a + 1, k <= a < e_k
        over_dp  crossing circuits, p in X_d: they close a walk of commodity w, from its end u to its start w
        rows of conservation (d,k,a): 0 < a < n for k = 0, else k <= a <= e_k

The other direction is the same on mirrored nodes, i -> -i.
"""
