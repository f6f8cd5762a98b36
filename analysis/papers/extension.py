"""The papers as an extension: their figures, redrawn."""

from opticoll.extensions import Extension

EXTENSION = Extension(
    "opticoll.analysis.papers",
    commands={
        "figure": ("opticoll.analysis.papers.commands.figure:figure", "Draw a figure of a paper."),
    },
    functions=("opticoll.analysis.papers.figure:figure",),
    lists={"figures": ("opticoll.analysis.papers.descriptions:listed", ("name", "where", "title", "study"))},
    describe=("opticoll.analysis.papers.descriptions:describe",),
    sections=("opticoll.analysis.papers.report_section:section",),
)
