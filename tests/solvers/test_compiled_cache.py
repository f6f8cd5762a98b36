"""What numba keeps for the next processes is current while all that was compiled into it is."""

from __future__ import annotations

import subprocess
import sys

CALLER = """
from callee import FACTOR, halved
from opticoll.compiled import compiled

@compiled()
def answer(x):
    return FACTOR * halved(x)

if __name__ == "caller":
    value, kept = answer(6.0), sum(answer.stats.cache_hits.values())
"""
CALLEE = """
from opticoll.compiled import compiled
from constants import DIVISOR

FACTOR = 1.0

@compiled()
def halved(x):
    return x / DIVISOR
"""
RUN = "import caller; print(caller.value, caller.kept)"
#: Changes, one after the other: of a file, an old and a new part, and the value then.
CHANGES = {
    "a constant of another file": ("callee", "FACTOR = 1.0", "FACTOR = 2.0", 6.0),
    "a constant of a file behind it": ("constants", "2.0", "3.0", 4.0),
}


def test_what_is_kept_is_current(tmp_path):
    files = {"caller": CALLER, "callee": CALLEE, "constants": "DIVISOR = 2.0\n"}

    def run():
        for name, text in files.items():
            path = tmp_path / f"{name}.py"
            if not path.exists() or path.read_text(encoding="utf-8") != text:  # older numba goes by dates, too
                path.write_text(text, encoding="utf-8")
        done = subprocess.run([sys.executable, "-c", RUN], cwd=tmp_path, capture_output=True, text=True, check=True)
        value, kept = done.stdout.split()
        return float(value), int(kept)

    assert run() == (3.0, 0)
    assert run() == (3.0, 1)
    for changed, (file, old, new, value) in CHANGES.items():
        files[file] = files[file].replace(old, new)
        assert run() == (value, 0), changed
    assert run() == (value, 1)
