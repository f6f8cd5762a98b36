"""The ledger: claims are well formed, failures are rows, rows are kept and read, sweeps find violations."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import combinations, product
from math import factorial
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from case_families import each
from claim_pages import page as page_of

from opticoll import plugins
from opticoll.analysis.cli.main import main
from opticoll.analysis.ledger import comparisons
from opticoll.analysis.ledger import explanation as explain
from opticoll.analysis.ledger import ledger as book
from opticoll.analysis.ledger.claim import Claim, Laboratory, Measurement
from opticoll.analysis.ledger.ledger import LARGEST_BYTES, folder
from opticoll.analysis.ledger.readings import Readings, Sweep
from opticoll.analysis.ledger.tolerances import TOLERANCES, PrintedNumber, similar
from opticoll.analysis.ledger.verdict import AS_STATED, Choice, NaturalReading, Verdict, Weight
from opticoll.analysis.papers.paper_figure import PAPERS, modules_about
from opticoll.analysis.papers.topoopt.design_claims import wirings
from opticoll.analysis.store import Store
from opticoll.errors import BadFile, BadInput
from opticoll.instances import parse
from opticoll.instances.spec import contributed
from opticoll.solvers.task import plain

CLAIMS = list(book.claims().values())
#: Claims that take no time.
QUICK = {
    "lumorph.rack-all-to-all": Verdict.REPRODUCED,
    "alltoall.out-of-reach": Verdict.NOT_TESTABLE,
    "alltoall.sccl": Verdict.NOT_TESTABLE,
}


def one(identifier="paper.one", measure=None, **more):
    return Claim(identifier, "paper", "table 1", "one is one", 1.0, measure=measure, **more)


def good(_):
    return Measurement(
        np.float64(1.0),
        Verdict.REPRODUCED,
        ("ring:4",),
        "it is",
        count=np.int64(3),
        violations=0,
        tightness={"min": 0.5, "median": 0.75, "max": float("inf")},
        records=("a.1",),
    )


def broken(_):
    msg = "no\nsolution"
    raise ArithmeticError(msg)


@pytest.fixture
def ledger_of(monkeypatch):
    """Put claims in place of the ledger's."""
    return lambda *claims: monkeypatch.setattr(book, "claims", lambda: {claim.id: claim for claim in claims})


# every claim --------------------------------------------------------------------------------------------------------


def test_the_ledger_is_whole():
    measured = [name for part in contributed(modules_about("claims"), "MEASURES") for name in part]
    assert sorted(measured) == sorted(claim.id for claim in CLAIMS if claim.measure), "each once, and stated"
    assert len(CLAIMS) >= 50
    assert {claim.paper for claim in CLAIMS} == set(PAPERS)
    assert sum(claim.paper == "alltoall" for claim in CLAIMS) >= 40


@each("claim", CLAIMS)
def test_every_claim_is_well_formed(claim):
    assert re.fullmatch(r"[a-z0-9]+\.[a-z0-9][a-z0-9.-]*", claim.id)
    assert claim.id.startswith(f"{claim.paper}.")
    assert all(text.strip() for text in (claim.where, claim.claim, claim.tolerance))
    assert claim.expected is not None
    json.dumps(claim.expected, allow_nan=False)
    assert claim.measure is not None or claim.reason, "what is not measured says why"
    assert (claim.measure is None) == (not claim.scope), "what is measured has its qualifiers in scope, and only that"
    assert claim.measure is None or claim.procedure, "what is measured says in plain words how: procedure"
    assert claim.weight in set(Weight)
    assert (claim.natural is None) <= bool(claim.lost or claim.unpublished)
    assert claim.natural is None or (claim.natural.name and claim.natural.because)


