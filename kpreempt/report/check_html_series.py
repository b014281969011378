"""How many pods of a workload are ready, by the clock, and the scale on which a play's time is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from kpreempt.verdict.play import Play, PlayStep, StepKind, WorkloadPlay

# Widths are in thousandths of the chart.
WIDTH = 1000
_TICKS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 43200, 86400, 172800, 604800)
# The least space between two times on the axis.
_BETWEEN_TICKS = 110
# Where half of all moments lie in the first tenth of the time, an even scale would show nothing of them.
_CROWDED = 0.1


class Scale(msgspec.Struct, frozen=True):
    """Where a time stands on the axis; ``unit`` is the span that an uneven scale shows evenly, 0 for an even one."""

    seconds: float
    unit: float = 0.0

    def x(self, at: float) -> int:
        """From 0 to ``WIDTH``."""
        if self.seconds <= 0:
            return 0
        share = math.log1p(at / self.unit) / math.log1p(self.seconds / self.unit) if self.unit else at / self.seconds
        return min(max(round(WIDTH * share), 0), WIDTH)

    def ticks(self) -> list[float]:
        """Round times with room for their words between them."""
        ticks = [0.0]
        even = [float(each) for each in _TICKS if self.x(each) >= _BETWEEN_TICKS] or [self.seconds]
        candidates: Iterable[float] = _TICKS if self.unit else (even[0] * number for number in range(1, 20))
        for each in candidates:
            if self.x(ticks[-1]) + _BETWEEN_TICKS <= self.x(each) and each <= self.seconds:
                ticks.append(float(each))
        return ticks


def scale_of(play: Play) -> Scale:
    """An even scale, or one that gives the start more room where most happens in it."""
    moments = sorted({step.at for step in play.steps if step.at > 0})
    if len(moments) < 3 or moments[len(moments) // 2] > play.seconds * _CROWDED:
        return Scale(play.seconds)
    return Scale(play.seconds, max(moments[len(moments) // 2], 1.0))


class Series(msgspec.Struct, frozen=True):
    """Ready pods from each of these times on; without ``is_whole`` only start, worst moment and end are known."""

    points: list[tuple[float, int]]
    is_whole: bool = True


def ready_series(workload: WorkloadPlay, steps: Sequence[PlayStep]) -> Series:
    """The ready pods after each of the workload's steps: a pod is ready once it is bound, until it is told to go.

    Where this does not come to the figures of the record (a pod is slow to get ready), only these are drawn.
    """
    points, ready = [(0.0, workload.ready_before)], workload.ready_before
    absent: set[str] = set()
    for step in steps:
        if step.kind is StepKind.ARRIVES:
            absent.add(step.pod)
        elif step.kind is StepKind.LANDS:
            absent.discard(step.pod)
            ready += 1
            points.append((step.at, ready))
        elif step.kind is StepKind.LEAVES and step.node and step.pod not in absent:
            absent.add(step.pod)
            ready -= 1
            points.append((step.at, ready))
    by_moment = list(dict(points).items())
    for series in (points, by_moment):
        if ready == workload.ready_after and min(each for _, each in series) == workload.ready_least:
            return Series(series)
    known = [(0.0, workload.ready_before), (workload.least_at, workload.ready_least)]
    return Series(known, is_whole=False)


def ready_path(series: Series, scale: Scale, ready_after: int, most: int) -> str:
    """The commands of a line from left to right, with ``most`` pods at the top, 0.

    Moments that fall on one place are drawn as one, with the fewest pods that are ready in them.
    """
    places: dict[int, tuple[int, int]] = {}
    for at, ready in series.points:
        x = scale.x(at)
        fewest, _ = places.get(x, (ready, ready))
        places[x] = (min(fewest, ready), ready)
    if not series.is_whole:
        places[WIDTH] = (ready_after, ready_after)
    last = series.points[0][1]
    commands = [f"M0 {most - last}"]
    for x, (fewest, ready) in sorted(places.items()):
        if x:
            commands.append(f"H{x}")
        if fewest < min(ready, last):
            commands.append(f"V{most - fewest}")
        if ready != last or fewest < min(ready, last):
            commands.append(f"V{most - ready}")
        last = ready
    return "".join([*commands, f"H{WIDTH}"])
