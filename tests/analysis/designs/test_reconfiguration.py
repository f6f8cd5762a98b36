"""Whether to reconfigure: the table of sequences, the envelope over the delay, and their plots."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from case_families import each
from group_words import reduced_word
from reconfigure_tables import draw_regions
from scipy.optimize import linprog

import opticoll as oc
from opticoll.analysis.designs import sequence_records as sequence_records_of
from opticoll.analysis.designs.envelope import cyclic_records, direct_configurations, direct_records, envelope
from opticoll.analysis.designs.reconfiguration_plots import draw_envelope
from opticoll.analysis.designs.sequence_records import (
    best_sequence,
    sequence_records,
)
from opticoll.analysis.designs.two_groups import record_group
from opticoll.errors import BadInput
from opticoll.formulations.topology import sequence_bounds
from opticoll.formulations.topology.sequence import TopologySequence
from opticoll.instances.collective_steps import collective_steps
from opticoll.solvers.methods.topology.sequence_flows import CircuitLines, RoutedSequence, least_hops
from opticoll.solvers.methods.topology.sequence_orbits import (
    annealed,
    drawn,
    named_group,
    orbit_hops,
    some_groups,
)

ROWS = [row for rows in sequence_records().values() for row in rows]


def multiplied(n, group, left, right):
    """Product of two elements by the definition of the group, one pair at a time."""
    if group == "xor":
        return left ^ right
    if group.startswith("pc:"):
        letters = [g for number in (left, right) for g in range(n.bit_length() - 1) if number >> g & 1]
        return reduced_word(group, letters)
    m, k, r = map(int, group.split(","))
    (b, a), (e, c) = divmod(left, m), divmod(right, m)
    return (b + e) % k * m + (a + pow(r, b, m) * c) % m


def time_from_one_node(row):
    """Least time of the sequence of a row, by an LP of the flows of node 0 that is built apart from the solver's."""
    n, K = row.n, row.configurations
    arcs = [
        (k, place, u, multiplied(n, row.group, u, g))
        for k, generators in enumerate(row.generators)
        for place, g in enumerate(generators)
        for u in range(n)
    ]
    size = len(arcs) + K
    rows, cols, entries, right = [], [], [], []

    def row_of(terms, most):
        rows.extend([len(right)] * len(terms))
        cols.extend(column for column, _ in terms)
        entries.extend(value for _, value in terms)
        right.append(most)

    shared, out, into = {}, {}, {}
    for column, (k, place, u, v) in enumerate(arcs):
        shared.setdefault((k, place), []).append((column, 1.0))
        out.setdefault((k, u), []).append(column)
        into.setdefault((k, v), []).append(column)
    for (k, _), terms in shared.items():
        row_of([*terms, (len(arcs) + k, -1.0)], 0.0)
    for v in range(1, n):
        for last in range(K):
            terms = [(column, 1.0) for k in range(last + 1) for column in out.get((k, v), ())]
            terms += [(column, -1.0) for k in range(last + 1) for column in into.get((k, v), ())]
            row_of(terms, -1.0 if last == K - 1 else 0.0)
    cost = np.append(np.zeros(len(arcs)), np.ones(K))
    matrix = sp.csr_array((entries, (rows, cols)), shape=(len(right), size))
    result = linprog(cost, A_ub=matrix, b_ub=right)
    assert result.status == 0
    return result.fun


def time_from_all_nodes(row):
    """Least time of the sequence of a row without symmetry, by an LP of the flows of all nodes."""
    n, K = row.n, row.configurations
    topologies = [oc.topology(spec) for spec in row.circuits]
    for topology in topologies:
        ends = set(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))
        assert row.directed or ends == {(v, u) for u, v in ends}
        assert max(np.bincount(topology.tail).max(), np.bincount(topology.head).max()) <= row.degree
    arcs = [(k, u, v) for k, one in enumerate(topologies) for u, v in zip(one.tail, one.head, strict=True)]
    flow = cp.Variable((n, len(arcs)), nonneg=True)
    length = cp.Variable(K)
    tail, head = (np.eye(n)[[arc[end] for arc in arcs]] for end in (1, 2))
    held, rows, off = 0, [cp.sum(flow, axis=0) <= length[[k for k, _, _ in arcs]]], 1 - np.eye(n)
    for k in range(K):
        now = np.array([float(one[0] == k) for one in arcs])
        moved = cp.multiply(flow, np.tile(now, (n, 1)))
        held = held + moved @ head - moved @ tail
        rows.append(cp.multiply(off, held) >= (off if k == K - 1 else 0))
    problem = cp.Problem(cp.Minimize(cp.sum(length)), rows)
    problem.solve(solver="HIGHS")
    return problem.value