def test_claims_that_share_a_convention_share_its_reading():
    """A reading has one home: equal readings are one object, and no two readings of a paper have one name."""
    shared = [
        ("optree.fig5-ne", "optree.fig5-ring", "optree.fig5-wrht", "optree.fig6-ne", "optree.fig4-saving"),
        ("optree.theorem2", "optree.table1-depth"),
        ("topoopt.cost-ideal", "topoopt.cost-ocs"),
        ("topoopt.forwarding-bert", "topoopt.reconfiguration"),
        ("topoopt.abstract", "topoopt.shared-mean", "topoopt.shared-tail"),
        ("topoopt.all-reduce-44", "topoopt.hybrid-transfer"),
        ("lumorph.slow-switches", "lumorph.ncf"),
        ("sipml.distance", "sipml.hybrid-degree", "sipml.figure-4"),
    ]
    known = book.claims()
    for names in shared:
        assert len({id(known[name].natural) for name in names}) == 1, names
    readings = {id(claim.natural): claim.natural for claim in CLAIMS if claim.natural is not None}
    assert len({one.name for one in readings.values()}) == len(readings)


@each("claim", [claim for claim in CLAIMS if claim.measure])
def test_a_dropped_qualifier_is_noticed(claim, monkeypatch):
    """Every measurement reads all its qualifiers before it solves anything."""

    def solved(*_args, **_kwargs):
        pytest.fail(f"{claim.id} solves before it has read its qualifiers")

    monkeypatch.setattr(Laboratory, "record", solved)
    monkeypatch.setattr(comparisons, "linear_optimum", solved)
    for qualifier in claim.scope:
        rest = {name: value for name, value in claim.scope.items() if name != qualifier}
        row = replace(claim, scope=rest).examine(Laboratory())
        assert row.failed
        assert f"no qualifier {qualifier!r}" in row.reason


# sweeps -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "time"),
    [
        ("path:4", 4.0),
        ("ring:8", 8.0),
        ("hypercube:3", 4.0),
        ("complete:5", 1.0),
        ("bipartite:4x4", 2.5),
        ("ring:5,directed", 10.0),
    ],
)
def test_certified_optima_are_the_closed_forms(spec, time):
    assert 1 / comparisons.certified_flow(parse(spec)) == pytest.approx(time)


def test_a_wrong_optimum_is_not_certified(monkeypatch):
    true = comparisons.linear_optimum
    monkeypatch.setattr(comparisons, "linear_optimum", lambda form: (true(form)[0] * 0.99, *true(form)[1:]))
    with pytest.raises(ArithmeticError, match="not certified"):
        comparisons.certified_flow(parse("ring:5"))


def test_regular_digraphs_are_all_there():
    """One of every class: the orbits of the labelled matrices with zero diagonal and row and column sums d."""
    results = list(comparisons.regular_digraphs())
    assert all((g.out_degree == g.out_degree[0]).all() and g.connected for g in results)
    for n, d in ((4, 2), (5, 2), (5, 3), (6, 5)):
        members = [nx.DiGraph(zip(g.tail, g.head, strict=True)) for g in results if (g.n, g.out_degree[0]) == (n, d)]
        labelled = sum(
            factorial(n) // sum(1 for _ in nx.isomorphism.DiGraphMatcher(graph, graph).isomorphisms_iter())
            for graph in members
        )
        rows = [list(combinations([v for v in range(n) if v != u], d)) for u in range(n)]
        brute = sum(
            (np.bincount(np.ravel(heads), minlength=n) == d).all()
            and nx.is_strongly_connected(nx.DiGraph([(u, v) for u, to in enumerate(heads) for v in to]))
            for heads in product(*rows)
        )
        assert labelled == brute


def test_a_sweep_counts_and_keeps_the_smallest_case():
    sweep = Sweep()
    for size, ratio in ((9, 1.0), (7, 0.5), (5, 0.25)):
        sweep.add(ratio, holds=ratio == 1.0, size=size, case=f"n={size}")
    assert sweep.row == {
        "count": 3,
        "violations": 2,
        "tightness": {"min": 0.25, "median": 0.5, "max": 1.0},
        "witness": "n=5",
    }
    assert sweep.met == 1


# failures -----------------------------------------------------------------------------------------------------------


