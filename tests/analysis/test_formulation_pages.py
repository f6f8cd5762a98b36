"""The pages of the formulations are made from docstrings and builds: nothing of them is lost, nothing is invented."""

import inspect
import re
import sys

import formulation_pages as pages
from case_families import each

from opticoll.formulations import formulation, formulations
from opticoll.formulations.registry import PAPERS

SAMPLE = """Flow with a rate.

Source  ours
Sets    a in A arcs (m); k = (s,t) in K pairs
Data    c_a > 0 capacity [link bandwidths], (m,); one of ``pairs``
        per node; L steps
Vars    0 <= f_ak <= N-1  flow (of k; summed) [shards], (m, |K|); with ``late``: T >= 0 time

min T   or   max F  s.t.
    balance[u,k]  sum_{a in A} f_ak = 1   u != s_k   (with ``late``)   (3), (4)
                  f_ak+1 <= x_max
    total         sum_a f_ak >= 0
  model=path
    order[a]      f_ak <= c_a

Exact. As *printed*, x_ab holds.

    F <= 1
"""


def docstring(name):
    return inspect.cleandoc(sys.modules[formulation(name).__module__].__doc__)


def test_a_docstring_is_taken_apart():
    known = pages.definitions(SAMPLE)
    assert known["Source"] == "ours"
    assert pages.entries(known["Sets"]) == [("a in A", "arcs (m)", "", ""), ("k = (s,t) in K", "pairs", "", "")]
    assert pages.entries(known["Data"]) == [
        ("c_a > 0", "capacity; one of ``pairs`` per node", "link bandwidths", "(m,)"),
        ("L", "steps", "", ""),
    ]
    assert pages.entries(known["Vars"]) == [
        ("0 <= f_ak <= N-1", "flow (of k; summed)", "shards", "(m, |K|)"),
        ("T >= 0", "time (with ``late``)", "", ""),
    ]
    objective, table, text, formula = pages.blocks(SAMPLE)
    assert objective.strip() == "min T   or   max F  s.t."
    assert pages.rows(table) == [
        ("balance[u,k]", "sum_{a in A} f_ak = 1", "u != s_k; (with ``late``)", "(3), (4)"),
        ("", "f_ak+1 <= x_max", "", ""),
        ("total", "sum_a f_ak >= 0", "", ""),
        ("", "model=path", "", ""),
        ("order[a]", "f_ak <= c_a", "", ""),
    ]
    assert text.startswith("Exact.")
    assert pages.rows(formula) == []


def test_mathematics_is_typeset_and_words_are_not():
    assert pages.typeset("sum_{a in A} f_ak <= c_a Lambda") == "∑<sub>a ∈ A</sub> f<sub>ak</sub> ≤ c<sub>a</sub> Λ"
    assert pages.typeset("b_p-1,su < R_max + x^0_-1") == (
        "b<sub>p-1,su</sub> &lt; R<sub>max</sub> + x<sup>0</sup><sub>-1</sub>"
    )
    assert pages.prose("in x_ab, ``x_ab`` and total_load, :mod:`a.b`") == (
        "in x<sub>ab</sub>, `x_ab` and total&#95;load, {py:mod}`a.b`"
    )


@each("name", sorted(formulations()))
def test_a_page_has_every_word_of_the_docstring(name):
    """What is read in a page, without its typesetting, is the docstring: no part that is not recognised is left out."""
    text = re.sub(r"</?\w[^>]*>|&#?\w+;", "", "\n".join(pages.mathematics(name)))
    words = set(re.findall(r"[a-z]{4,}", text.lower()))
    wanted = set(re.findall(r"(?<![_\w^])[a-z]{4,}(?![_\w])", docstring(name).lower()))
    assert wanted - words <= {"data", "sets", "vars", "source", *map(str.lower, pages.GREEK)}


@each("name", sorted(formulations()))
def test_constraints_of_a_page_lead_to_the_lines_that_state_them(name):
    text = "\n".join(pages.mathematics(name))
    labels = set(re.findall(r"^\((\S+)\)=$", pages.page(name), re.MULTILINE))
    for line, label in re.findall(r"\[line&nbsp;(\d+)\]\(#(\S+)\)", text):
        assert int(line) > 0
        assert label in labels
    rows = re.findall(r"^\| `(\w+)[^|]*\|(.*)$", text, re.MULTILINE)
    stated = {row for row, cells in rows if cells.count("[line") == 2}
    assert len(stated) >= len({row for row, _ in rows}) - 1, {row for row, _ in rows} - stated


@each("name", sorted(formulations()))
def test_the_page_shows_parameters_methods_and_both_builds(name):
    model = formulation(name)
    text = pages.page(name)
    assert all(f"| `{parameter.name}` |" in text for parameter in model.parameters)
    paper = name.split(".")[0]
    assert (f"](/generated/claims/{paper}.md)" in text) == (paper in PAPERS)
    for form in ("pyomo", "cvxpy"):
        assert f":pyobject: {getattr(model, form).__qualname__}\n" in text


def test_prose_is_of_a_formulation_and_includes_its_page():
    for path in sorted(pages.PAGES.iterdir()):
        assert path.stem in formulations()
        assert path.read_text(encoding="utf-8").startswith(pages.heading(path.stem))


def test_builds_come_with_the_functions_that_they_call():
    names = {function.__qualname__ for function in pages.functions_of(formulation("sipml.ring-wavelengths").pyomo)}
    assert {"RingTraffic.pyomo", "last_nodes"} <= names
