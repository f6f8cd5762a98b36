"""The ledger as an extension: claims of the papers, measured, listed, described and reported."""

from opticoll.extensions import Extension, Kind

EXTENSION = Extension(
    "opticoll.analysis.ledger",
    commands={
        "claims": ("opticoll.analysis.ledger.commands.claims:claims", "Compare the papers' numbers with measurements."),
    },
    lists={"claims": ("opticoll.analysis.ledger.descriptions:listed", ("name", "paper", "where", "claim"))},
    describe=("opticoll.analysis.ledger.descriptions:describe",),
    examples={"claim": "claims own.{name} --plugin {file}"},
    sections=("opticoll.analysis.ledger.report_section:section",),
    kinds={"CLAIM": Kind("opticoll.analysis.ledger.claim:Claim", "opticoll.analysis.ledger.ledger:package_names")},
)
