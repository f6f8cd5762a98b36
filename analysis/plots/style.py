"""The style of all figures, and their output as PNG and SVG."""

from __future__ import annotations

import io
import re
import warnings
from contextlib import contextmanager
from itertools import takewhile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


INK, MUTED, GRID, BAND = "#1b1f24", "#5f6b7a", "#d5dbe2", "#eef1f5"
#: Text on a filled marker.
ON_SERIES = "#ffffff"
#: Colours of series in the order of use.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56a0d3", "#6a5acd", "#7f7f7f")
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*")

_SETTINGS: Any = {
    "font.family": "sans-serif",
    "font.size": 10.0,
    "axes.titlesize": 11.0,
    "axes.labelsize": 10.0,
    "legend.fontsize": 9.0,
    "legend.frameon": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "figure.facecolor": "white",
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "text.parse_math": False,  # a $ in a file name is not mathematics
    "svg.fonttype": "none",
    "svg.hashsalt": "opticoll",
    "pdf.fonttype": 42,  # publishers refuse Type 3
    "figure.constrained_layout.h_pad": 0.06,
    "figure.constrained_layout.w_pad": 0.06,
}

_WORDS = re.compile(r"[^\W_]+|[\W_]")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@contextmanager
def style() -> Iterator[None]:
    """Apply the style while a figure is made or written."""
    import matplotlib as mpl

    with mpl.rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        yield


def label(text: object, most: int = 34) -> str:
    """Text shortened to one printable line of at most ``most`` characters."""
    plain = _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", str(text))
    if len(plain) <= most:
        return plain
    head = (most - 1) // 2
    return f"{plain[:head]}…{plain[-(most - 1 - head) :]}"


def labels(names: Sequence[str], most: int) -> list[str]:
    """Names as :func:`label` shortens them; where that makes some alike, without the words all begin and end with."""
    short = [label(name, most) for name in names]
    if len(set(short)) == len(set(names)):
        return short
    words = [_WORDS.findall(name) for name in names]
    head = _shared(words)
    tail = _shared([those[head:][::-1] for those in words])
    return [label(f"…{''.join(those[head : len(those) - tail])}{'…' * (tail > 0)}", most) for those in words]


def _shared(words: Sequence[Sequence[str]]) -> int:
    """How many first words all have in common."""
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False)))


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural unless it is 1."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def series(number: int) -> tuple[str, str]:
    """Colour and marker of a series; pairs repeat only after all have been used."""
    return PALETTE[number % len(PALETTE)], MARKERS[(number + number // len(PALETTE)) % len(MARKERS)]


_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def tick(value: float) -> str:
    """A number at a tick: as it is from 0.001 to a million, else with a power of ten."""
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:g}"
    digits, _, power = f"{value:e}".partition("e")
    ten = f"10{str(int(power)).translate(_SUPERSCRIPTS)}"
    return ten if float(digits) == 1 else f"{float(digits):g}·{ten}"


def log_axes(axes: Axes, which: str = "xy") -> None:
    """Make the named axes logarithmic, with plain numbers at the ticks and a light grid."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if not axes.has_data():
        axes.text(0.5, 0.5, "nothing to draw", ha="center", va="center", transform=axes.transAxes, color=MUTED)
        axes.set_xticks([])
        axes.set_yticks([])
        return
    for name in which:
        axis = {"x": axes.xaxis, "y": axes.yaxis}[name]
        axes.set(**{f"{name}scale": "log"})
        low, high = axis.get_view_interval()
        few = low > 0 and high / low < 50
        axis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0) if few else (1.0,)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
        axis.set_minor_formatter(NullFormatter())
    axes.grid(visible=True, which="major")
    axes.set_axisbelow(True)


def ticks_at(axes: Axes, values: Sequence[float], **look: Any) -> None:
    """Put labelled ticks at these values of the horizontal axis, and nowhere else."""
    axes.set_xticks(values, [str(value) for value in values], **look)
    axes.set_xticks([], minor=True)


def legend_mark(name: str, colour: str, marker: str, *, size: float = 6, filled: bool = True) -> Any:
    """Legend entry of a marker."""
    from matplotlib.lines import Line2D

    face = colour if filled else "none"
    return Line2D(
        [], [], linestyle="none", marker=marker, color=colour, markerfacecolor=face, markersize=size, label=name
    )


def png(figure: Figure, dpi: int = 160) -> bytes:
    """Figure as PNG on a white background."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    buffer = io.BytesIO()
    with style():
        _lay_out(figure)
        drawn_at = figure.dpi
        figure.set_dpi(dpi)
        FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None})
        figure.set_dpi(drawn_at)
    return buffer.getvalue()


def _lay_out(figure: Figure) -> None:
    """Lay out the axes of a figure once for all its files, since the layout takes as long as the drawing."""
    engine = figure.get_layout_engine()
    if engine is not None and figure.axes:
        engine.execute(figure)
        figure.set_layout_engine("none")


def svg(figure: Figure) -> str:
    """Figure as an SVG file on a white card, for pages that may be light or dark."""
    return card(drawing(figure))


def card(text: str) -> str:
    """Put a :func:`drawing` on a white card, as an SVG file."""
    return re.sub(r"(<svg\b[^>]*>)", r'\1<rect width="100%" height="100%" rx="4" fill="#ffffff"/>', text, count=1)


def inline(text: str, name: str, title: str, description: str) -> str:
    """Turn a :func:`drawing` into an SVG element for an HTML page.

    Parameters
    ----------
    text
        The drawing.
    name
        Prefix of its ids, so several figures fit one page.
    title, description
        Text for screen readers.
    """
    from html import escape

    text = text[text.index("<svg") :]
    text = re.sub(r'\bid="([^"]*)"', rf'id="{name}-\1"', text)
    text = re.sub(r"url\(#([^)]*)\)", rf"url(#{name}-\1)", text)
    text = re.sub(r'xlink:href="#([^"]*)"', rf'href="#{name}-\1"', text)
    text = text.replace("xlink:href=", "href=")
    box = re.search(r'viewBox="[^"]*"', text)
    texts = f"<title id='{name}-title'>{escape(title)}</title><desc id='{name}-desc'>{escape(description)}</desc>"
    opening = f"<svg role='img' aria-labelledby='{name}-title {name}-desc' {box.group() if box else ''}>{texts}"
    return re.sub(r"<svg\b[^>]*>", lambda _: opening, text, count=1)


def drawing(figure: Figure) -> str:
    """Figure as SVG text without a background, for :func:`card` and :func:`inline`."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    buffer = io.StringIO()
    with style():
        _lay_out(figure)
        face = figure.get_facecolor()
        figure.set_facecolor("none")
        FigureCanvasSVG(figure).print_svg(
            buffer, metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
        figure.set_facecolor(face)
    return re.sub(r"<metadata>.*?</metadata>", "", buffer.getvalue(), flags=re.DOTALL)
