"""The first sentence: what happens to the pod, for a reader who reads nothing else; and who the pod is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from kpreempt.report.amounts import agree, count, format_amount, format_reading, name_all
from kpreempt.report.blocks import Phrase, Span, strong
from kpreempt.report.evidence import describe_devices, join_names, refusal_of
from kpreempt.report.explain.chance import (
    chance_of_landing,
    chance_of_preemption,
    chance_of_volumes,
    order_in_a_sentence,
)
from kpreempt.report.explain.changes import describe_changes
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import AssumptionKind, Outcome, Reprieve, Verdict, Victim
from kpreempt.verdict.details import InsufficientDevices
from kpreempt.verdict.unread import absent_sentence, are_budgets_unread, is_absent

_NOT_READ = (AssumptionKind.UNREADABLE, AssumptionKind.ABSENT)
_MAX_TIED = 3
# There are hardly more kinds of refusal on one cluster.
_MAX_CLAUSES = 8
_EVEN_EMPTY = ": even when empty these nodes refuse it"
# How the scheduler says that an earlier preemption of the pod is under way.
_WAITING = "a terminating pod on the nominated node"


def headline(verdict: Verdict) -> Phrase:
    """What becomes of the pod and what that costs, and for one that is unschedulable the smallest change."""
    phrase = answer(verdict)
    unknown = _sentences(absent_sentence(verdict.assumptions))
    if not verdict.proposals or verdict.outcome != Outcome.NEVER_LANDS:
        return (*phrase, *unknown)
    smallest = describe_changes(verdict.proposals[0].changes)
    search = verdict.proposal_search
    is_known = search is None or search.is_complete
    change = " Smallest change: " if is_known else " Smallest change that was found: "
    return (*phrase, *unknown, change, *smallest, ".")


def answer(verdict: Verdict, *, kinds: int = _MAX_CLAUSES) -> Phrase:
    """One or two sentences that say what becomes of the pod and what that costs.

    Of refusals so many ``kinds`` at most are named, the most frequent ones, and the nodes of the others counted.
    """
    said = _never(verdict, kinds) if verdict.outcome == Outcome.NEVER_LANDS else _HEADLINES[verdict.outcome](verdict)
    pod = verdict.pod
    # Where a pod is whose answer is that of one created again.
    whereabouts: Phrase = ()
    if pod.current_phase:
        verb = {"Running": "runs", "Terminating": "is terminating", "Finished": "has finished"}.get(
            pod.current_phase, "is"
        )
        where = (" on ", strong(pod.current_node)) if pod.current_node else ()
        whereabouts = (strong(pod_name(verdict)), f" {verb}", *where, ". Created anew: ")
    return (*whereabouts, *said, *_sentences(chance_of_volumes(verdict)))


def pod_name(verdict: Verdict) -> str:
    """``namespace/name`` of the pod in question."""
    return f"{verdict.pod.namespace}/{verdict.pod.name}" if verdict.pod.namespace else verdict.pod.name


def pod_facts(verdict: Verdict) -> Phrase:
    """The pod's priority, requests and origin on one line."""
    pod = verdict.pod
    class_name = f' "{pod.priority_class_name}"' if pod.priority_class_name else ""
    facts = [f"priority {pod.priority:,}{class_name}"]
    facts += [f"{resource} {format_amount(resource, amount)}" for resource, amount in pod.requests.items() if amount]
    if pod.origin:
        facts.append(f"from {pod.origin}")
    if pod.nominated_node_name:
        facts.append(f"nominated to {pod.nominated_node_name}")
    return (Span(" · ".join(facts), "dim"),)


def cluster_facts(verdict: Verdict, options: RenderOptions) -> Phrase:
    """What the cluster is, and how old the picture of it."""
    cluster = verdict.cluster
    facts = [count(cluster.nodes, "node"), count(cluster.pods, "pod")]
    if cluster.version:
        facts.append(cluster.version)
    if cluster.age_seconds is not None:
        facts.append(format_reading(cluster.age_seconds))
    facts.append(verdict.algorithm)
    if options.verbose and cluster.skipped:
        skipped = ", ".join(f"{number:,} {kind}" for kind, number in sorted(cluster.skipped.items()))
        facts.append(f"not read: {skipped}")
    return (Span(" · ".join(facts), "dim"),)


