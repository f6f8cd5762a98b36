"""The documentation says what is there, and builds."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from opticoll.analysis import bench
from opticoll.analysis.benchmark import tables as timing_tables
from opticoll.analysis.report import frontpage
from opticoll.analysis.report import frontpage as markers

ROOT = Path(__file__).resolve().parents[2]


def tables():
    spec = importlib.util.spec_from_file_location("docs_tables", ROOT / "docs" / "tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_readme_has_the_formulations_of_today():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert tables().updated(text) == text, "run python docs/tables.py"


def test_the_table_is_written_where_it_belongs():
    made = tables()
    text = f"before\n{markers.wrapped(made.BLOCK, 'old')}\nafter\n"
    new = made.updated(text)
    assert new.startswith("before\n")
    assert new.endswith("after\n")
    assert "old" not in new
    assert "`alltoall.master`" in new


def test_proven_names_formulations_that_exist():
    from opticoll.formulations import formulations

    assert set(tables().PROVEN) <= set(formulations())


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/measured.md"])
def test_links_lead_to_files_that_are_there(name):
    path = ROOT / name
    links = re.findall(r"\]\(([^)#\s]+)\)", path.read_text(encoding="utf-8"))
    gone = [link for link in links if "://" not in link and not (path.parent / link).exists()]
    assert not gone


def test_every_block_of_the_documents_has_something_that_writes_it():
    known = {"bench", "results", tables().BLOCK}
    known |= {f"bench-{name}" for name in timing_tables()} | {f"plot-{one.name}" for one in frontpage.PLOTS}
    for name in bench.DOCUMENTS:
        text = (ROOT / name).read_text(encoding="utf-8")
        found = markers.names(text)
        assert len(found) == len(set(found))
        assert set(found) <= known
        assert all(markers.content(text, one) for one in found), "blocks end"
    readme = markers.names((ROOT / "README.md").read_text(encoding="utf-8"))
    assert {"results", *(f"plot-{one.name}" for one in frontpage.PLOTS)} <= set(readme)


@pytest.mark.slow
def test_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("sphinx")
    words = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "docs", str(tmp_path / "site")]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    page = (tmp_path / "site" / "generated" / "api" / "opticoll.formulations.alltoall.html").read_text(encoding="utf-8")
    assert "max F" in page
    assert (tmp_path / "site" / "generated" / "notebooks" / "02-all-to-all.html").exists()
