"""Random instances for property tests."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from opticoll.instances import Topology


@st.composite
def topologies(draw, most=7, capacities: Sequence[float] = (0.25, 0.5, 1.0, 2.0, 3.0), *, relays=False):
    """A random strongly connected digraph with capacities: a directed ring and any further arcs.

    With ``relays``, some vertices are no ranks.
    """
    n = draw(st.integers(2, most))
    order = draw(st.permutations(range(n)))
    arcs = [(order[i], order[(i + 1) % n]) for i in range(n)]
    extra = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=2 * n))
    arcs += [(u, v) for u, v in extra if u != v]
    capacity = draw(st.lists(st.sampled_from(capacities), min_size=len(arcs), max_size=len(arcs)))
    ranks = draw(st.lists(st.integers(0, n - 1), min_size=2, max_size=n, unique=True)) if relays else None
    return Topology(n, [u for u, _ in arcs], [v for _, v in arcs], capacity, terminals=ranks)
