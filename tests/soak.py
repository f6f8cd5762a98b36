"""Soak test: wrong input, false results from solvers, kills and full disks, drawn from a seed within a time budget.

``make soak BUDGET=10m SEED=1`` runs every part for its share of the budget and writes the table of
docs/reliability.md. A case is *caught* if the fault was refused, repaired or survived as promised, *harmless* if
the change left valid input, and *missed* otherwise; a miss is printed with the seed of its case.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

import numpy as np
from big_store import fill

from opticoll import shared_files
from opticoll.analysis.cli.main import main as command
from opticoll.analysis.store import Store
from opticoll.analysis.study import study_file
from opticoll.errors import BadInput, OpticollError
from opticoll.formulations import formulations
from opticoll.instances import parse
from opticoll.instances.spec import FAMILIES, expand, load_families
from opticoll.solvers import solve
from opticoll.solvers.compile import scaling
from opticoll.solvers.plan import make_plan
from opticoll.solvers.process.budget import LimitReached, limited
from opticoll.solvers.process.worker import ROOT
from opticoll.solvers.solution_document import SolutionDocument
from opticoll.solvers.solution_json import check
from opticoll.solvers.task import Outcome, Proof, Task, Termination

CAUGHT, HARMLESS = "caught", "harmless"
#: Fewest cases of a part.
LEAST = 3
#: Most cases of a part.
MOST = 500
#: Longest that anything refused may take [s of processor time].
MOST_S = 20.0
#: Formulation and instance of the parts that solve.
SOLVED = (
    ("alltoall.master", "ring:5"),
    ("alltoall.link-mcf", "ring:4"),
    ("alltoall.min-congestion", "ring:4"),
    ("alltoall.timestep-mcf", "ring:4"),
    ("optree.one-stage", "wdm-ring:n=4,wavelengths=2"),
    ("topoopt.routing", "servers:n=4,degree=3,traffic=alltoall"),
    ("sipml.ring-wavelengths", "wdm-ring:n=4,wavelengths=2"),
)


class Miss(Exception):
    """Something that must not happen."""


def missed(what: str) -> NoReturn:
    """End a case as a miss."""
    raise Miss(what)


@dataclass
class Part:
    """A part of the campaign; ``run`` makes one case from a generator in an empty folder."""

    name: str
    run: Callable[[random.Random, Path], str]
    quick: bool = True
    counts: Counter[str] = field(default_factory=Counter)
    misses: list[str] = field(default_factory=list)

    def case(self, seed: str) -> None:
        """Run a case."""
        folder = Path(tempfile.mkdtemp(prefix="opticoll-soak-"))
        selected = Path.cwd()
        try:
            os.chdir(folder)
            ending = self.run(random.Random(f"{self.name} {seed}"), folder)
        except Exception as error:  # noqa: BLE001  whatever is not promised is a miss
            ending = "missed"
            self.misses.append(f"{self.name}, case {seed}: {type(error).__name__}: {str(error)[:300]}")
        finally:
            os.chdir(selected)
            shutil.rmtree(folder, ignore_errors=True)
        self.counts[ending] += 1


def refused(call: Callable[[], Any]) -> bool:
    """Whether a call refuses its input with an error of ours, in one line and in time."""
    try:
        limited(call, time.monotonic(), least_s=MOST_S)
    except OpticollError as error:
        if "\n" in str(error) or not str(error):
            missed(f"a message of several lines: {error!r}")
        return True
    except LimitReached:
        missed(f"not refused within {MOST_S:g} s")
    return False


def ran(*words: str) -> tuple[int, str, str]:
    """Status and output of the command line, in this process; one line on stderr if it fails."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = command(list(words))
    lines = [line for line in err.getvalue().splitlines() if line.startswith("opticoll: ")]
    if status not in (0, 2, 3, 4, 130) or "Traceback" in err.getvalue() or "unexpected" in err.getvalue():
        missed(f"{words}: status {status}: {err.getvalue()[-300:]}")
    if status and not lines:
        missed(f"{words}: status {status} without a message")
    return status, out.getvalue(), err.getvalue()


