r"""Methods for LuMorph's formulations, with their engines, over communication patterns.

Communication patterns of collective algorithms: the transfers of every step, without routes.

Source  LuMorph, section 4 and Appendices B, C; Thakur, Rabenseifner & Gropp 2005 (recursive doubling, ring); Bruck
        et al. 1997 (circulant all-gather, index all-to-all); Sanders, Speck & Traeff 2009 (two binary trees)

On ranks 0 .. p - 1 of which rank i owns shard i, each a *spreading* of every shard to all ranks:

    exchange     mixed radix m_0 m_1 .. = p: in a step the m ranks that differ in one digit exchange all shards that
                 they hold. Recursive doubling (m = 2), quadrupling (4), k + 1 for k peers; as many steps as digits.
                 Starting with the lowest digit (``near``) the amount grows with distance, with the highest it falls
    circulant    any p, ceil(log_m p) steps: with b = 1, m, m^2, .. shards held, rank i receives the next b from
                 each of i + d b, d = 1 .. m - 1
    ring         p - 1 steps: rank i forwards its last received shard to i + 1
    tree         over the edges of a tree, away from the owner, one hop a step

Backwards in time, with every transfer reversed and adding, each is a sum (recursive halving, quartering). An all-reduce
is the sum followed by the spreading; :func:`whole_exchange` instead sends the whole buffer in every step.
"""
