"""Network designs of degree 2 with 5 to 24 nodes: the best known wirings of a published library of problems.

Problem n: a directed graph without parallel links on n nodes, two links out of and two into every node, that minimizes
the largest load of a link if all demand is routed, splittably (Bienstock & Guenluek, Mathematical Programming 68,
1995; problem class 08 of the quantum optimization benchmark library QOBLIB). It is ``topoopt.topology`` with
``parallel=1``. The demand is that of the first n nodes of ``design_demand.csv``. ``design_library.csv`` has the best
published values and a row for every wiring. ``python docs/design_library.py FOLDER`` writes them as files for
``opticoll check``.
"""

from __future__ import annotations

import argparse
import csv
import json
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadInput
from opticoll.formulations.topoopt.topology import Wiring
from opticoll.instances import parse
from opticoll.instances.servers import ServerPool
from opticoll.instances.topology import Topology
from opticoll.solvers.coordinate_arrays import coordinates
from opticoll.solvers.methods.topoopt.design_search import Oracle
from opticoll.solvers.solution_document import FORMAT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opticoll.instances.topology import F64, I64

TABLE, DEMAND, DEGREE = "design_library.csv", "design_demand.csv", 2
#: Published values have three digits after the point.
PUBLISHED_DIGITS = 1e-3
FORMULATION, SETTINGS = "topoopt.topology", {"parallel": 1}


@dataclass(frozen=True)
class LibraryRow:
    """A problem of the library, its best published values, and the best wiring known here.

    ``published`` is the library's value, ``proven`` if it is stated as optimal, and ``later`` a better one seen since.
    ``topology`` is the wiring as a spec, ``value`` its least maximum load, and ``found`` the day. ``bound`` holds for
    every wiring.
    """

    nodes: int
    proven: bool
    published: float
    later: float | None
    topology: str
    value: Fraction
    bound: float
    found: date

    @property
    def best_published(self) -> float:
        """The better one of the published values."""
        return self.published if self.later is None else min(self.published, self.later)

    @property
    def against_published(self) -> float:
        """Value / best published value - 1; 0 if they differ by less than the published digits."""
        difference = float(self.value) - self.best_published
        return 0.0 if abs(difference) < PUBLISHED_DIGITS else difference / self.best_published

    @property
    def gap(self) -> float:
        """Value / bound - 1."""
        return float(self.value) / self.bound - 1.0


@cache
def library_demand() -> F64:
    """Demand of all 24 nodes, from row to column, ``(24, 24)``."""
    text = files("opticoll.instances.published").joinpath(DEMAND).read_text(encoding="utf-8")
    return np.array([[float(entry) for entry in row] for row in csv.reader(text.splitlines())])


def library_pool(n: int) -> ServerPool:
    """The nodes, ports and demand of problem n.

    Raises
    ------
    BadInput
        If the library has no such problem.
    """
    demand = library_demand()
    if not 5 <= n <= len(demand):
        msg = f"design library: there is no problem of {n} nodes; choose 5 to {len(demand)}"
        raise BadInput(msg)
    return ServerPool(n, DEGREE, demand[:n, :n])


@cache
def library_rows() -> dict[int, LibraryRow]:
    """The table by number of nodes."""
    return read_rows(Path(__file__).with_name(TABLE).read_text(encoding="utf-8"))


def read_rows(text: str) -> dict[int, LibraryRow]:
    """The rows of a table of comma-separated values by number of nodes."""
    result = {}
    for row in csv.DictReader(text.splitlines()):
        n = int(row["nodes"])
        result[n] = LibraryRow(
            n,
            row["proven"] == "yes",
            float(row["published"]),
            float(row["later"]) if row["later"] else None,
            row["topology"],
            Fraction(row["value"]),
            float(row["bound"]),
            date.fromisoformat(row["found"]),
        )
    return result


def written(folder: Path, rows: Iterable[LibraryRow]) -> Iterator[tuple[Path, Path]]:
    """Write demand ``n.csv`` and design ``n.json`` of every row, which ``opticoll check`` reads; yield the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for row in rows:
        demand = folder / f"{row.nodes}.csv"
        text = "\n".join(",".join(f"{entry:g}" for entry in line) for line in library_pool(row.nodes).point_to_point)
        demand.write_text(text + "\n", encoding="utf-8")
        spec = f"servers:n={row.nodes},degree={DEGREE},traffic=file:{demand}"
        instance = parse(spec)
        data = Wiring.prepare(instance, SETTINGS)
        design = Oracle(data).route(counts(row.topology)).design
        if design is None:
            msg = f"design library: {row.topology} has no path for some demand of problem {row.nodes}"
            raise BadInput(msg)
        document = {
            "format": FORMAT,
            "formulation": FORMULATION,
            "instance": instance.spec,
            "instance_hash": instance.hash,
            "settings": SETTINGS,
            "objective": design.max_load,
            "values": {name: coordinates(array) for name, array in design.values().items()},
        }
        path = folder / f"{row.nodes}.json"
        path.write_text(json.dumps(document) + "\n", encoding="utf-8")
        yield demand, path


def counts(topology: str) -> I64:
    """Circuits of a spec from every node to every other, ``(n, n)``."""
    links = parse(topology)
    if not isinstance(links, Topology):
        msg = f"design library: {topology} is not a topology; give digraph:..."
        raise BadInput(msg)
    count = np.zeros((links.n, links.n), dtype=np.int64)
    np.add.at(count, (links.tail, links.head), 1)
    return count


def main(arguments: Sequence[str] | None = None) -> None:
    """Write demand and best design of every problem into a folder, and print the commands that check them."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path)
    for demand, path in written(parser.parse_args(arguments).folder, library_rows().values()):
        nodes = f"servers:n={demand.stem},degree={DEGREE},traffic=file:{demand}"
        print(f"opticoll check {FORMULATION} {nodes} {path} --set parallel=1")


if __name__ == "__main__":
    main()
