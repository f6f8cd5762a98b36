"""The report: self-contained, safe for any name that a user chooses, failures shown as failures."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import jinja2
import pandas as pd
import pytest

from opticoll.analysis.cli.output import show
from opticoll.analysis.ledger.claim import ClaimRow
from opticoll.analysis.ledger.ledger import claims, keep
from opticoll.analysis.papers.paper_figure import figures
from opticoll.analysis.report import findings as report_data
from opticoll.analysis.report import page as report
from opticoll.analysis.report import page_tables as columns
from opticoll.analysis.report import sections
from opticoll.analysis.report.findings import collect
from opticoll.analysis.report.page_tables import Column, table, written
from opticoll.analysis.store import Store
from opticoll.errors import BadInput
from opticoll.formulations import formulations
from opticoll.instances import parse
from opticoll.solvers.run import Run
from opticoll.solvers.task import Record, Task

EVIL = "file:\"><script>alert(1)</script><img src=x onerror=alert(2)>'&.json"


def macro(template, name, *arguments):
    """HTML that a macro of the report's templates makes."""
    return getattr(report.templates().get_template(f"{template}.html.j2").module, name)(*arguments)


def record(spec, value=None, **changes):
    """A record as the runner makes it, without running anything."""
    instance = parse(spec) if "<" not in spec else parse("ring:8")
    solved = value is not None
    known = {
        "formulation": "alltoall.master",
        "paper": "p",
        "instance": spec,
        "instance_hash": instance.hash,
        "n": instance.n,
        "arcs": getattr(instance, "arcs", None),
        "method": "highs-simplex",
        "form": "cvxpy",
        "solver": {"name": "highs-simplex", "version": "1.0", "algorithm": "simplex", "options": {"presolve": "on"}},
        "termination": "optimal" if solved else "crashed",
        "proof": "optimal" if solved else "none",
        "sense": "max",
        "objective": value,
        "bound": value,
        "bound_source": "any-lengths",
        "gap": 0.0 if solved else None,
        "verified": solved,
        "violations": {"balance": 0.0},
        "metrics": {"F": value, "T": 1 / value if solved else None, "ranks": instance.n},
        "time": {"build_s": 0.01, "compile_s": 0.02, "solve_s": 0.5, "verify_s": 0.01},
        "size": {"variables": 100, "constraints": 50, "nonzeros": 300, "integers": 0},
        "peak_memory_mb": 80.0,
        "key": f"{abs(hash((spec, value, str(changes)))):032x}",
        "requested": {
            "method": changes.get("method", "auto"),
            "form": changes.get("form"),
            "settings": {},
            "time_limit_s": None,
            "memory_limit_gib": None,
            "tol": 1e-6,
            "seed": 0,
            "threads": 2,
            "repetition": 0,
        },
        "settings": {},
        "message": "" if solved else "the worker died",
        "incumbents": [],
    }
    return {**known, **changes}


def fill(store, *records):
    for one in records:
        store.save(Run(Task(one["formulation"], one["instance"]), Record.read(one)))
    return store


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Every kind of ending, good and bad names; read only."""
    limits = {"method": "auto", "settings": {}, "time_limit_s": 10.0, "tol": 1e-6}
    return fill(
        Store(tmp_path_factory.mktemp("report") / "store"),
        record("ring:8", 0.125),
        record("ring:8", 0.125, method="time-form"),
        record("petersen", 0.2),
        record("dgx1", None),
        record("mesh:4x4", None, termination="time-limit", proof="bound-only", bound=0.1, requested=limits),
        record(EVIL, None, message="no <b>such</b> file </script><script>alert(3)</script>"),
        record(
            "hypercube:3", 0.25, formulation="alltoall.link-mcf", requested={**limits, "settings": {"printed": "true"}}
        ),
    )


@pytest.fixture(scope="module")
def findings(store):
    """What is learned from that store; read only."""
    return collect(store)


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    """A store of one failure, for what needs no figures; read only."""
    return fill(Store(tmp_path_factory.mktemp("failed") / "store"), record("dgx1", None))


class Page(HTMLParser):
    """Collects what a browser would see."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.words, self._stack = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._stack.append(tag)

    def handle_endtag(self, tag):
        while self._stack and self._stack.pop() != tag:
            pass

    def handle_data(self, data):
        if not {"script", "style"} & set(self._stack):
            self.words.append(data)

    @property
    def text(self):
        """The words with single blanks."""
        return " ".join("".join(self.words).split())

    def all(self, name):
        return [attributes for tag, attributes in self.elements if tag == name]


