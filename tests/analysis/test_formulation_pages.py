"""Every formulation has a page, which states the variables and constraints of its builds and no others."""

import importlib.util
from pathlib import Path

from builds import problem_of
from case_families import each
from cases import PROBLEMS

from opticoll.formulations import formulation, formulations
from opticoll.formulations.registry import PAPERS

ROOT = Path(__file__).resolve().parents[2]


def load():
    spec = importlib.util.spec_from_file_location("formulation_pages", ROOT / "docs" / "formulation_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES = load()


def models(name):
    """The Pyomo models of all small cases of a formulation."""
    return [problem_of(name, spec, tuple(settings.items())).pyomo() for spec, settings in PROBLEMS[name].cases]


#: Formulations whose page lacks nothing.
COMPLETE = [name for name in sorted(formulations()) if not PAGES.lacking(name)]


def test_every_formulation_has_its_page():
    assert PAGES.missing(formulations()) == []


def test_what_a_page_lacks_is_said(tmp_path):
    name = "optree.one-stage"
    page, text = tmp_path / f"{name}.md", (PAGES.PAGES / f"{name}.md").read_text(encoding="utf-8")
    (line,) = PAGES.missing([name], tmp_path)
    assert line.startswith("docs/formulations/optree.one-stage.md needs ## Sets and data, ## Variables, ## Objective, ")
    page.write_text(text.replace("## Variables", "## Variable"), encoding="utf-8")
    (line,) = PAGES.missing([name], tmp_path)
    assert "needs ## Variables;" in line
    page.write_text(text.replace(PAGES.inclusion(name), ""), encoding="utf-8")
    (line,) = PAGES.missing([name], tmp_path)
    assert "needs ```{include} ../generated/formulations/optree.one-stage.inc;" in line
    page.write_text(text, encoding="utf-8")
    assert PAGES.missing([name], tmp_path) == []
    assert PAGES.missing([], tmp_path) == [
        "docs/formulations/optree.one-stage.md: there is no formulation optree.one-stage"
    ]


@each("name", sorted({*PROBLEMS} & {*COMPLETE}))
def test_the_page_states_the_variables_and_constraints_of_the_builds(name):
    built = models(name)
    text = (PAGES.PAGES / f"{name}.md").read_text(encoding="utf-8")
    variables, constraints = PAGES.stated(text)
    assert variables == set().union(*(model.variables for model in built))
    assert constraints == set().union(*(model.constraints for model in built))


def test_a_page_that_lacks_or_invents_a_name_is_noticed():
    text = (PAGES.PAGES / "alltoall.master.md").read_text(encoding="utf-8")
    assert PAGES.stated(text) == ({"g", "F"}, {"balance", "capacity"})
    assert PAGES.stated(text.replace("`capacity[a]`", "The load"))[1] == {"balance"}
    assert PAGES.stated(text.replace("| `F` |", "| `F`, `G` |"))[0] == {"g", "F", "G"}


@each("name", sorted(formulations()))
def test_the_page_shows_parameters_methods_and_both_builds(name):
    model = formulation(name)
    text = PAGES.generated(name)
    assert all(f"| `{parameter.name}` |" in text for parameter in model.parameters)
    paper = name.split(".")[0]
    assert (f"](../generated/claims/{paper}.md)" in text) == (paper in PAPERS)
    for form in ("pyomo", "cvxpy"):
        assert f":pyobject: {getattr(model, form).__qualname__}\n" in text


def test_builds_come_with_the_functions_that_they_call():
    names = {function.__qualname__ for function in PAGES.functions_of(formulation("lumorph.min-overlap").cvxpy)}
    assert {"Overlap.cvxpy", "_arc_cvxpy", "largest_load"} <= names
