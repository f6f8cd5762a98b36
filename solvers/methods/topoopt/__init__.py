"""Methods for TopoOpt's formulations, with their engines; and the rings that they share.

Rings of all-reduce groups by TotientPerms and SelectPermutations, and routes over them by CoinChangeMod.

Source  TopoOpt, sections 4.3 and E, Algorithms 2, 3 and 4, Theorems 1 and 2

The +p ring on k places goes from place i to i + p mod k. Theorem 2: it is a single ring if and only if gcd(p, k) = 1,
so there are phi(k) different ones. d of them together form a directed circulant, in which the number of hops to the
server m places ahead is the smallest number of coins p_1 .. p_d that add up to m modulo k. CoinChangeMod tabulates
these numbers breadth first, with the last coin of every entry to trace routes back; one table serves all servers.

Appendix E.2 adds that if k^(1/d) < 2 a ratio of 2 is better, with log2 k rings, rounded up; ``binary`` applies it.

Theorem 1: d rings near a geometric sequence of ratio x = k^(1/d) have a diameter of O(d k^(1/d)). Appendix E.2 argues
with coins 1, x, .. x^(d-1) for an integer x and k = x^d, without wrapping round: the largest amount, k - 1, then takes
x - 1 of each coin, d (x - 1) together (the text bounds this by d x).

As printed, Algorithm 4 starts a coin at distance 0 although it is one hop, so all its distances are one too small; the
routes are the same. :func:`as_printed` follows the print, for the comparison with the paper.
"""