@pytest.fixture(scope="module")
def out(store, tmp_path_factory):
    """The report of that store, written over an earlier one."""
    folder = tmp_path_factory.mktemp("out")
    (folder / "index.html").write_text("old", encoding="utf-8")
    assert report.build(store, folder) == folder / "index.html"
    return folder


@pytest.fixture
def source(out):
    return (out / "index.html").read_text(encoding="utf-8")


@pytest.fixture
def page(source):
    return Page(source)


def test_the_page_loads_nothing(page, source):
    assert source.startswith("<!doctype html>")
    for name in ("link", "iframe", "object", "embed", "base", "form", "audio", "video", "source"):
        assert not page.all(name)
    for _, attributes in page.elements:
        for key in ("src", "href", "xlink:href", "srcset", "data", "action", "poster"):
            value = attributes.get(key)
            assert value is None or value.startswith(("#", "data:image/")), (key, value)
    assert "@import" not in source
    assert not re.search(r"url\((?!#)", source)
    policy = next(a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy


def test_nothing_that_users_name_becomes_html(page):
    assert len(page.all("script")) == 1
    assert not [a for _, a in page.elements if any(key.startswith("on") for key in a)]
    assert not page.all("img")
    assert not page.all("b")
    assert EVIL in "".join(page.words)
    assert "</script><script>alert(3)</script>" in "".join(page.words)


def test_the_policy_allows_the_script_of_the_page(page, source):
    import base64
    import hashlib

    script = re.search(r"<script>(.*?)</script>", source, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"sha256-{digest}" in "".join(str(a) for a in page.all("meta"))


def test_accessible(page):
    assert page.all("html")[0]["lang"] == "en"
    assert page.all("title")
    assert any("width=device-width" in (a.get("content") or "") for a in page.all("meta"))
    assert len(page.all("h1")) == 1
    for svg in page.all("svg"):
        assert svg["role"] == "img"
        assert svg["aria-labelledby"]
    for attributes in page.all("table"):
        assert attributes["aria-label"]
    for attributes in page.all("th"):
        assert attributes["scope"] in {"row", "col"}
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))
    links = {a["href"][1:] for a in page.all("a") if "href" in a}
    assert links <= set(ids)


def test_failures_are_listed(page, findings):
    words = page.text
    assert len(findings.failures) == 3
    assert "3 of 7 cells have no verified value" in words
    assert "the worker died" in words
    assert "time-limit" in words


def test_files_beside_the_page(out):
    names = {path.name for path in (out / "figures").iterdir()}
    assert {"bounds-alltoall-master.svg", "time-by-size.svg"} <= names
    assert not [path for path in out.rglob("*") if path.name.startswith(".tmp")]
    results = pd.read_csv(out / "tables" / "results.csv")
    assert len(results) == 7
    assert len(pd.read_csv(out / "tables" / "failures.csv")) == 3
    bounds = pd.read_csv(out / "tables" / "bounds.csv")
    assert set(bounds["bound"]) >= {"moore", "distance", "any-lengths"}


def test_figures_without_runs_in_the_store_are_listed(page):
    words = page.text
    assert "Each is drawn by opticoll figure NAME" in words
    listed = {figure.name for figure in figures() if f"{figure.name}: {figure.title}" in words}
    drawn = {figure.name for figure in figures() if f"tables/paper-{figure.name}.csv" in words}
    assert listed | drawn == {figure.name for figure in figures()}
    assert not listed & drawn
    assert {figure.name for figure in figures() if figure.study is None} <= listed