def test_a_measurement_that_raises_is_a_row(monkeypatch):
    monkeypatch.delenv("OPTICOLL_DEBUG", raising=False)
    row = one(measure=broken).examine(Laboratory())
    assert (row["verdict"], row["failed"], row["measured"]) == ("not-testable", True, None)
    assert row["reason"] == "ArithmeticError: no solution"
    assert "**Verdict.** Failed. ArithmeticError: no solution\n" in explain.explanation(row)
    assert explain.counted([row]) == "1 failed"
    assert not one(measure=good).examine(Laboratory())["failed"]
    assert not one(reason="no hardware").examine(Laboratory())["failed"]
    monkeypatch.setenv("OPTICOLL_DEBUG", "1")
    with pytest.raises(ArithmeticError):
        one(measure=broken).examine(Laboratory())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise ValueError('boom')", "ValueError: boom"),
        (
            "return Measurement(1.0, 'reproduced')",
            "verdict must be a Verdict such as Verdict.REPRODUCED, not 'reproduced'",
        ),
        ("return {'measured': 1.0}", "measure returned dict; return a Measurement"),
    ],
)
def test_a_failed_measurement_of_a_plug_in_is_shown_with_its_place(body, message, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text(
        "from opticoll.analysis.ledger.claim import Claim, Measurement\n"
        f"def measure(laboratory): {body}\n"
        "CLAIM = Claim('own.broken', 'own', 'section 1', 'one is one', 1.0, measure=measure)\n"
    )
    (tmp_path / "needed.py").write_text("BOUNDS = {'alltoall.master': lambda topology: 1.0}\n")
    ask = ["claims", "own.broken", "--no-store", "--plugin", "needed.py", "--plugin", "broken.py"]
    try:
        assert main([*ask, "--explain"]) == 1
        explained = capfd.readouterr().out
        assert main(ask) == 1
        table = capfd.readouterr().out
    finally:
        for plugin in list(plugins._known.values()):
            plugins._forget(plugin)
    verdict = next(line for line in explained.splitlines() if line.startswith("**Verdict."))
    assert verdict.startswith("**Verdict.** Failed. ")
    assert message in verdict
    assert f"plug-in {tmp_path / 'broken.py'}, line 2: " in verdict
    assert "Run again: `opticoll claims own.broken --plugin needed.py --plugin broken.py`" in explained
    assert "failed" in table
    assert "not-testable" not in table


def test_a_plug_in_of_the_environment_is_not_named_again(tmp_path, monkeypatch):
    monkeypatch.setattr(plugins, "_known", {})
    for name in ("one", "two"):
        path = tmp_path / f"{name}.py"
        path.write_text("")
        plugins.load_plugin(path, contributes=False)
    monkeypatch.setenv(plugins.VARIABLE, str(tmp_path / "one.py"))
    assert plugins.options() == f" --plugin {tmp_path / 'two.py'}"


def test_rows_are_plain():
    row = one(measure=good).examine(Laboratory())
    assert one(measure=good).examine(Laboratory()) == row
    contract = "id paper where claim scope choices expected measured witness instances reason weight natural printed"
    assert set(row.keys()) >= {*contract.split(), "verdict", "distance", "sensitivity"}
    json.dumps(plain(row), allow_nan=False)
    assert type(row["measured"]) is float
    assert type(row["count"]) is int
    assert row["tightness"]["max"] is None


def test_the_command_says_what_failed(ledger_of, store, capfd):
    ledger_of(one(measure=good), one("paper.two", broken))
    assert main(["claims", "--json", "--store", str(store.root)]) == 1
    out, err = capfd.readouterr()
    assert [row["failed"] for row in json.loads(out)] == [False, True]
    assert "1 of 2 claims could not be measured: paper.two" in err


# scope, readings, explanation ---------------------------------------------------------------------------------------


YES, NO = Verdict.REPRODUCED, Verdict.NOT_REPRODUCED
UP = NaturalReading(name="up", because="Prices are rounded up.", choices={"rounding": "up"})


def reading(tried, verdict):
    return Choice(name="rounding", tried=tried, verdict=verdict, measured=1.5)


def test_a_measurement_that_ignores_a_qualifier_fails():
    def measure(laboratory):
        return Measurement(sum(laboratory.scope["sizes"]), YES)

    assert one(measure=measure, scope={"sizes": [1, 2]}).examine(Laboratory()).measured == 3
    row = one(measure=measure, scope={"sizes": [1, 2], "about": True}).examine(Laboratory())
    assert row.failed
    assert "does not use the qualifier about" in row.reason
    row = one(measure=measure).examine(Laboratory())
    assert row.failed
    assert "no qualifier 'sizes'" in row.reason


def test_a_failure_with_a_witness_is_a_refutation():
    def measured(**more):
        return one(measure=lambda _: Measurement(1.25, NO, **more)).examine(Laboratory())

    assert measured().verdict is NO
    assert measured(witness="ring:4").verdict is Verdict.REFUTED
    assert measured(count=3, violations=1).failed, "violations need a witness"
    assert (measured().printed, measured().measured, measured().distance) == (1.0, 1.25, 0.25)
    assert measured(saved_by="ring:8").saved_by == ["ring:8"]


def test_what_decides_is_lost_or_not_stated():
    assert (
        one(natural=None, lost="Figure 2.", reason="It needs figure 2.").examine(Laboratory()).verdict is Verdict.OPEN
    )
    assert one(reason="no hardware").examine(Laboratory()).verdict is Verdict.NOT_TESTABLE
    with pytest.raises(BadInput, match="has no natural reading"):
        one(natural=None, reason="no hardware")
    with pytest.raises(BadInput, match="weight must be one of headline, supporting, textbook, misprint"):
        one(weight="large", reason="no hardware")


def test_a_natural_reading_that_was_not_tried_is_an_error():
    def measure(_):
        return Measurement(1.5, choices=(reading("down", YES),))

    row = one(measure=measure, natural=UP).examine(Laboratory())
    assert row.failed
    assert "the natural reading 'up' is none of those tried: down" in row.reason


def test_an_explanation_stands_alone(ledger_of, store, capfd):
    def measure(laboratory):
        assert laboratory.scope["sizes"] == [8]
        choices = (reading("down | floor", YES), reading("up", NO))
        return Measurement(1.5, None, ("ring:8",), "Rounding decides.", witness="ring:8", choices=choices)

    ledger_of(
        one(
            measure=measure,
            scope={"sizes": [8]},
            procedure="We count.",
            lost="Figure 2.",
            weight="headline",
            natural=UP,
        ),
        one("paper.two", finite),
    )
    assert main(["claims", "--explain", "--store", str(store.root)]) == 0
    text = capfd.readouterr().out
    for part in (
        "# one is one",
        "`paper.one` · table 1 · headline",
        "**Scope.** sizes = 8",
        "**Procedure.** We count.",
        "Figure 2.",
        "**Numbers.** Stated 1, measured 1.5 (50 % away).",
        "**Natural reading.** Up. Prices are rounded up.",
        "**Sensitivity.** It holds under 1 of 1 other reading.",
        "**It would hold for.** down | floor.",
        "Not reproduced by our model and its stated inputs. Rounding decides.",
        "**Witness.** ring:8",
        "| rounding | measured | verdict |",
        "| up (natural) | 1.5 | not-reproduced |",
        "| down / floor | 1.5 | reproduced |",
        "`opticoll claims paper.one`",
    ):
        assert part in text, part
    page = page_of("Paper", book.kept((), store)[::-1])
    assert page.index("claim-paper-one)=") < page.index("claim-paper-two)="), "headline claims come first"
    assert "2 claims: 1 reproduced, 1 not reproduced." in page
    assert page.index("## Headline claims") < page.index("## Supporting claims")
    assert page.count("<details>") == page.count("</details>") == 2
    assert "| headline | 1 | 0 | 0 | 1 | 0 | 0 | 0 |" in page


def test_without_an_id_the_claims_are_counted(ledger_of, store, capfd):
    ledger_of(one(measure=finite), one("paper.two", reason="no hardware", weight="headline"))
    assert main(["claims", "--store", str(store.root)]) == 0
    text = capfd.readouterr().out
    assert "not testable" in text
    assert "table 1" not in text
    assert main(["claims", "paper", "--cached", "--store", str(store.root)]) == 0
    assert "table 1" in capfd.readouterr().out


def test_readings_of_several_choices_have_a_column_each():
    def table(*choices):
        row = one(measure=lambda _: Measurement(1.5, choices=choices)).examine(Laboratory())
        return explain.explanation(row)

    def pair(tried, verdict, name="rounding; bytes"):
        return Choice(name=name, tried=tried, verdict=verdict, measured=[])

    text = table(pair("up; gradients", YES), pair("down; what rings send; twice", NO))
    assert "| rounding | bytes | measured | verdict |" in text
    assert "| down | what rings send; twice | none | not-reproduced |" in text
    assert "| rounding; bytes | measured | verdict |" in table(pair("up", YES), pair("down; twice", NO))
    mixed = table(pair("up", YES), pair("down", NO, name="depth"))
    assert "| open choice | reading | measured | verdict |" in mixed
    assert "| depth | down | none | not-reproduced |" in mixed


def test_readings_are_collected_with_their_verdicts():
    choices = Readings("rounding; bytes")
    choices.add(("up", 3), True, 3)
    choices.add("down", False, name="depth")
    assert [(c.name, c.tried, c.verdict) for c in choices] == [("rounding; bytes", "up; 3", YES), ("depth", "down", NO)]
    assert choices[0].settings == {"rounding": "up", "bytes": "3"}
    assert AS_STATED.covers(choices[0]) is False


def test_another_sample_has_other_seeds_and_is_not_stored(ledger_of, store):
    seen = []

    def measure(laboratory):
        seen.append((list(laboratory.seeds(2, 1)), laboratory.scope["networks"], laboratory.scope["nodes"]))
        return finite(laboratory)

    networks = ["xpander:n=12,d=3,seed=2+fail=1,seed=0", {"torus": "torus:3x3"}]
    ledger_of(one(measure=measure, scope={"networks": networks, "nodes": 7}))
    for seed in ("0", "2"):
        assert main(["claims", "--json", "--seed", seed, "--store", str(store.root)]) == 0
    shifted = ["xpander:n=12,d=3,seed=2002+fail=1,seed=2000", {"torus": "torus:3x3"}]
    assert seen == [([1, 2], networks, 7), ([2001, 2002], shifted, 7)]
    (kept,) = book.kept((), store)
    assert kept.rerun == "opticoll claims paper.one"
    (row,) = book.ledger((), store, seed=2)
    assert row.rerun == "opticoll claims paper.one --seed 2"
    assert len(list(folder(store).iterdir())) == 1


# kept rows ----------------------------------------------------------------------------------------------------------


def finite(_):
    return Measurement(1.0, Verdict.REPRODUCED, ("ring:4",), "it is", records=("a.1",))


def test_rows_are_kept_and_the_last_one_is_read(ledger_of, store):
    ledger_of(one(measure=broken), one("paper.two", finite))
    list(book.ledger((), store))
    ledger_of(one(measure=finite), one("paper.two", finite), one("paper.three", finite))
    (again,) = book.ledger(["paper.one"], store)
    rows = book.kept((), store)
    assert [row["id"] for row in rows] == ["paper.one", "paper.two"]
    assert rows[0] == again
    assert rows[0]["verdict"] == "reproduced"
    assert rows[0]["measured_at"].startswith("20")
    assert rows[0].environment.opticoll
    assert len(list(folder(store).iterdir())) == 3, "nothing is overwritten"
    assert book.kept(["paper.two"], store) == rows[1:]


def test_nothing_is_kept_without_a_store(ledger_of, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger_of(one(measure=finite))
    (row,) = book.ledger()
    assert row.measured_at is None
    assert not list(tmp_path.iterdir())


def test_the_same_verdict_without_the_store(ledger_of, tmp_path):
    def solved(laboratory):
        time = laboratory.solve("alltoall.master", "ring:4", method="highs-simplex")["metrics"]["T"]
        return Measurement(time, Verdict.REPRODUCED if time == pytest.approx(2.0) else Verdict.NOT_REPRODUCED)

    ledger_of(one(measure=solved))
    first, second = (next(book.ledger((), Store(tmp_path / name))) for name in ("a", "b"))
    again = next(book.ledger((), Store(tmp_path / "a")))
    assert first["verdict"] == second["verdict"] == "reproduced"
    assert first["records"] == again["records"] != second["records"]
    assert [Store(tmp_path / "a").read(name)["instance"] for name in first["records"]] == ["ring:4"]


def test_an_interruption_keeps_what_was_measured(ledger_of, store, capfd):
    def interrupted(_):
        raise KeyboardInterrupt

    ledger_of(one(measure=finite), one("paper.two", interrupted), one("paper.three", finite))
    assert main(["claims", "--json", "--store", str(store.root)]) == 130
    out, err = capfd.readouterr()
    assert [row["id"] for row in json.loads(out)] == ["paper.one"]
    assert "interrupted with 2 of 3 claims to go; resume with `opticoll claims --resume`" in err
    assert main(["claims", "--cached", "--json", "--store", str(store.root)]) == 0
    out, err = capfd.readouterr()
    assert [row["id"] for row in json.loads(out)] == ["paper.one"]
    assert "2 of 3 claims have no measurement" in err
    assert main(["claims", "--no-store", "--json"]) == 130
    assert "interrupted with 2 of 3 claims to go; nothing of this run is stored" in capfd.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ["--cached", "--no-store"],
        ["--store", "x", "--no-store"],
        ["--resume", "--no-store"],
        ["--cached", "--resume"],
        ["--cached", "--seed", "1"],
        ["--resume", "--seed", "1"],
        ["--explain", "--json"],
    ],
)
def test_options_that_exclude_each_other(options, capfd):
    assert main(["claims", *options]) == 2
    assert "mutually exclusive" in capfd.readouterr().err