def confirm(row):
    if row.circuits:
        assert time_from_all_nodes(row) == pytest.approx(row.time, rel=1e-7)
        return
    m = [len(set(generators)) for generators in row.generators]
    assert m == [row.degree] * row.configurations
    if not row.directed:
        for generators in row.generators:
            for g in generators:
                assert any(multiplied(row.n, row.group, g, back) == 0 for back in generators)
    assert time_from_one_node(row) == pytest.approx(row.time, rel=1e-7)


@pytest.mark.parametrize(
    ("phases", "lengths", "flow", "expected"),
    [
        ([0, 1, 1], [2, 1], [2, 1, 0], 0),
        ([0, 1, 1], [1.5, 1], [2, 1, 0], 0.5),  # 2 shards in a configuration for 1.5
        ([0, 1, 1], [2, 1], [2, 0.75, 0], 0.25),  # a quarter of the shard of node 2 stays at node 1
        ([1, 0, 1], [1, 2], [2, 1, 0], 1),  # node 1 sends on what it does not have yet
        ([0, 1, 1], [2.25, 1], [2.25, 1, -0.25], 0.25),
    ],
)
def test_a_flow_of_a_record_is_checked(phases, lengths, flow, expected):
    """0 sends to 1 for both nodes, 1 to 2; the third circuit leads back."""
    ends = {"tail": np.array([0, 1, 2]), "head": np.array([1, 2, 1])}
    own = {"group": np.arange(3), "shared_phase": np.array(phases), "circuits": np.ones(3, dtype=int)}
    lines = CircuitLines(np.array(phases), **ends, **own, sources=np.array([0]), demand=np.array([[0.0, 1, 1]]))
    routed = RoutedSequence(3.0, np.array(lengths), np.array([flow]), np.zeros(3))
    assert sequence_records_of.violation(lines, routed, 3, 2) == expected


@each("row", [row for row in ROWS if row.n <= 16][::3])
def test_small_rows_of_the_table_hold(row):
    confirm(row)


@pytest.mark.parametrize("row", [row for row in ROWS if row.circuits], ids=str)
def test_rows_without_symmetry_hold(row):
    confirm(row)


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in ROWS if row.n * row.degree * row.configurations <= 17_000], ids=str)
def test_rows_of_the_table_hold(row):
    confirm(row)


def test_bounds_of_the_table_are_those_of_the_formulation():
    for row in ROWS:
        data = TopologySequence.of_nodes(row.n, row.degree, row.configurations, directed=row.directed)
        hops, _ = sequence_bounds.hop_time(data, row.configurations)
        ports, _ = sequence_bounds.port_time(data)
        assert row.bound == max(hops, ports)
        assert row.time >= float(row.bound) * (1 - 1e-9)


def test_many_sequences_of_the_table_are_proven_best():
    cells = {(r.n, r.degree, r.directed, r.configurations) for r in ROWS if r.best_possible}
    assert sum(n <= 64 and d <= 4 and K <= 8 for n, d, _, K in cells) >= 60


