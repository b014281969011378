"""Plot seconds over pods as an SVG with logarithmic axes: linear growth is a straight line at 45 degrees.

Each line is labeled with the exponent that fits it best: 1 is linear.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

Points = Sequence[tuple[float, float]]

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _RIGHT, _TOP = 820, 420, 60, 40, 280, 15
_COLORS = (
    *("#0b62a4", "#d1495b", "#2e8b57", "#8a5fb0", "#c77d00"),
    *("#555555", "#17a2b8", "#b5651d", "#6b8e23", "#e377c2"),
)


def growth_plot(series: Mapping[str, Points]) -> str:
    """Draw one line for each of ``series``: pods and seconds (for memory, gigabytes), all above zero."""
    points = [point for each in series.values() for point in each]
    columns, rows = _decades(x for x, _ in points), _decades(y for _, y in points)

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - columns[0]) / (columns[-1] - columns[0])
        up = (math.log10(y) - rows[0]) / (rows[-1] - rows[0])
        return _LEFT + across * (_WIDTH - _LEFT - _RIGHT), _HEIGHT - _BOTTOM - up * (_HEIGHT - _BOTTOM - _TOP)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif"'
        ' font-size="12"><rect width="100%" height="100%" fill="white"/>'
    ]
    for power in columns:
        (x, bottom), (_, top) = place(10**power, 10 ** rows[0]), place(10**power, 10 ** rows[-1])
        parts.append(_grid(x, bottom, x, top))
        parts.append(_text(x, bottom + 16, f"{10**power:,.0f} pods", "middle"))
    for power in rows:
        (left, y), (right, _) = place(10 ** columns[0], 10**power), place(10 ** columns[-1], 10**power)
        parts.append(_grid(left, y, right, y))
        parts.append(_text(left - 6, y + 4, f"{10**power:g} s", "end"))
    for index, (name, line) in enumerate(series.items()):
        color = _COLORS[index % len(_COLORS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in line))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        reported = f"{name} (^{exponent_of(line):.2f})"
        parts.append(_text(_WIDTH - _RIGHT + 12, _TOP + 16 + 18 * index, reported, "start", color))
    return "\n".join([*parts, "</svg>\n"])


def exponent_of(points: Points) -> float:
    """Return the slope of the best-fitting line, by least squares of the logarithms; 0 for a single point."""
    across, up = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    return statistics.linear_regression(across, up).slope if len(set(across)) > 1 else 0.0


def _decades(values: Iterable[float]) -> list[int]:
    """Return the powers of ten from below the smallest to above the largest value."""
    logarithms = [math.log10(max(value, 1e-6)) for value in values]
    low, high = math.floor(min(logarithms)), math.ceil(max(logarithms))
    return list(range(low, max(high, low + 1) + 1))


def _grid(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#dddddd"/>'


def _text(x: float, y: float, text: str, anchor: str, color: str = "#333333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}">{text}</text>'
