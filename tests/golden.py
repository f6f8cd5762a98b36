"""The golden record: what the engine answers, as JSON lines, to compare two states of the code.

    python tests/golden.py make OUT.jsonl [--only matrices,runs,...]
    python tests/golden.py compare BEFORE.jsonl AFTER.jsonl

``make`` records, for every case of :data:`cases.CASES`, the matrix of every form and the run of ``auto``, of every
method that applies and of every free solver; the hashes of instances; resume keys; the bytes of exported programs,
schedules and certificates; and the verdicts of the papers' claims. ``compare`` requires equal matrices, hashes, files
and verdicts, and equal values of deterministic runs; other values may differ by 1e-9, relative. Runs that end at a
limit are compared by their status only. Times and memory are not recorded.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from builds import builds, problem_of
from cases import CASES

from opticoll.analysis.output_files import write_certificate
from opticoll.errors import OpticollError
from opticoll.formulations import formulation
from opticoll.instances import parse
from opticoll.instances.spec import FAMILIES, load_families
from opticoll.solvers.compile.comparison import normal
from opticoll.solvers.compile.compilation import compile_built
from opticoll.solvers.export import export
from opticoll.solvers.methods import methods_for
from opticoll.solvers.resume_key import resume_key
from opticoll.solvers.solve import solve
from opticoll.solvers.task import Task

#: Solvers that every machine has.
FREE = (
    "highs",
    "highs-simplex",
    "highs-ipx",
    "highs-pdlp",
    "glop",
    "pdlp",
    "cp-sat",
    "scip",
    "clarabel",
)
TIME_LIMIT_S = 10.0
#: Methods and solvers whose values may differ by round-off from run to run.
INEXACT = {"highs-pdlp", "pdlp", "highs-ipx", "clarabel", "certified-pdhg", "certified-pdlp", "screened-lp"}
#: Larger instances, on which ``auto`` leaves the stated model.
LARGER = [
    ("alltoall.master", "genkautz:n=128,d=4", {}),
    ("alltoall.master", "random-regular:n=160,d=4,seed=1", {}),
    ("alltoall.link-mcf", "torus:6x6", {}),
    ("alltoall.min-congestion", "torus:4x4", {}),
    ("lumorph.rounds", "lightpath:3x3,lasers=4", {}),
    ("optree.tree", "wdm-ring:n=2048,wavelengths=64", {}),
    ("sipml.ring-wavelengths", "wdm-ring:n=16,wavelengths=32", {}),
    ("topoopt.topology", "servers:n=6,degree=2,traffic=dlrm", {}),
    ("topology.design", "servers:n=8,degree=2", {}),
    ("alltoall.timestep-mcf", "torus:3x3", {}),
    ("alltoall.all-gather", "genkautz:n=32,d=4", {}),
]
SCHEDULED = ("ring:4", "torus:3x3", "genkautz:n=8,d=2", "dgx1", "hypercube:3+host=2.0")
EXTRA_SPECS = (
    "ring:8,directed",
    "torus:3x4x2+fail=1,seed=3",
    "hypercube:3+host=2.0",
    "random-regular:n=32,d=4,seed=1",
    "xpander:n=32,d=4,seed=1",
    "sp-expander:n=64,d=4,seed=1",
    "dragonfly:a=4,h=2",
    "slimfly:q=5",
    "genkautz:n=64,d=4",
    "wdm-ring:n=1024,wavelengths=64",
    "servers:n=12,degree=4,traffic=dlrm",
)


def digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:24]


def cases():
    for name, listed in CASES.items():
        for spec, settings in listed:
            yield name, spec, settings


def named(name, spec, settings, *more):
    return " ".join([name, spec, *(f"{key}={Path(value).name}" for key, value in settings.items()), *more])


def matrices():
    """The canonical matrix of every build, exactly as compiled."""
    for name, spec, settings in cases():
        for form, model in builds(name, spec, settings).items():
            compiled = compile_built(problem_of(name, spec, tuple(settings.items())), model)
            columns, rows = normal(compiled)
            content = [
                sorted((key, value.tolist()) for key, value in columns.items()),
                sorted(rows.items()),
                compiled.sense,
                compiled.offset,
            ]
            yield {"what": "matrix", "id": named(name, spec, settings, form), "hash": digest(content)}


def runs():
    """Every case by ``auto``, every method that applies and every free solver that can take it."""
    for name, spec, settings in cases():
        for method in ("auto", *sorted(methods_for(formulation(name))), *FREE):
            yield run(name, spec, settings, method)
    for name, spec, settings in LARGER:
        yield run(name, spec, settings, "auto")


def run(name, spec, settings, method):
    row = {"what": "run", "id": named(name, spec, settings, method), "method": method}
    try:
        task = Task(name, spec, method=method, settings=settings, time_limit_s=TIME_LIMIT_S)
        record = solve(task).record
    except OpticollError as error:
        return row | {"refused": type(error).__name__}
    fields = (
        "method",
        "form",
        "termination",
        "proof",
        "sense",
        "objective",
        "bound",
        "bound_source",
        "gap",
        "verified",
        "infeasible_by",
        "n",
        "arcs",
        "instance_hash",
    )
    size = {key: getattr(record.size, key) for key in ("variables", "constraints", "nonzeros", "integers")}
    return row | {
        "record": {key: getattr(record, key) for key in fields} | {"size": size},
        "violations": dict(record.violations or {}),
        "metrics": json.loads(json.dumps(record.metrics, default=str)),
    }


def instances():
    load_families()
    examples = [one.example for _, one in sorted(FAMILIES.items()) if ":" in one.example]
    for spec in sorted({*examples, *EXTRA_SPECS, *(spec for _, spec, _ in cases())}):
        try:
            yield {"what": "instance", "id": spec, "hash": parse(spec).hash}
        except OpticollError as error:
            yield {"what": "instance", "id": spec, "refused": type(error).__name__}


def keys():
    for name, spec, settings in cases():
        for method in ("auto", "highs"):
            row = {"what": "key", "id": named(name, spec, settings, method)}
            try:
                task = Task(name, spec, method=method, settings=settings, time_limit_s=TIME_LIMIT_S)
                yield row | {"hash": resume_key(task)}
            except OpticollError as error:
                yield row | {"refused": type(error).__name__}


def files():
    import opticoll as oc

    with tempfile.TemporaryDirectory() as folder:
        for name, listed in CASES.items():
            spec, settings = listed[0]
            for suffix in (".mps", ".lp"):
                path = Path(folder) / f"program{suffix}"
                export(name, spec, path, settings=settings)
                hashed = hashlib.sha256(path.read_bytes()).hexdigest()
                yield {"what": "file", "id": named(name, spec, settings, suffix), "hash": hashed}
        for spec in SCHEDULED:
            path = Path(folder) / "schedule.xml"
            oc.solve("alltoall.master", spec).schedule().save(path)
            yield {"what": "file", "id": f"{spec} xml", "hash": hashlib.sha256(path.read_bytes()).hexdigest()}
        for name, spec in (
            ("alltoall.master", "ring:5"),
            ("alltoall.all-gather", "path:3"),
            ("alltoall.min-congestion", "ring:4"),
            ("topology.design", "servers:n=4,degree=2"),
        ):
            path = Path(folder) / "certificate.vipr"
            row = {"what": "file", "id": f"{name} {spec} certificate"}
            try:
                write_certificate(path, oc.solve(name, spec, exact=True))
                yield row | {"hash": hashlib.sha256(path.read_bytes()).hexdigest()}
            except OpticollError as error:
                yield row | {"refused": str(error)[:80]}


def verdicts():
    """The claims' verdicts, measured without a store; minutes."""
    from opticoll.analysis.ledger.ledger import ledger

    for row in ledger([], None, jobs=2):
        yield {"what": "verdict", "id": row.id, "verdict": str(row.verdict), "measured": digest(row.measured)}


