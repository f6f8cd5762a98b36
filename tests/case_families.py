"""One test over all cases of a family: it saves their collection, set-up and reports, and names every case that fails.

For properties of data whose cases take milliseconds and need no fixture of their own; where a case may be slow, or a
failure is looked for by its name, ``pytest.mark.parametrize`` is better.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Test = Callable[..., None]


def each(names: str | Sequence[str], cases: Iterable[Any] | Callable[[], Iterable[Any]]) -> Callable[[Test], Test]:
    """As ``pytest.mark.parametrize(names, cases)``, in one test: all cases run, and all failures are raised together.

    The fixtures of the test are those of all its cases. A function makes its cases when the test runs.
    """
    arguments = names.replace(",", " ").split() if isinstance(names, str) else list(names)

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def over_all(**fixtures: Any) -> None:
            rows = [(case,) if len(arguments) == 1 else tuple(case) for case in (cases() if callable(cases) else cases)]
            assert rows, "no cases"
            failures = []
            for row in rows:
                case = dict(zip(arguments, row, strict=True))
                try:
                    test(**case, **fixtures)
                except (Exception, pytest.fail.Exception, BaseExceptionGroup) as error:  # noqa: BLE001  raised below
                    text = ", ".join(f"{name}={value!r}" for name, value in case.items())
                    error.add_note(f"case {text[:500]}")
                    failures.append(error)
            if failures:
                msg = f"{len(failures)} of {len(rows)} cases failed"
                raise BaseExceptionGroup(msg, failures)

        signature = inspect.signature(test)
        left = [one for one in signature.parameters.values() if one.name not in arguments]
        over_all.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return over_all

    return decorate
