"""The first sentence of a report, which answers what happens to the pod; also the pod's name and facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kpreempt.report.amounts import agree, count, format_amount, format_reading
from kpreempt.report.blocks import Phrase, Span, strong
from kpreempt.report.evidence import devices_in_a_sentence, join_names, size_facts
from kpreempt.report.explain.chance import (
    chance_of_landing,
    chance_of_preemption,
    chance_of_volumes,
    order_in_a_sentence,
)
from kpreempt.report.options import RenderOptions
from kpreempt.report.remedies import action, cause_in_words
from kpreempt.verdict import Assumption, AssumptionKind, Outcome, Reprieve, Verdict, Victim
from kpreempt.verdict.details import InsufficientDevices
from kpreempt.verdict.remedies import CauseKind
from kpreempt.verdict.unread import LIST, absent_sentence, are_budgets_unread, assumption_text, is_absent, lacks_nodes

_NOT_READ = (AssumptionKind.UNREADABLE, AssumptionKind.ABSENT)
_MAX_TIED = 3
# A cluster hardly ever shows more kinds of rejections.
_MAX_CLAUSES = 8
_EVEN_EMPTY = ", because these nodes reject the pod even when empty"


def headline(verdict: Verdict) -> Phrase:
    """The pod's outcome and its cost; for an unschedulable pod, also the first remedy.

    What the input lacks is part of the first sentences on a workload, and not repeated for its first pod.
    """
    phrase = answer(verdict)
    unknown = _sentences(unknown_sentence(verdict)) if verdict.workload is None else ()
    if not verdict.remedies or not verdict.outcome.stays_pending:
        return (*phrase, *unknown)
    return (*phrase, *unknown, " First remedy: ", strong(action(verdict.remedies[0])), ".")


def unknown_sentence(verdict: Verdict) -> str:
    """A sentence on what the input lacks, unless that is why the outcome is uncertain."""
    is_uncertain = verdict.known is None and verdict.outcome is Outcome.UNCERTAIN
    why = _uncertain_because(verdict) if is_uncertain else None
    is_said = is_uncertain and lacks_nodes(verdict.assumptions)
    others = [each for each in verdict.assumptions if each != why and not (is_said and each.subject == "Node")]
    return absent_sentence(others)


def _uncertain_because(verdict: Verdict) -> Assumption | None:
    """The kind that was not read because of which the outcome is uncertain."""
    # The cluster version and PDBs never make an outcome uncertain: PDBs only decide which pods are evicted.
    others = (each for each in verdict.assumptions if each.subject not in ("cluster", "PodDisruptionBudget"))
    return next((each for each in others if each.kind in _NOT_READ), None)


def answer(verdict: Verdict, *, kinds: int = _MAX_CLAUSES) -> Phrase:
    """One or two sentences on the pod's outcome and its cost.

    At most ``kinds`` kinds of rejection are listed, most frequent first; the nodes of the others are counted.
    """
    if verdict.known is not None and verdict.outcome is Outcome.UNCERTAIN:
        return _without_nodes(verdict)
    outcome = _never(verdict, kinds) if verdict.outcome.stays_pending else _HEADLINES[verdict.outcome](verdict)
    deadlock = next((each for each in verdict.causes if each.kind is CauseKind.ROLLOUT_DEADLOCK), None)
    if deadlock is not None:
        outcome = (strong(pod_name(verdict)), " is in a ", Span(cause_in_words(deadlock), "bad"), ".")
    pod = verdict.pod
    # A pod that exists is evaluated as if it were created again, so say what it does now.
    current: Phrase = ()
    if verdict.on_node is not None:
        from kpreempt.report.explain.still_pending import before_outcome  # noqa: PLC0415 - rarely needed

        current = before_outcome(verdict, pod_name(verdict))
        if not pod.current_phase:
            return current
        current = (*current, "If it were recreated: ")
    elif pod.current_phase:
        current = (*_now(verdict), "If it were recreated: ")
    return (*current, *outcome, *_health(verdict), *_sentences(chance_of_volumes(verdict), _why_pending(verdict)))


def _health(verdict: Verdict) -> Phrase:
    """A warning if the pod ends up on a node that is not ready, deleted or being removed."""
    if not verdict.cluster.unhealthy or not verdict.outcome.finds_node:
        return ()
    from kpreempt.report.node_health import warning_about  # noqa: PLC0415 - most clusters have no such node

    warning = warning_about(verdict.cluster.unhealthy, destinations(verdict))
    return (" ", Span(warning, "bad")) if warning else ()


def _without_nodes(verdict: Verdict) -> Phrase:
    """What the pod does now, and that there is no verdict on it."""
    from kpreempt.report.explain.known import no_verdict  # noqa: PLC0415 - rarely needed
    from kpreempt.report.explain.still_pending import before_outcome  # noqa: PLC0415

    pod, name = verdict.pod, pod_name(verdict)
    missing = (*no_verdict(verdict, name), *_sentences(_why_pending(verdict)))
    if verdict.on_node is not None:
        return (*before_outcome(verdict, name), *missing)
    return (*_now(verdict), *missing) if pod.current_phase else missing


def _now(verdict: Verdict) -> Phrase:
    """The sentence on what an existing pod that needs no node does now."""
    pod = verdict.pod
    verbs = {"Running": "runs", "Terminating": "is terminating", "Finished": "has finished"}
    verb = verbs.get(pod.current_phase or "", "is")
    node = (" on ", strong(pod.current_node)) if pod.current_node else ()
    resize: Phrase = ()
    if verdict.resize is not None:
        from kpreempt.report.pending.resizes import needs_in_words  # noqa: PLC0415 - rarely needed

        resize = ("; ", Span(needs_in_words(verdict.resize), "warn"))
    return (strong(pod_name(verdict)), f" {verb}", *node, *resize, ". ")


def _why_pending(verdict: Verdict) -> str:
    """Why a pod with this outcome is still pending, if it exists."""
    if verdict.still_pending is None:
        return ""
    from kpreempt.report.explain.still_pending import after_outcome  # noqa: PLC0415 - only for existing pods

    return after_outcome(verdict)


def pod_name(verdict: Verdict) -> str:
    """``namespace/name`` of the pod in question."""
    return f"{verdict.pod.namespace}/{verdict.pod.name}" if verdict.pod.namespace else verdict.pod.name


def pod_facts(verdict: Verdict) -> Phrase:
    """The pod's priority, requests and origin on one line."""
    pod = verdict.pod
    class_name = f' "{pod.priority_class_name}"' if pod.priority_class_name else ""
    facts = [f"priority {pod.priority:,}{class_name}"]
    if verdict.known is not None and verdict.known.has_unknown_priority:
        facts = [f"priority unknown{class_name}"]
    facts += [f"{resource} {format_amount(resource, amount)}" for resource, amount in pod.requests.items() if amount]
    if pod.origin:
        facts.append(f"from {pod.origin}")
    if pod.nominated_node_name:
        facts.append(f"nominated to {pod.nominated_node_name}")
    return (Span(" · ".join(facts), "dim"),)


