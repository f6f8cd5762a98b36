"""Training as an extension: iteration times, shared clusters."""

from opticoll.extensions import Extension

EXTENSION = Extension(
    "opticoll.analysis.training",
    commands=(
        "opticoll.analysis.training.commands.cluster:cluster",
        "opticoll.analysis.training.commands.iteration:iteration",
    ),
    functions=(
        "opticoll.analysis.training.cluster:cluster",
        "opticoll.analysis.training.iteration:iteration",
    ),
)
