"""Training as an extension: iteration times, shared clusters."""

from opticoll.extensions import Extension

EXTENSION = Extension(
    "opticoll.analysis.training",
    commands={
        "cluster": ("opticoll.analysis.training.commands.cluster:cluster", "Simulate jobs that share a cluster."),
        "iteration": (
            "opticoll.analysis.training.commands.iteration:iteration",
            "Simulate a training iteration over a network.",
        ),
    },
    functions=(
        "opticoll.analysis.training.cluster:cluster",
        "opticoll.analysis.training.iteration:iteration",
    ),
)