def test_resuming_measures_what_is_missing(ledger_of, store, capfd):
    calls = []

    def counted(name, stop=False):
        def measure(laboratory):
            if stop:
                raise KeyboardInterrupt
            calls.append(name)
            return finite(laboratory)

        return measure

    ask = ["claims", "--resume", "--json", "--store", str(store.root)]
    failing = one("paper.two", broken)
    ledger_of(one(measure=counted("one")), failing, one("paper.three", counted("three", stop=True)))
    assert main(ask) == 130
    assert "resume with `opticoll claims --resume`" in capfd.readouterr().err
    last = one("paper.three", counted("three"))
    ledger_of(one(measure=counted("one")), one("paper.two", counted("two")), last)
    assert main(ask) == 0
    assert [row["id"] for row in json.loads(capfd.readouterr().out)] == ["paper.one", "paper.two", "paper.three"]
    assert calls == ["one", "two", "three"], "what failed is measured again, what is there is not"
    ledger_of(replace(one(measure=counted("one")), expected=2.0), one("paper.two", counted("two")), last)
    assert main(ask) == 0
    assert calls[3:] == ["one"], "a claim that says something else is another claim"
    assert main(["claims", "--json", "--store", str(store.root)]) == 0
    assert calls[4:] == ["one", "two", "three"], "without --resume all are measured"


