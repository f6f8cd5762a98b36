"""Benchmark tables: start-up and generator times, memory of building and solving models, times of stated models.

The papers' tables are in modules of their own. Memory is given in bytes per *entry*: a variable, a
constraint or a nonzero. ``opticoll.solvers.process.memory`` takes its limits from the smallest of these numbers.
"""

from __future__ import annotations

import gc
import hashlib
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import alltoall_tables
import lumorph_tables
import optree_tables
import sipml_tables
import topoopt_tables
from timed_commands import Row, Table, timed_command

from opticoll.formulations.model import build_model, forms_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.analysis.study.study_file import Study


def startup() -> list[Row]:
    """Time of ``opticoll --help`` and of an empty Python process [s], medians of seven."""
    help_s = statistics.median(timed_command("--help")[0] for _ in range(7))
    empty = []
    for _ in range(7):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", ""], check=True)
        empty.append(time.perf_counter() - start)
    return [{"command": "`opticoll --help`", "seconds": help_s, "empty Python": statistics.median(empty)}]


def generators() -> list[Row]:
    """Time to generate large topologies from their specs [s]."""
    from opticoll.instances import parse

    parse("ring:4")
    rows = []
    for spec in ("genkautz:n=4096,d=4", "torus:16x16x16", "genkautz:n=100000,d=4", "slimfly:q=17"):
        start = time.perf_counter()
        topology = parse(spec)
        rows.append({"instance": spec, "arcs": topology.arcs, "seconds": time.perf_counter() - start})
    return rows


#: Formulation, instance, settings: several ratios of nonzeros to variables, each at several sizes.
MODELS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("alltoall.link-mcf", "genkautz:n=16,d=4", {}),
    ("alltoall.link-mcf", "genkautz:n=32,d=4", {}),
    ("alltoall.link-mcf", "genkautz:n=48,d=4", {}),
    ("alltoall.link-mcf", "genkautz:n=64,d=4", {}),
    ("alltoall.master", "genkautz:n=300,d=4", {}),
    ("alltoall.master", "genkautz:n=600,d=4", {}),
    ("alltoall.timestep-mcf", "genkautz:n=27,d=4", {}),
    ("alltoall.timestep-mcf", "genkautz:n=40,d=4", {}),
    ("alltoall.path-mcf", "torus:4x4x4", {"paths": "shortest"}),
    ("alltoall.path-mcf", "torus:4x4x5", {"paths": "shortest"}),
    ("alltoall.min-congestion", "torus:4x4x4", {"paths": "shortest"}),
    ("alltoall.min-congestion", "torus:4x4x5", {"paths": "shortest"}),
)
#: Numbers of the models that are small enough to solve.
SOLVED = (0, 1, 2, 4, 6, 8, 10, 11)
#: Pyomo creates an object per entry: with more entries, a build takes minutes.
MOST_OBJECTS = 3_000_000


def build_in_worker(
    formulation: str, instance: str, form: str, settings: dict[str, str], report: Any
) -> dict[str, Any]:
    """Build and compile one model; memory at the peak and afterwards, above the memory before [MB]."""
    import psutil

    from opticoll.formulations.modelling_layers import import_layer
    from opticoll.solvers.compile.compilation import compile_model
    from opticoll.solvers.plan import make_plan
    from opticoll.solvers.process.processes import peak_memory_mb
    from opticoll.solvers.task import Task

    plan = make_plan(Task(formulation, instance, "highs", form, settings))
    estimate = plan.problem._estimate() or {}
    import_layer(plan.form)
    if plan.form != "matrix":
        small = make_plan(Task("alltoall.master", "ring:4", "highs", form))
        compile_model(build_model(small.problem, small.form))
    gc.collect()
    before = psutil.Process().memory_info().rss / 1e6
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets the high-water mark
    model = build_model(plan.problem, plan.form)
    size = compile_model(model).size
    peak = peak_memory_mb() or 0.0
    del model
    gc.collect()
    kept = psutil.Process().memory_info().rss / 1e6
    return {"size": size, "estimate": estimate, "peak": peak - before, "kept": kept - before}


def entries(size: dict[str, int]) -> int:
    """Number of variables, constraints and nonzeros."""
    return size["variables"] + size["constraints"] + size["nonzeros"]


