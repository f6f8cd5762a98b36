"""Write the table of formulations into README.md: run ``python docs/tables.py``."""

from __future__ import annotations

import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"
BLOCK = "formulations"
#: Sizes at which each formulation is proven; the registry has the other columns.
PROVEN = {
    "alltoall.all-gather": "by max-flow on every topology tried",
    "alltoall.child": "with its master",
    "alltoall.link-mcf": "N = 40 as it stands, N = 100 by decomposition",
    "alltoall.master": "N = 1000 to 1e-8, N = 4096 to 1e-3; exactly where symmetry is proven (`torus:16x16x16`)",
    "alltoall.min-congestion": "over all paths on 64 nodes",
    "alltoall.path-mcf": "on its path set; over all paths by column generation",
    "alltoall.timestep-mcf": "the fluid optimum at L = diameter on `hypercube:3`, `bipartite:4x4`",
    "alltoall.virtual-channels": "small instances",
    "lumorph.min-overlap": "permutations and recursive exchanges to 16x16, also with 10 % of links gone",
    "lumorph.rounds": "all-gather and all-to-all from 2x4 to 16x16 tiles; 2x4 by the program alone",
    "optree.one-stage": "closed form at any size; by branch and bound to n = 5",
    "optree.tree": "n = 4096, by dynamic programming",
    "sipml.ocs-circuits": "in polynomial time; by ILP on 9 servers",
    "sipml.placement": "graphs of six sub-operations; else over bounds",
    "sipml.ring-wavelengths": "8 nodes, 12 to 512 wavelengths",
    "topoopt.routing": "12 servers, as a linear program",
    "topoopt.strategy": "all six models, by dynamic programming",
    "topoopt.topology": "5 to 7 servers of degree 2; else over bounds",
}


def formulation_table() -> str:
    """Markdown table with one row per formulation: source, size, class, methods, proven sizes."""
    from opticoll.formulations import formulations
    from opticoll.solvers.methods import methods_for

    lines = ["| name | in the paper | size | class | methods besides the solvers | proven here |", "|" + "---|" * 6]
    for name, model in sorted(formulations().items()):
        methods = ", ".join(f"`{method}`" for method in sorted(methods_for(model)))
        size = model.size.replace("|", "\\|")
        cells = (f"`{name}`", model.where, size, model.problem, methods, PROVEN.get(name, "see its docstring"))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def updated(text: str) -> str:
    """Text of README with the current table."""
    from opticoll.analysis.report.frontpage import replaced

    return replaced(text, BLOCK, formulation_table())


if __name__ == "__main__":
    sys.path.insert(0, str(README.parent))
    README.write_text(updated(README.read_text(encoding="utf-8")), encoding="utf-8")
