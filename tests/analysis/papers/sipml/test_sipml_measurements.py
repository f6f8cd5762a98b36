"""Parts of the measurements of the SiP-ML paper."""

from __future__ import annotations

from ledgers.sipml import LEDGER, printed_repair
from second_measurements import (
    NOT,
    OPEN,
    REFUTED,
    REPRODUCED,
    examined,
)

from opticoll.analysis.papers.sipml import placement_claims
from opticoll.solvers.methods.sipml import degree_aware


def test_a_placement_beyond_the_distance_is_noticed(monkeypatch):
    place = degree_aware.Unrolled.place

    def scattered(self, context=None):
        place(self, context)
        self.device = [v % self.k for v in range(self.data.n)]
        return True

    monkeypatch.setattr(degree_aware.Unrolled, "place", scattered)
    assert examined(LEDGER.claims["distance"], seeds=2).verdict is REFUTED


def test_a_repair_that_never_ends_is_counted():
    row = examined(LEDGER.claims["convergence"], seeds=2, **{"graphs per seed": 140})
    assert row.verdict is OPEN
    line, *circle = reversed(row.choices)
    assert line.verdict is REPRODUCED
    assert [choice.verdict for choice in circle] == [NOT] * 5
    printed_repair(row)


def test_stages_that_wait_are_noticed(monkeypatch):
    monkeypatch.setattr(placement_claims, "_makespan", lambda durations, arcs, device, delay: float(device[0] + 1))
    first, *_ = examined(LEDGER.claims["sequential"]).choices
    assert first.natural
    assert first.verdict is NOT
