"""The report in a real browser: nothing on the console, nothing loaded from elsewhere, every figure visible.

Needs the extra ``browser`` (Qt's Chromium); skipped without it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from opticoll.analysis.report import page as report
from opticoll.analysis.store import Store
from opticoll.solvers.solve import solve
from opticoll.solvers.task import Task

pytestmark = pytest.mark.skipif(
    find_spec("PySide6") is None, reason="needs a browser: pip install '.[browser]' (Qt's Chromium)"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    store = Store(folder / "store")
    for spec in ("ring:8", "petersen", "genkautz:n=9,d=4", "torus:3x3"):
        store.save(solve(Task("alltoall.master", spec)))
    return report.build(store, folder / "report")


def seen(page, width, scheme, tmp_path):
    command = [sys.executable, str(Path(__file__).parents[2] / "browser.py"), str(page), str(width), scheme]
    done = subprocess.run(
        [*command, str(tmp_path / "seen.png")], capture_output=True, text=True, timeout=600, check=False
    )
    if not done.stdout.strip():
        pytest.skip(f"Qt's Chromium does not start here: {done.stderr.strip().splitlines()[-1:]}")
    assert (tmp_path / "seen.png").stat().st_size > 1000
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
def test_the_page_as_rendered(page, width, scheme, tmp_path):
    result = seen(page, width, scheme, tmp_path)
    assert result["console"] == []
    assert result["requests"] == []
    assert result["dark"] == (scheme == "dark")
    assert (result["paper"] == "rgb(255, 255, 255)") == (scheme == "light")
    assert result["wide"] <= width, "no sideways scrolling"
    assert result["figures"]
    for shown in result["figures"]:
        assert shown, "a figure shows nothing"
        assert all(wide > 100 and high > 60 for wide, high in shown)
