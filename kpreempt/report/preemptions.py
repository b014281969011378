"""Past preemptions in words: the pod that a pod replaces, and workloads that evict one another's pods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from kpreempt.model.meta import grouped
from kpreempt.report.amounts import ago, count, format_time
from kpreempt.report.blocks import Listing, Section, Span, Words, strong
from kpreempt.report.evidence import bare_name, join_names
from kpreempt.verdict.workload import PreemptionsBetween, PriorityInversion, Replacement

_PREEMPTORS_SHOWN = 1
_LINES_SHOWN = 4
# On a screen.
_LINES_OF_VAIN, _LINES_OF_LINE, _LINES_RESERVED = 4, 2, 2
# Evictions in less time are one event.
_REPEATED = timedelta(seconds=60)


def replaces(replacement: Replacement, now: datetime | None) -> str:
    """``replaces filler-x, preempted 3m ago by urgent-1``."""
    pods = replacement.pods
    kind, _, owner = replacement.owner.partition(" ")
    namespace = owner.partition("/")[0]
    preemptors = [bare_name(each) if each.startswith(f"{namespace}/") else each for each in replacement.preemptors]
    by = f" by {join_names(preemptors, limit=_PREEMPTORS_SHOWN)}" if preemptors else ""
    which = f"{bare_name(pods[0])}," if len(pods) == 1 else f"one of {len(pods):,} pods of {kind} {bare_name(owner)}"
    probably = "" if replacement.is_certain else "probably "
    return f"{probably}replaces {which} preempted{ago(replacement.at, now)}{by}"


def preempted(each: PreemptionsBetween, now: datetime | None) -> str:
    """``Deployment x preempted 8 pods of Deployment old 2m ago; ...``: how many, since when, and if it was in vain."""
    namespaces = {name.partition(" ")[2].partition("/")[0] for name in (each.preemptor, each.victim)}
    preemptor, victim = each.preemptor, each.victim
    if len(namespaces) == 1:
        preemptor, victim = _without_namespace(preemptor), _without_namespace(victim)
    inversion = each.inversion
    if inversion is not None:
        preemptor += _priority_of_preemptors(inversion, each.pods)
    words = f"{preemptor} preempted {count(each.pods, 'pod')} of {victim}"
    if each.since is not None and each.until is not None and each.until - each.since >= _REPEATED:
        words += f" since {format_time(each.since)}, the last{ago(each.until, now)}"
    else:
        words += ago(each.until, now)
    return f"{words}; {_inverted(inversion)}" if inversion is not None else words


def _inverted(inversion: PriorityInversion) -> str:
    """What became of the evictions."""
    name = inversion.priority_class_name
    why = f" (PriorityClass {name})" if name else ""
    if inversion.is_class_newer:
        why = f" (their PriorityClass {name} is younger than the victims)"
    took = " and took the room" if inversion.nodes else ""
    unknown = ""
    if inversion.preemptor_priority is None:
        unknown = "; the preemptors are gone, so it is not known whether that is higher than theirs"
    elif inversion.unknown_priorities:
        unknown = (
            f"; {count(inversion.unknown_priorities, 'eviction')} had a preemptor that is gone, of unknown priority"
        )
    return f"their replacements have priority {inversion.priority:,}{why}{took}{unknown}"


def _priority_of_preemptors(inversion: PriorityInversion, evictions: int) -> str:
    if inversion.preemptor_priority is None:
        return ""
    derived = ", as its other pods" if inversion.is_derived else ""
    are_gone = "; the preemptors are gone" if inversion.gone_preemptors == evictions else ""
    return f" (priority {inversion.preemptor_priority:,}{derived}{are_gone})"


def _without_namespace(workload: str) -> str:
    kind, _, name = workload.partition(" ")
    return f"{kind} {bare_name(name)}"


def preemptions_section(
    preemptions: Sequence[PreemptionsBetween],
    now: datetime | None,
    priority: int,
    replacements: Iterable[tuple[str, Replacement]] = (),
) -> Section:
    """What evicts what, and which pods replace evicted ones.

    What was in vain comes first, and both are never cut off by other sections.
    """
    vain = " ".join(f"{preempted(each, now)}." for each in preemptions if each.inversion is not None)
    alike = grouped(replacements, lambda each: replaces(each[1], now))
    lines: list[list[Words]] = []
    for words, found in alike.items():
        more = f" and {len(found) - 1:,} more:" if len(found) > 1 else ""
        lines.append([(strong(found[0][0]), f"{more} {words}")])
    lines += [[preempted(each, now)] for each in preemptions if each.inversion is None]
    reserved = (_LINES_OF_VAIN if vain else 0) + _LINES_OF_LINE * min(len(lines), _LINES_RESERVED)
    return Section(
        "PREEMPTIONS",
        Span(vain, "warn") if vain else "",
        [Listing(lines, noun="line", shown=_LINES_SHOWN)],
        priority=priority,
        is_inline=not vain,
        reserved_lines=reserved,
        min_lines=max(reserved, _LINES_OF_LINE),
    )