def cluster_facts(verdict: Verdict, options: RenderOptions) -> Phrase:
    """The size and version of the cluster, and the age of the snapshot."""
    cluster = verdict.cluster
    facts = size_facts(cluster, verdict.assumptions)
    if cluster.version:
        facts.append(cluster.version)
    if cluster.age_seconds is not None:
        facts.append(format_reading(cluster.age_seconds))
    facts.append(verdict.algorithm)
    if options.verbose and cluster.skipped:
        skipped = ", ".join(f"{number:,} {kind}" for kind, number in sorted(cluster.skipped.items()))
        facts.append(f"skipped: {skipped}")
    return (Span(" · ".join(facts), "dim"),)


def name_nodes(nodes: Sequence[str]) -> Phrase:
    """One node, or the nodes the scheduler picks from: ``a``, ``a or b``, ``one of a, b, c and 4 more``."""
    if len(nodes) < 3:
        first, *others = (strong(node) for node in nodes)
        return (first, *(part for other in others for part in (" or ", other)))
    return ("one of ", strong(join_names(nodes, limit=_MAX_TIED)))


def destinations(verdict: Verdict) -> list[str]:
    """The nodes the pod ends up on, now or after evictions: one, or several that tie."""
    return verdict.nominated_nodes or verdict.lands_on or verdict.chosen_nodes


def acted_on(verdict: Verdict) -> str:
    """The node the effects apply to: among tied nodes, the one named in the scheduler's message, if any."""
    start = "status.nominatedNodeName="
    texts = (each.text for each in verdict.effects if each.action == "nominate")
    return next((text.removeprefix(start) for text in texts), "")


