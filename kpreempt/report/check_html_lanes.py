"""A lane for each workload: how many of its pods are ready by the clock, who lands, and who has to go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from kpreempt.report.amounts import count
from kpreempt.report.check_html_markup import Html, cut_note, join, name, tag, text, within
from kpreempt.report.check_html_series import WIDTH, Scale, Series, ready_path, ready_series, scale_of
from kpreempt.report.check_html_words import clock
from kpreempt.verdict.play import Play, PlayStep, StepKind, WorkloadPlay

_SECTION_LIMIT = 250_000
_LANES_SHOWN = 24
# Marks of one kind that are nearer than this (in thousandths of the width) are drawn as one.
_MARKS_APART = 10
_HEIGHT = 64
_TOP, _BOTTOM = 16, 48
_LEGEND = (
    ('<circle class="lands" cx="6" cy="6" r="4"/>', "above the line: pods land"),
    ('<rect class="victim" x="6" y="2" width="8" height="8"/>', "below it, filled: they have to go for others"),
    ('<rect class="leaves" x="6" y="2" width="8" height="8"/>', "below it, hollow: their controller deletes them"),
    ('<line class="wanted" x1="0" y1="6" x2="12" y2="6"/>', "dashed, level: pods that are wanted in the end"),
)


def lanes(play: Play) -> Html:
    """The lanes with an axis above and below; nothing where no workload is known."""
    if not play.workloads:
        return Html("")
    scale = scale_of(play)
    steps = steps_by_workload(play)
    # Those that lose most of their pods first, after those that the change is about.
    order = sorted(play.workloads, key=lambda each: (not each.is_changed, each.ready_least - each.ready_before))
    series = {each.workload: ready_series(each, steps.get(each.workload, [])) for each in order[:_LANES_SHOWN]}
    shown, _ = within(
        lambda each: _lane(each, series[each.workload], steps.get(each.workload, []), scale),
        order[:_LANES_SHOWN],
        _SECTION_LIMIT,
    )
    legend = (
        tag("li", Html(f'<svg width="14" height="12" aria-hidden="true">{mark}</svg>'), of) for mark, of in _LEGEND
    )
    notes = Html("")
    if scale.unit:
        notes += tag(
            "p", "The scale of time is uneven: the beginning, where most happens, has more room.", class_="note"
        )
    if not all(each.is_whole for each in series.values()):
        notes += tag("p", "Of a broken line only start, worst moment and end are known.", class_="note")
    return join([
        tag("ul", *legend, class_="legend"), notes, _axis(scale), *shown, _axis(scale),
        cut_note(len(order) - len(shown), "workloads"),
    ])  # fmt: skip


def workload_names(play: Play) -> dict[tuple[str, str], str]:
    """Workloads by the namespace and the owner of their pods (``shop``, ``ReplicaSet api-7d9``)."""
    ends = [(pod.pod, pod.owner, pod.workload) for pod in play.displaced]
    ends += [(pod.pod, pod.owner, pod.workload) for pod in play.waiting]
    found = {(pod.partition("/")[0], owner): workload for pod, owner, workload in ends if owner and workload}
    for each in play.workloads:
        kind, _, key = each.workload.partition(" ")
        namespace, _, named = key.partition("/")
        found.setdefault((namespace, f"{kind} {named}"), each.workload)
    return found


def workload_of(step: PlayStep, known: dict[tuple[str, str], str]) -> str:
    """What the step's pod belongs to in the end; its owner where that is not known, and the pod itself without one.

    A Deployment's ReplicaSets are named as it is, with a hash behind.
    """
    namespace, _, named = step.pod.partition("/")
    owner = step.owner or (f"ReplicaSet {named}" if step.kind is StepKind.SCALES else "")
    if not owner:
        return f"Pod {step.pod}"
    if found := known.get((namespace, owner)):
        return found
    kind, _, of = owner.partition(" ")
    deployment = known.get((namespace, f"Deployment {of.rpartition('-')[0]}")) if kind == "ReplicaSet" else None
    return deployment or f"{kind} {namespace}/{of}"


def steps_by_workload(play: Play) -> dict[str, list[PlayStep]]:
    """The steps of each workload's pods, in order."""
    known = workload_names(play)
    found: dict[str, list[PlayStep]] = {}
    for step in play.steps:
        found.setdefault(workload_of(step, known), []).append(step)
    return found