def test_instances_without_bounds_are_folded_by_reason(failed, tmp_path):
    findings = replace(collect(failed), missing={"x": "too <big>", "y": "too <big>", "z": "gone"})
    source = report.build(failed, tmp_path / "out", findings).read_text(encoding="utf-8")
    text = source[source.index("Without bounds") : source.index('id="papers"')]
    assert text.count("<details") == 2
    assert "2 instances: too &lt;big&gt;" in text
    assert "1 instance: gone" in text


def test_parameters_tell_runs_apart(source):
    results = source[source.index('id="results"') : source.index('id="bounds"')]
    assert "hypercube:3 [printed=true]" in results, "the formulation's own parameters tell runs apart"


def test_settings_tell_the_runs_of_a_formulation_apart_whether_or_not_it_is_known(tmp_path):
    asked = record("ring:5")["requested"]
    store = fill(
        Store(tmp_path / "store"),
        *(
            record(
                "ring:5",
                value,
                formulation=name,
                settings={**parameters, "option": "1"},
                requested={**asked, "settings": parameters if set_here else {}},
            )
            for name, parameters, value, set_here in (
                ("own.barmilp", {"k": "1"}, 1.0, False),
                ("own.barmilp", {"k": "2"}, 0.75, True),
                ("own.alone", {"k": "2"}, 0.5, True),
                ("alltoall.path-mcf", {"k": "4"}, 0.25, True),
                ("alltoall.path-mcf", {"k": "3"}, 0.2, True),
            )
        ),
    )
    problems = {(row.formulation, row.objective): row.problem for row in collect(store).results.itertuples()}
    assert problems == {
        ("own.barmilp", 1.0): "ring:5 [k=1]",
        ("own.barmilp", 0.75): "ring:5 [k=2]",
        ("own.alone", 0.5): "ring:5",
        ("alltoall.path-mcf", 0.25): "ring:5 [k=4]",
        ("alltoall.path-mcf", 0.2): "ring:5 [k=3]",
    }


def test_bounds_stand_beside_the_best_value(findings):
    bounds = findings.bounds
    ring = bounds[(bounds["instance"] == "ring:8") & (bounds["bound"] == "closed-form")]
    assert len(ring) == 1, "two methods, one instance"
    assert ring["ratio"].iloc[0] == pytest.approx(1.0)
    assert "hypercube:3 [printed=true]" in set(bounds["instance"]) | set(findings.missing)


def test_an_instance_that_changed_has_no_bounds(tmp_path):
    store = fill(Store(tmp_path / "store"), record("ring:8", 0.125, instance_hash="0" * 64))
    findings = collect(store)
    assert findings.bounds.empty
    assert "a different instance" in findings.missing["ring:8"]


def test_bounds_stop_at_their_budget(store):
    findings = collect(store, budget_s=-1.0)
    assert findings.bounds.empty
    assert len(findings.missing) == 3


def test_ratio_for_a_minimum_is_inverted():
    assert report_data.ratio(10.0, 8.0, "min") == 0.8
    assert report_data.ratio(8.0, 10.0, "max") == 0.8
    assert report_data.ratio(8.0, 0.0, "max") is None


def test_empty_store(tmp_path):
    root = tmp_path / "nothing"
    page = Page(report.build(Store(root), tmp_path / "out").read_text(encoding="utf-8"))
    words = page.text
    assert "This store is empty" in words
    assert "opticoll study demo" in words
    assert not root.exists()


