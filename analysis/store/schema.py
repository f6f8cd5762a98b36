"""What a stored record holds: every field with its type; unknown is NULL, never a sentinel.

A record is one JSON object on one line. Records of this and of earlier versions are read together: a field
that a record does not have reads as NULL. A change that old readers would misread raises :data:`VERSION`.

Where a run was made: host, platform, versions, commit.
"""

from __future__ import annotations

import math
import os
import platform
import socket
import subprocess
from collections.abc import Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]


@cache
def environment() -> dict[str, Any]:
    """Describe this process's machine and software, as every record carries it."""
    return {
        "host": socket.gethostname(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "opticoll": opticoll_version(),
        "git_commit": _commit(),
        "cpus": _cpus(),
    }


@cache
def opticoll_version() -> str | None:
    """Version of the installed distribution; of the checkout if none is installed; None if neither tells."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("opticoll")
    except PackageNotFoundError:
        pass
    import tomllib

    try:
        told = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        return None
    return str(told)


def _cpus() -> int | None:
    """Processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _commit() -> str | None:
    """Commit of the checkout, with ``-dirty`` if files differ from it; None outside a checkout."""
    if not (CHECKOUT / ".git").exists():
        return None
    command = ["git", "-C", str(CHECKOUT), "describe", "--always", "--dirty", "--abbrev=40", "--match="]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


VERSION = 1

#: Field types and what DuckDB calls them.
SQL_TYPES = {
    "text": "VARCHAR",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "flag": "BOOLEAN",
    "time": "TIMESTAMP",
    "json": "JSON",
    "pairs": "DOUBLE[][]",
}

#: Fields by name: a type, or the fields of a nested object.
FIELDS: dict[str, str | dict[str, str]] = {
    "schema": "integer",
    "id": "text",
    "key": "text",
    "attempt": "integer",
    "study": "text",
    "formulation": "text",
    "paper": "text",
    "instance": "text",
    "instance_hash": "text",
    "n": "integer",
    "arcs": "integer",
    "method": "text",
    "form": "text",
    "solver": {"name": "text", "version": "text", "algorithm": "text", "options": "json"},
    "termination": "text",
    "proof": "text",
    "sense": "text",
    "objective": "number",
    "bound": "number",
    "bound_source": "text",
    "gap": "number",
    "verified": "flag",
    "infeasible_by": "text",
    "violations": "json",
    "kkt": {"primal": "number", "dual": "number", "gap": "number"},
    "metrics": "json",
    "settings": "json",
    "solver_claims": "json",
    "time": {
        "load_s": "number",
        "build_s": "number",
        "compile_s": "number",
        "solve_s": "number",
        "solver_s": "number",
        "verify_s": "number",
    },
    "size": {"variables": "integer", "constraints": "integer", "nonzeros": "integer", "integers": "integer"},
    "peak_memory_mb": "number",
    "message": "text",
    "incumbents": "pairs",
    "requested": {
        "method": "text",
        "form": "text",
        "settings": "json",
        "time_limit_s": "number",
        "memory_limit_gib": "number",
        "tol": "number",
        "seed": "integer",
        "threads": "integer",
        "repetition": "integer",
    },
    "environment": {
        "host": "text",
        "platform": "text",
        "python": "text",
        "opticoll": "text",
        "git_commit": "text",
        "cpus": "integer",
    },
    "started": "time",
    "finished": "time",
    "solution": "text",
    "extra": "json",
}

#: Nested objects whose fields become columns under their own names, and numbers lifted out of ``metrics``.
_BARE = {"environment"}
LIFTED_METRICS = ("F", "T", "rounds", "max_load")

#: Terminations that answer nothing, whatever was found until then: a restarted study tries such a cell again.
FAILURES = ("crashed", "error", "interrupted", "refused")
UNAVAILABLE = "unavailable"


def is_answer(record: Mapping[str, Any]) -> bool:
    """Whether a record answers its cell, which is then skipped; the column ``answer`` says the same.

    It does if its run ended on its own terms (see :data:`FAILURES`) with a verified value, or with a proof of ours that
    there is no solution (``infeasible_by``). A solver's word is no answer, and neither is a limit reached without a
    verified value: such a cell is tried again by every start of its study.
    """
    ended = record.get("termination") not in (None, UNAVAILABLE, *FAILURES)
    return ended and (record.get("verified") is True or record.get("infeasible_by") is not None)


def typed(record: Mapping[str, Any]) -> dict[str, Any]:
    """Give the record every field of the schema, each of its type; fields unknown here go to ``extra``.

    Raises
    ------
    TypeError
        If a value has another type than its field; nothing is guessed.
    """
    row: dict[str, Any] = {}
    extra = {name: plain(value) for name, value in record.items() if name not in FIELDS}
    for name, kind in FIELDS.items():
        value = record.get(name)
        if isinstance(kind, dict):
            parts = _object(name, value)
            row[name] = {part: _typed_value(f"{name}.{part}", of, parts.get(part)) for part, of in kind.items()}
            extra |= {f"{name}.{part}": plain(v) for part, v in parts.items() if part not in kind}
        else:
            row[name] = _typed_value(name, kind, value)
    row["extra"] = {**(row["extra"] or {}), **extra} or None
    return row


def _object(name: str, value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        msg = f"record field {name!r} must be an object, not {value!r}"
        raise TypeError(msg)
    return value


def _typed_value(name: str, kind: str, raw: Any) -> Any:
    value = plain(raw)
    if value is None or kind == "json":
        return value
    if kind in {"text", "time"}:
        good = isinstance(value, str)
    elif kind == "flag":
        good = isinstance(value, bool)
    elif kind == "integer":
        good = isinstance(value, int) and not isinstance(value, bool)
    elif kind == "number":
        good = isinstance(value, (int, float)) and not isinstance(value, bool)
    else:
        good = isinstance(value, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in value)
    if not good:
        msg = f"record field {name!r} must be {kind}, not {raw!r}"
        raise TypeError(msg)
    return float(value) if kind == "number" else value


def plain(value: Any) -> Any:
    """Unwrap ``value`` to what JSON knows: plain numbers, lists, text; NaN and inf become None."""
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return int(value) if isinstance(value, int) else str(value)


def json_columns() -> dict[str, str]:
    """Fields as DuckDB's ``read_json`` takes them: explicit types, nothing detected."""
    return {name: _sql_type(kind) for name, kind in FIELDS.items()}


def _sql_type(kind: str | dict[str, str]) -> str:
    if isinstance(kind, str):
        return SQL_TYPES[kind]
    return "STRUCT(" + ", ".join(f'"{part}" {SQL_TYPES[of]}' for part, of in kind.items()) + ")"


def flat_columns() -> list[tuple[str, str]]:
    """Column name and SQL expression of each column of the view ``runs``."""
    columns: list[tuple[str, str]] = []
    for name, kind in FIELDS.items():
        if isinstance(kind, str):
            columns.append((name, f'"{name}"'))
        else:
            prefix = "" if name in _BARE else f"{name}_"
            columns.extend((f"{prefix}{part}", f'"{name}"."{part}"') for part in kind)
        if name == "metrics":
            columns.extend((m, f"TRY_CAST(metrics->>'{m}' AS DOUBLE)") for m in LIFTED_METRICS)
    failures = ", ".join(f"'{word}'" for word in (*FAILURES, UNAVAILABLE))
    proven = "(verified OR infeasible_by IS NOT NULL)"
    columns.append(("answer", f"coalesce(termination NOT IN ({failures}) AND {proven}, false)"))
    return columns