def _lane(workload: WorkloadPlay, series: Series, steps: Sequence[PlayStep], scale: Scale) -> Html:
    most = max([ready for _, ready in series.points] + [workload.wanted_after or 0, workload.ready_after, 1])
    title = tag("h3", name(workload.workload))
    if workload.is_changed:
        title = tag("h3", name(workload.workload), " ", tag("span", "changed", class_="badge dim"))
    worst = f"{workload.ready_least:,} at {clock(workload.least_at)}, "
    fell = workload.ready_least < min(workload.ready_before, workload.ready_after)
    ready = f"ready: {workload.ready_before:,} at the start, {worst if fell else ''}{workload.ready_after:,} in the end"
    if workload.wanted_after is not None:
        ready += f" of {workload.wanted_after:,}"
    line = ready_path(series, scale, workload.ready_after, most)
    area = f"{line}V{most}H0Z"
    level = most - (workload.wanted_after or 0)
    plot = [tag("path", class_="area", d=area), tag("path", class_="ready", d=line)]
    if workload.wanted_after:
        plot.insert(1, tag("path", class_="wanted", d=f"M0 {level}H{WIDTH}"))
    scaled = Html(
        f'<svg x="0" y="{_TOP}" width="100%" height="{_BOTTOM - _TOP}" viewBox="0 0 {WIDTH} {most}" '
        f'preserveAspectRatio="none">{join(plot)}</svg>'
    )
    said = text(f"{workload.workload}, {ready}")
    rough = "" if series.is_whole else ' class="rough"'
    chart = Html(
        f'<svg width="100%" height="{_HEIGHT}" role="img" aria-label="{said}"{rough}>'
        f"{_grid(scale)}{scaled}{_marks(steps, scale)}</svg>"
    )
    numbers = Html(
        f'<svg width="100%" height="{_HEIGHT}" aria-hidden="true"><text x="100%" y="{_TOP + 5}" text-anchor="end">'
        f'{most:,}</text><text x="100%" y="{_BOTTOM + 4}" text-anchor="end">0</text></svg>'
    )
    return tag("div", tag("div", title, tag("p", ready)), numbers, chart, class_="lane") + Html("\n")


def _marks(steps: Iterable[PlayStep], scale: Scale) -> Html:
    pods: Counter[tuple[str, int]] = Counter()
    broken: Counter[tuple[str, int]] = Counter()
    first: dict[tuple[str, int], float] = {}
    for step in steps:
        if step.kind not in (StepKind.LANDS, StepKind.LEAVES):
            continue
        kind = "lands" if step.kind is StepKind.LANDS else "victim" if step.cause else "leaves"
        where = (kind, min(scale.x(step.at) // _MARKS_APART * _MARKS_APART, WIDTH))
        pods[where] += 1
        broken[where] += bool(step.violated)
        first.setdefault(where, step.at)
    return join(_mark(where, first[where], pods[where], broken[where]) for where in sorted(pods))


def _mark(where: tuple[str, int], at: float, pods: int, broken: int) -> Html:
    kind, x = where
    does = {"lands": "lands", "victim": "has to go", "leaves": "is deleted"}[kind]
    if pods > 1:
        does = {"lands": "land", "victim": "have to go", "leaves": "are deleted"}[kind]
    breaks = f", {broken:,} against a budget" if broken else ""
    title = tag("title", f"{clock(at)}: {count(pods, 'pod')} {does}{breaks}")
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