def test_claims_are_measured_in_processes_in_any_order_and_shown_in_theirs(store, capfd):
    ask = ["claims", *QUICK, "--jobs", "2", "--json", "--store", str(store.root)]
    assert main(ask) == 0
    rows = json.loads(capfd.readouterr().out)
    assert [row["id"] for row in rows] == list(QUICK)
    assert {row["id"]: row["verdict"] for row in rows} == {name: str(verdict) for name, verdict in QUICK.items()}
    kept = {row.id: row.measured_at for row in book.kept(list(QUICK), store)}
    assert kept == {row["id"]: row["measured_at"] for row in rows}, "each was stored where it was measured"
    assert main([*ask, "--resume"]) == 0
    assert {row["id"]: row["measured_at"] for row in json.loads(capfd.readouterr().out)} == kept


def test_a_measurement_that_kills_its_process_costs_its_own_claim(tmp_path):
    plugin = tmp_path / "deadly.py"
    plugin.write_text(
        "import os\n"
        "from opticoll.analysis.ledger.claim import Claim, Measurement, Verdict\n"
        "good = lambda laboratory: Measurement(1.0, Verdict.REPRODUCED)\n"
        "CLAIMS = [Claim(f'deadly.{name}', 'deadly', 'section 1', 'one is one', 1.0, measure=measure)\n"
        "          for name, measure in (('a', good), ('b', lambda laboratory: os._exit(9)), ('c', good))]\n"
    )
    plugins.load_plugin(plugin)
    try:
        rows = {row.id: row for row in book.ledger(["deadly"], jobs=2)}
    finally:
        plugins._forget(plugins._known[str(plugin)])
    assert sorted(rows) == ["deadly.a", "deadly.b", "deadly.c"]
    assert [rows[name].failed for name in sorted(rows)] == [False, True, False]
    assert rows["deadly.b"].reason.startswith("JobCrashed")
    assert rows["deadly.b"].rerun == f"opticoll claims deadly.b --plugin {plugin}"
    assert list(rows["deadly.b"].plugins) == ["deadly.py"]