def started(*words: str) -> subprocess.Popen[str]:
    """The command line in a process of its own."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from opticoll.analysis.cli.main import main; sys.exit(main())"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_signals,
    )


def heed_signals() -> None:
    """Undo what the caller may have set, such as nohup: children inherit ignored signals."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def mangled(text: str, draw: random.Random) -> str:
    """A text with a few changes."""
    for _ in range(draw.randint(1, 3)):
        place, other = draw.randint(0, len(text)), draw.randint(0, len(text))
        low, high = min(place, other), max(place, other)
        noise = draw.choice(
            [
                "",
                "9" * 30,
                "-1",
                "nan",
                "1e308",
                "\x00",
                "\x1b[31m",
                "'",
                '"',
                "{",
                "}",
                "[",
                "{1..1000000000}",
                "é",
                ",",
                "=",
                "+",
                "#",
                "%s",
                "../",
                "\n",
                " ",
                "~",
                "file:",
                "-",
                "0",
                "1e-320",
                "\ud800",
                text[low:high],
            ]
        )
        how = draw.randint(0, 2)
        text = text[:place] + noise + text[place:] if how else text[:low] + noise + text[min(high, low + 5) :]
    return text


# input ----------------------------------------------------------------------------------------------------------------


def specs(draw: random.Random, folder: Path) -> str:
    """Instance specs, and their braces."""
    load_families()
    text = mangled(draw.choice([family.example for family in FAMILIES.values()]), draw)
    if max(map(int, re.findall(r"\d{1,18}", text)), default=0) > 300:  # large instances are slow and not wrong
        return HARMLESS if refused(lambda: [None for _ in expand(text)][:1]) is None else CAUGHT
    return CAUGHT if refused(lambda: [parse(one) for one in expand(text)[:3]]) else HARMLESS


FILES = {
    "edges.txt": "0 1 1.0\n1 2 1.0\n2 0 1.0\n",
    "topology.json": '{"vertices": 3, "arcs": [[0, 1, 1.0], [1, 2, 1.0], [2, 0, 1.0]]}',
    "graph.graphml": '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="directed">'
    '<node id="a"/>'
    '<node id="b"/><edge source="a" target="b"/><edge source="b" target="a"/></graph></graphml>',
    "program.mps": "NAME\nROWS\n N c\n L r\nCOLUMNS\n x c 1\n x r 1\nRHS\n RHS r 4\nENDATA\n",
}


def files(draw: random.Random, folder: Path) -> str:
    """Topology and model files."""
    name = draw.choice(list(FILES))
    (folder / name).write_text(mangled(FILES[name], draw), encoding="utf-8", errors="surrogatepass")
    kind = "mps" if name.endswith(".mps") else "file"
    return CAUGHT if refused(lambda: parse(f"{kind}:{folder / name}")) else HARMLESS


def settings(draw: random.Random, folder: Path) -> str:
    """Parameters of formulations, and options of solvers, those that write files among them."""
    name, spec = draw.choice(SOLVED)
    known = [p.name for p in formulations()[name].parameters]
    options = ["solution_file", "log_file", "write_model_file", "threads", "time_limit", "presolve", "demand"]
    key = draw.choice([*known, *options, mangled(draw.choice(options), draw)])
    value = draw.choice(["x.txt", "1", "-1", "nan", "1e400", "true", "", "file:/dev/zero", mangled("shortest", draw)])
    caught = refused(lambda: make_plan(Task(name, spec, draw.choice(["auto", "highs"]), settings={key: value})))
    if list(folder.iterdir()):
        missed(f"{key}={value} wrote {list(folder.iterdir())}")
    if not caught and key in options[:5]:
        missed(f"{key}={value} was accepted")
    return CAUGHT if caught else HARMLESS


STUDY = """name = "s"
title = "t"
formulations = ["alltoall.master"]
instances = ["ring:{3..5}"]
methods = ["highs-simplex"]
seeds = 2
repetitions = 2
tol = 1e-6
[limits]
time_limit_s = 60.0
[settings]
demand = ["uniform"]
[[exclude]]
instance = "ring:4"
"""


def studies(draw: random.Random, folder: Path) -> str:
    """Study files."""
    path = folder / "s.toml"
    path.write_text(mangled(STUDY, draw), encoding="utf-8", errors="surrogatepass")
    return CAUGHT if refused(lambda: study_file.load(path)) else HARMLESS


