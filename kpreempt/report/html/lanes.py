"""A lane per workload: its ready pods over time, with marks for pods that land and leave."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from kpreempt.report import simulation_words
from kpreempt.report.amounts import count
from kpreempt.report.html.markup import Html, cut_note, join, name, tag, text, within
from kpreempt.verdict.simulation import COMPLETED, SimulatedWorkload, Simulation, SimulationStep, StepKind

_LANES_LIMIT = 250_000
_LANES_SHOWN = 24
# Marks of one kind that are closer than this (in thousandths of the width) are drawn as one.
_MARKS_APART = 10
_HEIGHT = 64
_TOP, _BOTTOM = 16, 48
_LEGEND = (
    ('<circle class="lands" cx="6" cy="6" r="4"/>', "above the line: pods land"),
    ('<rect class="victim" x="6" y="2" width="8" height="8"/>', "below it, filled: preempted pods"),
    ('<rect class="leaves" x="6" y="2" width="8" height="8"/>', "below it, hollow: pods deleted by their controller"),
    ('<line class="wanted" x1="0" y1="6" x2="12" y2="6"/>', "dashed, level: desired pods at the end"),
)
# Widths are in thousandths of the chart.
WIDTH = 1000
_TICKS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 43200, 86400, 172800, 604800)
# The minimum distance between two times on the axis.
_BETWEEN_TICKS = 110
# If half of all steps fall in the first tenth of the time, a linear scale would show nothing of them.
_CROWDED = 0.1


def lanes(simulation: Simulation) -> Html:
    """The lanes with an axis above and below; empty if no workload is known."""
    if not simulation.workloads:
        return Html("")
    scale = scale_of(simulation)
    steps = steps_by_workload(simulation)
    # Changed workloads first, then those that lose most of their pods.
    order = sorted(simulation.workloads, key=lambda each: (not each.is_changed, each.ready_min - each.ready_before))
    series = {each.workload: ready_series(each, steps.get(each.workload, [])) for each in order[:_LANES_SHOWN]}
    shown, _ = within(
        lambda each: _lane(each, series[each.workload], steps.get(each.workload, []), scale),
        order[:_LANES_SHOWN],
        _LANES_LIMIT,
    )
    legend = (
        tag("li", Html(f'<svg width="14" height="12" aria-hidden="true">{mark}</svg>'), of) for mark, of in _LEGEND
    )
    notes = Html("")
    if scale.unit:
        words = "The time axis is not linear: the start, when most steps happen, is stretched."
        notes += tag("p", words, class_="note")
    if not all(each.is_complete for each in series.values()):
        notes += tag("p", "For a dashed curve, only the start, the minimum and the end are known.", class_="note")
    return join([
        tag("ul", *legend, class_="legend"), notes, _axis(scale), *shown, _axis(scale),
        cut_note(len(order) - len(shown), "workloads"),
    ])  # fmt: skip


def workload_names(simulation: Simulation) -> dict[tuple[str, str], str]:
    """Workloads by the namespace and the owner of their pods (``shop``, ``ReplicaSet api-7d9``)."""
    ends = [(pod.pod, pod.owner, pod.workload) for pod in simulation.displaced]
    ends += [(pod.pod, pod.owner, pod.workload) for pod in simulation.pending]
    found = {(pod.partition("/")[0], owner): workload for pod, owner, workload in ends if owner and workload}
    for each in simulation.workloads:
        kind, _, key = each.workload.partition(" ")
        namespace, _, named = key.partition("/")
        found.setdefault((namespace, f"{kind} {named}"), each.workload)
    return found


def workload_of(step: SimulationStep, known: dict[tuple[str, str], str]) -> str:
    """The workload of the step's pod; its owner if the workload is unknown, and the pod itself if it has no owner.

    A Deployment's ReplicaSets have its name with a hash appended.
    """
    namespace, _, named = step.pod.partition("/")
    owner = step.owner or (f"ReplicaSet {named}" if step.kind is StepKind.SCALED else "")
    if not owner:
        return f"Pod {step.pod}"
    if found := known.get((namespace, owner)):
        return found
    kind, _, of = owner.partition(" ")
    deployment = known.get((namespace, f"Deployment {of.rpartition('-')[0]}")) if kind == "ReplicaSet" else None
    return deployment or f"{kind} {namespace}/{of}"


def steps_by_workload(simulation: Simulation) -> dict[str, list[SimulationStep]]:
    """The steps of each workload's pods, in order."""
    known = workload_names(simulation)
    found: dict[str, list[SimulationStep]] = {}
    for step in simulation.steps:
        found.setdefault(workload_of(step, known), []).append(step)
    return found


