"""What the files of schedules hold, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opticoll.analysis.rendering import number

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Loss of a schedule above which a remedy is suggested.
LOSSY = 0.01
#: Relative distance of a time from its bound that counts as rounding and is printed as 0.
ROUND_OFF = 1e-9


def _percent(loss: float) -> str:
    """A loss in percent; 0 where it is rounding."""
    return f"{100 * loss if loss > ROUND_OFF else 0.0:.3g} %"


def written_lines(written: Mapping[str, object]) -> dict[str, str]:
    """What a written schedule or certificate holds and what it loses, by name of the line.

    Parameters
    ----------
    written
        What :mod:`opticoll.analysis.output_files` found when it wrote the file.
    """
    facts: dict[str, Any] = dict(written)
    if "loss" not in facts:  # no schedule, or one of rounds or configurations, which are not cut into chunks
        return {name: number(value, 12) for name, value in facts.items()}
    several = facts["time_by_chunks"] if len(facts["time_by_chunks"]) > 1 else {}
    loss, program = facts["loss"], "target" in facts
    lines = {
        "file": facts["file"],
        "chunks": f"{facts['chunks']} per shard",
        "steps": number(facts.get("steps")),
        "T": f"{number(facts['time'], 8)}   (of the flow: {number(facts['fluid_time'], 8)})",
        "loss": _percent(loss),
        "simulated": f"{number(facts['simulated_time'], 8)}   (every shard arrives)",
        "keeps": facts.get("keeps", ""),
        "T by chunks": ", ".join(f"{D}: {time:.7g}" for D, time in several.items()),
    }
    if not facts["delivers"]:
        lines["simulated"] = f"FAILS: {facts['violation']}"
    elif program and facts["simulated_time"] and facts["fluid_time"]:  # a program has no synchronous steps
        loss = max(facts["simulated_time"] / facts["fluid_time"] - 1, 0.0)
        lines["T"] = f"{number(facts['fluid_time'], 8)} of the flow, {number(facts['time'], 8)} in synchronous steps"
        lines["loss"] = f"{_percent(loss)}   (simulated time above the flow's)"
    if loss > LOSSY:
        lines["loss"] += "   (other numbers of chunks may lose less: --chunks N,N,...)"
    if program:
        lines["target"] = f"{facts['target']}, {facts['channels']} channels"
        lines["elements"] = f"the number per peer must be a multiple of {facts['multiple_of']}"
        lines |= _runtimes(facts)
        if facts["target"] in facts.get("exceeds", {}):
            lines["instead"] = "fewer --chunks or --instances, another --target, or a schedule in .json, without limits"
    return _stated(lines)


def executed_lines(executed: Mapping[str, object]) -> dict[str, str]:
    """What a checked schedule moves, how far it lies above the bound, and which runtimes accept it, by name."""
    metrics: dict[str, Any] = dict(executed)
    names = ("ranks", "chunks", "layers", "steps", "configurations", "transfers")
    lines = {name: number(metrics.get(name)) for name in names}
    if metrics.get("redundant"):
        lines["redundant"] = f"{number(metrics['redundant'])}   (transfers of chunks that the receiver already has)"
    if metrics.get("over_bound"):
        over = metrics["over_bound"] - 1
        above = 0.0 if abs(over) <= ROUND_OFF else 100 * over
        lines["T bound"] = f"{number(metrics['T_bound'], 8)}   (for any schedule; this one is {above:.3g} % above)"
    return _stated(lines | (_runtimes(metrics) if "fits_runtime" in metrics else {}))


def _runtimes(facts: Mapping[str, Any]) -> dict[str, str]:
    """The runtimes that accept a program, and for what the others refuse it."""
    refused = {f"not for {name}": excess for name, excess in facts.get("exceeds", {}).items()}
    return {"fits": ", ".join(facts.get("fits_runtime", ())) or "no runtime", **refused}


def _stated(lines: Mapping[str, str]) -> dict[str, str]:
    """The lines that say something."""
    return {name: text for name, text in lines.items() if text not in {"", "–"}}
