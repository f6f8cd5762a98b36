"""What numba keeps for the next processes is current while all that was compiled into it is."""

from __future__ import annotations

import json
import os
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
#: Writes the files of every line of its input and imports them in a process that has used numba alone.
RUN = """
import json, os, sys
from pathlib import Path
import numba
from opticoll.compiled import compiled
numba.njit(lambda x: x / 2.0)(1.0)
for line in sys.stdin:
    for name, text in json.loads(line).items():
        path = Path(f"{name}.py")
        if not path.exists() or path.read_text(encoding="utf-8") != text:  # older numba goes by dates, too
            path.write_text(text, encoding="utf-8")
    if not (child := os.fork()):
        import caller
        print(json.dumps([caller.value, caller.kept]), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""
#: Changes, one after the other: of a file, an old and a new part, and the value then.
CHANGES = {
    "a constant of another file": ("callee", "FACTOR = 1.0", "FACTOR = 2.0", 6.0),
    "a constant of a file behind it": ("constants", "2.0", "3.0", 4.0),
}


def test_what_is_kept_is_current(tmp_path):
    files = {"caller": CALLER, "callee": CALLEE, "constants": "DIVISOR = 2.0\n"}
    given, expected = [dict(files)] * 2, [[3.0, 0], [3.0, 1]]
    for file, old, new, value in CHANGES.values():
        files[file] = files[file].replace(old, new)
        given.append(dict(files))
        expected.append([value, 0])
    given.append(files)
    expected.append([value, 1])
    done = subprocess.run(
        [sys.executable, "-B", "-c", RUN],  # Python would take a file changed within a second for current
        cwd=tmp_path,
        input="".join(json.dumps(one) + "\n" for one in given),
        capture_output=True,
        text=True,
        check=True,
    )
    assert [json.loads(line) for line in done.stdout.splitlines()] == expected


def test_functions_stay_as_they_are_where_numba_compiles_none():
    code = "from json import dumps; from opticoll.compiled import compiled; print(compiled(nogil=True)(dumps) is dumps)"
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout == "True\n"