PARTS = {
    "matrices": matrices,
    "instances": instances,
    "keys": keys,
    "files": files,
    "runs": runs,
    "verdicts": verdicts,
}


def make(path: Path, parts: list[str]) -> None:
    start = time.monotonic()
    with path.open("w", encoding="utf-8") as out:
        for part in parts:
            count = 0
            for row in PARTS[part]():
                out.write(json.dumps(row, default=_plain) + "\n")
                count += 1
            out.flush()
            print(f"{part}: {count} rows, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)


def _plain(value):
    return value.item() if isinstance(value, np.generic) else str(value)


LIMITED = {"time-limit", "memory-limit", "interrupted", "iteration-limit"}


def differing(before, after) -> list[str]:
    """What differs between two rows of one id."""
    if before["what"] != "run" or "record" not in before or "record" not in after:
        return [] if before == after else [f"{before} -> {after}"]
    if {before["record"]["termination"], after["record"]["termination"]} & LIMITED:
        return []
    tolerance = 1e-9 if before["method"] in INEXACT or before["record"]["method"] in INEXACT else 0.0
    result = []
    for key in before["record"].keys() | after["record"].keys():
        ours, theirs = before["record"].get(key), after["record"].get(key)
        if not _close(ours, theirs, 1e-9 if key == "gap" else tolerance):
            result.append(f"{key}: {ours} -> {theirs}")
    if not _close(before["metrics"], after["metrics"], max(tolerance, 1e-12)):
        result.append(f"metrics: {before['metrics']} -> {after['metrics']}")
    blocks = before["violations"].keys() ^ after["violations"].keys()
    return result + ([f"violations of {sorted(blocks)} only in one"] if blocks else [])


def _close(ours, theirs, tolerance) -> bool:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(_close(ours[key], theirs[key], tolerance) for key in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(_close(a, b, tolerance) for a, b in zip(ours, theirs, strict=True))
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs or abs(ours - theirs) <= tolerance * max(1.0, abs(ours), abs(theirs))
    return ours == theirs


def compare(before: Path, after: Path) -> int:
    old, new = ({(row["what"], row["id"]): row for row in map(json.loads, path.open())} for path in (before, after))
    kinds = {kind for kind, _ in new}
    missing = [key for key in old.keys() - new.keys() if key[0] in kinds]
    found = {key: rows for key in old.keys() & new.keys() if (rows := differing(old[key], new[key]))}
    for key in sorted(missing):
        print("missing:", *key)
    for key in sorted(new.keys() - old.keys()):
        print("new:", *key)
    for key, rows in sorted(found.items()):
        print(*key, *(f"\n    {row[:300]}" for row in rows))
    print(f"{len(old.keys() & new.keys())} rows compared, {len(found)} differ, {len(missing)} missing")
    return 1 if found or missing else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("out", type=Path)
    making.add_argument("--only", default=",".join(PARTS))
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.command == "compare":
        return compare(given.before, given.after)
    make(given.out, given.only.split(","))
    return 0


if __name__ == "__main__":
    sys.exit(main())
