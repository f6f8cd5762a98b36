"""Rates in texts of network files, such as ``45 Mbps DS-3``, and texts that only look like one."""

from __future__ import annotations

import re

from opticoll.instances.quantities import NUMBER, split_rate

#: What may follow a rate in a text without changing it: the technology of a line, not a second number or a factor.
_TECHNOLOGY = (
    r"(?:(?:OC|STM|DS|OTU|ODU|EC|E|T)-?[0-9]+c?|(?:fast |gigabit )?ethernet|GigE|ATM|POS|SDH|SONET|[CD]?WDM|MPLS|IP|"
    r"(?:dark )?fib(?:re|er)|leased|lines?|links?|circuit|trunk|lambda|wavelength|microwave|satellite)"
)
_RATE_OF_TEXT = re.compile(
    rf"(?P<rate>{NUMBER}\s?(?:[KMGTP]i|[kKMGTP])?(?:B|bit|b)s?(?:/s|ps))(?:[\s,;:(]+{_TECHNOLOGY}\)?)*", re.IGNORECASE
)
_LIKE_RATE = re.compile(
    r"[0-9]\s*(?:[kKmMgGtTpP]i?)?(?:[bB]|[bB]its?)(?:ps|/s|/sec)\b|\b(?:OC|STM|DS|OTU|ODU)-?[0-9]|[0-9] ?GT/s"
    r"|(?<![\w#.])(?:[0-9]+ ?x ?)?[0-9]+(?:\.[0-9]+)?\s*(?:[kKMGTP](?:[bB]|bit|E|bE|ig|igE)?\b|[GMgm](?:iga|ega)bits?\b"
    r"|[KMGT]?[bB](?:ase|ASE)-?\w)|(?<![A-Za-z])(?:[0-9]+[xX] ?)?[SDQFEHNX]DR(?:[0-9]*)\b|\bPCIe (?:Gen ?)?[0-9]"
)


def rate_in(text: object) -> tuple[float, str] | None:
    """Number and unit of the one rate that a text states, such as ``45 Mbps DS-3``; None for any other text."""
    if not isinstance(text, str) or (plain := split_rate(text)) is not None:
        return plain if isinstance(text, str) else None
    match = _RATE_OF_TEXT.fullmatch(text.strip())
    return None if match is None else split_rate(re.sub(r"[sS](?=/s|ps)", "", match["rate"]))


def resembles_rate(text: object) -> bool:
    """Whether a text seems to state a rate, in whatever form: ``2x155 Mbps``, ``10G``, ``OC-3``."""
    return isinstance(text, str) and _LIKE_RATE.search(text) is not None