def building() -> list[Row]:
    """Peak memory of building and compiling, by layer [MB]."""
    from opticoll.formulations.registry import formulation
    from opticoll.solvers.process.isolation import call_isolated

    rows: list[Row] = []
    for name, instance, settings in MODELS:
        size: dict[str, int] | None = None
        for form in sorted(forms_of(formulation(name))):
            if form == "pyomo" and size is not None and entries(size) > MOST_OBJECTS:
                continue
            asked = {"formulation": name, "instance": instance, "form": form, "settings": settings}
            answer = call_isolated("measured_tables:build_in_worker", asked, wall_limit_s=170)
            if not answer.finished:
                continue
            size = answer.values["size"]
            assert size is not None
            estimate = answer.values["estimate"]
            rows.append(
                {
                    "formulation": name,
                    "instance": instance,
                    "layer": form,
                    "entries": entries(size),
                    "estimated / entries": entries(estimate) / entries(size) if estimate else None,
                    "peak MB": answer.values["peak"],
                    "peak [B/entry]": answer.values["peak"] * 1e6 / entries(size),
                    "kept [B/entry]": answer.values["kept"] * 1e6 / entries(size),
                }
            )
    return rows


#: Formulation, settings and growing instances, the last ones above the limit of ``auto``.
STATED: tuple[tuple[str, dict[str, str], tuple[str, ...]], ...] = (
    ("alltoall.master", {}, ("genkautz:n=64,d=4", "genkautz:n=100,d=4", "torus:10x10", "torus:12x12")),
    ("alltoall.min-congestion", {}, ("torus:4x4", "genkautz:n=27,d=4", "torus:5x5", "torus:6x6")),
    ("alltoall.virtual-channels", {}, ("genkautz:n=9,d=3", "torus:4x4")),
    ("lumorph.min-overlap", {}, ("lightpath:4x4", "lightpath:4x8", "lightpath:8x8")),
    ("lumorph.min-overlap", {"circuits": "all"}, ("lightpath:3x4", "lightpath:4x4", "lightpath:4x8")),
    ("lumorph.rounds", {}, ("lightpath:2x3,lasers=2", "lightpath:2x4,lasers=1", "lightpath:3x3,lasers=1")),
    ("lumorph.rounds", {"collective": "all-to-all"}, ("lightpath:2x4,lasers=1", "lightpath:3x3,lasers=1")),
    ("optree.one-stage", {}, tuple(f"wdm-ring:n={n},wavelengths=1" for n in (8, 10, 11))),
    ("optree.one-stage", {}, tuple(f"wdm-line:n={n},wavelengths=1" for n in (8, 10, 11))),
    ("optree.tree", {}, tuple(f"wdm-ring:n={n},wavelengths=64" for n in (256, 1024, 2048))),
    ("sipml.ocs-circuits", {}, tuple(f"servers:n={n},degree={n},traffic=random,seed=1" for n in (16, 32, 64))),
    (
        "sipml.ocs-circuits",
        {"model": "switches"},
        tuple(f"servers:n=9,degree={d},traffic=random,seed=1" for d in (8, 16)),
    ),
    (
        "sipml.placement",
        {"k": "3", "degree": "2"},
        tuple(f"op-graph:model=random,layers={n},parts=2,training=false,seed=2" for n in (3, 4, 5, 8)),
    ),
    (
        "sipml.ring-wavelengths",
        {"traffic": "random", "seed": "1"},
        ("wdm-ring:n=8,wavelengths=128", "wdm-ring:n=12,wavelengths=128", "wdm-ring:n=14,wavelengths=64"),
    ),
    (
        "sipml.ring-wavelengths",
        {"traffic": "random", "seed": "1", "model": "arcs"},
        ("wdm-ring:n=8,wavelengths=32", "wdm-ring:n=8,wavelengths=64"),
    ),
    ("topology.sequence", {"configurations": "2"}, tuple(f"servers:n={n},degree=2" for n in (4, 5, 6))),
    ("topoopt.strategy", {}, tuple(f"servers:n=128,degree=2,traffic={model}" for model in ("dlrm", "vgg"))),
    ("topoopt.topology", {}, tuple(f"servers:n={n},degree=2,traffic=random,seed=1" for n in (4, 5, 6))),
)
#: Time limit of a stated model [s].
STATED_S = 25.0


def stated() -> list[Row]:
    """CPU seconds of building and solving stated models by HiGHS in a warm process, and the choice of ``auto``."""
    from opticoll.formulations.modelling_layers import import_layer
    from opticoll.formulations.registry import formulation
    from opticoll.solvers.plan import make_plan
    from opticoll.solvers.solve import solve
    from opticoll.solvers.task import Task

    import_layer("pyomo")
    rows: list[Row] = []
    for name, settings, specs in STATED:
        method = "highs" if formulation(name).problem == "MILP" else "time-form"
        for spec in specs:
            before = _cpu_s()
            run = solve(Task(name, spec, method, "pyomo", settings, time_limit_s=STATED_S))
            seconds = _cpu_s() - before
            assert run.plan is not None
            auto = Task(name, spec, settings=settings)
            chosen = make_plan(auto, needed=run.plan.needed or None).method_name
            rows.append(
                {
                    "formulation": name,
                    "settings": " ".join(f"{k}={v}" for k, v in settings.items()) or None,
                    "instance": spec,
                    "variables": run.record.size.variables,
                    "nonzeros": run.record.size.nonzeros,
                    "CPU [s]": seconds,
                    "ended": str(run.termination),
                    "proof": str(run.proof),
                    "auto": chosen,
                }
            )
    return rows


