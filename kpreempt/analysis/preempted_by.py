"""Which pod preempted a pod, from the scheduler's events, else from what the pod itself says.

A Preempted event of 1.36 says ``Preempted by pod UID on node NODE`` (``framework/preemption/executor.go``), for a pod
group ``podgroup``, and for a victim that was not bound yet ``... (in kube-scheduler memory).`` Before there were
``Preempted by a pod on node NODE`` and ``Preempted by NAMESPACE/NAME on node NODE``. The preemptor is the event's
``related`` object, too. An eviction is reconstructed by the preemptor's verdict in a snapshot from before it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from kpreempt.analysis.algorithms import AnalysisContext, Scheduler
from kpreempt.analysis.explain.pods import Question, explain_pods
from kpreempt.analysis.pending.states import DISRUPTION, was_preempted
from kpreempt.analysis.questions import pending_again
from kpreempt.analysis.unread import BUDGETS, unread_events
from kpreempt.errors import NotFoundError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.event import PREEMPTED, PREEMPTED_TEXT, Event, ObjectReference
from kpreempt.model.meta import controller_name
from kpreempt.model.pod import Pod
from kpreempt.verdict import Assumption
from kpreempt.verdict.unread import missing, unread_of, why_unread
from kpreempt.verdict.who_evicted import (
    Evidence,
    PodLocation,
    PodPhase,
    Preemption,
    PreemptionsOfPod,
    Reconstruction,
    ReconstructionResult,
)

_NAMES_OFFERED = 3


def who_evicted(cluster: ClusterSnapshot, namespace: str, name: str) -> PreemptionsOfPod:
    """Every eviction of the pod by a scheduler that the snapshot tells of, the latest first.

    The pod may be gone, if there is an event about it. Raises ``NotFoundError`` where there is neither.
    """
    key = f"{namespace}/{name}"
    pod = next((each for each in cluster.pods if each.key == key), None)
    events = preempted_events(cluster)
    mine = [event for event in events if event.subject.key == key]
    if pod is None and not mine:
        raise _unknown(cluster, events, namespace, name)
    told = _Reports(cluster, events) if mine else None
    preemptions = [_by_event(event, told, cluster) for event in mine if told is not None]
    # Whether an event is about this very pod, and not about one of the same name before it.
    uid = pod.metadata.uid if pod is not None else ""
    is_reported = any(not uid or not event.subject.uid or event.subject.uid == uid for event in mine)
    if pod is not None and not is_reported and was_preempted(pod):
        condition = next(each for each in pod.status.conditions if each.type == DISRUPTION)
        preemptions.insert(
            0,
            Preemption(
                evidence=Evidence.CONDITION,
                at=condition.last_transition_time,
                message=condition.message,
                node=pod.spec.node_name,
                possible_preemptors=_suspects(cluster, pod.spec.node_name, pod),
            ),
        )
    conditions = pod.status.conditions if pod is not None else []
    said = next((each for each in conditions if each.type == DISRUPTION and each.status == "True"), None)
    return PreemptionsOfPod(
        victim=_where(pod)
        if pod is not None
        else PodLocation(pod=key, uid=mine[0].subject.uid, phase=PodPhase.NOT_FOUND),
        has_events=bool(cluster.events) or bool(cluster.skipped.get("Event")),
        terminating_until=pod.metadata.deletion_timestamp if pod is not None else None,
        finalizers=pod.metadata.finalizers if pod is not None else [],
        disruption=(": ".join(filter(None, (said.reason, said.message.strip()))) or DISRUPTION) if said else "",
        preemptions=preemptions,
        assumptions=unread_events(cluster),
    )


def preempted_events(cluster: ClusterSnapshot) -> list[Event]:
    """The events about evictions of pods, the latest first; those without a time come last."""
    events = [each for each in cluster.events if each.reason == PREEMPTED and each.subject.kind in ("", "Pod")]
    timed = sorted(
        (each for each in events if each.last_time is not None),
        key=lambda each: each.last_time.timestamp() if each.last_time else 0.0,
        reverse=True,
    )
    return [*timed, *(each for each in events if each.last_time is None)]


class Preemptors:
    """Finds preemptors among the pods of a cluster, which is looked through once."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        # The first of each.
        self._by_uid = {pod.metadata.uid: pod for pod in reversed(cluster.pods) if pod.metadata.uid}
        self._by_name = {pod.key: pod for pod in reversed(cluster.pods)}

    def pod(self, preemptor: PodLocation) -> Pod | None:
        """The preemptor: by its UID, or by its name where that is all that is known."""
        if preemptor.uid and (pod := self._by_uid.get(preemptor.uid)):
            return pod
        pod = self._by_name.get(preemptor.pod)
        # One of its name that says another UID is another pod.
        return pod if pod is not None and not (preemptor.uid and pod.metadata.uid) else None