def test_rows_of_another_version_are_measured_again(ledger_of, store, monkeypatch):
    ledger_of(one(measure=finite))
    (first,) = book.ledger((), store)
    assert list(book.ledger((), store, resume=True)) == [first]
    with monkeypatch.context() as patch:
        patch.setattr("opticoll.package_code.whole_digest", lambda: "other")
        (again,) = book.ledger((), store, resume=True)
    assert again["measured_at"] > first["measured_at"]
    (once_more,) = book.ledger((), store, resume=True)
    assert once_more["measured_at"] > again["measured_at"]


def test_rows_of_another_format_count_as_never_measured(ledger_of, store):
    ledger_of(one(measure=finite))
    (row,) = book.ledger((), store)
    (path,) = folder(store).iterdir()
    path.write_text(json.dumps({**plain(row), "schema": 2, "weight": 3, "verdict": "depends"}), encoding="utf-8")
    assert book.kept((), store) == []


def test_claims_by_paper_and_pattern(ledger_of):
    other = Claim("other.one", "other", "section 1", "two", 2.0, reason="hardware")
    ledger_of(one(measure=finite), one("paper.two", finite), other)
    assert [claim.id for claim in book.chosen(["paper"])] == ["paper.one", "paper.two"]
    assert [claim.id for claim in book.chosen(["*.one"])] == ["paper.one", "other.one"]
    assert [claim.id for claim in book.chosen(["paper.two", "paper", "paper.two"])] == ["paper.two", "paper.one"]
    assert len(book.chosen()) == 3
    for wrong in ("paper.*x", "papier", "one", ""):
        with pytest.raises(BadInput, match="no claim"):
            book.chosen([wrong])


