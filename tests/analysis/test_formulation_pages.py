"""Every formulation has a page, which states the variables and constraints of its builds and no others."""

import formulation_pages as pages
from builds import problem_of
from case_families import each
from cases import PROBLEMS

from opticoll.formulations import formulation, formulations
from opticoll.formulations.registry import PAPERS


def models(name):
    """The Pyomo models of all small cases of a formulation."""
    return [problem_of(name, spec, tuple(settings.items())).pyomo() for spec, settings in PROBLEMS[name].cases]


#: Formulations whose page lacks nothing.
COMPLETE = [name for name in sorted(formulations()) if not pages.lacking(name)]


def test_every_formulation_has_its_page():
    assert pages.missing(formulations()) == []


def test_what_a_page_lacks_is_said(tmp_path):
    name = "optree.one-stage"
    page, text = tmp_path / f"{name}.md", (pages.PAGES / f"{name}.md").read_text(encoding="utf-8")
    (line,) = pages.missing([name], tmp_path)
    assert line.startswith("docs/formulations/optree.one-stage.md needs ## Sets and data, ## Variables, ## Objective, ")
    page.write_text(text.replace("## Variables", "## Variable"), encoding="utf-8")
    (line,) = pages.missing([name], tmp_path)
    assert "needs ## Variables;" in line
    page.write_text(text.replace(pages.inclusion(name), ""), encoding="utf-8")
    (line,) = pages.missing([name], tmp_path)
    assert "needs ```{include} ../generated/formulations/optree.one-stage.inc;" in line
    page.write_text(text, encoding="utf-8")
    assert pages.missing([name], tmp_path) == []
    assert pages.missing([], tmp_path) == [
        "docs/formulations/optree.one-stage.md: there is no formulation optree.one-stage"
    ]


@each("name", sorted({*PROBLEMS} & {*COMPLETE}))
def test_the_page_states_the_variables_and_constraints_of_the_builds(name):
    built = models(name)
    text = (pages.PAGES / f"{name}.md").read_text(encoding="utf-8")
    variables, constraints = pages.stated(text)
    assert variables == set().union(*(model.variables for model in built))
    assert constraints == set().union(*(model.constraints for model in built))


def test_a_page_that_lacks_or_invents_a_name_is_noticed():
    text = (pages.PAGES / "alltoall.master.md").read_text(encoding="utf-8")
    assert pages.stated(text) == ({"g", "F"}, {"balance", "capacity"})
    assert pages.stated(text.replace("`capacity[a]`", "The load"))[1] == {"balance"}
    assert pages.stated(text.replace("| `F` |", "| `F`, `G` |"))[0] == {"g", "F", "G"}


@each("name", sorted(formulations()))
def test_the_page_shows_parameters_methods_and_both_builds(name):
    model = formulation(name)
    text = pages.generated(name)
    assert all(f"| `{parameter.name}` |" in text for parameter in model.parameters)
    paper = name.split(".")[0]
    assert (f"](../generated/claims/{paper}.md)" in text) == (paper in PAPERS)
    for form in ("pyomo", "cvxpy"):
        assert f":pyobject: {getattr(model, form).__qualname__}\n" in text


def test_builds_come_with_the_functions_that_they_call():
    names = {function.__qualname__ for function in pages.functions_of(formulation("lumorph.min-overlap").cvxpy)}
    assert {"Overlap.cvxpy", "_arc_cvxpy", "largest_load"} <= names