def _by_event(event: Event, told: _Reports, cluster: ClusterSnapshot) -> Preemption:
    by = read_preempted(event)
    is_named = bool(by.uid or by.name)
    return Preemption(
        evidence=Evidence.EVENT if is_named else Evidence.ANONYMOUS_EVENT,
        at=event.last_time,
        message=event.text,
        node=by.node,
        is_pod_group=by.is_pod_group,
        preemptor=told.preemptor(by) if is_named else None,
        possible_preemptors=[] if is_named else _suspects(cluster, by.node, None),
        other_victims=[key for key in told.evicted[_cause(by)] if key != event.subject.key] if is_named else [],
    )


class _Reports:
    """What all events and pods tell of preemptors, looked through once for however many evictions."""

    def __init__(self, cluster: ClusterSnapshot, preempted: Sequence[Event]) -> None:
        """``preempted`` are the events about evictions, the latest first."""
        # All pods that went for a preemptor on the same node, by what their events say alike.
        self.evicted: dict[tuple[str, ...], dict[str, None]] = {}
        for event in preempted:
            by = read_preempted(event)
            for cause in {_cause(by), _cause(by._replace(uid=""))}:
                self.evicted.setdefault(cause, {})[event.subject.key] = None
        # What any event calls the object with a UID, which may be gone itself.
        self._names: dict[tuple[bool, str], ObjectReference] = {}
        for event in cluster.events:
            for each in (event.subject, event.related):
                if each is not None and each.uid and each.name and each.kind in ("", "Pod", "PodGroup"):
                    self._names.setdefault((each.kind == "PodGroup", each.uid), each)
        self._preemptors = Preemptors(cluster)

    def preemptor(self, by: PreemptedBy) -> PodLocation:
        """What is known of the preemptor."""
        named = ObjectReference(namespace=by.namespace, name=by.name) if by.name else None
        if named is None and by.uid:
            named = self._names.get((by.is_pod_group, by.uid))
        key = named.key if named is not None else ""
        known = PodLocation(pod=key, uid=by.uid, phase=PodPhase.NOT_FOUND if key else PodPhase.UNKNOWN)
        pod = None if by.is_pod_group else self._preemptors.pod(known)
        return known if pod is None else _where(pod)


def _cause(by: PreemptedBy) -> tuple[str, ...]:
    """What two events say alike that tell of the same preemption."""
    return (by.node, by.uid) if by.uid else (by.node, by.namespace, by.name)


def _suspects(cluster: ClusterSnapshot, node: str, victim: Pod | None) -> list[PodLocation]:
    """The pods that are nominated to the node, and more important than the victim."""
    if not node:
        return []
    return [
        _where(pod)
        for pod in cluster.pods
        if pod.status.nominated_node_name == node
        and not pod.spec.node_name
        and not pod.is_terminal
        and (victim is None or pod.priority > victim.priority)
    ]


def _where(pod: Pod) -> PodLocation:
    phase = PodPhase.RUNNING if pod.spec.node_name else PodPhase.PENDING
    if pod.is_terminal:
        phase = PodPhase.FINISHED
    elif pod.metadata.deletion_timestamp is not None:
        phase = PodPhase.TERMINATING
    return PodLocation(
        pod=pod.key,
        uid=pod.metadata.uid,
        phase=phase,
        node=pod.spec.node_name,
        nominated_node_name=pod.status.nominated_node_name,
        priority=pod.priority,
        owner=controller_name(pod.metadata),
    )


def _unknown(cluster: ClusterSnapshot, events: Sequence[Event], namespace: str, name: str) -> NotFoundError:
    there = {pod.metadata.name for pod in cluster.pods if pod.metadata.namespace == namespace}
    there |= {event.subject.name for event in events if event.subject.namespace == namespace}
    near = difflib.get_close_matches(name, sorted(there), n=_NAMES_OFFERED)
    has_events = bool(cluster.events) or bool(cluster.skipped.get("Event"))
    unread = cluster.unread.get("Event")
    known = "" if unread is None else " is known"
    why = (
        f"events {why_unread(unread)}"
        if unread is not None
        else "API servers keep events for an hour unless told otherwise"
        if has_events
        else "no events of evictions are known; a dump needs kubectl get events -A"
    )
    there_is_none = missing(cluster, "Pod", f'pod "{name}" in namespace "{namespace}"')
    return NotFoundError(
        f"{there_is_none}, and no event{known} that it was preempted: {why}",
        hint=", ".join(near),
    )


