"""Check solution files with wrong arrays, one at a time in this process, and print the outcome of each.

Run by test_solution_arrays in a process of its own: an index that is used before it is checked ends it by a signal.
Documents are made from every formulation's own declaration: zeros of the right shapes, then one entry wrong.
"""

from __future__ import annotations

import contextlib
import io
import json
import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np
from builds import needed_of
from cases import PROBLEMS

from opticoll.analysis.cli.main import main
from opticoll.formulations import formulation
from opticoll.formulations.parameters import read_parameters
from opticoll.formulations.variables import Array, SolutionSize
from opticoll.instances import parse
from opticoll.solvers.methods import prepared

#: Formulation, instance, settings, and the names that choose one of the kinds of solution that it takes.
CASES: list[tuple[str, str, dict[str, str], tuple[str, ...]]] = [
    (name, *kind) for name, one in PROBLEMS.items() for kind in one.kinds or [(*one.cases[0], ())]
]
#: Solutions choose sizes of this many.
CHOSEN = 3


def declared(name: str, spec: str, settings: dict[str, str], names: tuple[str, ...]) -> tuple[Any, dict[str, Array]]:
    """The document without values, and the arrays that it takes."""
    model, instance = formulation(name), parse(spec)
    document: dict[str, Any] = {
        "format": "opticoll-solution/1",
        "formulation": name,
        "instance_hash": instance.hash,
        "objective": 1.0,
    }
    parameters = read_parameters(model.parameters, settings, name)
    needed = needed_of(model, instance, parameters)
    if needed is not None:
        document["needed"] = {key: entries(array) for key, array in needed.items()}
    return document, of_solutions(prepared(model, instance, parameters, needed), names)


def of_solutions(data: Any, names: tuple[str, ...] = ()) -> dict[str, Array]:
    """The arrays of solutions, without duals."""
    return {key: array for key, array in data._arrays(names).items() if not array.dual}


def entries(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Coordinate form with every entry, the zeros as well."""
    index = np.argwhere(np.ones(array.shape, dtype=bool)).tolist()
    return {"shape": list(array.shape), "index": index, "value": array.ravel().tolist()}


def sizes(array: Array) -> tuple[int, ...]:
    """Its shape, with sizes that the solution chooses at ``CHOSEN``."""
    return tuple(CHOSEN + size.plus if isinstance(size, SolutionSize) else size for size in array.shape)


def limit(array: Array) -> int | None:
    """One past its range."""
    high = array.high
    if isinstance(high, SolutionSize):
        return CHOSEN + high.plus
    return max(high) if isinstance(high, tuple) else high


def mutations(array: Array, number: int) -> dict[str, dict[str, Any]]:
    """The array with a wrong entry or shape, by what is wrong.

    Every index is once below and once past its range. Of what is refused whatever the formulation, each array has one
    in turn, the first of a case (``number`` 0) all.
    """
    shape = sizes(array)
    right = np.full(shape, float(array.low or 0))

    def ending_in(value: Any) -> dict[str, Any]:
        changed = entries(right)
        changed["value"][-1] = value
        return changed

    always: dict[str, dict[str, Any]] = {}
    if array.high is not None and right.size:
        assert array.low is not None
        always = {"below": ending_in(array.low - 1), "one past": ending_in(limit(array))}
    kinds = {
        "another axis": entries(np.zeros((*shape, 2))),
        "200 million entries": {"shape": [200_000_000, *shape[1:]], "index": [], "value": []},
    }
    if shape and isinstance(array.shape[0], int):
        kinds["one more"] = entries(np.zeros((shape[0] + 1, *shape[1:])))
    if right.size:
        wrong: dict[str, Any] = {"text": "1", "nan": float("nan"), "infinity": 1e999, "digits": 10**400}
        if array.high is not None:
            wrong |= {"2^63": 2**63, "1e9 and a half": 1e9 + 0.5}
        kinds |= {what: ending_in(value) for what, value in wrong.items()}
    return always | (kinds if number == 0 else dict([list(kinds.items())[number % len(kinds)]]))


def run(
    name: str, spec: str, settings: dict[str, str], file: Path, document: Any
) -> tuple[int | str | None, list[str]]:
    """Status and stderr lines of ``opticoll check``."""
    file.write_text(json.dumps(document))
    out, err = io.StringIO(), io.StringIO()
    options = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["check", name, spec, str(file), *options])
    return status, err.getvalue().splitlines()


def named_sizes(array: Array) -> list[str]:
    """The names of the sizes of its axes."""
    return [size.name for size in array.shape if isinstance(size, SolutionSize)]


def drawn(key: str, array: Array, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Random entries within the range; where pieces begin and what must ascend does, so more of it is read."""
    shape, top = sizes(array), limit(array)
    if key.endswith("_start"):
        return np.arange(shape[0], dtype=float)
    if top is None:
        return rng.uniform(-1, 2, shape)
    high = array.high if isinstance(array.high, tuple) else top
    result = rng.integers(array.low or 0, high, shape).astype(float)
    return np.sort(result) if key == "path_pair" else result


def everything(folder: Path) -> None:
    """Every mutation of every array of every case, and random entries within the ranges."""
    rng = np.random.default_rng(0)
    file = folder / "solution.json"
    for name, spec, settings, names in CASES:
        document, arrays = declared(name, spec, settings, names)
        right = {key: entries(np.full(sizes(array), float(array.low or 0))) for key, array in arrays.items()}
        for number, (key, array) in enumerate(arrays.items()):
            wrong = mutations(array, number)
            first = array.shape[0] if array.shape else None
            if (
                isinstance(first, SolutionSize)
                and sum(first.name in named_sizes(other) for other in arrays.values()) > 1
            ):
                wrong["unequal sizes"] = entries(np.zeros((sizes(array)[0] + 1, *sizes(array)[1:])))
            for what, entry in wrong.items():
                tell(name, f"{key}: {what}")
                tell(
                    name,
                    f"{key}: {what}",
                    *run(name, spec, settings, file, {**document, "values": {**right, key: entry}}),
                )
        for key, entry in document.get("needed", {}).items():
            for what, value in (("2^63", 2**63), ("nan", float("nan"))):
                wrong = {**entry, "value": [value, *entry["value"][1:]]}
                wider = {**entry, "shape": [*entry["shape"], 2]}
                for label, changed in ((what, wrong), ("another axis", wider)):
                    needed = {**document["needed"], key: changed}
                    tell(name, f"random: needed.{key} {label}")
                    ending = run(name, spec, settings, file, {**document, "needed": needed, "values": right})
                    tell(name, f"random: needed.{key} {label}", *ending)
        for trial in range(2):
            values = {key: entries(drawn(key, array, rng)) for key, array in arrays.items()}
            tell(name, f"random {trial}")
            tell(name, f"random {trial}", *run(name, spec, settings, file, {**document, "values": values}))
        without = {key: right[key] for key in list(right)[1:]} or {"unknown": right[next(iter(right))]}
        tell(name, "random: one missing", *run(name, spec, settings, file, {**document, "values": without}))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tell("peak", "kB", peak, [])


def tell(*row: Any) -> None:
    """One line of JSON, at once."""
    sys.__stdout__.write(json.dumps(row) + "\n")  # type: ignore[union-attr]
    sys.__stdout__.flush()  # type: ignore[union-attr]


if __name__ == "__main__":
    everything(Path(sys.argv[1]))
