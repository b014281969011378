"""Measure what the rules limit: victims, pending pods, broken dependencies and missing information.

Each function takes a ``EvaluationContext`` (a simulation with its changes and rules) and yields the measures of one
rule or of one family of rules. ``MEASURES`` lists all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from math import ceil

import msgspec

from kpreempt.analysis.check.gate.rules import ForbiddenVictims, GateRules, matches
from kpreempt.analysis.naming import some_of
from kpreempt.gate_rules import CLUSTER, RuleId, RuleSeverity
from kpreempt.model.meta import grouped
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.check import Change, ChangeKind
from kpreempt.verdict.simulation import (
    BrokenDependency,
    BrokenDependencyKind,
    Displaced,
    SimulatedWorkload,
    Simulation,
    SimulationEnd,
    StepKind,
    UnscheduledPod,
)

_FINGERPRINT_LENGTH = 32


class PodFacts(msgspec.Struct, frozen=True):
    """The attributes of a pod that rules match."""

    labels: Mapping[str, str] = {}
    priority_class: str = ""


class StaticFinding(msgspec.Struct, frozen=True):
    """A violation by an object of the change itself, independent of the simulation.

    ``fix`` is the remedy. ``change`` is the object that causes the violation, if that is not the subject. If it
    ``is_critical``, it fails the gate even if its rule only warns, unless the user set the severity. ``pods`` are the
    affected pods.
    """

    rule: RuleId
    subject: str
    detail: str
    fix: str = ""
    change: str = ""
    is_critical: bool = False
    pods: Sequence[str] = ()


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules need to know about the cluster and the change.

    ``pods`` has the pods of the cluster and of the change by key (``shop/api-0``); a replacement has the facts of the
    pod it replaces. ``workloads`` maps each object to its topmost owner, such as ``ReplicaSet shop/api-7f9c`` to
    ``Deployment shop/api``, or a Job to its CronJob; an object that is missing belongs to itself. ``assumptions`` are
    those of the input and the simulation, ``static_findings`` the violations by objects of the change. ``unbound`` maps
    workloads to the reason why the claims of their pods cannot be bound, ``deadlocks`` those whose rollout is stuck to
    what they wait for, and ``budgets`` those of the change to their PodDisruptionBudget. ``snapshot_age`` is in
    seconds, or ``None`` if the snapshot has no time; it is ignored for a live cluster (``is_live``).
    """

    pods: Mapping[str, PodFacts] = {}
    workloads: Mapping[str, str] = {}
    assumptions: Sequence[Assumption] = ()
    static_findings: Sequence[StaticFinding] = ()
    unbound: Mapping[str, str] = {}
    deadlocks: Mapping[str, str] = {}
    budgets: Mapping[str, str] = {}
    snapshot_age: float | None = None
    is_live: bool = False


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """The share of one change in a measure; ``change`` is empty if no change caused it.

    ``places`` are the positions of its pods among the pods of the whole measure.
    """

    change: str = ""
    amount: int = 0
    pods: list[str] = []
    places: list[int] = []


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """How much of something a rule found for one subject.

    ``group`` is the index of the override that sets the limit, or -1. If ``is_broken``, the rule is violated regardless
    of the limit; ``is_critical`` is as in ``StaticFinding``. ``aspect`` distinguishes several measures of one subject.
    """

    rule: RuleId
    subject: str
    parts: list[Part]
    group: int = -1
    is_broken: bool = False
    is_critical: bool = False
    aspect: str = ""
    chain: list[str] = []
    since: float = 0.0
    detail: str = ""
    fix: str = ""

    @property
    def amount(self) -> int:
        """The total amount of all parts."""
        return sum(part.amount for part in self.parts)

    @property
    def pods(self) -> list[str]:
        """The pods of all changes, in the order in which they were counted."""
        placed = [(place, pod) for part in self.parts for place, pod in zip(part.places, part.pods, strict=False)]
        return [pod for _, pod in sorted(placed)] or [pod for part in self.parts for pod in part.pods]

    @property
    def fingerprint(self) -> str:
        """A hash of the rule, subject and changes that is stable between runs; it contains no pod name."""
        return self.fingerprint_of(sorted({part.change for part in self.parts}))

    def fingerprint_of(self, changes: list[str]) -> str:
        """The fingerprint for a subset of the changes."""
        text = "\0".join([self.rule, self.subject, self.aspect, *changes])
        return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_FINGERPRINT_LENGTH]


