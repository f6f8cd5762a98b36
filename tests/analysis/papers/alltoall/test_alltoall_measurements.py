"""Parts of the measurements of the all-to-all paper."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import networkx as nx
import pytest
from ledgers.alltoall import LEDGER
from reference import labelled_digraphs, multigraph
from second_measurements import (
    REFUTED,
    REPRODUCED,
    examined,
)

from opticoll.analysis.ledger.claim import Laboratory
from opticoll.analysis.papers.alltoall import claims as program_claims
from opticoll.analysis.papers.alltoall import upper_bound_claims as bound_claims
from opticoll.analysis.papers.alltoall.path_claims import shortest_path_counts
from opticoll.formulations.alltoall import path_mcf
from opticoll.instances import parse


def test_wrong_bounds_would_be_noticed(monkeypatch):
    small = tuple(
        (parse(s), program_claims.certified_flow(parse(s))) for s in ("ring:5", "complete:4", "bipartite:3x3")
    )
    monkeypatch.setattr(bound_claims, "classes", lambda *, regular: small)
    assert examined(LEDGER.claims["theorem-2"]).verdict is REPRODUCED
    true = bound_claims.moore_bound
    monkeypatch.setattr(bound_claims, "moore_bound", lambda data: replace(true(data), value=0.9 * true(data).value))
    monkeypatch.setattr(bound_claims, "corollary_3", lambda n, d: program_claims.corollary_3(n, d) / 0.9)
    row = examined(LEDGER.claims["theorem-2"])
    assert (row.verdict, row.count, row.witness.partition(":")[0]) == (REFUTED, 3, "complete")


def test_more_than_d_disjoint_paths_would_be_noticed(monkeypatch):
    prepare = path_mcf.PathConcurrentFlow.prepare
    monkeypatch.setattr(
        path_mcf.PathConcurrentFlow, "prepare", lambda topology, rule: prepare(topology, {"paths": "all"})
    )
    claim = LEDGER.claims["disjoint-paths"]
    scope = {**claim.scope, "networks": ["complete:4"], "networks with disabled links": []}
    assert "as many disjoint paths" in replace(claim, scope=scope).examine(Laboratory()).reason


def test_isomorphic_copies_count_once():
    """The connected 2-regular digraphs without loops on 4 vertices: 9 labelled, networkx tells them apart."""
    labelled = list(labelled_digraphs(4, 2))
    kinds = []
    for topology in labelled:
        graph = nx.DiGraph(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))
        if not any(nx.is_isomorphic(graph, other) for other in kinds):
            kinds.append(graph)
    assert len(labelled) == 9
    assert len(bound_claims.distinct(labelled)) == len(kinds) < 9
    assert len(bound_claims.distinct([parse("bipartite:2x2"), parse("ring:4"), parse("circulant:n=4,offsets=1")])) == 1


@pytest.mark.parametrize("spec", ["torus:3x4", "genkautz:n=10,d=3", "hypercube:3", "petersen"])
def test_shortest_paths_are_those_of_networkx(spec):
    topology = parse(spec)
    graph = multigraph(topology)
    simple = nx.DiGraph(graph)
    counts = shortest_path_counts(topology)
    for s, t in ((s, t) for s in graph for t in graph if s != t):
        assert counts[s, t] == sum(ways(graph, path) for path in nx.all_shortest_paths(simple, s, t))


def ways(graph, path):
    product = 1
    for u, v in pairwise(path):
        product *= graph.number_of_edges(u, v)
    return product
