"""CVXPY problems that were written elsewhere: their variables by name, and what cannot be solved, by name."""

from __future__ import annotations

import re
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import ModelError
from opticoll.formulations.model import CvxpyModel, Named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from opticoll.instances.topology import I64


#: Maximum length of an expression in a message.
_SHOWN = 80
#: Entries of variables beyond which CVXPY's compiler in SciPy takes less time than the one in C++.
_LARGE = 8_000


def as_cvxpy_model(problem: Any, *, numbered: bool = False) -> CvxpyModel:
    """A CVXPY problem with its variables under their own names, and its constraints under their labels.

    Constraint number n is called ``constraint<n>`` if it has no label; so is variable number n, ``variable<n>``, where
    variables may be ``numbered``, and then a second one of a name has ``_2`` behind it.

    Raises
    ------
    ModelError
        If it is not a problem; unless variables are numbered, also if one has no name, or two have the same name.
    """
    import cvxpy as cp

    if not isinstance(problem, cp.Problem):
        msg = f"its build returned {type(problem).__name__}; return a cp.Problem"
        raise ModelError(msg)
    named: dict[str, Named] = {}
    for number, variable in enumerate(problem.variables()):
        name = str(variable.name())
        unnamed = re.fullmatch(r"var\d+", name) is not None
        if (unnamed or name in named) and not numbered:
            fault = f"has the same name {name!r} as another" if name in named else "has no name"
            msg = f"a CVXPY variable of shape {variable.shape} {fault}; write cp.Variable(..., name='x')"
            raise ModelError(msg)
        named[_free(f"variable{number}" if unnamed else name, named)] = Named(variable, variable.shape)
    return CvxpyModel(problem, named, labelled_rows(problem.constraints, "constraint", {}), as_stated=True)


def labelled_rows(constraints: Iterable[Any], word: str, taken: Mapping[str, Named]) -> dict[str, Named]:
    """Constraints that ``taken`` lacks, under their labels, equal ones numbered, or under ``word`` and their number."""
    result, known = dict(taken), {id(named.item) for named in taken.values()}
    for number, one in enumerate(one for one in constraints if id(one) not in known):
        name = _free(getattr(one, "label", None) or f"{word}{number}", result)
        result[name] = Named(one, one.shape)
    return result


def _free(name: str, taken: Mapping[str, Named]) -> str:
    """A name that is not taken: the name itself, or with ``_2``, ``_3``, ... behind it."""
    found, copy = name, 1
    while found in taken:
        copy += 1
        found = f"{name}_{copy}"
    return found


def turned(constraints: Iterable[Any]) -> list[int]:
    """Ids of the inequalities that are stated as an expression of at least a number, which CVXPY turns round."""
    from cvxpy.constraints import Inequality

    return [
        one.id
        for one in constraints
        if isinstance(one, Inequality) and one.args[0].is_constant() and not one.args[1].is_constant()
    ]


@contextmanager
def unwarned(problem: Any) -> Iterator[None]:
    """Keep CVXPY from warning of what it does itself: how it reads sparse leaves, and which compiler it uses."""
    leaves = (*problem.variables(), *problem.parameters())
    if all(getattr(one, "sparse_idx", None) is None and one.ndim <= 2 for one in leaves):
        yield
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* sparse CVXPY expression", category=RuntimeWarning)
        warnings.filterwarnings("ignore", message=".* for canonicalization", category=UserWarning)
        yield


@contextmanager
def untouched(problem: Any) -> Iterator[None]:
    """Take away what CVXPY notes in the expressions of a problem while it compiles and evaluates them.

    Copies would keep such notes, some of which name the variables of the original.
    """
    from cvxpy.utilities.canonical import Canonical

    before: dict[int, tuple[Any, int]] = {id(problem): (problem, len(vars(problem)))}
    parts: dict[type, bool] = {}  # whether it is an expression, by type: asking its abstract class takes long
    left = [problem.objective, *problem.constraints]
    while left:
        one = left.pop()
        if id(one) in before:
            continue
        before[id(one)] = one, len(vars(one))
        left += one.args
        for part in vars(one).values():
            kind = type(part)
            if kind not in parts:
                parts[kind] = issubclass(kind, Canonical)
            if parts[kind]:
                left.append(part)
    try:
        yield
    finally:
        for one, count in before.values():
            if len(vars(one)) > count:  # what is new stands last
                for name in list(vars(one))[count:]:
                    delattr(one, name)