class PreemptedBy(NamedTuple):
    """What is known of the preemptor, and the node; all but ``is_pod_group`` may be empty."""

    uid: str = ""
    namespace: str = ""
    name: str = ""
    node: str = ""
    is_pod_group: bool = False


def read_preempted(event: Event) -> PreemptedBy:
    """What the event says; what it says in other words is not understood, and left empty."""
    match = PREEMPTED_TEXT.fullmatch(event.text.strip())
    said = match.groupdict() if match else {}
    related = event.related
    found = PreemptedBy(
        uid=said.get("uid") or said.get("bare_uid") or "",
        namespace=said.get("namespace") or "",
        name=said.get("name") or "",
        node=said.get("node") or "",
        is_pod_group=said.get("type") == "podgroup",
    )
    if related is None or not related.name:
        return found
    return found._replace(
        uid=found.uid or related.uid,
        namespace=found.namespace or related.namespace,
        name=found.name or related.name,
        is_pod_group=found.is_pod_group or related.kind == "PodGroup",
    )


def reconstruct(
    answer: PreemptionsOfPod,
    cluster: ClusterSnapshot,
    before: ClusterSnapshot,
    scheduler: Scheduler,
    *,
    now: datetime,
    version: Iterable[Assumption] = (),
    assumptions: Iterable[Assumption] = (),
) -> PreemptionsOfPod:
    """The answer with each eviction, whose preemptor is known, explained in the snapshot from ``before``.

    A preemptor that is not there yet is laid over it as it is in ``cluster`` now, as if it had just been created.
    ``version`` is assumed of that snapshot's version.
    """
    then, today = Preemptors(before), Preemptors(cluster)
    preemptions = [
        msgspec.structs.replace(
            each,
            reconstruction=_reconstruction(
                answer.victim.pod,
                then.pod(each.preemptor),
                today.pod(each.preemptor),
                before,
                scheduler,
                now=now,
                assumptions=assumptions,
            ),
        )
        if each.preemptor is not None
        else each
        for each in answer.preemptions
    ]
    is_any = any(each.reconstruction is not None for each in preemptions)
    said = [*version, *unread_of(before, [BUDGETS])] if is_any else []
    return msgspec.structs.replace(answer, preemptions=preemptions, assumptions=[*answer.assumptions, *said])


def _reconstruction(
    victim_key: str,
    there: Pod | None,
    today: Pod | None,
    before: ClusterSnapshot,
    scheduler: Scheduler,
    *,
    now: datetime,
    assumptions: Iterable[Assumption],
) -> Reconstruction:
    """``there`` is the preemptor in ``before``, and ``today`` as it is now."""
    taken_at = before.taken_at
    victim = next((pod for pod in before.pods if pod.key == victim_key and pod.spec.node_name), None)
    if victim is None:
        return Reconstruction(result=ReconstructionResult.NO_VICTIM, taken_at=taken_at)
    pod = there or today
    if pod is None:
        return Reconstruction(result=ReconstructionResult.NO_PREEMPTOR, taken_at=taken_at)
    remaining = msgspec.structs.replace(before, pods=[each for each in before.pods if each is not there])
    is_waiting = there is not None and not pod.spec.node_name and not pod.is_terminal
    question = Question(pod=pod if is_waiting else pending_again(pod))
    verdict = explain_pods(AnalysisContext(remaining, scheduler, taken_at or now, assumptions=assumptions), [question])[
        0
    ]
    node = victim.spec.node_name
    candidate = next((each for each in verdict.candidates if each.node == node), None)
    victims = candidate.victims if candidate else []
    result = ReconstructionResult.NO_PREEMPTION
    if verdict.nominated_nodes:
        is_confirmed = victim.key in verdict.pods_at_stake.get(node, ())
        result = ReconstructionResult.CONFIRMED if is_confirmed else ReconstructionResult.OTHER_VICTIMS
    return Reconstruction(
        result=result,
        algorithm=verdict.algorithm,
        taken_at=taken_at,
        outcome=verdict.outcome,
        node=node,
        nodes=verdict.nominated_nodes or verdict.lands_on,
        victims=victims,
        step=next((step for step in (candidate.steps if candidate else []) if step.pod == victim.key), None),
        rejection=verdict.filter.get(node),
        is_preemptor_overlaid=there is None,
    )
