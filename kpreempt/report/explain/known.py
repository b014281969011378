"""What is known about a pod without nodes: the first sentences, and its condition, owner, quotas and PDBs."""

from __future__ import annotations

import msgspec

from kpreempt.report.amounts import ago, agree, count
from kpreempt.report.blocks import Code, Listing, Phrase, Section, Span, Words, strong
from kpreempt.verdict import Outcome, Verdict
from kpreempt.verdict.unread import plural_of, why_no_nodes
from kpreempt.verdict.waiting import BudgetState, KnownFacts, OwnerState, QuotaUse

_SAYS, _MEANS, _OWNER, _QUOTAS, _BUDGETS = 94, 92, 91, 90, 89
_SHOWN = 4
# The parts of a message that this answer does not have itself.
_PARTS = ("REASONS", "PREEMPTION")


def no_verdict(verdict: Verdict, name: str) -> Phrase:
    """The sentence that there is no verdict on the pod or workload, and why."""
    why = why_no_nodes(verdict.assumptions)
    # What to add to a dump is in the next sentence.
    return (Span("No verdict", "warn"), " on ", strong(name), f": {why}." if why else " without nodes.")


def pods_in_words(owner: OwnerState) -> Phrase:
    """How many pods the workload has, and how many of these run."""
    pods = count(owner.pods, "pod") if owner.desired is None else f"{owner.pods:,} of {count(owner.desired, 'pod')}"
    return (f"{pods} {agree(owner.pods, 'exists')}, {owner.on_nodes:,} on nodes, {owner.ready:,} ready",)


def known_sections(verdict: Verdict) -> list[Section]:
    """``CONDITION``, ``OWNER``, ``QUOTAS`` and ``PDBS``: what the input says about the pod."""
    known = verdict.known
    if known is None:
        return []
    return [*_scheduler_message(verdict, known), _owner(known), _quotas(known), _budgets(known)]


def _scheduler_message(verdict: Verdict, known: KnownFacts) -> list[Section]:
    """``CONDITION`` with the scheduler's message, verbatim, and what its parts mean."""
    if not known.message or verdict.outcome is Outcome.NOT_SCHEDULED:
        return []
    first = ago(known.since, known.at).strip()
    last = ago(known.last_attempt, known.at).strip()
    times = ", ".join(filter(None, (f"first {first}" if first else "", f"last {last}" if last else "")))
    lead = f"reported by the scheduler{f' ({times})' if times else ''}:"
    condition = Section("CONDITION", lead, [Code(known.message)], is_inline=True, priority=_SAYS, reserved_lines=4)
    if known.scheduling is None:
        return [condition]
    from kpreempt.report.messages import PodInMessage, lead_of_message, message_sections  # noqa: PLC0415 - rarely needed

    pod = PodInMessage(verdict.pod.namespace, verdict.pod.name)
    short = Section("CONDITION", (f"{lead} ", *lead_of_message(known.scheduling, pod)), is_inline=True)
    condition = msgspec.structs.replace(condition, short=short, reserved_lines=3)
    parts = message_sections(known.scheduling, pod, priority=_MEANS)
    return [condition, *(each for each in parts if each.label in _PARTS)]


def _owner(known: KnownFacts) -> Section:
    owner = known.owner
    if owner is None:
        return Section("OWNER")
    lines: list[list[Words]] = []
    if owner.missing_pods:
        from kpreempt.report.missing_pods import in_a_line  # noqa: PLC0415 - rarely needed

        lines = [[in_a_line(each, known.at)] for each in owner.missing_pods]
    lead: Phrase = (strong(owner.workload), ": ", *pods_in_words(owner))
    return Section("OWNER", lead, [Listing(lines, noun="reason", shown=_SHOWN)], priority=_OWNER, is_inline=True)


def _quotas(known: KnownFacts) -> Section:
    lines: list[list[Words]] = [[_quota(each)] for each in known.quotas]
    rejecting = [each for each in known.quotas if each.rejects]
    lines += [[(Span("rejects one more pod like this", "bad"), f": {each.rejects}")] for each in rejecting]
    words = "" if lines else _none("ResourceQuota", known)
    return Section("QUOTAS", words, [Listing(lines, noun="quota", shown=_SHOWN)], priority=_QUOTAS, is_inline=True)


def _quota(quota: QuotaUse) -> Phrase:
    amounts = (f"{key} {quota.used.get(key, '?')} of {limit}" for key, limit in quota.hard.items())
    return (strong(quota.quota), f": {', '.join(amounts)}")


def _budgets(known: KnownFacts) -> Section:
    lines: list[list[Words]] = [[_budget(each)] for each in known.budgets]
    words = "" if lines else _none("PodDisruptionBudget", known)
    return Section("PDBS", words, [Listing(lines, noun="PDB", shown=_SHOWN)], priority=_BUDGETS, is_inline=True)


def _budget(budget: BudgetState) -> Phrase:
    allows = f"allows {count(budget.disruptions_allowed, 'disruption')}"
    healthy = f"{budget.current_healthy:,} of {count(budget.expected_pods, 'pod')} healthy"
    return (strong(budget.budget), f": {allows} ({healthy}, needs {budget.desired_healthy:,})")


def _none(kind: str, known: KnownFacts) -> Span:
    """That no object of the kind applies to the pod, or that this is unknown."""
    if kind in known.unknown:
        return Span(f"unknown: the input has no {plural_of(kind)}", "warn")
    return Span("none applies", "dim")
