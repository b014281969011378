"""What the gate has to say, in the sentences that all formats of ``check`` share.

In a phrase, all that stems from the input is a ``Span`` of its own, and what is not is a plain ``str``: so a format can
set names apart and keep them from being read as markup.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from shlex import quote

from kpreempt.gate_rules import RuleId, Takes
from kpreempt.report.amounts import agree, count
from kpreempt.report.durations import format_duration
from kpreempt.report.layout import Part, Phrase, plain
from kpreempt.report.quoting import message, name, names
from kpreempt.verdict.check import GateFinding, GateStanding, RuleResult

# The rules about protection that a change takes away, those first that a headline names first.
WEAKENED = (
    RuleId.PDB_WEAKENED,
    RuleId.PRIORITY_LOWERED,
    RuleId.PRIORITY_CLASS_IN_USE,
    RuleId.DEFAULT_PRIORITY_CHANGED,
    RuleId.QUOTA_LOOSENED,
    RuleId.NAMESPACE_RELABELED,
    RuleId.OWNER_REMOVED,
)
_LINKS_SHOWN = 5
_ROUNDING = 0.005
# The subject of what is about no single object.
_CLUSTER = "cluster"
# How the gate begins to tell of objects that are taken, and whose pods are not.
_REFUSED_PODS = "its pods are refused"
# How the reason begins for which an object itself is rejected.
_UNKNOWN = "unknown "
# How the links of a chain are written: a victim, and what takes its place.
_BECOMES = " → "


def finding_text(finding: GateFinding) -> str:
    """What is wrong, in one sentence without a full stop, on one line, made safe to show."""
    return plain(finding_phrase(finding))


def finding_phrase(finding: GateFinding) -> Phrase:
    """What is wrong, in one sentence without a full stop, and in how many simulations where that is not in all."""
    often = how_often(finding.in_runs, finding.of_runs, finding.share)
    return (*((f"{often}: ",) if often else ()), *_SENTENCES.get(finding.rule, _of_expression)(finding))


def how_often(runs: int, of_runs: int, share: float) -> str:
    """``in 7 of 20 runs``; empty where there is one, or it is in all of them."""
    if runs == of_runs:
        return ""
    # Runs that are all that there can be need not be equally likely.
    percent = f" ({share:.0%} likely)" if abs(share - runs / of_runs) > _ROUNDING else ""
    return f"in {runs:,} of {count(of_runs, 'run')}{percent}"


def chain_phrase(chain: Sequence[str]) -> Phrase:
    """Who preempts whom: ``shop/api-1 preempts batch/a; its replacement batch/new-2 preempts low/x``.

    ``chain`` is as a finding has it: the pod that begins, then each victim with its replacement, ``a → b``.
    """
    if not chain:
        return ()
    first, *links = chain
    parts: list[Part] = [name(first)]
    replacement = ""
    for number, link in enumerate(links[:_LINKS_SHOWN]):
        victim, _, following = link.partition(_BECOMES)
        if number and replacement:
            parts += ["; its replacement ", name(replacement)]
        evicts = " loses " if not number and first.startswith("Node ") else " preempts "
        parts += ["; then goes " if number and not replacement else evicts, name(victim)]
        replacement = following
    if rest := len(links) - _LINKS_SHOWN if len(links) > _LINKS_SHOWN else 0:
        parts += [f"; and so on, {rest:,} more, down to ", name(links[-1].partition(_BECOMES)[0])]
    return tuple(parts)


def standing_phrase(finding: GateFinding) -> Phrase:
    """Why a finding is excused, or an empty phrase where it is not."""
    words = {
        GateStanding.WAIVED: "waived",
        GateStanding.ACCEPTED: "accepted",
        GateStanding.NOT_NEW: "not new: there without the change, too",
    }.get(finding.standing)
    if words is None:
        return ()
    before, after = (" (", ")") if finding.standing is GateStanding.NOT_NEW else (" by ", "")
    by: Phrase = (before, name(finding.by), after) if finding.by else ()
    until: Phrase = (" until ", name(finding.expires)) if finding.expires else ()
    why: Phrase = (": ", message(finding.reason)) if finding.reason else ()
    return (words, *by, *until, *why)


def waive_option(finding: GateFinding) -> str:
    """The option that waives the finding, quoted for a shell: ``--waive 'max-pending=Deployment shop/api'``."""
    return f"--waive {quote(f'{finding.rule}={finding.subject}')}"


def rule_phrase(result: RuleResult) -> Phrase:
    """A rule by its id, with what it allows: ``max-victims (at most 3)``."""
    if result.limit is None:
        return (str(result.rule),)
    amount = format_duration(result.limit) if result.rule.row.takes is Takes.TIME else f"{result.limit:,}"
    return (str(result.rule), f" (at most {amount})")


def _subject(finding: GateFinding, fallback: str) -> Phrase:
    return (name(finding.subject),) if finding.subject not in ("", _CLUSTER) else (fallback,)


def _pods(finding: GateFinding) -> Phrase:
    return (": ", *names(finding.pods)) if finding.pods else ()


def _detail(finding: GateFinding, before: str = ": ") -> Phrase:
    return (before, message(finding.detail.rstrip().removesuffix("."))) if finding.detail else ()


def _limit(finding: GateFinding) -> str:
    return f" (limit {finding.limit:,})"


def _budget(finding: GateFinding) -> Phrase:
    budget = finding.subject.removeprefix("PodDisruptionBudget ")
    have = f"{count(finding.amount, 'eviction')} beyond its allowed disruptions"
    return ("budget ", name(budget), f": {have}{_limit(finding)}", *_pods(finding))


def _victims(finding: GateFinding) -> Phrase:
    have = f"{count(finding.amount, 'pod')} evicted{_limit(finding)}"
    if finding.subject in ("", _CLUSTER):
        return (have, *_pods(finding))
    return (name(finding.subject), f": {have}", *_pods(finding))


def _victims_of_workload(finding: GateFinding) -> Phrase:
    lost = f": {count(finding.amount, 'pod')} of it evicted{_limit(finding)}"
    return (*_subject(finding, "a workload"), lost, *_pods(finding))


def _forbidden(finding: GateFinding) -> Phrase:
    pods = count(finding.amount, "pod") if finding.amount else "a pod"
    lost = f" is protected, and {pods} of it {agree(max(finding.amount, 1), 'is')} evicted"
    return (*_subject(finding, "a workload"), lost, *_pods(finding), *_detail(finding, "; forbidden by "))


def _unschedulable(finding: GateFinding) -> Phrase:
    if finding.subject.startswith("PersistentVolumeClaim "):
        return (*_subject(finding, ""), " cannot be bound", *_detail(finding))
    if not finding.pods:
        return (*_subject(finding, "the change"), ": not completed in the end", *_detail(finding, "; "))
    pods = f": {count(finding.amount, 'pod')} of it unschedulable"
    return (*_subject(finding, "the change"), pods, *_pods(finding), *_detail(finding, "; "))


def _cascade(finding: GateFinding) -> Phrase:
    lead = chain_phrase(finding.chain) or _subject(finding, "the change")
    return (*lead, f": {count(finding.amount, 'eviction')} in a chain{_limit(finding)}")


def _pending(finding: GateFinding) -> Phrase:
    pods = f": {count(finding.amount, 'pod')} that ran {agree(finding.amount, 'is')} left pending{_limit(finding)}"
    return (*_subject(finding, "the cluster"), pods, *_pods(finding), *_detail(finding, "; "))


def _left_without(finding: GateFinding) -> Phrase:
    if finding.subject.startswith("Service "):
        return (name(finding.subject), " is without a ready pod", *_detail(finding))
    pods = max(finding.amount, len(finding.pods), 1)
    lost = f": {count(pods, 'pod')} left without what {'it needs' if pods == 1 else 'they need'}"
    return (*_subject(finding, "the cluster"), lost, *_pods(finding), *_detail(finding, "; "))


def _lost(finding: GateFinding) -> Phrase:
    is_itself = finding.subject == f"Pod {finding.pods[0]}" if len(finding.pods) == 1 else False
    pods = () if is_itself else _pods(finding)
    gone = f" evicted or deleted, and nothing recreates {'it' if finding.amount == 1 else 'them'}"
    return (*_subject(finding, "a pod"), gone, _limit(finding), *pods)


def _deletion(finding: GateFinding) -> Phrase:
    reason = _detail(finding, "") or ("with ", name(finding.change))
    own = [each for each in finding.pods if finding.subject != f"Pod {each}"]
    pods: Phrase = (f", {count(len(own), 'pod')}: ", *names(own)) if own else ()
    return (*_subject(finding, "a workload"), " is deleted ", *reason, _limit(finding), *pods)


def _refused(finding: GateFinding) -> Phrase:
    if finding.subject.startswith(("ResourceQuota ", "LimitRange ")):
        return (*_subject(finding, ""), " is exceeded", *_detail(finding))
    pods = f": {count(finding.amount, 'pod')} of it {agree(finding.amount, 'is')} refused{_limit(finding)}"
    return (*_subject(finding, "the change"), pods, *_detail(finding, "; "))


def _not_ready(finding: GateFinding) -> Phrase:
    return (*_subject(finding, "a workload"), " falls to", *_detail(finding, " "), f" (limit {finding.limit:,} %)")


def _about(words: str) -> Callable[[GateFinding], Phrase]:
    """A sentence about an object, with what is said about it."""
    return lambda finding: (*_subject(finding, "the change"), f" {words}", *_detail(finding))


def _predicate(verb: str = "") -> Callable[[GateFinding], Phrase]:
    """A sentence about an object, of which the rule gives the rest."""
    return lambda finding: (*_subject(finding, "the change"), f" {verb}" if verb else "", *_detail(finding, " "))


def _drain_blocked(finding: GateFinding) -> Phrase:
    subject = _subject(finding, "the drain")
    blocks = " keeps " if not finding.subject.startswith("Node ") else " is kept from getting empty by "
    return (*subject, blocks, *names(finding.pods), *_detail(finding))


def _apply_refused(finding: GateFinding) -> Phrase:
    if finding.detail.startswith(_REFUSED_PODS):
        return (*_subject(finding, "the change"), *_detail(finding))
    # Of a namespace it is what is in it that is refused, of a class who names it, unless the object itself is rejected.
    is_missing = finding.subject.startswith(("Namespace ", "PriorityClass ")) and not finding.detail.startswith(
        _UNKNOWN
    )
    return _about("is not there" if is_missing else "cannot be applied")(finding)


def _loop(finding: GateFinding) -> Phrase:
    return (*_subject(finding, "the cluster"), " never settles", *_pods(finding), *_detail(finding, "; "))


def _of_expression(finding: GateFinding) -> Phrase:
    """What a rule of one's own says."""
    return (message(finding.detail.rstrip().removesuffix(".")),)


