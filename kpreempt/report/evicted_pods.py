"""What happened to the pods of a workload or a namespace: how many ended by what, then each pod, the latest first."""

from __future__ import annotations

from collections import Counter

from kpreempt.report.amounts import ago, agree, count
from kpreempt.report.blocks import Phrase, Report, Section, Span, Table, Words, columns, strong
from kpreempt.report.evidence import absent_facts, assumption_sections, join_names
from kpreempt.report.options import RenderOptions
from kpreempt.report.terminations import brief
from kpreempt.report.who_evicted import looked_at, unread_events
from kpreempt.verdict.who_evicted import EvictedPod, EvictedPods, PodPhase, PodTermination

_PODS_SHOWN = 12
_CAUSES, _PODS = 60, 50


def report(answer: EvictedPods, options: RenderOptions) -> Report:
    """A sentence, the causes with their numbers, and the pods."""
    rows = [(each, item) for each in answer.items for item in each.items]
    causes: dict[str, list[tuple[EvictedPod, PodTermination]]] = {}
    for each, item in rows:
        causes.setdefault(brief(item), []).append((each, item))
    by_number = sorted(causes.items(), key=lambda group: (-group[1][0][1].is_eviction, -len(group[1])))
    evicted = any(item.is_eviction for _, item in rows)
    unchecked = any(each.is_by_name for each in answer.items)
    return Report(
        title=(strong(answer.selection or "All namespaces"),),
        tone="warn" if evicted else "good",
        lead=_headline(answer),
        facts=[
            *absent_facts(answer.assumptions),
            *(["pods that are gone are recognized by their names"] if unchecked else []),
        ],
        sections=[
            Section(
                "CAUSES",
                blocks=[
                    Table(
                        columns("PODS", "LAST", "NODES", "WHAT HAPPENED", right=["PODS"]),
                        # A cause with one pod is on the pod's line.
                        [_cause_row(words, group, options) for words, group in by_number if len(group) > 1],
                        noun="cause",
                    )
                ],
                priority=_CAUSES,
            ),
            Section(
                "PODS",
                blocks=[
                    Table(
                        columns("WHEN", "POD", "NODE", "WHAT HAPPENED"),
                        [_pod_row(each, item, options) for each, item in rows],
                        noun="row",
                        shown=_PODS_SHOWN,
                        is_main=True,
                    )
                ],
                priority=_PODS,
            ),
            *([looked_at(answer.sources, answer.assumptions)] if options.is_full or not answer.items else []),
            *assumption_sections(answer.assumptions),
        ],
        command="who-evicted",
    )


def _headline(answer: EvictedPods) -> Phrase:
    """How many pods were evicted, and if none, what happened to most of the others."""
    scope: Phrase = (" of ", strong(answer.selection)) if answer.selection else (" in all namespaces",)
    if answer.selection.startswith("pods named "):
        scope = (" named ", strong(answer.selection.removeprefix("pods named ")))
    running = f"{count(answer.running, 'pod')} {agree(answer.running, 'is')} running"
    if not answer.items:
        unread = unread_events(answer.assumptions)
        known = (
            f"Others are unknown: events {unread}."
            if unread
            else "Earlier evictions are unknown: events are kept for an hour."
        )
        return ("No eviction of a pod", *scope, f" is known; {running}. {known}")
    evicted = [each for each in answer.items if any(item.is_eviction for item in each.items)]
    others = [each for each in answer.items if each not in evicted]
    causes = Counter(brief(each.items[0]) for each in others)
    gone = sum(each.victim.phase is PodPhase.NOT_FOUND for each in answer.items)
    facts = "; ".join(filter(None, (f"{gone:,} {agree(gone, 'is')} gone" if gone else "", running)))
    if evicted:
        were = f"{count(len(evicted), 'pod')}"
        verb = Span(f" {agree(len(evicted), 'was')} evicted", "warn")
        also = f", and {len(others):,} ended or restarted otherwise" if others else ""
        return (were, *scope, verb, f"{also}; {facts}.")
    most = causes.most_common(1)[0][0]
    most = most if len(causes) == 1 else f"most often {most}"
    return (
        "No pod",
        *scope,
        Span(" was evicted", "good"),
        f", but {len(others):,} ended or restarted: {most}; {facts}.",
    )


def _cause_row(words: str, group: list[tuple[EvictedPod, PodTermination]], options: RenderOptions) -> list[Words]:
    nodes = list(dict.fromkeys(item.node for _, item in group if item.node))
    times = [item.at for _, item in group if item.at is not None]
    pods = len({each.victim.pod for each, _ in group})
    last = ago(max(times), options.now).removeprefix(" at").strip() if times else "-"
    return [f"{pods:,}", last, join_names(nodes) if nodes else "-", words]


def _pod_row(each: EvictedPod, item: PodTermination, options: RenderOptions) -> list[Words]:
    when = ago(item.at, options.now).removeprefix(" at").strip() or "-"
    return [when, strong(each.victim.pod), item.node or "-", brief(item)]