def name_nodes(nodes: Sequence[str]) -> Phrase:
    """One node, or those among which the scheduler picks: ``a``, ``a or b``, ``one of a, b, c and 4 more``."""
    if len(nodes) < 3:
        first, *others = (strong(node) for node in nodes)
        return (first, *(part for other in others for part in (" or ", other)))
    return ("one of ", strong(join_names(nodes, limit=_MAX_TIED)))


def destinations(verdict: Verdict) -> list[str]:
    """The nodes, one or those that tie, that the pod ends on now or after evictions."""
    return verdict.nominated_nodes or verdict.lands_on or verdict.chosen_nodes


def acted_on(verdict: Verdict) -> str:
    """The node that the effects are on, of several that tie: the one that the scheduler's message names, if it does."""
    start = "status.nominatedNodeName="
    texts = (each.text for each in verdict.effects if each.action == "nominate")
    return next((text.removeprefix(start) for text in texts), "")


def _lands(verdict: Verdict) -> Phrase:
    nodes = destinations(verdict)
    nominated = " on the node that it is nominated to," if nodes == [verdict.pod.nominated_node_name] else " on"
    tie = f"{'Both' if len(nodes) == 2 else 'They'} have the best score; the scheduler picks one at random."
    if verdict.feasible_nodes and not verdict.scores:
        tie = "Which of them is a matter of scores, which are not computed."
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
        f" ({terminating:,} {agree(terminating, 'is')} terminating already)" if terminating and len(nodes) == 1 else ""
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
        terminating_already = f"{evicted.partition(' ')[0]} terminating {evicted.partition(' ')[2]}"
        act = (" waits for ", strong(terminating_already), " on ", *name_nodes(nodes), " and lands there")
    tie = f"{'Both' if len(nodes) == 2 else 'All'} are equal by every rule; the scheduler picks one at random."
    chance = _sentences(tie if len(nodes) > 1 else "", order_in_a_sentence(verdict), chance_of_preemption(verdict))
    return (strong(pod_name(verdict)), *act, "; ", *_budget_clause(verdict), ".", *chance)


def _sentences(*sentences: str) -> Phrase:
    """Those that say something, each after a space."""
    return tuple(f" {sentence}" for sentence in sentences if sentence)


def _budget_clause(verdict: Verdict) -> Phrase:
    if are_budgets_unread(verdict.assumptions):
        return (Span("which budgets are violated is unknown, because they were not read", "warn"),)
    # Only another order than the likely one violates a budget.
    if verdict.worst_outcome != verdict.outcome:
        return (Span("whether a budget is violated depends on the order of equal pods", "bad"),)
    if verdict.outcome != Outcome.PREEMPTS_VIOLATING_BUDGETS:
        return (Span("no budget is violated", "good"),)
    # The budgets that evicting these pods really overdraws, each once, in order.
    gone = (victim for victims in verdict.victims.values() for victim in victims)
    overdrawn = _overdrawn(gone)
    # The scheduler counts before any pod is given back, so budgets can be counted that are not overdrawn.
    nominated = [candidate for candidate in verdict.candidates if candidate.node in verdict.nominated_nodes]
    steps = (step for candidate in nominated for step in candidate.steps if step.violates_budget and not step.kept)
    budgets = overdrawn or _overdrawn(steps)
    if not budgets:
        return (Span("this violates a disruption budget", "bad"),)
    named = f"{'budget' if len(budgets) == 1 else 'budgets'} {join_names(budgets, limit=5)}"
    if overdrawn:
        return (Span(f"this violates {named}", "bad"),)
    counted = Span(f"the scheduler counts this as violating {named}", "warn")
    return (counted, ", though these evictions alone stay within what is allowed")


def _overdrawn(gone: Iterable[Victim | Reprieve]) -> list[str]:
    return list(dict.fromkeys(use.budget for each in gone for use in each.budgets if use.left < 0))


def no_nodes(verdict: Verdict) -> str:
    """That no node was looked at, because there is none, or none in the snapshot."""
    return "the snapshot has no nodes" if is_absent(verdict.assumptions, "Node") else "the cluster has no nodes"


