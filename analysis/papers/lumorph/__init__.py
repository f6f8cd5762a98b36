r"""LuMorph: claims and figures; and what they share, the time of a schedule of rounds.

Source  LuMorph, sections 4, 5 and Appendices B, C; Hockney's alpha-beta model

    T = sum over rounds of  alpha + r [circuits are set up] + max over pairs  bytes(pair) / (circuits(pair) b)

alpha [us] is paid once per round, r [us] is the switching time, b [bytes/us] the rate of one circuit: the payload of
a pair is striped over its circuits. The times include rounds that are split because waveguides or lasers
are missing.

Closed form of the recursive exchange, N GPUs, L lasers, buffer B [bytes], beta = 1 / (L b) [us/byte], equal to the time
of its schedule:

    sum over the digits m of N of 2 (alpha + r) + 2 (m - 1) s/N B beta (L/(m - 1)) / floor(L/(m - 1)),

s the ranks reached before (1, m_0, m_0 m_1, ..): LUMORPH-2 has log2 N digits 2, LUMORPH-4 has log4 N digits 4. The
volume sums to 2 (N - 1)/N B, and 16 lasers give three peers 15/16 of their bandwidth. (Appendix B's B/16 + B/4 counts
one peer of three.)

The authors' own costs are in :mod:`opticoll.formulations.lumorph.cost_formulas`.

The all-reduces are also built on a machine, which gives the rounds and the data time per byte.
The time of a fixed schedule whose chunks are equal shares of the buffer is a line in the buffer's size B:
``rounds (alpha + r) + weight B / b`` with b the rate of a circuit.
"""