def _lane(workload: SimulatedWorkload, series: Series, steps: Sequence[SimulationStep], scale: Scale) -> Html:
    most = max([ready for _, ready in series.points] + [workload.desired_after or 0, workload.ready_after, 1])
    title = tag("h3", name(workload.workload))
    if workload.is_changed:
        title = tag("h3", name(workload.workload), " ", tag("span", "changed", class_="badge dim"))
    worst = f"{workload.ready_min:,} at {clock(workload.ready_min_at)}, "
    has_dip = workload.ready_min < min(workload.ready_before, workload.ready_after)
    ready = (
        f"ready: {workload.ready_before:,} at the start, {worst if has_dip else ''}{workload.ready_after:,} at the end"
    )
    if workload.desired_after is not None:
        ready += f" of {workload.desired_after:,}"
    line = ready_path(series, scale, workload.ready_after, most)
    area = f"{line}V{most}H0Z"
    level = most - (workload.desired_after or 0)
    plot = [tag("path", class_="area", d=area), tag("path", class_="ready", d=line)]
    if workload.desired_after:
        plot.insert(1, tag("path", class_="wanted", d=f"M0 {level}H{WIDTH}"))
    scaled = Html(
        f'<svg x="0" y="{_TOP}" width="100%" height="{_BOTTOM - _TOP}" viewBox="0 0 {WIDTH} {most}" '
        f'preserveAspectRatio="none">{join(plot)}</svg>'
    )
    label = text(f"{workload.workload}, {ready}")
    rough = "" if series.is_complete else ' class="rough"'
    chart = Html(
        f'<svg width="100%" height="{_HEIGHT}" role="img" aria-label="{label}"{rough}>'
        f"{_grid(scale)}{scaled}{_marks(steps, scale)}</svg>"
    )
    numbers = Html(
        f'<svg width="100%" height="{_HEIGHT}" aria-hidden="true"><text x="100%" y="{_TOP + 5}" text-anchor="end">'
        f'{most:,}</text><text x="100%" y="{_BOTTOM + 4}" text-anchor="end">0</text></svg>'
    )
    return tag("div", tag("div", title, tag("p", ready)), numbers, chart, class_="lane") + Html("\n")