def _cpu_s() -> float:
    """CPU time of this process and its workers that have ended [s]."""
    import resource

    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


#: Instances of the tiny cells, and the number of cells per instance.
TINY, TINY_REPETITIONS = tuple(f"{family}:{n}" for n in range(3, 13) for family in ("ring", "path")), 6
#: Records of the store that ``results`` and ``report`` read.
RECORDS = 50_000


def _tiny_study(name: str, instances: Sequence[str]) -> Study:
    from opticoll.analysis.study.study_file import study_of
    from opticoll.solvers.task import Task

    repetitions = range(TINY_REPETITIONS)
    return study_of(
        name, [Task("alltoall.master", one, "highs", repetition=k) for one in instances for k in repetitions]
    )


def _cpu_of_all_s() -> float:
    """CPU time of this process and its workers, including running workers and their ended jobs [s]."""
    import psutil

    running = (child.cpu_times() for child in psutil.Process().children(recursive=True))
    return _cpu_s() + sum(sum(one[:4]) for one in running)  # user, system, and those of children that have ended


def cells() -> list[Row]:
    """Time of the tiny cells of a study in one process, after a few cells that load the modules [s]."""
    from opticoll.analysis.store.records import Store
    from opticoll.analysis.study.running import run_study
    from opticoll.solvers.process.executor import InProcess
    from opticoll.solvers.process.worker import end_waiting

    with TemporaryDirectory() as folder:
        run_study(_tiny_study("warm", ("torus:3x3",)), Store(folder), InProcess())
        start, before = time.perf_counter(), _cpu_of_all_s()
        count = run_study(_tiny_study("tiny", TINY), Store(folder), InProcess()).count("done")
        wall_s, cpu_s = time.perf_counter() - start, _cpu_of_all_s() - before
        end_waiting()
    return [
        {
            "study": "alltoall.master on rings and paths of 3 to 12 vertices, highs",
            "cells": count,
            "wall [s]": wall_s,
            "CPU [s]": cpu_s,
            "cells / wall s": count / wall_s,
            "cells / CPU s": count / cpu_s,
        }
    ]


def reading() -> list[Row]:
    """Time of ``results`` and ``report`` on a store of 50,000 records, copies of a small study under other keys [s]."""
    from msgspec.structs import replace

    from opticoll.analysis.store import schema
    from opticoll.analysis.store.records import Store
    from opticoll.analysis.study.running import run_study
    from opticoll.solvers.process.executor import InProcess

    rows: list[Row] = []
    with TemporaryDirectory() as folder:
        store = Store(Path(folder) / "small")
        run_study(_tiny_study("tiny", TINY), store, InProcess())
        records = [store.read(name) for name in store.names()]
        large = Path(folder) / "large"
        (large / "records").mkdir(parents=True)
        for number in range(RECORDS):
            one, repetition = records[number % len(records)], number // len(records)
            key = hashlib.sha256(f"{one.key}/{repetition}".encode()).hexdigest()
            asked = replace(one.requested, repetition=repetition)
            copy = replace(one, key=key, id=f"{key}.1", requested=asked, solution=None)
            (large / "records" / f"{key}.1.json").write_bytes(schema.encode(copy))
        for command in (
            ("results", "SELECT count(*) FROM latest", "--store", str(large)),
            ("report", "--store", str(large), "--out", str(Path(folder) / "page")),
        ):
            before = _cpu_s()
            wall_s, _ = timed_command(*command)
            rows.append(
                {
                    "command": f"`opticoll {command[0]}`",
                    "records": RECORDS,
                    "wall [s]": wall_s,
                    "CPU [s]": _cpu_s() - before,
                }
            )
    return rows


TABLES = (
    Table("startup", "Start-up (median of 7)", startup),
    Table("cells", "Tiny cells of a study in one process", cells),
    Table("large-store", "Commands on a store of 50,000 records", reading),
    Table("generators", "Generators", generators),
    Table("memory-build", "Memory of building and compiling a model", building),
    Table("stated-models", "Stated models solved by HiGHS, around the limits of auto", stated),
)


def tables() -> dict[str, Table]:
    """All tables by name, in the order of the documents."""
    papers = (alltoall_tables, lumorph_tables, optree_tables, sipml_tables, topoopt_tables)
    return {table.name: table for table in (*TABLES, *(table for paper in papers for table in paper.TABLES))}