def options(draw: random.Random, folder: Path) -> str:
    """Numbers on the command line."""
    name = draw.choice(
        ["--memory-limit", "--time-limit", "--threads", "--seed", "--tol", "--solution", "--store", "--form"]
    )
    value = draw.choice(
        ["1e308", "-1", "0", "nan", "inf", "10000", "99999999999999999999999", "x" * 300, "", "/proc/x/y"]
    )
    words = ("solve", "alltoall.master", "ring:3", "--method", "highs-simplex", name, value)
    status, _, _ = ran(*words, *([] if name == "--store" else ["--no-store"]))
    return CAUGHT if status else HARMLESS


def queries(draw: random.Random, folder: Path) -> str:
    """SQL of `opticoll results`."""
    store = _filled(folder, 3)
    text = draw.choice(
        [
            "SELECT key, objective FROM runs WHERE n > 3 ORDER BY finished",
            "COPY runs TO 'x.csv'",
            "ATTACH 'x.db'",
            "CREATE TABLE x AS SELECT 1",
            "SELECT * FROM read_csv('/etc/passwd')",
            "SELECT count(*) FROM range(100000000000)",
            "INSTALL httpfs",
            "SET memory_limit = '1GB'",
            "DELETE FROM runs",
            "SELECT * FROM glob('/*')",
        ]
    )
    before = sorted(folder.rglob("*"))
    query = mangled(text, draw) if draw.random() < 0.7 else text
    caught = refused(lambda: store.sql(query, time_limit_s=2.0))
    if sorted(folder.rglob("*")) != before:
        missed(f"{query} wrote a file")
    return CAUGHT if caught else HARMLESS


# the store ------------------------------------------------------------------------------------------------------------


def _filled(folder: Path, count: int) -> Store:
    store = Store(folder / "store")
    with mock.patch.object(os, "fsync"):
        fill(store, count)
    return store


def torn(draw: random.Random, folder: Path) -> str:
    """Records that are cut, changed in a bit, zeroed, emptied, or are no files."""
    store = _filled(folder, 4)
    before = {row["id"]: row for row in store.sql("SELECT id, objective, n FROM runs").to_dict("records")}
    path = draw.choice(sorted(store.records.iterdir()))
    line = bytearray(path.read_bytes())
    place = draw.randrange(len(line))
    how = draw.choice(["cut", "bit", "zero", "folder", "pipe", "text"])
    path.unlink()
    if how == "folder":
        path.mkdir()
    elif how == "pipe":
        os.mkfifo(path)
    else:
        if how == "bit":
            line[place] ^= 1 << draw.randrange(8)
        elif how == "zero":
            line[place:] = bytes(len(line) - place)
        path.write_bytes(line[:place] if how == "cut" else b"{}" if how == "text" else line)
    with mock.patch("opticoll.analysis.store.tables.warn") as warned:
        after = {row["id"]: row for row in store.sql("SELECT id, objective, n FROM runs").to_dict("records")}
    named = [message for call in warned.call_args_list for message in call.args[0]]
    if str(after) == str(before):  # only the end of the line has changed
        return HARMLESS
    if len(named) != 1 or path.name not in named[0]:
        missed(f"{how} at {place}: {len(before) - len(after)} rows fewer, named {named}")
    if any(str(after[name]) != str(before[name]) for name in after):
        missed(f"{how} at {place}: another value")
    return CAUGHT