def _marks(steps: Iterable[SimulationStep], scale: Scale) -> Html:
    pods: Counter[tuple[str, int]] = Counter()
    broken: Counter[tuple[str, int]] = Counter()
    first: dict[tuple[str, int], float] = {}
    for step in steps:
        if step.kind not in (StepKind.BOUND, StepKind.TERMINATING):
            continue
        kind = "lands" if step.kind is StepKind.BOUND else "victim" if step.cause else "leaves"
        mark = (kind, min(scale.x(step.at) // _MARKS_APART * _MARKS_APART, WIDTH))
        pods[mark] += 1
        broken[mark] += bool(step.violated)
        first.setdefault(mark, step.at)
    return join(_mark(mark, first[mark], pods[mark], broken[mark]) for mark in sorted(pods))


def _mark(mark: tuple[str, int], at: float, pods: int, broken: int) -> Html:
    kind, x = mark
    action = {"lands": "lands", "victim": "is evicted", "leaves": "is deleted"}[kind]
    if pods > 1:
        action = {"lands": "land", "victim": "are evicted", "leaves": "are deleted"}[kind]
    violations = f", {broken:,} violating a budget" if broken else ""
    title = tag("title", f"{clock(at)}: {count(pods, 'pod')} {action}{violations}")
    if kind == "lands":
        return Html(f'<circle class="lands" cx="{x / 10:g}%" cy="7" r="4">{title}</circle>')
    return Html(f'<rect class="{kind}" x="{x / 10:g}%" y="{_HEIGHT - 11}" width="8" height="8">{title}</rect>')


def _grid(scale: Scale) -> Html:
    return join(
        Html(f'<line class="grid" x1="{place}" y1="{_TOP}" x2="{place}" y2="{_BOTTOM}"/>')
        for place in (f"{scale.x(tick) / 10:g}%" for tick in scale.ticks())
    )


def _axis(scale: Scale) -> Html:
    words = []
    for tick in scale.ticks():
        anchor = "start" if tick == 0 else "middle"
        words.append(Html(f'<text x="{scale.x(tick) / 10:g}%" y="13" text-anchor="{anchor}">{clock(tick)}</text>'))
    return tag("div", Html(f'<svg width="100%" height="20" aria-hidden="true">{join(words)}</svg>'), class_="axis")


class Scale(msgspec.Struct, frozen=True):
    """The position of times on the axis; ``unit`` is the time span that a nonlinear scale shows almost linearly."""

    seconds: float
    unit: float = 0.0

    def x(self, at: float) -> int:
        """The position, from 0 to ``WIDTH``."""
        if self.seconds <= 0:
            return 0
        share = math.log1p(at / self.unit) / math.log1p(self.seconds / self.unit) if self.unit else at / self.seconds
        return min(max(round(WIDTH * share), 0), WIDTH)

    def ticks(self) -> list[float]:
        """Round times that are far enough apart for their labels."""
        ticks = [0.0]
        even = [float(each) for each in _TICKS if self.x(each) >= _BETWEEN_TICKS] or [self.seconds]
        candidates: Iterable[float] = _TICKS if self.unit else (even[0] * number for number in range(1, 20))
        for each in candidates:
            if self.x(ticks[-1]) + _BETWEEN_TICKS <= self.x(each) and each <= self.seconds:
                ticks.append(float(each))
        return ticks


def scale_of(simulation: Simulation) -> Scale:
    """A linear scale, or one that stretches the start if most steps happen then."""
    times = sorted({step.at for step in simulation.steps if step.at > 0})
    if len(times) < 3 or times[len(times) // 2] > simulation.seconds * _CROWDED:
        return Scale(simulation.seconds)
    return Scale(simulation.seconds, max(times[len(times) // 2], 1.0))


class Series(msgspec.Struct, frozen=True):
    """Ready pods from each of these times on; unless ``is_complete``, only start, minimum and end are known."""

    points: list[tuple[float, int]]
    is_complete: bool = True


def ready_series(workload: SimulatedWorkload, steps: Sequence[SimulationStep]) -> Series:
    """The ready pods after each of the workload's steps: a pod is ready from when it is bound until it terminates.

    If this does not match the figures of the record, because a pod becomes ready slowly, only those figures are drawn.
    """
    points, ready = [(0.0, workload.ready_before)], workload.ready_before
    absent: set[str] = set()
    for step in steps:
        if step.kind is StepKind.CREATED:
            absent.add(step.pod)
        elif step.kind is StepKind.BOUND:
            absent.discard(step.pod)
            ready += 1
            points.append((step.at, ready))
        elif (step.kind is StepKind.TERMINATING or step.reason == COMPLETED) and step.node and step.pod not in absent:
            absent.add(step.pod)
            ready -= 1
            points.append((step.at, ready))
    by_moment = list(dict(points).items())
    for series in (points, by_moment):
        if ready == workload.ready_after and min(each for _, each in series) == workload.ready_min:
            return Series(series)
    known = [(0.0, workload.ready_before), (workload.ready_min_at, workload.ready_min)]
    return Series(known, is_complete=False)


def ready_path(series: Series, scale: Scale, ready_after: int, most: int) -> str:
    """The path commands of a line from left to right, with ``most`` pods at the top (0).

    Times at the same position are drawn as one, with the fewest ready pods.
    """
    positions: dict[int, tuple[int, int]] = {}
    for at, ready in series.points:
        x = scale.x(at)
        fewest, _ = positions.get(x, (ready, ready))
        positions[x] = (min(fewest, ready), ready)
    if not series.is_complete:
        positions[WIDTH] = (ready_after, ready_after)
    last = series.points[0][1]
    commands = [f"M0 {most - last}"]
    for x, (fewest, ready) in sorted(positions.items()):
        if x:
            commands.append(f"H{x}")
        if fewest < min(ready, last):
            commands.append(f"V{most - fewest}")
        if ready != last or fewest < min(ready, last):
            commands.append(f"V{most - ready}")
        last = ready
    return "".join([*commands, f"H{WIDTH}"])


def clock(seconds: float) -> str:
    """A time from the start, in tenths of a second if short: ``0.5s``, ``35s``, ``4m05s``, ``2h10m``."""
    if seconds < 10 and seconds != round(seconds):
        return f"{seconds:.1f}s"
    return simulation_words.clock(seconds)