def test_runs_that_never_started_stop_no_figure(tmp_path):
    never = {"settings": None, "metrics": None, "time": {}, "size": {}, "violations": {}, "termination": "unavailable"}
    spec = {"lumorph": "lightpath:2x2", "sipml": "servers:n=4,degree=2", "topoopt": "servers:n=4,degree=2"}
    lost = [
        record(spec.get(name.partition(".")[0], "ring:8"), None, formulation=name, method=method, **never)
        for name in formulations()
        for method in ("highs", "mosek")
    ]
    results = collect(fill(Store(tmp_path / "store"), record("ring:8", 0.125), *lost)).results
    assert len(results) == 1 + len(lost)
    for one in figures():
        if one.study is not None:
            one.select(results)


def test_a_store_of_failures_only(failed, tmp_path):
    words = Page(report.build(failed, tmp_path / "out").read_text(encoding="utf-8")).text
    assert "1 of 1 cells have no verified value" in words
    assert not list((tmp_path / "out" / "tables").glob("paper-*")), "points of the paper alone make no figure here"


def test_a_folder_that_cannot_be_made_is_refused(failed, tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(BadInput, match="choose another folder"):
        report.build(failed, tmp_path / "file")


def test_a_long_store_is_cut_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "MOST_ROWS", 2)
    store = fill(Store(tmp_path / "store"), *(record(f"ring:{n}", None) for n in range(3, 10)))
    page = Page(report.build(store, tmp_path / "out").read_text(encoding="utf-8"))
    words = page.text
    assert "The first 2 of 7 rows" in words


def printed(findings, capsys):
    show(findings, as_json=False)
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_terminal(findings, capsys):
    out, err = printed(findings, capsys)
    assert "optimal" in out
    assert "3 cells without a verified value" in err
    assert "the worker died" in err


def test_runs_of_one_method_are_told_apart(tmp_path):
    runs = [record("ring:5", 0.5, form=form) for form in ("cvxpy", "pyomo")]
    store = fill(Store(tmp_path / "store"), *runs)
    page = Page(report.build(store, tmp_path / "out").read_text(encoding="utf-8"))
    assert {"form", "cvxpy", "pyomo"} <= {word.strip() for word in page.words}


def test_terminal_of_an_empty_store(tmp_path, capsys):
    assert "opticoll study demo" in printed(collect(Store(tmp_path)), capsys)[0]


def test_text_is_escaped_and_printable():
    title, cell = "\x00a\ud800", "<&\"'>"
    text = macro("tables", "table", table(pd.DataFrame({"a": [cell]}), [Column("a", title)], '"'))
    assert '<th scope="row">&lt;&amp;&#34;&#39;&gt;</th>' in text
    assert 'aria-label="&#34;"' in text
    assert "\N{REPLACEMENT CHARACTER}a\N{REPLACEMENT CHARACTER}</button>" in text


def test_a_variable_that_templates_miss_is_an_error():
    with pytest.raises(jinja2.UndefinedError, match="mistyped"):
        report.templates().from_string("{{ mistyped }}").render()


def test_numbers_as_written():
    assert written(None) == written(float("nan")) == "–"
    assert written(0.0217076699) == "0.0217077"
    assert written(2.9e-8, "gap") == "2.9e-08"
    assert written(float("inf")) == "∞"


def test_sort_keys_are_the_numbers_themselves():
    frame = pd.DataFrame({"a": ["x", "y"], "b": [1234567.0, None]})
    text = macro("tables", "table", table(frame, [Column("a", "a"), Column("b", "b", "number")], "t"))
    assert 'data-sort="1234567.0"' in text
    assert 'data-sort=""' in text


# claims -------------------------------------------------------------------------------------------------------------


def claim(identifier, verdict="reproduced", **changes):
    """A row of the ledger as a measurement makes it."""
    known = {
        "id": identifier,
        "paper": identifier.partition(".")[0],
        "where": "Theorem <1>",
        "claim": "one & one are two",
        "expected": [1.5, 2],
        "tolerance": "2 %",
        "measured": {"ring:8": 1.25, "both": True},
        "verdict": verdict,
        "instances": [f"ring:{n}" for n in range(3, 12)],
        "failed": False,
        "reason": "for <odd> n it is one more, ratio as well",
        "count": 12,
        "violations": 3,
        "tightness": {"min": 0.5, "median": 0.75, "max": 1.0},
        "witness": "n=3: <3> needed",
        "records": [],
        "rerun": f"opticoll claims {identifier}",
    }
    return ClaimRow.read({**known, **changes})


