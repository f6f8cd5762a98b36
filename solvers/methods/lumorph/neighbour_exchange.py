"""Method ``neighbour-exchange``: the algorithm of that name (:mod:`.collective_algorithms`) as a schedule of rounds."""

from __future__ import annotations

from opticoll.solvers.methods.lumorph.collective_algorithms import ALGORITHMS
from opticoll.solvers.methods.lumorph.round_algorithms import as_method

METHOD = as_method(ALGORITHMS["neighbour-exchange"])
