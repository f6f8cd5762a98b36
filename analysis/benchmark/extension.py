"""The benchmark as an extension: its problems, runs and comparisons of solvers."""

from opticoll.extensions import Extension

EXTENSION = Extension(
    "opticoll.analysis.benchmark",
    commands={
        "benchmark": ("opticoll.analysis.benchmark.commands.benchmark:benchmark", "Benchmark of LP and MIP solvers."),
        "compare": (
            "opticoll.analysis.benchmark.commands.compare:compare",
            "Compare the contestants of a study that has been run.",
        ),
    },
)