@pytest.fixture(scope="module")
def claimed(tmp_path_factory):
    """The report of a store with one run, and claims of three papers: one rests on it, one is measured twice."""
    folder = tmp_path_factory.mktemp("claims")
    store = fill(Store(folder / "store"), record("ring:8", None))
    (run,) = store.names()
    keep(store, claim("alltoall.sssp", "refuted", records=[run, "gone.1"]), 0.5)
    keep(store, claim("alltoall.theorem-2", reason="measured at first"), 0.5)
    keep(store, claim("alltoall.theorem-2", reason="measured again"), 0.5)
    failure = {"failed": True, "instances": [], "reason": "measurement failed: <x>"}
    nothing = dict.fromkeys(("measured", "count", "violations", "tightness", "witness"))
    keep(store, claim("lumorph.steps", "not-testable", **failure, **nothing), 0.5)
    keep(store, claim("optree.theorem1", "not-reproduced"), 0.5)
    return report.build(store, folder / "out")


def test_claims_are_shown_with_verdict_reason_and_runs(claimed):
    source = claimed.read_text(encoding="utf-8")
    page = Page(source)
    words = page.text
    section = source[source.index('id="claims"') : source.index('id="results"')]
    for part in (
        "≠ refuted",
        "✓ reproduced",
        "! not measured",
        "✗ not reproduced",
        "12 cases, 3 failures",
        "0.5 / 0.75 / 1",
        "n=3: <3> needed",
        "for <odd> n",
        "1.5, 2",
        "within 2 %",
        "ring:8 and 3 more",
        "opticoll claims optree.theorem1",
        "measurement failed: <x>",
        "could not be measured",
    ):
        assert part in words, part
    assert "<odd>" not in source
    assert "Runs: 2; " in section
    assert {"Claims of alltoall", "Claims of lumorph", "Claims of optree"} <= {
        a["aria-label"] for a in page.all("table")
    }
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))
    assert {a["href"][1:] for a in page.all("a") if "href" in a} <= set(ids)
    unmeasured = len(claims()) - 4
    assert f"{unmeasured} more claims have no measurement" in words


def test_claims_are_tabled(claimed):
    out = claimed.parent
    table = pd.read_csv(out / "tables" / "claims.csv").set_index("id")
    assert len(table) == 4
    assert json.loads(table.loc["alltoall.theorem-2", "tightness"])["median"] == 0.75


def test_the_last_measurement_of_a_claim_is_shown(claimed):
    source = claimed.read_text(encoding="utf-8")
    assert source.count('id="claim-alltoall.theorem-2"') == 1
    assert "measured again" in source
    assert "measured at first" not in source


def test_claims_without_any_run(tmp_path):
    store = Store(tmp_path / "store")
    keep(store, claim("alltoall.theorem-2"), 0.5)
    page = Page(report.build(store, tmp_path / "out").read_text(encoding="utf-8"))
    words = page.text
    assert "This store is empty" not in words
    assert "one & one are two" in words
    assert [a["href"] for a in page.all("a")] == ["#claims"]


def test_a_store_without_claims_says_how_to_measure_them(source):
    assert f"None of the {len(claims())} claims has a measurement in this store" in source


def test_the_overview_counts_cells_by_proof_in_whole_words(findings):
    assert dict(sections.overview(findings).tiles) == {
        "runs recorded": 7,
        "different cells": 7,
        "exact": 0,
        "optimal": 4,
        "infeasible": 0,
        "certified gap": 0,
        "feasible": 0,
        "bound only": 1,
        "none": 2,
        "failed or unverified": 3,
    }