# printed numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "inside", "outside"),
    [
        (PrintedNumber("1.31"), (1.305, 1.31, 1.318, 1.3199), (1.304, 1.32)),
        (PrintedNumber("96.85"), (96.846, 96.859), (96.84, 96.86)),
        (PrintedNumber("3"), (2.5, 3.06, 3.99), (2.4, 4.0)),
        (PrintedNumber("10", "about"), (5.0, 15.0), (4.9, 15.1)),
        (PrintedNumber("80", "about", 100.0), (75.0, 85.0), (74.9, 85.1)),
        (PrintedNumber("92.76", "simulated", 100.0), (92.1, 93.4), (92.0, 93.5)),
        (PrintedNumber("2.4", "simulated"), (2.16, 2.64), (2.15, 2.65)),
        (PrintedNumber("8", "about"), (7.2, 8.99), (7.1, 9.1)),
        (PrintedNumber("16", "drawn"), (15.85, 16.15), (15.8, 16.2)),
        (PrintedNumber("4", "fitted"), (3.97, 4.03), (3.95, 4.05)),
        (PrintedNumber("7", "exact"), (7.0, 7.000001), (6.9999, 7.0001)),
        (PrintedNumber("100", "order"), (32.0, 316.0), (31.0, 317.0)),
    ],
)
def test_numbers_in_print(number, inside, outside):
    assert all(map(number.holds, inside))
    assert not any(map(number.holds, outside))


