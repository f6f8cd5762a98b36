"""Docstrings: their text and what they say about parameters."""

from __future__ import annotations

import re

#: Heading of a section.
_SECTION = re.compile(r"^(\w+)\n-+\n", re.MULTILINE)


def without_sections(text: str | None) -> str:
    """The text of a docstring before its sections on parameters, results and errors."""
    return _SECTION.split(text or "", maxsplit=1)[0].strip("\n")


def about_parameters(text: str | None, section: str = "Parameters") -> dict[str, str]:
    """Descriptions of parameters by name, each in one line, from a section of a docstring."""
    sections = _SECTION.split(text or "")  # text, heading, text, heading, text
    body = dict(zip(sections[1::2], sections[2::2], strict=True)).get(section, "")
    entries = re.split(r"^(?=\S)", body, flags=re.MULTILINE)
    pairs = (entry.partition("\n") for entry in entries if entry.strip())
    return {
        name.strip(): " ".join(about.split())
        for names, _, about in pairs
        for name in names.partition(" :")[0].partition(":")[0].split(",")
    }
