"""Combinatorial certificates: a solution, and an argument that no better one exists, which a short program checks.

They are for problems with a short argument but no short linear derivation: rounds of circuits, wavelengths, layers
without cycles, placements, and routings of any size. The claim is the interval between the bound that the argument
proves and the value of the solution. The stand-alone checker :mod:`~opticoll.solvers.exact.combinatorial_check`
documents the format; the modules of :mod:`~opticoll.solvers.exact.arguments` find the arguments, a module per kind.

The problem in a file allows all routes. If a formulation allows fewer, the lower end of the claim still holds, and the
paths of the solution must be allowed.
"""

from __future__ import annotations

import gzip
import json
from fractions import Fraction
from typing import IO, TYPE_CHECKING, Any, TypedDict

from opticoll.errors import BadFile, BadInput
from opticoll.solvers.exact import combinatorial_check
from opticoll.solvers.exact.arguments.argument import arguments, word
from opticoll.solvers.exact.combinatorial_check import Refused
from opticoll.solvers.exact.wiring_check import KINDS  # those of both checkers
from opticoll.solvers.stated_problem import refuse_other_header
from opticoll.solvers.task import check_record, texts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from opticoll.formulations import Formulation
    from opticoll.instances import Instance
    from opticoll.solvers.exact.arguments.argument import Argument
    from opticoll.solvers.run import Run
    from opticoll.solvers.task import CheckRecord
    from opticoll.types import Json, Settings

#: File name suffixes of combinatorial certificates.
SUFFIXES = (".proof.json", ".proof.json.gz")


def is_combinatorial(path: Path) -> bool:
    """Whether a file name has the suffix of a combinatorial certificate."""
    return path.name.lower().endswith(SUFFIXES)


class CertificateFacts(TypedDict):
    """The claim of a certificate as a string, its kind, and the size of its file [bytes]."""

    claim: str
    kind: str
    bytes: int


class Certificate(TypedDict):
    """A combinatorial certificate as in its file; ``kind`` determines the form of problem, solution and argument."""

    certificate: int
    formulation: str
    instance: str | None
    instance_hash: str | None
    settings: dict[str, str]
    kind: str
    problem: Mapping[str, Json]
    solution: Mapping[str, Json]
    argument: Mapping[str, Json] | None
    claim: tuple[str | int | None, str | int | None]


def certificate(run: Run) -> Certificate:
    """The certificate of a verified run, with the best argument found.

    Raises
    ------
    BadInput
        If there is no solution, or the formulation has no combinatorial certificate with these parameters.
    """
    plan, record = run.plan, run.record
    if plan is None or run.values is None or not record.verified:
        msg = "certificate: there is no solution to certify; solve with a larger --time-limit"
        raise BadInput(msg)
    data: Any = plan.problem
    argument = argument_of(type(data), data)
    kind, problem = argument.kind, argument.problem(data)
    solution, tried = argument.parts(data, run.values, run.duals or {})
    proven: list[tuple[Fraction, int]] = []
    check = KINDS[kind]
    for k, one in enumerate(tried):
        try:
            low, _ = check(problem, None, one)
        except Refused:  # such as prices that are 0 on all paths
            continue
        assert low is not None
        proven.append((low, -k))
    low, place = max(proven, default=(None, 0))
    _, high = check(problem, solution, None)
    return {
        "certificate": 1,
        "formulation": data.name,
        "instance": record.instance,
        "instance_hash": record.instance_hash,
        "settings": texts(plan.parameters),
        "kind": kind,
        "problem": problem,
        "solution": solution,
        "argument": tried[-place] if proven else None,
        "claim": (word(low), word(high)),
    }