@pytest.mark.parametrize("step", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_hops_from_the_identity_are_those_in_the_circuits(directed, step):
    rng = np.random.default_rng(5)
    for group in some_groups(8):
        generators = drawn(rng, 3, 4, group.inverses, directed)
        counts = np.zeros((3, 8, 8), dtype=np.int64)
        for k, row in enumerate(generators):
            for g in row:
                counts[k, np.arange(8), group.table[:, g]] = 1
        if not directed:
            assert (counts == counts.transpose(0, 2, 1)).all()
        assert (least_hops(counts, step).sum(axis=1) == orbit_hops(group.table, generators, step)).all()


def test_annealing_does_not_worsen_and_stops_at_its_goal():
    rng, group = np.random.default_rng(0), named_group(32, "32,1,1")
    start = drawn(rng, 2, 4, group.inverses, False)
    before = orbit_hops(group.table, start, False)
    hops, generators = annealed(
        rng, group.table, group.inverses, start.copy(), directed=False, step=False, moves=3000, least=0
    )
    assert hops == orbit_hops(group.table, generators, False) <= before
    again, _ = annealed(
        rng, group.table, group.inverses, generators.copy(), directed=False, step=False, moves=3000, least=int(hops)
    )
    assert again == hops


@pytest.mark.parametrize("name", sorted({row.group for row in ROWS if row.group.startswith("pc:")}))
def test_tables_are_groups_and_follow_their_presentation(name):
    n = next(row.n for row in ROWS if row.group == name)
    group = record_group(n, name)
    table, nodes = group.table, np.arange(n)
    assert (table[table] == table[:, table]).all()
    assert (table[nodes, group.inverses] == 0).all()
    assert (table[0] == nodes).all()
    for left, right in np.random.default_rng(0).integers(0, n, (20, 2)).tolist():
        assert table[left, right] == multiplied(n, name, left, right)


@pytest.mark.parametrize(("n", "degree", "K", "directed", "value"), [(16, 2, 3, True, 12.0), (32, 4, 3, False, 12.5)])
def test_the_search_proves_the_best_sequences(n, degree, K, directed, value):
    found = best_sequence(n, degree, K, directed=directed, seconds=30.0)
    assert found.best_possible
    assert found.time == pytest.approx(value)
    confirm(found)


def test_the_search_says_that_there_is_none():
    assert best_sequence(9, 1, 4, seconds=1.0) is None  # no group of odd order has an involution


@pytest.mark.parametrize(("n", "most"), [(9, 10.0), (27, 91.0)])
def test_nodes_and_ports_that_are_odd_have_a_topology_that_stays(n, most):
    """No two-way circuits give each of 9 nodes 3 ports; a ring uses two of them and takes (n^2 - 1) / 8."""
    found = best_sequence(n, 3, 1, seconds=0.1)
    assert float(found.bound) <= found.time <= most * (1 + 1e-9)
    assert (found.degree, found.configurations) == (3, 1)


def test_the_limit_of_the_search_is_wall_clock(monkeypatch):
    """On a busy machine, a second of processor time takes many."""
    clock = itertools.count(step=10.0)
    monkeypatch.setattr(sequence_records_of, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    assert best_sequence(16, 2, 4, seconds=25.0) is not None
    assert next(clock) <= 100.0


# the envelope ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("delay", "value", "K"), [(1.5, 6.5, 2), (0.75, 5.5, 3), (4.0, 8.0, 1)])
def test_the_envelope_has_the_proven_optima_of_eight_nodes(delay, value, K):
    choice = envelope(8, 2).at(delay)
    assert (choice.value, choice.configurations) == (pytest.approx(value), K)
    assert choice.bound == pytest.approx(value)
    solved = oc.solve("topology.sequence", "servers:n=8,degree=2", configurations=0, delay=delay, time_limit=60)
    assert solved.objective == pytest.approx(value)


@pytest.mark.parametrize(("n", "degree", "directed"), [(16, 1, True), (16, 4, False), (64, 4, False), (64, 2, True)])
def test_thresholds_are_where_the_verdicts_change(n, degree, directed):
    curve = envelope(n, degree, directed=directed)
    assert 0 <= curve.always_below <= curve.change_below <= curve.stay_from
    for delay in np.geomspace(0.01, 3 * curve.stay_from, 60):
        choice = curve.at(float(delay))
        assert choice.bound <= choice.value * (1 + 1e-9)
        assert choice.verdict == (
            "change" if delay <= curve.change_below else "stay" if delay >= curve.stay_from else "open"
        )
        few = min(bound + delay * K for K, bound in enumerate(curve.bounds[: curve.direct - 1]))
        many = min(T + delay * (K - 1) for K, T in curve.times.items() if curve.direct <= K)
        assert (many <= few * (1 + 1e-12)) == (delay <= curve.always_below)


def test_bounds_of_the_envelope_fall_with_more_configurations():
    for n, degree in ((16, 1), (32, 2), (64, 4)):
        for directed in (False, True):
            bounds = envelope(n, degree, directed=directed).bounds
            assert all(later <= earlier for earlier, later in pairwise(bounds))
            assert bounds[-1] == pytest.approx((n - 1) / degree)


@each("full", [False, True])
@each(
    ("n", "degree", "directed"),
    [
        (6, 2, True),
        (8, 2, False),
        (8, 4, False),
        (6, 4, False),
        (8, 5, True),
        (16, 4, True),
        (12, 8, False),
        (9, 6, True),
    ],
)
def test_direct_circuits_serve_every_pair_in_their_time(n, degree, directed, full):
    rounds = sequence_bounds.rotation(n, 1, directed=directed)
    served, total = np.zeros((n, n)), 0
    every = direct_configurations(n, degree, directed=directed, full=full)
    for chosen, length in every:
        assert len(chosen) == degree if full else len(chosen) <= degree
        for at in chosen:
            tail, head = np.array(rounds[at]).T
            assert max(np.bincount(tail).max(), np.bincount(head).max()) == 1
            served[tail, head] += float(length)
        total += length
    np.fill_diagonal(served, 1.0)
    assert served == pytest.approx(np.ones((n, n)))
    assert total == (Fraction(len(rounds), degree) if full else len(every))
    known = {row.configurations: row.time for row in direct_records(n, degree, directed)}
    assert known[len(every)] <= float(total)
    assert not full or known[len(every)] == float(total)


@pytest.mark.parametrize(("total", "of", "parts"), [(3, 4, [2, 1]), (7, 8, [4, 2, 1]), (5, 6, [3, 2]), (4, 5, [1] * 4)])
def test_ports_are_full_with_as_few_configurations_as_divisors_permit(total, of, parts):
    every = direct_configurations(of + total + 1, of, directed=True, full=True)
    assert [len(set(chosen)) for chosen, _ in every] == [of, *parts]


@each("directed", [False, True])
@each("degree", [1, 2, 4, 8])
@each("n", [8, 16, 32, 64, 128, 256])
def test_the_best_sequences_are_near_the_bound_at_every_delay(n, degree, directed):
    """Within 5 % of all sequences where three or more configurations are best, and within 10 % elsewhere.

    Value and bound are piecewise linear in the delay, so their quotient is largest where one of them has a kink.
    """
    if degree >= n or (n, degree, directed) not in sequence_records():
        pytest.skip("no sequences of this size")
    curve = envelope(n, degree, directed=directed)
    bounds = [(K, bound) for K, bound in enumerate(curve.bounds, 1) if bound < math.inf]
    kinks = {0.0, curve.stay_from if curve.stay_from < math.inf else 1e9}
    for listed in (list(curve.times.items()), bounds):
        kinks |= {(T - more) / (L - K) for (K, T), (L, more) in itertools.combinations(listed, 2) if more < T}
    for delay in kinks:
        choice = curve.at(delay)
        assert choice.gap <= (0.05 if choice.configurations >= 3 else 0.1)


@pytest.mark.parametrize(("n", "degree"), [(1, 1), (8, 0), (8, 8)])
def test_sizes_without_circuits_are_refused(n, degree):
    with pytest.raises(BadInput, match="from 1 to n - 1 ports"):
        envelope(n, degree)


@pytest.mark.parametrize(("n", "degree", "directed"), [(9, 3, False), (12, 2, False), (12, 1, True), (20, 7, True)])
def test_a_size_that_is_not_in_the_table_has_rings_and_index_algorithms(n, degree, directed):
    assert (n, degree, directed) not in sequence_records()
    curve = envelope(n, degree, directed=directed)
    for row in cyclic_records(n, degree, directed):
        assert curve.bound(row.configurations) <= curve.times[row.configurations] * (1 + 1e-9) <= row.time * (1 + 2e-9)
    assert 0 <= curve.change_below <= curve.stay_from


@pytest.mark.parametrize(("n", "degree", "message"), [(10_000_000, 4, "limit of 4096 nodes"), (8, "2", "not '2'")])
def test_sizes_without_an_envelope_are_refused(n, degree, message):
    with pytest.raises(BadInput, match=message):
        envelope(n, degree)


# index algorithms -----------------------------------------------------------------------------------------------------


@each("balanced", [False, True])
@each(("n", "radix"), [(8, 2), (9, 3), (27, 3), (20, 3), (64, 4), (13, 2)])
def test_the_shifts_of_an_index_algorithm_add_up_to_every_distance(n, radix, balanced):
    if balanced and radix != 3:
        return
    steps = collective_steps("retri" if balanced else f"bruck:{radix}", n)
    if not balanced:
        assert sum(step.peers[:, 0] @ step.amounts for step in steps) == n * (n - 1) // 2
    if n == radix ** len(steps):
        assert all(shards == n // radix for step in steps for shards in step.amounts)


# plots ----------------------------------------------------------------------------------------------------------------


def test_plots_have_labels_with_units():
    curve = envelope(16, 4)
    figure = draw_envelope(curve)
    axes = figure.axes[0]
    assert "[shards / link bandwidth]" in axes.get_xlabel()
    assert "[shards / link bandwidth]" in axes.get_ylabel().replace("\n", " ")
    assert "16 nodes, 4 two-way ports" in axes.get_title()
    regions = draw_regions([envelope(n, degree) for n in (8, 16) for degree in (2, 4)])
    assert [axes.get_title() for axes in regions.axes] == ["2 ports", "4 ports"]
    assert not math.isnan(regions.axes[0].get_ylim()[1])
