"""Files that are no topologies with capacities but are often taken for one: what they are, and what to give instead.

``unsupported.toml`` lists them. Without it, a text would be read as an edge list, whose messages are about its first
line.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files

from opticoll.instances.readers.reading import parses_as_float


@cache
def _stated() -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Words of remedies, and remedies by the suffix of a file and by what its text begins with."""
    data = tomllib.loads(files(__package__).joinpath("unsupported.toml").read_text(encoding="utf-8"))
    words: dict[str, str] = data["words"]
    suffixes = {suffix: remedy.format_map(words) for suffix, remedy in data["suffixes"].items()}
    return words, suffixes, {"|".join(row["begins"]): row["remedy"].format_map(words) for row in data["files"]}


#: Comments that networkx writes above lists of neighbours: the program, the time, the graph's name.
_ADJACENCY = re.compile(r"#[^\n]*\n# GMT [A-Z][a-z]{2} [A-Z][a-z]{2} [^\n]*\n#")


def advice(text: str, suffix: str) -> str | None:
    """What a file is that is not read, by the beginning of its text and its suffix, and what to give instead.

    None if it is none of these.
    """
    words, suffixes, texts = _stated()
    text = "".join(f"{line}\n" for line in map(str.strip, text.splitlines()) if line)  # blanks take quadratic time
    for pattern, remedy in texts.items():
        if re.search(rf"^[ \t]*(?:<\?[^>]*>\s*)?(?!#)(?:{pattern})", text, re.MULTILINE | re.IGNORECASE):
            return remedy
    if _ADJACENCY.match(text):
        return words["neighbours"]
    return words["lgl"] if _is_lgl(text) else suffixes.get(suffix)


def _is_lgl(text: str) -> bool:
    """Whether every comment is one word, the first line is one, and other lines are a vertex and at most a weight."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    hubs = [words[1:] for words in lines if words[0] == "#"]
    links = [words for words in lines if words[0] != "#"]
    if len(hubs) < 2 or lines[0][0] != "#" or not links or not all(len(words) <= 2 for words in links):
        return False
    weighted = all(len(words) == 1 or parses_as_float(words[1]) for words in links)
    numbered = {parses_as_float(words[0]) for words in [*hubs, *links] if words}
    return weighted and len(numbered) == 1 and all(len(words) == 1 and "=" not in words[0] for words in hubs)