def write(path: Path, run: Run) -> CertificateFacts:
    """Write the certificate of a run, compressed if the name ends in ``.gz``, and return its facts.

    Raises
    ------
    BadInput
        As :func:`certificate`, or if the file cannot be written.
    """
    from opticoll import shared_files

    document = certificate(run)
    text = json.dumps(document, separators=(",", ":")).encode() + b"\n"

    def fill(file: IO[bytes]) -> None:
        if path.name.lower().endswith(".gz"):
            with gzip.GzipFile("", "wb", 6, file, 0) as stream:
                stream.write(text)
        else:
            file.write(text)

    try:
        shared_files.rewrite(path, fill)
    except OSError as error:
        msg = f"{path}: cannot be written: {error.strerror}"
        raise BadInput(msg) from error
    low, high = document["claim"]
    ends = ["-inf" if low is None else str(low), str(high)]
    return {"claim": " to ".join(dict.fromkeys(ends)), "kind": document["kind"], "bytes": path.stat().st_size}


def check(model: type[Formulation], instance: Instance, path: Path, parameters: Settings) -> CheckRecord:
    """Verify a combinatorial certificate: its problem is the formulation's on the instance, and its proof holds.

    The formulation, instance and settings that the file states, if any, must be these too.

    The routes of ``alltoall.virtual-channels`` are the file's own; they must be one path for every pair of ranks.

    Returns
    -------
    A record as returned by :func:`opticoll.solvers.solution_json.check`, with ``objective_exact`` and ``certificate``,
    see :func:`opticoll.solvers.exact.vipr_verify.check_certificate`.

    Raises
    ------
    BadFile
        If the file is not a certificate.
    """
    from opticoll.solvers.methods import prepared

    try:
        document = combinatorial_check.read(str(path))
    except (Refused, OSError) as error:
        msg = f"certificate {path} cannot be read ({error}); name a file that --certificate FILE.proof.json wrote"
        raise BadFile(msg) from None
    reason, low, high = "", None, None
    data = prepared(model, instance, parameters, None)
    try:
        low, high = combinatorial_check.verify(document)
        argument = argument_of(model, data)
        if document["kind"] != argument.kind:
            reason = f"the file proves {document['kind']}, not {argument.kind}"
        else:
            reason = argument.differs(data, document)
    except Refused as error:
        reason = str(error)
    if not reason:
        try:
            refuse_other_header(model, instance, parameters, document, path)
        except BadInput as error:
            reason = str(error)
    record = check_record(model, instance, parameters, reason)
    record |= {"objective_exact": None, "certificate": None}
    if reason:
        return record
    value, bound = stated_ends(model, low, high)
    least, most = (value, bound) if model.sense == "max" else (bound, value)
    record["objective"], record["bound"] = (None if end is None else float(end) for end in (value, bound))
    record["bound_source"] = None if bound is None else "certificate"
    if least is not None and least == most:
        record["objective_exact"] = str(least)
        record["notes"].append(f"the certificate proves that the optimal value is {least}")
    else:
        ends = ["0" if least is None else str(least), "infinity" if most is None else str(most)]
        record["notes"].append(f"the certificate proves that the optimal value is between {' and '.join(ends)}")
    record["certificate"] = {"kind": document["kind"], "low": _text(least), "high": _text(most)}
    return record


def stated_ends(
    model: type[Formulation], low: Fraction | None, high: Fraction | None
) -> tuple[Fraction | None, Fraction | None]:
    """Solution value and bound of a claim in terms of the formulation: one that maximizes F has a claim on T = 1/F."""
    if model.sense == "max":
        low, high = (None if not end else 1 / end for end in (low, high))
    return high, low


def argument_of(model: type[Formulation], data: Any) -> Argument:
    """The argument of a formulation's combinatorial certificates.

    Raises
    ------
    BadInput
        If it has none with these parameters.
    """
    argument = arguments().get(model.name)
    if argument is None:
        msg = f"certificate: {model.name} has no combinatorial certificate; write its proof in VIPR format, FILE.vipr"
        raise BadInput(msg)
    if argument.refuses(data):
        msg = f"certificate: {model.name} has no combinatorial certificate with these parameters; write FILE.vipr"
        raise BadInput(msg)
    return argument


def _text(value: Fraction | None) -> str | None:
    return None if value is None else str(value)
