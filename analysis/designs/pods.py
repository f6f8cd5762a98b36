"""Wirings of pods for a given number of cubes, with their gap to a bound on all wirings.

The answer comes from a table of records or from a search (:mod:`opticoll.solvers.methods.topology.pod_search`). Either
way T is solved and verified again as ``alltoall.master`` on the pod, and compared with the bound that holds for every
wiring (:mod:`opticoll.formulations.topology.pod`) and with the torus of the same cubes. So is the worst T after a loss
of a switch, for wirings that are chosen for it; of a record, until a loss costs what the table states.
"""

from __future__ import annotations

import csv
import time
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.designs.design import MOST_NODES, Timed, solved
from opticoll.analysis.plots.style import label
from opticoll.analysis.rendering import Printed, number
from opticoll.analysis.result.progress_line import progress_here
from opticoll.arguments import number as finite_number
from opticoll.arguments import whole_number
from opticoll.errors import refuse
from opticoll.formulations.topology.pod import PodWiring
from opticoll.formulations.topology.pod_bounds import all_to_all_least, least_time
from opticoll.instances import parse
from opticoll.instances.families.pods import DIMENSIONS, even_shape, spec_of, torus_time, wiring_of
from opticoll.instances.families.pods import places as ports
from opticoll.instances.spec import family_of
from opticoll.instances.symmetry import orbits_of
from opticoll.solvers.task import Proof

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opticoll.instances.topology import I64
    from opticoll.types import Json, Seconds

TABLE = "pod_records.csv"
#: Wirings of a search whose T is solved.
MOST_SOLVED = 4


@dataclass(frozen=True)
class PodRecord:
    """A row of the table: a wiring, its T, and the bound on every wiring of its kind.

    ``lost_switch`` is the worst T after the loss of a switch, None where it is not known; ``enumerated`` the number of
    wirings, up to isomorphism, among which ``pod-enumeration`` has proven that none is faster, 0 for none.
    """

    pod: str
    time: float
    bound: Fraction
    lost_switch: float | None
    enumerated: int

    @property
    def gap(self) -> float:
        """T / bound - 1."""
        return self.time / float(self.bound) - 1.0


@cache
def pod_records() -> dict[tuple[int, int, str], PodRecord]:
    """The table of records, by cubes, side and places: ``same``, ``free``, or ``twisted`` for the published twist.

    Those of ``survive`` are chosen for the worst T after the loss of any one switch, which is their time and bounded.
    """
    text = files("opticoll.analysis.designs").joinpath(TABLE).read_text(encoding="utf-8")
    return {
        (int(row["cubes"]), int(row["side"]), row["places"]): PodRecord(
            row["pod"],
            float(row["time"]),
            Fraction(row["bound"]),
            float(row["lost_switch"]) if row["lost_switch"] else None,
            int(row["enumerated"] or 0),
        )
        for row in csv.DictReader(text.splitlines())
    }


@dataclass(frozen=True, repr=False)
class PodDesign(Printed):
    """A wiring of a pod, its time, and the bound on all wirings.

    ``gap`` is T / bound - 1, ``torus`` the time of the torus of these cubes whose longest edge is shortest.
    ``lost_switch`` is the worst time after the loss of a switch, where it is known: from the table, or solved if the
    wiring was chosen for it, and then ``lost_bound`` bounds it in every wiring. ``enumerated`` is the number of
    wirings, up to isomorphism, of which none is faster.
    """

    cubes: int
    side: int
    places: str
    pod: str
    T: float
    bound: float
    gap: float
    proof: str
    reason: str
    source: str
    torus: float
    lost_switch: float | None = None
    lost_bound: float | None = None
    enumerated: int = 0

    @property
    def best_possible(self) -> bool:
        """Whether no wiring can be faster, within the tolerance of the solve."""
        return self.proof == Proof.OPTIMAL and (self.gap <= 1e-6 or self.enumerated > 0)

    def lines(self) -> dict[str, str]:
        """The design in words, by name of the line, as ``opticoll design pod`` prints it."""
        shape = "x".join(str(self.side * edge) for edge in even_shape(self.cubes))
        lost = {} if self.lost_switch is None else {"lost switch": f"T {number(self.lost_switch)} at worst"}
        if self.lost_switch is not None and self.lost_bound is not None:
            gap = 100 * (self.lost_switch / self.lost_bound - 1)
            lost["lost switch"] += f", {gap:.2f} % above the bound {number(self.lost_bound)} for any wiring"
        proof = f"none: the best of all wirings, {self.enumerated} up to isomorphism" if self.enumerated else ""
        return {
            "pod": f"{self.pod}   (from the {self.source})",
            "T": f"{number(self.T)}   ({self.proof} for this wiring)",
            "T bound": f"{number(self.bound)}   for any wiring ({self.reason})",
            "gap": proof or ("none: best possible" if self.best_possible else f"{100 * self.gap:.2f} %"),
            "torus": f"{number(self.torus)}   of {shape} chips, {self.torus / self.T:.2f} times as long",
            **lost,
        }

    def document(self) -> dict[str, Json]:
        """The design as ``--json`` prints it."""
        return asdict(self) | {"best_possible": self.best_possible}

    @property
    def _title(self) -> str:
        what = "one permutation a dimension" if self.places == "same" else "a permutation at every switch"
        return f"pod of {self.cubes} cubes of {self.side}x{self.side}x{self.side} chips, {what}"