def _lands(verdict: Verdict) -> Phrase:
    nodes = destinations(verdict)
    nominated = " on its nominated node," if nodes == [verdict.pod.nominated_node_name] else " on"
    tie = f"{'Both' if len(nodes) == 2 else 'They'} have the best score; the scheduler picks one at random."
    if verdict.feasible_nodes and not verdict.scores:
        tie = "The scores would decide, but they are not computed."
    return (
        strong(pod_name(verdict)),
        Span(" lands", "good"),
        f"{nominated} ",
        *name_nodes(nodes or ["a node"]),
        "; nothing is evicted.",
        *_sentences(tie if len(nodes) > 1 else "", chance_of_landing(verdict)),
    )


def _preempts(verdict: Verdict) -> Phrase:
    nodes = verdict.nominated_nodes or ["a node"]
    victims = [verdict.victims.get(node, []) for node in nodes]
    sizes = sorted({len(each) for each in victims})
    evicted = count(sizes[0], "pod") if len(sizes) == 1 else f"{sizes[0]:,} to {count(sizes[-1], 'pod')}"
    terminating = sum(victim.terminating for victim in victims[0])
    leaving = all(victim.terminating for each in victims for victim in each)
    already = (
        f" ({terminating:,} {agree(terminating, 'is')} already terminating)" if terminating and len(nodes) == 1 else ""
    )
    act: Phrase = (
        Span(" preempts ", "warn"),
        strong(evicted),
        already,
        " on ",
        *name_nodes(nodes),
        " and lands there",
    )
    if leaving:
        victims_with_state = f"{evicted.partition(' ')[0]} terminating {evicted.partition(' ')[2]}"
        act = (" waits for ", strong(victims_with_state), " on ", *name_nodes(nodes), ", then lands there")
    tie = f"{'Both' if len(nodes) == 2 else 'All'} are tied under every rule; the scheduler picks one at random."
    chance = _sentences(tie if len(nodes) > 1 else "", order_in_a_sentence(verdict), chance_of_preemption(verdict))
    return (strong(pod_name(verdict)), *act, "; ", *_budget_clause(verdict), ".", *chance)


def _sentences(*sentences: str) -> Phrase:
    """The sentences that are not empty, each with a leading space."""
    return tuple(f" {sentence}" for sentence in sentences if sentence)


def _budget_clause(verdict: Verdict) -> Phrase:
    if are_budgets_unread(verdict.assumptions):
        return (Span("budget violations are unknown because PodDisruptionBudgets were not read", "warn"),)
    # Only an unlikely order of tied pods violates a budget.
    if verdict.worst_outcome != verdict.outcome:
        return (Span("whether a budget is violated depends on the order of tied pods", "bad"),)
    if verdict.outcome != Outcome.PREEMPTS_VIOLATING_BUDGETS:
        return (Span("no budget is violated", "good"),)
    # The budgets that these evictions overdraw, each once, in order.
    evicted = (victim for victims in verdict.victims.values() for victim in victims)
    overdrawn = _overdrawn(evicted)
    # The scheduler counts violations before it reprieves any pod, so it can count budgets that are not overdrawn.
    nominated = [candidate for candidate in verdict.candidates if candidate.node in verdict.nominated_nodes]
    steps = (
        step for candidate in nominated for step in candidate.steps if step.violates_budget and not step.is_reprieved
    )
    budgets = overdrawn or _overdrawn(steps)
    if not budgets:
        return (Span("this violates a disruption budget", "bad"),)
    named = f"{'budget' if len(budgets) == 1 else 'budgets'} {join_names(budgets, limit=5)}"
    if overdrawn:
        return (Span(f"this violates {named}", "bad"),)
    counted = Span(f"the scheduler counts this as violating {named}", "warn")
    numbers = [len(verdict.victims.get(node, ())) for node in verdict.nominated_nodes]
    victims = "this victim" if numbers == [1] else "these victims"
    return (counted, f", although evicting {victims} stays within the allowed disruptions")


def _overdrawn(pods: Iterable[Victim | Reprieve]) -> list[str]:
    return list(dict.fromkeys(use.budget for each in pods for use in each.budgets if use.remaining < 0))


def no_nodes(verdict: Verdict) -> str:
    """A sentence saying that there are no nodes: in the cluster, or in the snapshot."""
    return "the snapshot has no nodes" if is_absent(verdict.assumptions, "Node") else "the cluster has no nodes"