def full_disk(draw: random.Random, folder: Path) -> str:
    """No space left at a random step of writing."""
    store, left = Store(folder / "store"), draw.randint(0, 8)
    store.records.mkdir(parents=True)

    def failing(inner: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            nonlocal left
            place = Path(f"/proc/self/fd/{given[0]}").readlink() if isinstance(given[0], int) else given[0]
            if store.root not in [place, *place.parents]:
                return inner(*given, **named)  # the folders of workers, and the answer, which are on other disks
            left -= 1
            if left < 0:
                raise OSError(28, "No space left on device")
            return inner(*given, **named)

        return call

    patches = [mock.patch.object(os, name, failing(getattr(os, name))) for name in ("fsync", "link")]
    patches.append(mock.patch.object(shared_files, "_temporary", failing(shared_files._temporary)))
    with contextlib.ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        status, out, _ = ran(
            "solve",
            "alltoall.master",
            "ring:3",
            "--method",
            "highs-simplex",
            "--store",
            str(store.root),
            "--json",
            "--solution",
            str(folder / "answer.json"),
        )
    if json.loads(out)["objective"] is None or not (folder / "answer.json").exists():
        missed("the answer is lost")
    rows = len(store.sql("FROM runs"))
    if rows != (0 if status else 1) or list(store.root.rglob(".tmp-*")):
        missed(f"status {status} with {rows} rows")
    return CAUGHT if status else HARMLESS


def read_only(draw: random.Random, folder: Path) -> str:
    """Stores that cannot be written: refused before anything runs."""
    (folder / "file").write_text("")
    place = draw.choice(
        [folder / "file", folder / "file" / "below", Path("/proc/soak"), Path("/dev/null/x"), Path("x" * 300)]
    )
    words = draw.choice([("solve", "alltoall.master", "ring:3"), ("study", "demo"), ("claims",)])
    with mock.patch.object(solve, "solve", side_effect=Miss("it was solved")):
        status, _, _ = ran(*words, "--store", str(place))
    if status != 2:
        missed(f"{words} --store {place}: status {status}")
    return CAUGHT


def writers(draw: random.Random, folder: Path) -> str:
    """Two studies at once on one store."""
    return _study_killed(draw, folder, writers=2, kills=0)


def killed_studies(draw: random.Random, folder: Path) -> str:
    """Studies that are killed at random moments, and finished by another start."""
    return _study_killed(draw, folder, writers=draw.randint(1, 2), kills=draw.randint(1, 3))


def _study_killed(draw: random.Random, folder: Path, writers: int, kills: int) -> str:
    study, store = folder / "s.toml", Store(folder / "store")
    study.write_text(STUDY.split("[settings]")[0])
    words = ["study", str(study), "--store", str(store.root), *draw.choice([(), ("--jobs", "2")])]
    for _ in range(kills):
        process = started(*words)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=draw.uniform(0.5, 6.0))
        process.send_signal(draw.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))
        process.communicate(timeout=120)
    together = [started(*words) for _ in range(writers)]
    for process in together:
        _, err = process.communicate(timeout=600)
        if process.returncode:
            missed(f"the last start ended with {process.returncode}: {err[-300:]}")
    cells = {cell.key for cell in study_file.load(study).cells}
    with mock.patch("opticoll.analysis.store.tables.warn") as warned:
        rows = store.sql("SELECT key, count(*) AS runs, sum(answer::int) AS answers FROM runs GROUP BY key")
    if warned.call_args_list != [mock.call([])] or set(rows["key"]) != cells or (rows["answers"] != 1).any():
        missed(f"{len(cells)} cells, {rows.to_dict('records')}, damaged {warned.call_args_list}")
    if len(list(store.root.rglob(".tmp-*"))) > kills * 2 + 1:
        missed("more temporary files than kills")
    return CAUGHT