def back_end(problem: Any, *, once: bool) -> str | None:
    """CVXPY's compiler in SciPy where the one in C++, its first choice, does not take the problem; else None.

    CVXPY would take the same one, with a warning. It is also the faster one where a large problem is compiled ``once``,
    its parameters read as numbers.
    """
    import cvxpy as cp

    first = problem._supports_cpp() and problem._max_ndim() <= 2
    large = once and sum(one.size for one in problem.variables()) > _LARGE
    return None if first and not large else cp.SCIPY_CANON_BACKEND


def refuse_incomplete(problem: Any) -> None:
    """Refuse parameters without a value, and complex variables.

    Raises
    ------
    ModelError
        The message names the first one.
    """
    for parameter in problem.parameters():
        if parameter.value is None:
            msg = f"the CVXPY parameter {parameter.name()!r} of shape {parameter.shape} has no value; set its .value"
            raise ModelError(msg)
    for variable in problem.variables():
        if variable.is_complex():
            msg = (
                f"the CVXPY variable {variable.name()!r} is complex; state its real and its imaginary part as variables"
            )
            raise ModelError(msg)


def why_not_linear(problem: Any, error: Exception) -> str:
    """The first part of a problem that CVXPY cannot compile to linear rows, else its own words."""
    from cvxpy.constraints import Equality, Inequality, NonNeg, NonPos, Zero

    parts = [("objective", problem.objective), *(("constraint", one) for one in problem.constraints)]
    for word, part in parts:
        if not part.is_dcp():
            return f"its {word} {_shown(part)} is not DCP, so CVXPY cannot tell that it is linear"
    for variable in problem.variables():
        for attribute in ("PSD", "NSD"):
            if variable.attributes[attribute]:
                return f"its variable {variable.name()!r} is {attribute}, which is not linear"
    for word, part in parts:
        linear = word == "objective" or isinstance(part, Equality | Inequality | NonNeg | NonPos | Zero)
        if not linear or not all(one.is_pwl() for one in part.args):
            return f"its {word} {_shown(part)} is not linear"
    return " ".join(str(error).split()) or type(error).__name__


def _shown(part: Any) -> str:
    text = " ".join(str(part).split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def positions(
    program: Any, reductions: Iterable[Any], inverse: Iterable[Any], variables: Iterable[Any]
) -> dict[int, I64]:
    """Columns of the entries of every CVXPY variable by its id, flattened in column-major order.

    -1 marks an entry that is always 0, such as those beside the diagonal of a diagonal matrix. CVXPY replaces a
    variable that is symmetric, diagonal or sparse by a smaller one; the step that did so says where the entries are.

    Parameters
    ----------
    program
        CVXPY's compiled program.
    reductions, inverse
        The steps that led to it, and the data with which each is inverted.
    variables
        Variables of the original problem.
    """
    from cvxpy.reductions.cvx_attr2constr import CvxAttr2Constr
    from cvxpy.reductions.solution import Solution

    first = {
        one.id: np.arange(start, start + one.size)
        for one in program.variables
        if (start := program.var_id_to_col.get(one.id)) is not None
    }
    result = {one.id: first[one.id] for one in variables if one.id in first and first[one.id].size == one.size}
    reduced = [one for one in variables if one.id not in result and one.size]
    for step, data in zip(reductions, inverse, strict=False):
        if reduced and isinstance(step, CvxAttr2Constr) and data:
            smaller = data[0]  # the variable that replaces another, by the id of that
            numbers = {
                new.id: (first[new.id] + 1.0).reshape(new.shape, order="F")
                for one in reduced
                if (new := smaller.get(one.id)) is not None and new.id in first
            }
            whole = step.invert(Solution("optimal", 0.0, numbers, {}, {}), data).primal_vars
            for one in reduced:
                if one.id in whole:
                    entries = whole[one.id]
                    entries = entries.toarray() if hasattr(entries, "toarray") else np.asarray(entries)
                    result[one.id] = entries.ravel(order="F").astype(np.int64) - 1
    return result
