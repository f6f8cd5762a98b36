"""Designs as an extension: topologies of a size and degree, and whether to reconfigure them."""

from opticoll.extensions import Extension

EXTENSION = Extension(
    "opticoll.analysis.designs",
    commands={
        "design": (
            "opticoll.analysis.designs.commands.design:design",
            "Find a topology of N nodes with D ports each, or the wiring of a pod.",
        ),
    },
    functions=(
        "opticoll.analysis.designs.design:design",
        "opticoll.analysis.designs.envelope:envelope",
        "opticoll.analysis.designs.pods:pod_design",
        "opticoll.analysis.designs.reconfigure:reconfigure",
        "opticoll.analysis.designs.sequence_records:best_sequence",
    ),
)