def parts_of(pods: Iterable[tuple[str, str]], unnamed: int = 0) -> list[Part]:
    """Group pods by the change that caused their eviction; ``pods`` has pairs of change and pod, in order.

    A pod that occurs twice counts twice. ``unnamed`` pods are counted without a name or a change.
    """
    found: dict[str, list[tuple[int, str]]] = {"": []} if unnamed else {}
    for place, (change, pod) in enumerate(pods):
        found.setdefault(change, []).append((place, pod))
    return [
        Part(
            change=change,
            amount=len(own) + (0 if change else unnamed),
            pods=[pod for _, pod in own],
            places=[place for place, _ in own],
        )
        for change, own in sorted(found.items())
    ]


class EvaluationContext:
    """A simulation of changes with the gate's rules, the owners of its pods, and the cause of each eviction.

    A victim is identified by its index in ``Simulation.displaced``, because a StatefulSet's pod can be evicted twice
    under one name. ``order`` lists the victims by eviction time. Indexed by victim, ``workloads`` are their owners,
    ``behind`` the objects of the change that caused the eviction (empty: none), and ``since`` the seconds since the
    start.
    """

    def __init__(self, simulation: Simulation, changes: Sequence[Change], facts: Facts, rules: GateRules) -> None:
        self.simulation, self.changes, self.facts, self.rules = simulation, changes, facts, rules
        self._changed = {change.object for change in changes}
        self._owners = dict(facts.workloads)
        self._workload_of = self._workloads_by_pod()
        # For each victim, the victim whose replacement preempted it (-1 if the preemptor was not a replacement), and
        # the first victim of that chain. The list is depth first: the parent is the closest earlier entry one level up.
        self._parents: list[int] = []
        self._roots: list[int] = []
        line: list[int] = []
        for index, victim in enumerate(simulation.displaced):
            del line[max(victim.depth - 1, 0) :]
            self._parents.append(line[-1] if line else -1)
            line.append(index)
            self._roots.append(line[0])
        self.order, self.since = _departures(simulation)
        self.workloads = [each.workload or self.workload_of(each.pod) for each in simulation.displaced]
        self.behind = [self.change_of(self.root_workload(index)) for index in range(len(simulation.displaced))]

    def workload_of(self, pod: str) -> str:
        """The topmost owner of the pod with this key, or ``Pod shop/one`` if it has none.

        A node that is removed with its pods (``Node n1``) is an object of the change itself.
        """
        return pod if pod in self._changed else self._workload_of.get(pod) or f"Pod {pod}"

    def workload_waiting(self, waiting: UnscheduledPod) -> str:
        """The workload of a pending pod."""
        return waiting.workload or self.workload_of(waiting.pod)

    def change_of(self, workload: str) -> str:
        """The workload if the change includes it, else an empty string."""
        return workload if workload in self._changed else ""

    def root_workload(self, victim: int) -> str:
        """The workload of the pod that started the chain of evictions."""
        return self.workload_of(self.simulation.displaced[self._roots[victim]].cause)

    def chain_to(self, victim: int) -> list[str]:
        """The chain of evictions: the first preemptor, each victim with its replacement, then this victim."""
        line = []
        at = victim
        while at >= 0:
            line.append(at)
            at = self._parents[at]
        displaced = self.simulation.displaced
        passed = (displaced[index] for index in reversed(line[1:]))
        steps = [f"{each.pod} → {each.replacement}" if each.replacement else each.pod for each in passed]
        return [displaced[self._roots[victim]].cause, *steps, displaced[victim].pod]

    def parts(self, victims: Iterable[int], unnamed: int = 0) -> list[Part]:
        """Group these victims by the change that caused their eviction."""
        return parts_of(((self.behind[index], self.simulation.displaced[index].pod) for index in victims), unnamed)

    def group_of(self, rule: RuleId, workload: str, namespace: str = "") -> int:
        """The index of the override for a workload, or for a namespace; -1 if none applies."""
        return self.rules.group_of(rule, namespace or namespace_of(workload), workload)

    def _workloads_by_pod(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for step in self.simulation.steps:
            if step.kind is StepKind.SCALED and step.owner:
                self._owners.setdefault(f"ReplicaSet {step.pod}", _qualified(step.owner, step.pod))
        for step in self.simulation.steps:
            if step.kind is not StepKind.SCALED and step.owner:
                found.setdefault(step.pod, self._topmost(_qualified(step.owner, step.pod)))
        ends: list[UnscheduledPod | Displaced] = [*self.simulation.pending, *self.simulation.displaced]
        for each in ends:
            if each.workload:
                found[each.pod] = each.workload
            elif each.owner:
                found.setdefault(each.pod, self._topmost(_qualified(each.owner, each.pod)))
        return found

    def _topmost(self, owner: str) -> str:
        seen: set[str] = set()
        while owner in self._owners and owner not in seen:
            seen.add(owner)
            owner = self._owners[owner]
        return owner


def namespace_of(text: str) -> str:
    """The namespace in ``shop/api-0`` or ``Deployment shop/api``."""
    return text.rpartition(" ")[2].partition("/")[0]


def _qualified(owner: str, pod: str) -> str:
    """``ReplicaSet shop/api`` for the owner ``ReplicaSet api`` of the pod ``shop/api-0``."""
    kind, _, name = owner.partition(" ")
    return f"{kind} {namespace_of(pod)}/{name}"


def _departures(simulation: Simulation) -> tuple[list[int], list[float]]:
    """The victims in the order of their evictions, and the time of each."""
    # A pod that is evicted several times under one name is evicted in the order of its steps.
    times: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for position, step in enumerate(simulation.steps):
        if step.kind is StepKind.TERMINATING:
            times.setdefault((step.pod, step.cause), []).append((step.at, position))
    since: list[float] = []
    places: list[tuple[int, int]] = []
    for index, victim in enumerate(simulation.displaced):
        remaining = times.get((victim.pod, victim.cause))
        at, position = remaining.pop(0) if remaining else (0.0, len(simulation.steps))
        since.append(at)
        places.append((position, index))
    return [index for _, index in sorted(places)], since


# Changes that create pods.
_CREATES_PODS = frozenset({ChangeKind.CREATED, ChangeKind.ROLLED, ChangeKind.SCALED})
# Pods of these kinds finish, or leave a gap on their node while they are replaced, with any update strategy.
_ALWAYS_WITH_GAPS = ("Job ", "DaemonSet ")
# With this number of replicas, some can stay ready while others are replaced.
_MIN_REPLICAS = 2
# A Service without its only pod for longer than this is down.
_BRIEF_SECONDS = 300
_BUDGETS = "PodDisruptionBudget"
# How messages about skipped objects and absent kinds start, which the sentences of their rules repeat.
_REPEATED = re.compile(r"^(?:skipped|the snapshot has none): ")
_NOT_STARTED = (RuleId.VOLUME_ATTACHED_ELSEWHERE, RuleId.BYPASSES_SCHEDULER)
_RULE_ABOUT = {
    AssumptionKind.UNMODELED: RuleId.UNMODELED_INPUT,
    # Objects that could not be read are skipped like invalid ones.
    AssumptionKind.UNREADABLE: RuleId.SKIPPED_OBJECTS,
    AssumptionKind.ABSENT: RuleId.ABSENT_KINDS,
    AssumptionKind.SKIPPED: RuleId.SKIPPED_OBJECTS,
    AssumptionKind.UNCERTAIN: RuleId.OUTCOME_UNCERTAIN,
    AssumptionKind.NOT_COMPARED: RuleId.CUSTOM_RESOURCES,
}


def _violations(case: EvaluationContext) -> Iterator[Measure]:
    """The victims that violate each budget."""
    rule = RuleId.MAX_PDB_VIOLATIONS
    found: dict[str, list[int]] = {}
    for index in case.order:
        for budget in case.simulation.displaced[index].violated:
            found.setdefault(budget, []).append(index)
    unnamed: dict[str, int] = {}
    for low in case.simulation.budgets:
        # Victims of pods that were pending before also count, but belong to no change.
        if low.violations:
            rest = low.violations - len(found.setdefault(low.budget, []))
            unnamed[low.budget] = max(rest, unnamed.get(low.budget, 0))
    for budget, own in found.items():
        yield Measure(
            rule=rule,
            subject=f"PodDisruptionBudget {budget}",
            parts=case.parts(own, unnamed.get(budget, 0)),
            group=case.group_of(rule, "", namespace_of(budget)),
            since=case.since[own[0]] if own else 0.0,
        )


def _all_victims(case: EvaluationContext) -> Iterator[Measure]:
    """The total number of victims; those that an override covers are counted separately."""
    rule = RuleId.MAX_VICTIMS

    def group_of(index: int) -> int:
        return case.group_of(rule, case.workloads[index], namespace_of(case.simulation.displaced[index].pod))

    for group, own in grouped(case.order, group_of).items():
        subject = CLUSTER if group < 0 else case.rules.overrides[group].name
        yield Measure(rule=rule, subject=subject, parts=case.parts(own), group=group, since=case.since[own[0]])


def _victims_by_workload(case: EvaluationContext) -> Iterator[Measure]:
    """The victims of each workload, and those that no controller will recreate."""
    yield from _of_workloads(case, RuleId.MAX_VICTIMS_PER_WORKLOAD, case.order)
    lost = [index for index in case.order if case.simulation.displaced[index].lost]
    yield from _of_workloads(case, RuleId.LOST_PODS, lost)


def _forbidden_victims(case: EvaluationContext) -> Iterator[Measure]:
    """The workloads with protected victims. A pod whose labels are unknown is assumed to match."""
    known = dict(case.facts.pods)
    for victim in case.simulation.displaced:
        # A replacement has the same template as the pod it replaces, which precedes it in the list.
        if victim.replacement and victim.pod in known:
            known.setdefault(victim.replacement, known[victim.pod])
    reasons: dict[int, str] = {}
    for index in case.order:
        pod = case.simulation.displaced[index].pod
        if reason := _forbidden_by(case.rules.forbidden, pod, known.get(pod)):
            reasons[index] = reason
    return _of_workloads(case, RuleId.FORBID_VICTIMS, reasons, reasons)


def _forbidden_by(forbidden: Sequence[ForbiddenVictims], pod: str, known: PodFacts | None) -> str:
    """The first protection that covers the pod, as text, or an empty string."""
    for each in forbidden:
        if each.namespace and not matches(each.namespace, namespace_of(pod)):
            continue
        if known is None:
            if each.selector is None and not each.priority_class:
                return each.name
            return f"{each.name}: its labels and priority class are unknown"
        if each.selector is not None and not each.selector.matches(known.labels):
            continue
        if not each.priority_class or matches(each.priority_class, known.priority_class):
            return each.name
    return ""


def _of_workloads(
    case: EvaluationContext, rule: RuleId, victims: Iterable[int], details: Mapping[int, str] | None = None
) -> Iterator[Measure]:
    """Group these victims by workload, with the detail of the first one."""
    for workload, own in grouped(victims, lambda index: case.workloads[index]).items():
        yield Measure(
            rule=rule,
            subject=workload,
            parts=case.parts(own),
            group=case.group_of(rule, workload),
            since=case.since[own[0]],
            detail=details[own[0]] if details else "",
        )


def _cascades(case: EvaluationContext) -> Iterator[Measure]:
    """The longest chain of evictions for each workload that starts one, and for each override of a last victim."""
    rule = RuleId.MAX_CASCADE_DEPTH
    victims = case.simulation.displaced

    def key(index: int) -> tuple[str, int]:
        group = case.group_of(rule, case.workloads[index], namespace_of(victims[index].pod))
        return case.root_workload(index), group

    for (root, group), own in grouped(case.order, key).items():
        last = max(own, key=lambda index: victims[index].depth)
        yield Measure(
            rule=rule,
            subject=root,
            parts=[Part(change=case.behind[last], amount=victims[last].depth, pods=[victims[last].pod])],
            group=group,
            chain=case.chain_to(last),
            since=case.since[last],
        )


def _unscheduled(case: EvaluationContext) -> Iterator[Measure]:
    """The workloads with new pods that are pending at the end, and those that the change did not complete."""
    rule, simulation = RuleId.REQUIRE_SCHEDULABLE, case.simulation
    creating_pods = {change.object for change in case.changes if change.kind in _CREATES_PODS}
    all_pending = grouped(simulation.pending, case.workload_waiting)
    # A pod that the simulation created without replacing another one was created by the change.
    new = (each for each in simulation.pending if not each.pending_before)
    waiting = grouped(
        (each for each in new if not each.was_running or case.workload_waiting(each) in creating_pods),
        case.workload_waiting,
    )
    blocked_by: dict[str, list[str]] = {}
    for each in simulation.workloads:
        if each.held_by:
            blocked_by.setdefault(each.held_by, []).append(each.workload)
    missing = {
        each.workload: max((each.desired_after or 0) - each.ready_after, each.pending_after, 1)
        for each in simulation.workloads
        if each.is_changed and not each.is_done and not each.held_by and each.workload in {*creating_pods, *blocked_by}
    }
    since = _waiting_since(simulation)
    refused = {each.workload: each.message for each in simulation.rejected if each.rejected_after}
    kept = _stuck_rollouts(case)
    # Something that another finding already explains is not reported twice. That includes workloads whose pods have a
    # node but are known not to start there.
    not_started = {
        each.subject
        for each in case.facts.static_findings
        if each.pods and each.rule in _NOT_STARTED and case.rules.is_on(each.rule)
    }
    explained = {*kept, *not_started, *(each for each in refused if _fails_for_quota(case, each))}
    for workload in {**waiting, **missing}:
        pods = waiting.get(workload, [])
        if workload not in blocked_by and (kept.get(workload) or (not pods and workload in explained)):
            continue
        messages = [each.message for each in (*pods, *all_pending.get(workload, [])) if each.message]
        messages += filter(None, [refused.get(workload, "")])
        details = [*filter(None, [case.facts.deadlocks.get(workload, "")]), *messages[:1]]
        if reason := case.facts.unbound.get(workload):
            details.append(reason)
        if never := blocked_by.get(workload):
            details.append(f"never applied: {some_of(never)}")
        part = Part(
            change=case.change_of(workload),
            amount=len(pods) or missing[workload],
            pods=[each.pod for each in pods],
        )
        yield Measure(
            rule=rule,
            subject=workload,
            parts=[part],
            group=case.group_of(rule, workload),
            since=min((since.get(each.pod, 0.0) for each in pods), default=simulation.seconds),
            detail="; ".join(details),
        )


def _fails_for_quota(case: EvaluationContext, workload: str) -> bool:
    """Whether the gate fails if a quota rejects a single pod of the workload."""
    rule = RuleId.QUOTA_REJECTIONS
    is_error = case.rules.severity_of(rule) is RuleSeverity.ERROR
    return is_error and case.rules.limit_of(rule, case.group_of(rule, workload)) == 0


def _stuck_rollouts(case: EvaluationContext) -> dict[str, bool]:
    """The workloads with a ``rollout-stuck`` finding, and whether it fails the gate."""
    rule = RuleId.ROLLOUT_STUCK
    is_reported, is_critical = case.rules.is_on(rule), rule not in case.rules.severities
    own = (each for each in case.facts.static_findings if is_reported and each.rule is rule)
    return {each.subject: each.is_critical and is_critical for each in own}


def _pending(case: EvaluationContext) -> Iterator[Measure]:
    """The workloads with evicted pods whose replacements are pending at the end."""
    behind = {
        victim.replacement: case.behind[index]
        for index, victim in enumerate(case.simulation.displaced)
        if victim.replacement and not victim.lands_on
    }
    since = _waiting_since(case.simulation)
    ran = [each for each in case.simulation.pending if each.was_running]
    for workload, own in grouped(ran, case.workload_waiting).items():
        yield Measure(
            rule=RuleId.MAX_PENDING,
            subject=workload,
            parts=parts_of((behind.get(each.pod, ""), each.pod) for each in own),
            group=case.group_of(RuleId.MAX_PENDING, workload),
            since=min(since.get(each.pod, 0.0) for each in own),
            detail=next((each.message for each in own if each.message), ""),
        )


def _broken_dependencies(case: EvaluationContext) -> Iterator[Measure]:
    """What loses a dependency, even temporarily; pods count under their workload.

    A Service that the change itself leaves without pods violates another rule.
    """
    cut_off = {each.subject for each in case.facts.static_findings if each.rule is RuleId.SERVICE_OUTAGE}
    behind = {victim.pod: case.behind[index] for index, victim in enumerate(case.simulation.displaced)}

    def key(each: BrokenDependency) -> tuple[str, BrokenDependencyKind]:
        is_service = each.kind is BrokenDependencyKind.SERVICE
        return f"Service {each.subject}" if is_service else case.workload_of(each.subject), each.kind

    def cause(each: BrokenDependency) -> str:
        return min(filter(None, (behind.get(pod) for pod in each.missing)), default="")

    for (subject, kind), own in grouped(case.simulation.broken_dependencies, key).items():
        if subject in cut_off:
            continue
        rule = RuleId.BRIEF_INTERRUPTION if all(map(_is_brief, own)) else RuleId.MAX_BROKEN_DEPENDENCIES
        yield Measure(
            rule=rule,
            subject=subject,
            aspect=kind,
            parts=parts_of((cause(each), each.subject) for each in own),
            group=case.group_of(rule, subject),
            since=min(each.since for each in own),
            detail=_gap_text(own[0]) if rule is RuleId.BRIEF_INTERRUPTION else "",
        )


def _is_brief(broken: BrokenDependency) -> bool:
    """Whether a Service loses its only pod for a short time."""
    return broken.ready_before == 1 and broken.until is not None and broken.until - broken.since <= _BRIEF_SECONDS


def _gap_text(gap: BrokenDependency) -> str:
    """How long a Service has no pod; pods are simulated to start at once, so this is a minimum."""
    seconds = int((gap.until or 0) - gap.since)
    return f"for at least {seconds:,}s, until its new pod is ready" if seconds else "until its new pod is ready"


def _deletions(case: EvaluationContext) -> Iterator[Measure]:
    """The running workloads that the change deletes although the user did not list them."""
    for each in case.changes:
        is_running = each.pods or (each.replicas_before and not each.object.startswith("Job "))
        if not (each.is_unlisted_deletion and is_running):
            continue
        yield Measure(
            rule=RuleId.MAX_DELETIONS,
            subject=each.object,
            parts=[Part(change=each.deleted_with or each.object, amount=1, pods=each.pods)],
            group=case.group_of(RuleId.MAX_DELETIONS, each.object),
            detail="" if each.deleted_with else f"by {each.deleted_by}",
        )


def _quota_rejections(case: EvaluationContext) -> Iterator[Measure]:
    """The workloads with pods that a ResourceQuota rejects, even temporarily."""
    for each in case.simulation.rejected:
        yield Measure(
            rule=RuleId.QUOTA_REJECTIONS,
            subject=each.workload,
            aspect=each.quota,
            parts=[Part(change=case.change_of(each.workload), amount=each.pods)],
            group=case.group_of(RuleId.QUOTA_REJECTIONS, each.workload),
            since=each.since,
            detail=each.message,
        )


def _loops(case: EvaluationContext) -> Iterator[Measure]:
    """The workloads whose pods preempt one another in an endless loop."""
    if case.simulation.end is not SimulationEnd.LOOP:
        return
    victims = grouped(case.order, lambda index: case.workloads[index])
    for workload in dict.fromkeys(case.simulation.loop or [CLUSTER]):
        changes = sorted({case.behind[index] for index in victims.get(workload, ())}) or [case.change_of(workload)]
        yield Measure(
            rule=RuleId.FORBID_LOOPS,
            subject=workload,
            # The number of evictions per pod depends on when the loop is detected, so each change counts once.
            parts=[Part(change=change, amount=1) for change in changes],
            group=case.group_of(RuleId.FORBID_LOOPS, workload),
            since=case.simulation.seconds,
        )


def _too_few_ready(case: EvaluationContext) -> Iterator[Measure]:
    """The workloads whose ready pods drop to the limit or below.

    A workload with one pod usually cannot be replaced without a gap, so it is exempt. If a Service loses its last pod,
    or the change scales the workload to zero, another rule reports it.
    """
    rule = RuleId.MIN_READY
    cut_off = {
        case.workload_of(pod)
        for each in case.simulation.broken_dependencies
        if each.kind is BrokenDependencyKind.SERVICE
        for pod in each.missing
    }
    cut_off |= {each.subject for each in case.facts.static_findings if each.rule is RuleId.SCALED_TO_ZERO}
    behind = {case.workloads[index]: case.behind[index] for index in case.order}
    deleted = {each.object for each in case.changes if each.kind is ChangeKind.DELETED}
    for each in case.simulation.workloads:
        is_deleted = each.desired_after is None or each.workload in deleted
        if each.ready_before < _MIN_REPLICAS or is_deleted or each.workload.startswith(_ALWAYS_WITH_GAPS):
            continue
        group = case.group_of(rule, each.workload)
        limit = case.rules.limit_of(rule, group)
        # If the change scales the workload down, the limit applies to its new size.
        whole = min(each.ready_before, each.desired_after or each.ready_before)
        if limit is None or each.workload in cut_off or each.ready_min * 100 > limit * whole:
            continue
        yield Measure(
            rule=rule,
            subject=each.workload,
            parts=[
                Part(
                    change=case.change_of(each.workload) or behind.get(each.workload, ""),
                    amount=each.ready_before - each.ready_min,
                )
            ],
            group=group,
            is_broken=True,
            since=each.ready_min_at,
            detail=f"{each.ready_min:,} of {each.ready_before:,} ready pods{_unprotected(case, each)}",
        )


def _unprotected(case: EvaluationContext, workload: SimulatedWorkload) -> str:
    """A note if the workload has a budget that its rollout ignores."""
    budget = case.facts.budgets.get(workload.workload, "")
    return f" despite PodDisruptionBudget {budget}, which rollouts ignore" if budget and not workload.victims else ""


def _static_findings(case: EvaluationContext) -> Iterator[Measure]:
    """The violations by objects of the change itself."""
    for each in case.facts.static_findings:
        change = each.change or case.change_of(each.subject)
        yield Measure(
            rule=each.rule,
            subject=each.subject,
            parts=[Part(change=change, amount=len(each.pods) or 1, pods=list(each.pods))],
            detail=each.detail,
            fix=each.fix,
            is_critical=each.is_critical and (each.rule.row.is_damage or case.rules.is_on(RuleId.REQUIRE_SCHEDULABLE)),
        )


def _snapshot_age(case: EvaluationContext) -> Iterator[Measure]:
    """The age of the snapshot. An unknown age is too old; a live cluster has no age."""
    if case.facts.is_live:
        return
    age = case.facts.snapshot_age
    yield Measure(
        rule=RuleId.MAX_SNAPSHOT_AGE,
        subject=CLUSTER,
        parts=[Part(amount=0 if age is None else max(0, ceil(age)))],
        is_broken=age is None,
        aspect="unknown" if age is None else "",
        detail="the snapshot has no timestamp" if age is None else "",
    )


def _not_known(case: EvaluationContext) -> Iterator[Measure]:
    """What is unknown and could change the result, by subject."""
    found: dict[tuple[RuleId, str, str], list[Assumption]] = {}
    for each in dict.fromkeys(case.facts.assumptions):
        if each.kind.only_informs:
            continue
        if each.kind is AssumptionKind.UNREADABLE and each.subject == _BUDGETS:
            rule = RuleId.PDBS_UNREADABLE
        else:
            rule = _RULE_ABOUT[each.kind]
        kind, _, name = each.subject.partition(" ")
        # A pod counts under its workload, because its name can differ in the next run.
        subject = case.workload_of(name) if kind == "Pod" and name else each.subject or CLUSTER
        found.setdefault((rule, subject, each.field), []).append(each)
    for (rule, subject, field), own in found.items():
        pods = sorted({each.subject.removeprefix("Pod ") for each in own if each.subject.startswith("Pod ")})
        message = _REPEATED.sub("", min(each.message for each in own))
        yield Measure(
            rule=rule,
            subject=subject,
            aspect=field,
            parts=[Part(change=case.change_of(subject), amount=len(own), pods=pods)],
            # A path locates the problem; names such as ``spec`` or ``list`` do not.
            detail=f"{field}: {message}" if "." in field else message,
        )
    if case.simulation.end is SimulationEnd.ABORTED:
        yield Measure(
            rule=RuleId.OUTCOME_UNCERTAIN,
            subject=CLUSTER,
            aspect="broken off",
            parts=[Part(amount=1)],
            since=case.simulation.seconds,
            detail="the simulation was aborted before it ended",
        )


def _waiting_since(simulation: Simulation) -> dict[str, float]:
    """When each pod was first reported as unschedulable."""
    since: dict[str, float] = {}
    for step in simulation.steps:
        if step.kind is StepKind.PENDING:
            since.setdefault(step.pod, step.at)
    return since


# All measures, in any order.
MEASURES = (
    _violations,
    _all_victims,
    _victims_by_workload,
    _forbidden_victims,
    _cascades,
    _unscheduled,
    _pending,
    _broken_dependencies,
    _deletions,
    _quota_rejections,
    _loops,
    _too_few_ready,
    _static_findings,
    _snapshot_age,
    _not_known,
)
