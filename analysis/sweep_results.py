"""Results of a sweep: its cases, their tightness, tables and plots."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from opticoll.errors import BadInput
from opticoll.solvers.task import Fields, plain

if TYPE_CHECKING:
    import os

    import pandas as pd
    from matplotlib.figure import Figure

Sense = Literal["lower", "upper"]


class Status(StrEnum):
    """Outcome of one case."""

    HOLDS = "holds"
    VIOLATED = "violated"
    UNDECIDED = "undecided"
    INAPPLICABLE = "inapplicable"
    ERROR = "error"


class Case(Fields, frozen=True, kw_only=True):
    """One isomorphism class of instances: the optimum, the bound, and their ratio.

    ``case`` is a spec; ``copies`` counts the instances of the class. ``lower`` and ``upper`` enclose the optimum.
    ``optimum`` and ``ratio`` (bound / optimum) are None unless the optimum is proven; ``optimum_exact`` is a fraction
    where it was asked for and proven.
    """

    case: str
    n: int
    arcs: int | None = None
    copies: int = 1
    status: Status
    bound: float | None = None
    optimum: float | None = None
    optimum_exact: str | None = None
    lower: float | None = None
    upper: float | None = None
    ratio: float | None = None
    message: str | None = None


class Tightness(Fields, frozen=True, kw_only=True):
    """Distribution of bound / optimum over the cases with a proven optimum; ``exact`` counts ratios of 1."""

    min: float
    lower_quartile: float
    median: float
    upper_quartile: float
    max: float
    exact: int


class SweepResult(Fields, frozen=True, kw_only=True):
    """The result of a sweep; also the JSON object of ``opticoll sweep --json``.

    ``instances`` counts all instances, ``classes`` the cases, see above; the other counts are of cases. ``decided``
    are those that hold or are violated. ``counterexample`` is the violated case with the fewest vertices, then arcs.
    """

    formulation: str
    bound: str
    quantity: str
    sense: Sense
    method: str
    settings: dict[str, str]
    over: list[str]
    instances: int
    classes: int
    decided: int
    violations: int
    undecided: int
    inapplicable: int
    errors: int
    tightness: Tightness | None
    counterexample: str | None
    interrupted: bool
    cases: list[Case]

    @property
    def frame(self) -> pd.DataFrame:
        """One row per case, with the fields of :class:`Case`."""
        import pandas as pd

        return pd.DataFrame([plain(case) for case in self.cases], columns=list(Case.__struct_fields__))

    def plot(self) -> Figure:
        """Draw the distribution of the tightness, and the bound against the optimum."""
        from opticoll.analysis.plots.model_plots import bound_sweep

        what = self.quantity if self.quantity != "objective" else "objective [units of the formulation]"
        return bound_sweep(self.frame, title=f"{self.bound}: {self.sense} bound, {self.formulation}", quantity=what)

    def save(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write ``cases.csv``, ``sweep.json``, ``sweep.svg`` and ``sweep.png`` into a folder; returns the files.

        Raises
        ------
        BadInput
            If the folder cannot be written.
        """
        from opticoll.analysis.plots import png, svg

        target, figure = Path(folder), self.plot()
        files: dict[str, bytes] = {
            "cases.csv": self.frame.to_csv(index=False).encode(),
            "sweep.json": (json.dumps(plain(self), allow_nan=False) + "\n").encode(),
            "sweep.svg": svg(figure).encode(),
            "sweep.png": png(figure),
        }
        try:
            target.mkdir(parents=True, exist_ok=True)
            for name, content in files.items():
                (target / name).write_bytes(content)
        except OSError as error:
            msg = f"{target}: cannot be written: {error.strerror}; name another folder"
            raise BadInput(msg) from error
        return [target / name for name in files]

    @property
    def summary(self) -> dict[str, str]:
        """The result in words, one entry per line."""
        lines = {
            "claim": f"{self.quantity} {'>=' if self.sense == 'lower' else '<='} bound",
            "cases": f"{self.instances} instances, {self.classes} up to isomorphism",
            "violations": f"{self.violations} of {self.decided} decided cases",
        }
        rest = {"undecided": self.undecided, "not applicable": self.inapplicable, "errors": self.errors}
        lines |= {name: str(count) for name, count in rest.items() if count}
        if self.tightness is not None:
            t = self.tightness
            quartiles = f"quartiles {t.lower_quartile:.6g}, {t.median:.6g}, {t.upper_quartile:.6g}"
            attained = f"attained in {t.exact} case{'s' * (t.exact != 1)}"
            lines["bound / optimum"] = f"min {t.min:.6g}, {quartiles}, max {t.max:.6g}; {attained}"
        if self.counterexample is not None:
            lines["smallest counterexample"] = self.counterexample
        if self.interrupted:
            lines["interrupted"] = "run the same command again to resume"
        return lines

    def __repr__(self) -> str:
        width = max(map(len, self.summary))
        rows = (f"  {name:{width}}  {text}" for name, text in self.summary.items())
        return "\n".join([f"Sweep of {self.bound} over {self.formulation}", *rows])