def test_the_tolerances_are_one_table():
    page = (Path(__file__).resolve().parents[3] / "docs/reference/readings.md").read_text(encoding="utf-8")
    assert list(TOLERANCES) == re.findall(r"^\| (\w+) \|", page.partition("## Tolerances")[2], re.MULTILINE)[1:]
    assert {claim.tolerance for claim in CLAIMS} == set(TOLERANCES)


def test_what_rests_on_the_authors_figure_agrees_with_it():
    row = one(measure=good, rests_on="figure 7").examine(Laboratory())
    assert row.verdict is Verdict.AGREES
    assert "**Rests on.** Figure 7." in explain.explanation(row)
    fails = one(measure=lambda _: Measurement(1.0, Verdict.NOT_REPRODUCED), rests_on="figure 7")
    assert fails.examine(Laboratory()).verdict is Verdict.NOT_REPRODUCED


@pytest.mark.parametrize(("others", "few"), [("yn", False), ("nn", False), ("ynn", True), ("yynn", False)])
def test_claims_that_few_readings_support_are_counted(others, few):
    natural = NaturalReading(name="n", because="b", choices={"c": "natural"})

    def measure(_):
        choices = Readings("c")
        for tried, holds in (("natural", True), *((f"{k}", letter == "y") for k, letter in enumerate(others))):
            choices.add(tried, holds)
        return choices.measurement((), "reason")

    row = one(measure=measure, natural=natural).examine(Laboratory())
    assert row.verdict is Verdict.REPRODUCED
    assert row.fragile is few
    assert f"Of the 1 that hold, {few:d} fail" in explain.fragile([row])


def test_similar_is_ten_per_cent():
    assert similar(0.9)
    assert similar(1.1)
    assert not similar(0.89)
    assert not similar(1.11)


# sweeps of designs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "degree", "count"), [(2, 3, 1), (3, 1, 2), (3, 2, 3), (4, 1, 9), (5, 1, 44), (4, 2, 42)])
def test_wirings_are_counted(n, degree, count):
    """Derangements for one circuit, parallel circuits between two servers, and brute force over all matrices."""
    assert wirings(n, degree) == count
    if n <= 3:
        cells = [(i, j) for i in range(n) for j in range(n) if i != j]
        brute = 0
        for filled in product(range(degree + 1), repeat=len(cells)):
            matrix = np.zeros((n, n), dtype=int)
            for cell, circuits in zip(cells, filled, strict=True):
                matrix[cell] = circuits
            brute += bool((matrix.sum(axis=0) == degree).all() and (matrix.sum(axis=1) == degree).all())
        assert brute == count


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row.pop("claim"),
        lambda row: row.update(verdict="fine"),
        lambda row: row.update(id="paper.two"),
        lambda row: row.update(records="a.1"),
        lambda row: row.update(instances=[1]),
        lambda row: row.update(tightness={"min": "<b>"}),
    ],
)
def test_files_that_are_not_rows_are_refused(ledger_of, store, change):
    ledger_of(one(measure=finite))
    (row,) = book.ledger((), store)
    (path,) = folder(store).iterdir()
    fields = plain(row)
    change(fields)
    path.write_text(json.dumps(fields), encoding="utf-8")
    with pytest.raises(BadFile, match="not a valid row of the ledger"):
        book.kept((), store)


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "[" * 100_000, "1" + " " * (LARGEST_BYTES + 1)])
def test_text_that_is_not_a_row_is_refused(ledger_of, store, text):
    ledger_of(one(measure=good))
    folder(store).mkdir(parents=True)
    (folder(store) / "paper.one~20260101T000000.000000-00.json").write_text(text, encoding="utf-8")
    with pytest.raises(BadFile, match="not a valid row of the ledger"):
        book.kept((), store)


def test_the_help_says_why_claims_have_no_time_limit(capfd):
    assert main(["claims", "--time-limit", "5"]) == 2
    assert main(["claims", "--help"]) == 0
    assert "no --time-limit: the limits of a claim's runs are part of its procedure" in " ".join(
        capfd.readouterr().out.split()
    )