def pod_design(
    cubes: int,
    *,
    side: int = 4,
    places: str = "free",
    survive: int = 0,
    table: bool = True,
    starts: int = 2,
    time_limit: Seconds | None = None,
    seed: int = 0,
) -> PodDesign:
    """Find the permutations of cubes at the optical switches of a pod that make an all-to-all fast.

    Parameters
    ----------
    cubes, side
        Number of cubes, and chips of a cube in each dimension; at most ``MOST_NODES`` chips.
    places
        ``free``: every switch has a permutation; ``same``: all switches of a dimension have the same one.
    survive
        1: choose the wiring for the worst T after the loss of any one switch, and solve that.
    table
        Whether to use the record of the table, if there is one; otherwise a search is run.
    starts
        Runs of the search for each group.
    time_limit
        Limit [s] of the search; the solves that verify T come after it.
    seed
        Seed of the search.

    Raises
    ------
    BadInput
        For sizes out of range, or if T is not found.
    """
    cubes, side = whole_number(cubes, "design: cubes", 1), whole_number(side, "design: side", 1)
    starts, seed = whole_number(starts, "design: starts", 1), whole_number(seed, "design: seed", 0)
    if time_limit is not None:
        finite_number(time_limit, "design: time_limit", positive=True)
    if places not in ("same", "free"):
        refuse("design", f"places must be same or free, not {places!r}")
    if survive not in (0, 1):
        refuse("design", f"survive must be 0 or 1 lost switches, not {survive!r}")
    if not 2 <= cubes * side**3 <= MOST_NODES:
        refuse("design", f"a pod of {cubes} cubes of side {side} has {cubes * side**3} chips; use 2 to {MOST_NODES}")
    same, kind = places == "same", "survive" if survive and places == "free" else places
    record = pod_records().get((cubes, side, kind)) if table and (kind == "survive" or not survive) else None
    lost = lost_bound = None
    with progress_here(f"design pod cubes={cubes}"):
        specs = [] if record is None else [record.pod]
        if record is None and survive and table and (whole := pod_records().get((cubes, side, places))) is not None:
            specs = [whole.pod]  # often the best one for a loss, too
        if record is None:
            specs += _searched(cubes, side, same, survive, starts, time_limit, seed)
        if survive:
            lost = after_a_loss(specs[0], np.inf if record is None else record.time * (1 - 1e-6))
            for spec in specs[1:]:
                lost = min(lost, after_a_loss(spec, _time(lost)), key=_time)
            timed = lost if lost.T is None else solved(lost.topology)
            problem = PodWiring(cubes, side, same, survive=True, demand=1.0 - np.eye(cubes * side**3))
            lost_bound = float(least_time(problem)[0])
        else:
            timed = min(map(solved, specs), key=_time)
    if timed.T is None:
        refuse("design", f"{label(timed.topology, 80)} could not be solved ({timed.proof}); run opticoll solve on it")
    bound, reason = all_to_all_least(cubes, side, same=same)
    torus = torus_time(None, cubes, side, "torus")
    assert torus is not None
    return PodDesign(
        cubes,
        side,
        places,
        timed.topology,
        timed.T,
        float(bound),
        timed.T / float(bound) - 1.0,
        timed.proof,
        reason,
        "search" if record is None else "table",
        float(torus),
        lost_switch=lost.T if lost is not None else None if record is None else record.lost_switch,
        lost_bound=lost_bound,
        enumerated=0 if record is None else record.enumerated,
    )


def _time(timed: Timed) -> float:
    """T, infinite if it was not found."""
    return np.inf if timed.T is None else timed.T


def after_a_loss(spec: str, enough: float = np.inf) -> Timed:
    """The worst T of a pod after the loss of a switch, one of each class of those alike; or one that is ``enough``."""
    from opticoll.solvers.methods.topology.pod_search import worst_first

    known = family_of(parse(spec))
    assert known is not None
    family, arguments = known[0], dict[str, Any](known[1])
    assert family.automorphisms is not None
    side, worst = int(arguments["side"]), Timed(spec, 0.0, Proof.OPTIMAL)
    _, first = np.unique(alike_switches(family.automorphisms(**arguments), side), return_index=True)
    for w in worst_first(wiring_of(**arguments), first.tolist()):
        lost = f"{spec}+fail=switch:{w // side**2}.{w % side**2}"
        one = solved(lost) if parse(lost).connected else Timed(lost, None, "disconnected")
        if _time(one) > _time(worst):
            worst = Timed(spec, one.T, one.proof)
        if _time(worst) >= enough:
            break
    return worst


def alike_switches(symmetries: Iterable[I64], side: int) -> I64:
    """The class of every switch, ``(3 side^2,)``: symmetries of the chips exchange those of a class."""
    plus, minus = (one.ravel() for one in ports(side))
    size, switches = side**DIMENSIONS, np.arange(plus.size)
    number = np.empty((size, size), dtype=np.int64)
    number[plus, minus] = number[minus, plus] = switches
    images = [number[image[plus] % size, image[minus] % size] for image in symmetries]
    return switches if side == 1 else orbits_of(np.array(images).reshape(-1, switches.size), switches.size)


def _searched(
    cubes: int, side: int, same: bool, survive: int, starts: int, time_limit: Seconds | None, seed: int
) -> list[str]:
    """Specs of the torus and of the wirings of groups with the smallest norms that a search finds in its time."""
    from opticoll.solvers.methods.topology.pod_search import best_wirings

    until = None if time_limit is None else time.monotonic() + time_limit
    rng, kinds = np.random.default_rng(seed), {"same": same, "survive": bool(survive)}
    found = best_wirings(cubes, side, **kinds, rng=rng, starts=starts, moves=400, most=MOST_SOLVED, until=until)
    torus = f"pod:cubes={cubes}" + ("" if side == 4 else f",side={side}")
    return [torus, *(spec_of(wiring, side) for wiring in found)]
