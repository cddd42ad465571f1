"""Plots as SVG: the lateness of each contender's calls, and its speed of creation.

Invariant: every line has its contender's name beside it in its colour, and every value an axis.
"""

from collections.abc import Mapping, Sequence
from math import log10
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 60, 190, 50, 50
COLOURS = ("#0b6bcb", "#c43d00", "#1a7f37", "#8250df", "#57606a", "#9a6700")
DECADES = (1, 10, 100, 1_000, 10_000, 100_000)  # milliseconds
_NAMES = {1: "1 ms", 10: "10 ms", 100: "100 ms", 1_000: "1 s", 10_000: "10 s", 100_000: "100 s"}


def lateness(title: str, curves: Mapping[str, Sequence[float]]) -> str:
    """For each contender, the share of its tasks that were called by each lateness."""
    parts = [_line(_x(ms), TOP, _x(ms), HEIGHT - BOTTOM) for ms in DECADES]
    parts += [_text(_x(ms), HEIGHT - BOTTOM + 18, _NAMES[ms], "middle") for ms in DECADES]
    for percent in (0, 25, 50, 75, 100):
        parts.append(_line(LEFT, _y(percent), WIDTH - RIGHT, _y(percent)))
        parts.append(_text(LEFT - 8, _y(percent) + 4, f"{percent} %", "end"))
    for number, (name, curve) in enumerate(curves.items()):
        colour = COLOURS[number % len(COLOURS)]
        share = 100 / (len(curve) - 1)
        points = " ".join(f"{_x(ms):.1f},{_y(n * share):.1f}" for n, ms in enumerate(curve))
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        parts.append(_text(WIDTH - RIGHT + 12, TOP + 12 + 22 * number, name, "start", colour))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "called this late", "middle"))
    return _svg(title, parts)


def bars(title: str, values: Mapping[str, float]) -> str:
    """One bar for each name, its value beside it."""
    left, row = 250, (HEIGHT - TOP - BOTTOM) / max(1, len(values))
    scale = (WIDTH - left - 90) / max(values.values())
    parts = []
    for number, (name, value) in enumerate(values.items()):
        top = TOP + number * row
        parts.append(_text(left - 10, top + row / 2 + 4, name, "end"))
        parts.append(
            f'<rect x="{left}" y="{top + row * 0.2:.1f}" width="{value * scale:.1f}" '
            f'height="{row * 0.6:.1f}" fill="{COLOURS[0]}"/>'
        )
        parts.append(_text(left + value * scale + 8, top + row / 2 + 4, f"{value:,.0f}", "start"))
    return _svg(title, parts)


def _x(ms: float) -> float:
    """Logarithmic; values below the first decade are drawn there."""
    most = log10(DECADES[-1] / DECADES[0])
    share = log10(max(ms, DECADES[0]) / DECADES[0]) / most
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _y(percent: float) -> float:
    return HEIGHT - BOTTOM - percent / 100 * (HEIGHT - TOP - BOTTOM)


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="#d0d7de"/>'


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#1f2328") -> str:
    where = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"'
    return f"<text {where}>{escape(text)}</text>"


def _svg(title: str, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12" role="img">'
    )
    heading = f'<text x="{LEFT}" y="26" font-size="15" fill="#1f2328">{escape(title)}</text>'
    ground = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    body = "\n".join([f"<title>{escape(title)}</title>", ground, heading, *parts])
    return f"{head}\n{body}\n</svg>\n"