def _snapshot(finding: GateFinding) -> Phrase:
    if finding.amount <= 0:
        return (message(finding.detail or "the age of the snapshot is unknown"),)
    age, most = format_duration(finding.amount), format_duration(finding.limit)
    return (f"the snapshot is {age} old (limit {most})", *_detail(finding))


def _unknown(of_an_object: str, of_all: str) -> Callable[[GateFinding], Phrase]:
    """A sentence about something that is not known, with what is said about it."""

    def words(finding: GateFinding) -> Phrase:
        detail = _detail(finding, "; " if finding.pods else ": ")
        if finding.subject in ("", _CLUSTER):
            return (of_all, *_pods(finding), *detail)
        return (name(finding.subject), f" {of_an_object}", *_pods(finding), *detail)

    return words


_SENTENCES: dict[RuleId, Callable[[GateFinding], Phrase]] = {
    RuleId.MAX_PDB_VIOLATIONS: _budget,
    RuleId.MAX_VICTIMS: _victims,
    RuleId.MAX_VICTIMS_PER_WORKLOAD: _victims_of_workload,
    RuleId.FORBID_VICTIMS: _forbidden,
    RuleId.REQUIRE_SCHEDULABLE: _unschedulable,
    RuleId.MAX_CASCADE_DEPTH: _cascade,
    RuleId.MAX_PENDING: _pending,
    RuleId.MAX_STRANDED: _left_without,
    RuleId.LOST_PODS: _lost,
    RuleId.MAX_DELETIONS: _deletion,
    RuleId.NAMESPACE_DELETION: _predicate("is deleted"),
    RuleId.VOLUME_DELETION: _predicate("is deleted"),
    RuleId.SERVICE_OUTAGE: _predicate(),
    RuleId.SCALED_TO_ZERO: _about("is scaled to zero"),
    RuleId.QUOTA_REFUSALS: _refused,
    RuleId.FORBID_LOOPS: _loop,
    RuleId.MIN_READY: _not_ready,
    RuleId.APPLY_REFUSED: _apply_refused,
    RuleId.REMOVED_API: _about("is of an API version that goes"),
    RuleId.BLOCKED_DRAINS: _about("blocks all drains"),
    RuleId.PDB_SELECTOR: _about("selects the wrong pods"),
    RuleId.PDB_BLOCKS_AT_HPA_MINIMUM: _about("blocks drains at the minimum of an autoscaler"),
    **dict.fromkeys(WEAKENED, _predicate()),
    RuleId.DRAIN_BLOCKED: _drain_blocked,
    RuleId.AUTOSCALED_REPLICAS: _about("has its replicas reset"),
    RuleId.DUPLICATE_OBJECTS: _about("is in the change more than once"),
    RuleId.AUTOSCALED_MAXIMUM: _about("does not fit at its maximum"),
    RuleId.ROLLOUT_STUCK: _about("keeps old pods"),
    RuleId.VOLUME_ATTACHED_ELSEWHERE: _about("has pods that never get their volume"),
    RuleId.BYPASSES_SCHEDULER: _about("bypasses the scheduler"),
    RuleId.ADOPTED_PODS: _about("adopts what no controller owns"),
    RuleId.CREATED_NODES: _about("adds no capacity"),
    RuleId.MAX_SNAPSHOT_AGE: _snapshot,
    RuleId.BUDGETS_UNREADABLE: _unknown("could not be read", "budgets could not be read"),
    RuleId.ABSENT_KINDS: _unknown("may be missing", "the dump may lack something"),
    RuleId.OBJECTS_SET_ASIDE: _unknown("is left out", "objects are left out"),
    RuleId.FIELDS_NOT_MODELLED: _unknown("is not fully modelled", "not everything is modelled"),
    RuleId.CUSTOM_RESOURCES: _unknown("is not compared", "custom resources are not compared"),
    RuleId.OUTCOME_UNCERTAIN: _unknown("may have another outcome", "the outcome is uncertain"),
}
