"""The documentation matches the code, and builds."""

import dataclasses
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import blocks as markers
import documents as bench
import pytest
import reconfigure_tables
from case_families import each
from measured_tables import tables as timing_tables

import opticoll as oc
from opticoll.errors import BadInput
from opticoll.instances import parse
from opticoll.instances.spec import FAMILIES, load_families

ROOT = Path(__file__).resolve().parents[2]


def tables():
    spec = importlib.util.spec_from_file_location("docs_tables", ROOT / "docs" / "tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_current():
    pages = tables().pages()
    written = (
        "reference/formulations",
        "reference/commands",
        "reference/json",
        "reference/instances",
        "guide/auto",
        "guide/design",
        "guide/design-library",
        "guide/pods",
        "guide/reconfigure",
        "guide/benchmark",
        "guide/benchmark-results",
    )
    assert set(pages) == {f"docs/{name}.md" for name in written}
    for name, text in pages.items():
        assert (ROOT / name).read_text(encoding="utf-8") == text, "run python docs/tables.py"


def test_reference_has_every_command_with_its_options():
    from opticoll.analysis.cli.main import cli

    text = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    assert {f"## {name}" for name in cli.deferred} <= set(text.splitlines())
    assert text.count("--memory-limit GIB") == 2  # solve and benchmark run
    assert "0 solved and verified" in text


def test_every_field_of_a_run_has_a_meaning():
    from json_outputs import SolveOutput

    assert list(tables().MEANING) == list(SolveOutput.__struct_fields__)


def test_readme_is_short():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 1000


def test_code_of_readme_runs(tmp_path, monkeypatch, capsys):
    import networkx
    import pandas

    import opticoll as oc

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert len([line for line in code.splitlines() if line]) <= 10
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)

    result, graph, traffic = names["result"], names["graph"], names["traffic"]
    assert isinstance(result, oc.Result)
    assert isinstance(graph, networkx.Graph)
    assert isinstance(traffic, pandas.DataFrame)
    assert result.proof == "optimal"
    assert result.metrics["T"] == pytest.approx(1.5)
    assert f"(T = {result.metrics['T']:.3g})" in text
    printed = capsys.readouterr().out
    assert "s1->s2" in printed
    assert result.link_loads().loc["s1->b", "utilisation"] == pytest.approx(1.0)
    assert (tmp_path / "loads.png").read_bytes().startswith(b"\x89PNG")


def test_the_table_is_written_where_it_belongs():
    made = tables()
    text = f"before\n{markers.wrapped(made.BLOCK, 'old')}\nafter\n"
    new = made.with_formulations(text)
    assert new.startswith("before\n")
    assert new.endswith("after\n")
    assert "old" not in new
    assert "`alltoall.master`" in new


def test_proven_names_formulations_that_exist():
    from opticoll.formulations import formulations

    assert set(tables().PROVEN) <= set(formulations())


#: Of the generated documents, the site makes all others anew.
GENERATED = ROOT / "docs" / "generated"
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
DOCUMENTS += [
    path.relative_to(ROOT).as_posix()
    for path in sorted((ROOT / "docs").rglob("*.md"))
    if not path.is_relative_to(ROOT / "docs" / "_build")
    and (
        not path.is_relative_to(GENERATED)
        or path.is_relative_to(GENERATED / "claims")
        or path.stem in ("heuristics", "measured")
    )
]


@each("name", [name for name in DOCUMENTS if name != "docs/index.md"])
def test_links_point_to_existing_files(name):
    path = ROOT / name
    links = re.findall(r"\]\(([^)#\s]+)\)", path.read_text(encoding="utf-8"))
    gone = [link for link in links if "://" not in link and not (path.parent / link).exists()]
    assert not gone


def test_every_block_of_the_documents_has_something_that_writes_it():
    generated = {
        (tables().BLOCK,),
        (tables().LIMITS,),
        (tables().RECORDS,),
        (tables().SLICES, tables().ROUTES),
        (tables().LIBRARY_TABLE,),
        (tables().PUBLISHED,),
        (tables().LISTED,),
        tuple(reconfigure_tables.BLOCKS),
        ("conjectures",),  # docs/conjecture_tables.py
    }
    known = {"bench", "verdicts", *(block for blocks in generated for block in blocks)}
    known |= {f"bench-{name}" for name in timing_tables()} | {f"plot-{one.name}" for one in bench.PLOTS}
    for name in DOCUMENTS:
        text = (ROOT / name).read_text(encoding="utf-8")
        result = [one for one in markers.names(text) if one != "bench-NAME"]
        assert not result or name in bench.DOCUMENTS or tuple(result) in generated, (
            f"nothing writes the blocks of {name}"
        )
        assert len(result) == len(set(result))
        assert set(result) <= known
        assert all(markers.content(text, one) for one in result), "blocks end"
    shown = {name: set(markers.names((ROOT / name).read_text(encoding="utf-8"))) for name in bench.DOCUMENTS}
    assert shown["docs/results.md"] == {"verdicts"}
    plots = {f"plot-{one.name}" for one in bench.PLOTS}
    assert shown["docs/generated/heuristics.md"] | shown["docs/formulations/alltoall.channels.md"] == plots


@pytest.mark.slow
def test_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("sphinx")
    words = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "docs", str(tmp_path / "site")]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    page = (tmp_path / "site" / "generated" / "api" / "opticoll.formulations.alltoall.html").read_text(encoding="utf-8")
    assert "max F" in page
    assert (tmp_path / "site" / "generated" / "notebooks" / "02-all-to-all.html").exists()


def test_every_class_of_instances_is_on_the_reference_page():
    """Also every attribute that a bound function can read, by the classes themselves."""
    load_families()
    text = (ROOT / "docs" / "reference" / "instances.md").read_text(encoding="utf-8")
    classes = {type(parse(family.example)) for family in FAMILIES.values() if not family.rest}
    assert len(classes) >= 7
    for kind in classes:
        assert f"## {kind.__name__}\n" in text or kind.__name__ == "WdmLine"  # a WdmRing has the same
        names = {name for base in kind.__mro__ for name in vars(base) if not name.startswith("_")}
        names |= {field.name for field in dataclasses.fields(kind)}
        constants = {"named", "least", "circular"}
        assert all(f"| `{name}`" in text or f"| `{name}(" in text for name in names - constants), kind


def test_the_message_about_edges_without_capacity_is_quoted_as_it_is():
    with pytest.raises(BadInput) as refused:
        oc.topology([("a", "b", {"weight": 3})])
    assert str(refused.value) in (ROOT / "docs" / "guide" / "own-data.md").read_text(encoding="utf-8")