def _never(verdict: Verdict, kinds: int) -> Phrase:
    name = strong(pod_name(verdict))
    if not verdict.filter and not verdict.cluster.nodes:
        return (name, Span(" is unschedulable now", "bad"), f": {no_nodes(verdict)}.")
    if verdict.reason:
        return (name, Span(" cannot be scheduled", "bad"), f": {verdict.reason.rstrip('.')}.")
    if verdict.eligibility is not None and not verdict.eligibility.eligible:
        if verdict.eligibility.is_waiting:
            node = verdict.pod.nominated_node_name
            waiting = f"; the victims of its earlier preemption on {node} are still terminating"
            until = ", and it preempts no other pods until they are gone"
            return (name, Span(" has to wait", "warn"), ": ", *_rejections(verdict, kinds), waiting, until, ".")
        reason = verdict.eligibility.reason if verdict.eligibility else ""
        return (
            name,
            Span(" is unschedulable now", "bad"),
            ": ",
            *_rejections(verdict, kinds),
            "; the pod can't preempt: ",
            reason.removeprefix("not eligible due to ").rstrip("."),
            ".",
        )
    # The pod would fit next to lower-priority pods if they released their devices, but evictions release no devices.
    kept_devices = next(
        (
            f", because evicting pods does not free devices. On {node}, {devices_in_a_sentence(detail)}"
            for node, status in verdict.filter.items()
            if isinstance(detail := status.detail, InsufficientDevices) and detail.fits_without_lower
        ),
        "",
    )
    if verdict.permanently_unschedulable:
        kept_devices = ""
    even_empty = _EVEN_EMPTY if verdict.permanently_unschedulable else ""
    return (
        name,
        Span(" is unschedulable now", "bad"),
        ": ",
        *_rejections(verdict, kinds),
        f"{'. Preemption' if kept_devices else '; preemption'} doesn't help{kept_devices}{even_empty}.",
    )


def _rejections(verdict: Verdict, kinds: int) -> Phrase:
    """How many nodes reject the pod, and why: at most ``kinds`` kinds of rejection, most frequent first."""
    if verdict.pre_filter is not None:
        return (verdict.pre_filter.message,)
    # Only for pods that stay pending.
    from kpreempt.report.rejected_nodes import rejections_in_words  # noqa: PLC0415
    from kpreempt.verdict.rejections import rejected_nodes  # noqa: PLC0415

    return (rejections_in_words(rejected_nodes(verdict), kinds),)


def _not_scheduled(verdict: Verdict) -> Phrase:
    reason = verdict.reason or verdict.message or "the scheduler does not consider it"
    if verdict.held_by:
        reason = f"plugin {verdict.held_by} blocks it: {reason}"
    return (strong(pod_name(verdict)), Span(" is not scheduled", "warn"), ": ", reason.rstrip("."), ".")


def _rejected(verdict: Verdict) -> Phrase:
    name = verdict.pod.origin or pod_name(verdict)
    return ("the API server rejects ", strong(name), Span(f": {verdict.reason.rstrip('.')}", "bad"), ".")


def _uncertain(verdict: Verdict) -> Phrase:
    others = [each for each in verdict.assumptions if each.subject not in ("cluster", "PodDisruptionBudget")]
    unread = _uncertain_because(verdict)
    first = next((each for each in others if each.kind.is_assumed and each.kind is not AssumptionKind.NOTE), None)
    reason = verdict.reason or (first.message if first else "")
    # A resource that seems missing may exist.
    if unread is not None:
        reason = assumption_text(unread) if unread.field == LIST else unread.message
        if unread.field == LIST and unread.kind is AssumptionKind.UNREADABLE:
            reason = f"{unread.subject} {unread.message}"
    because = (": ", reason.rstrip(".")) if reason else ()
    phrase: Phrase = ("The outcome for ", strong(pod_name(verdict)), Span(" is uncertain", "warn"), *because, ".")
    if not (nodes := destinations(verdict)):
        return phrase
    act = "preempts pods on" if verdict.nominated_nodes else "lands on"
    return (*phrase, f" If that has no effect, {pod_name(verdict)} {act} ", *name_nodes(nodes), ".")


_HEADLINES = {
    Outcome.LANDS: _lands,
    Outcome.PREEMPTS: _preempts,
    Outcome.PREEMPTS_VIOLATING_BUDGETS: _preempts,
    Outcome.NOT_SCHEDULED: _not_scheduled,
    Outcome.UNCERTAIN: _uncertain,
    Outcome.REJECTED: _rejected,
}