def _never(verdict: Verdict, kinds: int) -> Phrase:
    name = strong(pod_name(verdict))
    if not verdict.filter and not verdict.cluster.nodes:
        return (name, Span(" is unschedulable now", "bad"), f": {no_nodes(verdict)}.")
    if verdict.reason:
        return (name, Span(" is not placed", "bad"), f": {verdict.reason.rstrip('.')}.")
    if verdict.eligibility is not None and not verdict.eligibility.eligible:
        if _WAITING in verdict.eligibility.reason:
            where = f"; victims of its preemption on {verdict.pod.nominated_node_name} are still terminating"
            until = ", and until they are gone it preempts no others"
            return (name, Span(" has to wait", "warn"), ": ", *_refusals(verdict, kinds), where, until, ".")
        reason = verdict.eligibility.reason if verdict.eligibility else ""
        return (
            name,
            Span(" is unschedulable now", "bad"),
            ": ",
            *_refusals(verdict, kinds),
            "; it may not preempt: ",
            reason.removeprefix("not eligible due to ").rstrip("."),
            ".",
        )
    # It would fit beside pods of lower priority if these left their devices, which an eviction does not do.
    kept_devices = next(
        (
            f", as evicting pods frees no device: on {node}, {describe_devices(detail)}"
            for node, status in verdict.filter.items()
            if isinstance(detail := status.detail, InsufficientDevices) and detail.fits_without_lower
        ),
        "",
    )
    return (
        name,
        Span(" is unschedulable now", "bad"),
        ": ",
        *_refusals(verdict, kinds),
        f"; preemption doesn't help{_EVEN_EMPTY if verdict.refused_for_good else kept_devices}.",
    )


def _refusals(verdict: Verdict, kinds: int) -> Phrase:
    """How many nodes refuse the pod, and why: so many kinds of refusal, the most frequent first."""
    if verdict.pre_filter is not None:
        return (verdict.pre_filter.message,)
    total = len(verdict.filter)
    ranked = Counter(map(refusal_of, verdict.filter.values())).most_common()
    if total == 1:
        return (f"the only node {ranked[0][0]}",)
    clauses = [f"{number:,} {for_many(clause) if number > 1 else clause}" for clause, number in ranked[:kinds]]
    if rest := sum(number for _, number in ranked[kinds:]):
        clauses.append(f"{rest:,} more {agree(rest, 'refuses')} it")
    if len(ranked) == 1:
        return (f"{name_all(total)} {for_many(ranked[0][0])}",)
    return (f"of {total:,} nodes, {join_names(clauses, limit=len(clauses))}",)


def for_many(clause: str) -> str:
    """What one node does or is, said of several: ``are too full`` for ``is too full``."""
    verb, _, rest = clause.partition(" ")
    return f"{agree(2, verb)} {rest}".rstrip()


def _not_scheduled(verdict: Verdict) -> Phrase:
    reason = verdict.reason or verdict.message or "the scheduler does not look at it"
    if verdict.held_by:
        reason = f"plugin {verdict.held_by} holds it back: {reason}"
    return (strong(pod_name(verdict)), Span(" is not scheduled", "warn"), ": ", reason.rstrip("."), ".")


def _uncertain(verdict: Verdict) -> Phrase:
    # The cluster's version and PDBs make no outcome uncertain: PDBs decide which pods go.
    others = [each for each in verdict.assumptions if each.subject not in ("cluster", "PodDisruptionBudget")]
    unread = next((each for each in others if each.kind in _NOT_READ), None)
    first = next((each for each in others if each.kind is not AssumptionKind.NOTE), None)
    reason = verdict.reason or (first.message if first else "")
    # What the scheduler seems to miss may be there.
    if unread is not None:
        colon = ":" if unread.kind is AssumptionKind.ABSENT else ""
        reason = f"{unread.subject}{colon} {unread.message}"
    because = (": ", reason.rstrip(".")) if reason else ()
    phrase: Phrase = ("What becomes of ", strong(pod_name(verdict)), Span(" is uncertain", "warn"), *because, ".")
    if not (nodes := destinations(verdict)):
        return phrase
    act = "preempt pods on" if verdict.nominated_nodes else "land on"
    return (*phrase, f" Leaving that aside, it would {act} ", *name_nodes(nodes), ".")


_HEADLINES = {
    Outcome.LANDS: _lands,
    Outcome.PREEMPTS: _preempts,
    Outcome.PREEMPTS_VIOLATING_BUDGETS: _preempts,
    Outcome.NOT_SCHEDULED: _not_scheduled,
    Outcome.UNCERTAIN: _uncertain,
}
