"""The benchmark as an extension: its problems, runs and comparisons of solvers."""

from opticoll.extensions import Extension

EXTENSION = Extension(
    "opticoll.analysis.benchmark",
    commands=(
        "opticoll.analysis.benchmark.commands.benchmark:benchmark",
        "opticoll.analysis.benchmark.commands.compare:compare",
    ),
)