def killed_solves(draw: random.Random, folder: Path) -> str:
    """Solves that get a signal at a random moment: the incumbent is kept, and no process outlives them."""
    store, mark = Store(folder / "store"), f"soak-{draw.getrandbits(60)}"
    spec, method = draw.choice(
        [
            ("lumorph.rounds lightpath:2x3", "highs"),
            ("sipml.placement op-graph:model=chain,splits=1x4", "auto"),
            ("alltoall.master genkautz:n=60,d=4", "highs-simplex"),
            ("alltoall.min-congestion hypercube:4", "certified-branching"),
        ]
    )
    with mock.patch.dict(os.environ, {"OPTICOLL_SOAK": mark}):
        process = started("solve", *spec.split(), "--method", method, "--store", str(store.root), "--json")
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=draw.uniform(0.5, 12.0))
    number = draw.choice([signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    process.send_signal(number)
    out, err = process.communicate(timeout=300)
    for _ in range(100):
        if not (left := _marked(mark)):
            break
        time.sleep(0.1)
    else:
        missed(f"{number.name}: processes {left} outlive it")
    if "Traceback" in err:
        missed(f"{number.name}: {err[-300:]}")
    recorded = False
    with contextlib.suppress(BadInput):  # killed at once: no store, or no record in it
        recorded = not store.sql("SELECT verified FROM runs").empty
    if process.returncode == 0 and (json.loads(out)["verified"] is not True or not recorded):
        missed(f"{number.name}: status 0 without a verified row")
    return CAUGHT


def working(pid: int) -> bool:
    """Whether a process has given a job to a worker."""
    import psutil

    with contextlib.suppress(psutil.Error):
        return any(child.children() for child in psutil.Process(pid).children())
    return True


def _marked(mark: str) -> list[str]:
    results = []
    for place in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark.encode() in place.read_bytes():
                results.append(place.parent.name)
    return results


# answers --------------------------------------------------------------------------------------------------------------

_answers: dict[tuple[str, str], tuple[Any, list[Outcome]]] = {}


def _answer(name: str, spec: str) -> tuple[Any, list[Outcome]]:
    """The proven run of a problem by HiGHS, and the outcomes of its solver in order."""
    if (name, spec) not in _answers:
        seen: list[Outcome] = []
        inner = scaling.solve_isolated

        def watched(*given: Any, **named: Any) -> Outcome:
            seen.append(inner(*given, **named))
            return seen[-1]

        with mock.patch.object(scaling, "solve_isolated", watched):
            run = solve.solve(Task(name, spec, "highs"))
        if run.proof is not Proof.OPTIMAL:
            missed(f"{name} on {spec} is not proven: {run.record.message}")
        _answers[name, spec] = run, seen
    return _answers[name, spec]


def lies(draw: random.Random, folder: Path) -> str:
    """Solvers that return wrong vectors, values, words and types."""
    name, spec = draw.choice(SOLVED)
    run, outcomes = _answer(name, spec)
    noise = np.random.default_rng(draw.getrandbits(32))
    left = list(outcomes)

    def liar(form: Any, *given: Any, **named: Any) -> Outcome:
        from opticoll.solvers.adapters.interface import accepted

        true = left.pop(0) if left else outcomes[-1]
        return accepted("liar", form, _lie(true, draw, noise))

    with mock.patch.object(scaling, "solve_isolated", liar), np.errstate(all="ignore"):
        try:
            result = solve.solve(Task(name, spec, "highs"))
        except OpticollError:
            return CAUGHT
    Store(folder / "store").save(result)
    wrong = result.objective is not None and abs(result.objective - run.objective) > 1e-5 * max(
        abs(run.objective), 1e-9
    )
    if result.proof is Proof.OPTIMAL and wrong:
        missed(f"{name}: {result.objective} is called optimal, {run.objective} is")
    if result.record.infeasible_by is not None:
        missed(f"{name}: called infeasible by {result.record.infeasible_by}")
    if result.bound is not None and not wrong:
        flip = 1.0 if result.record.sense == "max" else -1.0
        if flip * (result.bound - run.objective) < -1e-6 * abs(run.objective):
            missed(f"{name}: the bound {result.bound} excludes the optimum {run.objective}")
    return HARMLESS if result.proof is Proof.OPTIMAL else CAUGHT


def _lie(true: Outcome, draw: random.Random, noise: np.random.Generator) -> Any:
    x = np.zeros(0) if true.x is None else np.array(true.x)
    y = np.zeros(0) if true.row_duals is None else np.array(true.row_duals)
    vectors: list[Any] = [
        x[:-1],
        np.append(x, 1.0),
        x.reshape(-1, 1),
        x + 1j,
        x.astype(str),
        x.astype(object),
        [],
        "x",
        None,
        x * 1.001,
        x * 0.5,
        -x,
        np.full_like(x, np.nan),
        np.full_like(x, np.inf),
        noise.permutation(x),
        noise.normal(size=x.shape),
        x + 1e-5 * noise.normal(size=x.shape),
        np.zeros_like(x),
        x * 1e300,
        5,
    ]
    duals: list[Any] = [
        y[:-1],
        np.append(y, [1.0, 2.0]),
        -y,
        y * 1e3,
        y * 1e14,
        np.full_like(y, np.nan),
        noise.normal(size=y.shape),
        None,
        np.zeros_like(y),
        y + 1e14,
        y.reshape(1, -1),
        y.astype(str),
    ]
    value = true.objective or 0.0
    changes: dict[str, list[Any]] = {
        "x": vectors,
        "row_duals": duals,
        "objective": [value + 1, -value, float("nan"), "1", None, float("inf")],
        "bound": [value, value + 1, -1e300, "optimal", float("nan")],
        "raw": ["\ud800", "x" * 10_000_000, None, b"raw"],
        "termination": ["solved", None, *Termination],
        "message": ["\x1b[31m\ud800", "x" * 1_000_000, "a\nb", None],
        "incumbents": [[1.0], [("a", "b")], None, [(0, 1e99)]],
        "options": [{"a": {1, 2}}, {"\ud800": object()}, None, [1]],
        "iterations": ["many", 1.5, -1, float("inf")],
    }
    wrong: dict[str, Any] = {}
    for name in draw.sample(list(changes), draw.randint(1, 3)):
        wrong[name] = draw.choice(changes[name])
    return replace(true, **wrong)


def solutions(draw: random.Random, folder: Path) -> str:
    """Solution files with changed entries; none may be accepted with a better value than the proven optimum."""
    name, spec = draw.choice(SOLVED)
    run, _ = _answer(name, spec)
    document = json.loads(json.dumps(SolutionDocument.of(run).as_json(), default=lambda a: a.tolist()))
    for _ in range(draw.randint(1, 3)):
        _change(document, draw)
    path = folder / "solution.json"
    path.write_text(json.dumps(document))
    result: dict[str, Any] = {}
    if refused(lambda: result.update(check(name, spec, path))):
        return CAUGHT
    flip = 1.0 if run.record.sense == "max" else -1.0
    if result["verified"] and flip * (result["objective"] - run.objective) > 1e-5 * abs(run.objective):
        missed(f"{name}: {result['objective']} is accepted, {run.objective} is the optimum")
    return HARMLESS if result["verified"] else CAUGHT


def schedules(draw: random.Random, folder: Path) -> str:
    """Schedules with changed entries; none may be accepted that is faster than the proven optimum."""
    path = folder / draw.choice(["s.json", "s.xml"])
    cached = _schedules.get(path.suffix)
    if cached is None:
        status, _, err = ran("solve", "alltoall.master", "ring:4", "--no-store", "--schedule", str(path))
        if status:
            missed(err)
        cached = _schedules[path.suffix] = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        document = json.loads(cached)
        for _ in range(draw.randint(1, 3)):
            _change(document, draw)
        path.write_text(json.dumps(document))
    else:
        numbers = list(re.finditer(r'"-?\d+"', cached))
        chosen = draw.choice(numbers)
        other = draw.choice(['"-1"', '"0"', '"1"', '"7"', '"99999999999999999999"', '"x"', '""'])
        path.write_text(cached[: chosen.start()] + other + cached[chosen.end() :])
    result: dict[str, Any] = {}
    if refused(lambda: result.update(check("alltoall.master", "ring:4", path))):
        return CAUGHT
    optimum = 2.0  # T of ring:4
    if result["verified"] and result["objective"] is not None and result["objective"] < optimum * (1 - 1e-6):
        missed(f"a schedule of T = {result['objective']} is accepted, {optimum} is the optimum")
    return HARMLESS if result["verified"] else CAUGHT


_schedules: dict[str, str] = {}


def _change(document: Any, draw: random.Random) -> None:
    """Change one entry of a JSON document, wherever it is."""
    while True:
        keys = list(document) if isinstance(document, dict) else range(len(document))
        if not keys:
            return
        key = draw.choice(list(keys))
        inner = document[key]
        if isinstance(inner, (dict, list)) and inner and draw.random() < 0.9:
            document = inner
            continue
        if draw.random() < 0.15:
            del document[key]
            return
        number = inner if isinstance(inner, (int, float)) and not isinstance(inner, bool) else 1
        document[key] = draw.choice(
            [
                number + 1,
                -number,
                number * 1.01,
                number * 2,
                0,
                10**18,
                1e308,
                None,
                "x",
                [],
                {},
                True,
                [number],
                "\x00",
                number + 1e-4,
                -1,
                2**63,
            ]
        )
        return


PARTS = (
    Part("instance specs", specs),
    Part("topology and model files", files),
    Part("settings and solver options", settings),
    Part("study files", studies),
    Part("command-line values", options, quick=False),
    Part("SQL queries", queries),
    Part("torn, changed and foreign records", torn),
    Part("full disk", full_disk, quick=False),
    Part("read-only store", read_only),
    Part("lying solvers", lies),
    Part("mutated solutions", solutions),
    Part("mutated schedules", schedules),
    Part("two writers at once", writers, quick=False),
    Part("killed studies", killed_studies, quick=False),
    Part("killed and interrupted solves", killed_solves, quick=False),
)


def campaign(parts: tuple[Part, ...], budget_s: float, seed: int, most: int = MOST) -> None:
    """Give every part the same time, and at least :data:`LEAST` cases.

    The next case is always of the part that has used the least time. A part that has ``most`` cases leaves the rest of
    its time to the others, so slow cases get more of the budget than a fixed share.
    """
    used, begun = dict.fromkeys((part.name for part in parts), 0.0), time.monotonic()
    while True:
        spent = time.monotonic() - begun >= budget_s
        left = [part for part in parts if part.counts.total() < (min(LEAST, most) if spent else most)]
        if not left:
            break
        part, since = min(left, key=lambda one: used[one.name]), time.monotonic()
        part.case(f"{seed}.{part.counts.total()}")
        used[part.name] += time.monotonic() - since
    for part in parts:
        print(f"{part.name}: {dict(part.counts)} in {used[part.name]:.0f} s", flush=True)
        for miss in part.misses:
            print(f"  MISSED {miss}", flush=True)


def page(parts: tuple[Part, ...], budget: str, seed: int) -> str:
    """The page of the documentation."""
    rows = [
        f"| {part.name} | {part.counts.total()} | {part.counts[CAUGHT]} | {part.counts[HARMLESS]} "
        f"| {part.counts['missed']} |"
        for part in parts
    ]
    total = sum((part.counts for part in parts), Counter())
    rows.append(f"| **all** | {total.total()} | {total[CAUGHT]} | {total[HARMLESS]} | {total['missed']} |")
    return HEAD.format(budget=budget, seed=seed, most=MOST) + "\n".join(rows) + "\n"


HEAD = """# Reliability

`make soak BUDGET=10m SEED=1` tests what opticoll promises about invalid input, false results from solvers, kills and
full disks. It draws its cases from the seed, gives every part the same share of the budget (quick parts stop at {most}
cases and leave the rest of their share to slow ones), and writes this table. It is not part of `make test`, which runs
a few cases of every quick part.

- *Caught*: the fault was refused in one line, left out with a warning, or survived as promised. A solver's false answer
  is not called optimal; a changed solution or schedule is not accepted with a value better than the optimum; a killed
  study resumes where it stopped, with every row once; an interrupted solve keeps its incumbent and leaves no process
  behind.
- *Harmless*: the random change left valid input.
- *Missed*: anything else. `tests/soak.py` prints the case, and the same seed reproduces it.

Last run with BUDGET={budget} SEED={seed}:

| part | tried | caught | harmless | missed |
|---|---|---|---|---|
"""


def seconds(text: str) -> float:
    """Seconds of a text such as 90, 90s, 10m or 2h."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if match is None:
        msg = f"BUDGET={text}: write seconds, or a number with s, m or h, such as 10m"
        raise argparse.ArgumentTypeError(msg)
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


def run() -> int:
    """Run the campaign; 1 if anything was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", default="10m")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", action="append", help="only parts whose name holds this")
    parser.add_argument("--page", type=Path, help="write the table there")
    given = parser.parse_args()
    parts = tuple(part for part in PARTS if not given.part or any(word in part.name for word in given.part))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    campaign(parts, seconds(given.budget), given.seed)
    if given.page is not None:
        given.page.write_text(page(parts, given.budget, given.seed), encoding="utf-8")
    return 1 if any(part.misses for part in parts) else 0


if __name__ == "__main__":
    sys.exit(run())
