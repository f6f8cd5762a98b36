"""The documentation says what is there, and builds."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


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
    text = f"before\n{made.BEGIN}\nold\n{made.END}\nafter\n"
    new = made.updated(text)
    assert new.startswith("before\n")
    assert new.endswith("after\n")
    assert "old" not in new
    assert "`alltoall.master`" in new


def test_proven_names_formulations_that_exist():
    from formulations import formulations

    assert set(tables().PROVEN) <= set(formulations())


@pytest.mark.slow
def test_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("sphinx")
    words = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "docs", str(tmp_path / "site")]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    page = (tmp_path / "site" / "generated" / "api" / "formulations.alltoall.html").read_text(encoding="utf-8")
    assert "max F" in page
    assert (tmp_path / "site" / "generated" / "notebooks" / "02-all-to-all.html").exists()
