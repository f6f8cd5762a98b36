"""The claims of every paper: their verdicts, and second measurements that share no code with the ledger's."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from second_measurements import OPEN, REPRODUCED
from slow_cases import marked

from opticoll.analysis.ledger.claim import Laboratory
from opticoll.analysis.ledger.ledger import claims

HOME = Path(__file__).resolve().parents[2] / "ledgers"
LEDGERS = {path.stem: import_module(f"ledgers.{path.stem}").LEDGER for path in sorted(HOME.glob("*.py"))}
CLAIMS = [(paper, name) for paper, one in LEDGERS.items() for name in sorted(one.verdicts)]
CASES = [(paper, *case) for paper, one in LEDGERS.items() for case in one.cases()]
#: Claims on random samples.
SAMPLED = {
    "sipml": "sequential split-cap distance hybrid-degree switches-degree ilp convergence",
    "optree": "lemma2",
    "lumorph": "cover random-worse",
    "topoopt": "imbalance-d4 imbalance-d8 alternating",
    "alltoall": "sp-expander-degree sssp-order sssp disjoint-paths children mcf-extp host-bottleneck sp-expanders "
    "over-random over-xpander over-xpander-d8 expanders-alike",
}
#: Of these, the ones that take a few seconds at most in another sample.
SAMPLED_QUICKLY = {"sequential", "split-cap", "distance", "hybrid-degree", "lemma2", "cover"}


def case_of(*values, slow):
    return marked(*values, slow=slow, id=".".join(map(str, values[:2])))


@pytest.mark.parametrize("one", LEDGERS.values(), ids=LEDGERS)
def test_every_claim_has_a_verdict_that_can_change_and_the_second_measurement_that_it_needs(one):
    assert one.lacking() == []


def test_what_a_claim_lacks_is_said():
    one = LEDGERS["optree"]

    def lines(**changes):
        return [line for line in replace(one, **changes).lacking() if line not in one.lacking()]

    names = {verdict: words.replace("theorem1", "theorem3") for verdict, words in one.names.items()}
    assert lines(names=names) == [
        "tests/ledgers/optree.py: optree.theorem3 has a verdict and is no claim",
        "tests/ledgers/optree.py: optree.theorem1 has no verdict in LEDGER",
    ]
    (line,) = lines(falsified=[case for case in one.falsified if case[0] != "theorem1"])
    assert line.endswith("optree.theorem1 needs a case in LEDGER.falsified that changes its verdict")
    (line,) = lines(by_claim={name: one.by_claim[name] for name in one.by_claim if name != "optree.theorem2"})
    assert line.endswith('optree.theorem2 needs a second measurement, decorated with LEDGER.second("optree.theorem2")')
    (line,) = lines(by_claim=one.by_claim | {"optree.theorem2": print})
    assert line.endswith('optree.theorem2 does not name its second measurement: second="print"')


def test_every_paper_has_its_ledger():
    papers = {claim.paper for claim in claims().values()}
    assert not papers - set(LEDGERS), "write tests/ledgers/PAPER.py for these papers, as those of others"
    assert {paper: one.paper for paper, one in LEDGERS.items()} == {paper: paper for paper in papers}


@pytest.mark.parametrize(
    ("paper", "name"), [case_of(paper, name, slow=LEDGERS[paper].takes_long(name)) for paper, name in CLAIMS]
)
def test_the_verdict_and_the_second_measurement(paper, name):
    row = LEDGERS[paper].confirm(name)
    assert row.reason, f"{paper}.{name}: its Measurement states no reason for the verdict"
    if row.verdict.accuses:
        assert row.saved_by, "it says which reading would save the claim"
        assert row.second, "it names its second measurement"
    if row.count and row.violations is not None and row.distance == row.violations / row.count:
        assert bool(row.violations) is row.verdict.accuses, "its failures are those of the natural reading"
    if row.verdict is OPEN and row.choices:
        assert {choice.verdict for choice in row.choices} > {REPRODUCED}, "some readings agree, some do not"


@pytest.mark.parametrize(
    ("paper", "name", "case"), [case_of(paper, case[0], case, slow=slow) for paper, case, slow in CASES]
)
def test_another_number_or_scope_gets_another_verdict(paper, name, case):
    _, changes, verdict, *wrong = case
    turned = LEDGERS[paper].turned(name, changes, *wrong)
    same = (turned.favours and verdict.favours) or (turned.accuses and verdict.accuses)
    assert turned is verdict or same, "some wrong values come with a witness, some right ones agree with a figure"


@pytest.mark.parametrize(
    ("paper", "name"),
    [
        case_of(paper, name, slow=name not in SAMPLED_QUICKLY)
        for paper, names in SAMPLED.items()
        for name in names.split()
    ],
)
def test_verdicts_do_not_depend_on_the_random_sample(paper, name):
    row = LEDGERS[paper].claims[name].examine(Laboratory(seed=1))
    assert not row.failed
    assert row.verdict is LEDGERS[paper].verdicts[name]
    assert row.rerun.endswith("--seed 1")
