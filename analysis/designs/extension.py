"""Designs as an extension: topologies of a size and degree, whether to reconfigure them, and repairs of circuits."""

from opticoll.extensions import Extension

EXTENSION = Extension(
    "opticoll.analysis.designs",
    commands=(
        "opticoll.analysis.designs.commands.design:design",
        "opticoll.analysis.designs.commands.repair:repair",
    ),
    functions=(
        "opticoll.analysis.designs.design:design",
        "opticoll.analysis.designs.envelope:envelope",
        "opticoll.analysis.designs.reconfigure:reconfigure",
        "opticoll.analysis.designs.repair:repair",
        "opticoll.analysis.designs.sequence_records:best_sequence",
    ),
    outputs={"repair": "opticoll.analysis.designs.repair:Repairs"},
    without_schema=("design",),
)
