"""Which pod preempted a pod, from the scheduler's events, or else from the pod itself.

A Preempted event of 1.36 says ``Preempted by pod UID on node NODE`` (``framework/preemption/executor.go``), for a pod
group ``podgroup``, and for a victim that was not bound yet ``... (in kube-scheduler memory).`` Earlier versions say
``Preempted by a pod on node NODE`` and ``Preempted by NAMESPACE/NAME on node NODE``. The preemptor is also the event's
``related`` object. An eviction is reconstructed by the preemptor's verdict in an earlier snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from kpreempt.analysis.algorithms import AnalysisContext, Scheduler
from kpreempt.analysis.explain.pods import ExplainInput, explain_pods
from kpreempt.analysis.pending.states import DISRUPTION, was_preempted
from kpreempt.analysis.pod_inputs import as_pending
from kpreempt.analysis.unread import BUDGETS
from kpreempt.model.cluster import ClusterSnapshot, KindState, lacks_all_nodes
from kpreempt.model.event import PREEMPTED, PREEMPTED_TEXT, Event, ObjectReference
from kpreempt.model.meta import controller_name
from kpreempt.model.pod import Pod
from kpreempt.verdict import Assumption
from kpreempt.verdict.unread import unread_of
from kpreempt.verdict.who_evicted import (
    EvictionsOfPod,
    Evidence,
    PodLocation,
    PodPhase,
    Preemption,
    Reconstruction,
    ReconstructionResult,
)


class PreemptionIndex:
    """Finds the evictions of pods by a scheduler that a cluster shows; all events and pods are indexed once."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        self._cluster = cluster
        events = preempted_events(cluster)
        self._index = _EventIndex(cluster, events)
        self._events: dict[str, list[Event]] = {}
        for event in events:
            self._events.setdefault(event.subject.key, []).append(event)

    def of(self, key: str, pod: Pod | None) -> Iterator[tuple[Preemption, str]]:
        """Each eviction of a pod of this name, the latest first, with the UID of the evicted pod if it is known.

        ``pod`` is the one that exists. Without an event about it, its own condition counts.
        """
        own = self._events.get(key, [])
        uid = pod.metadata.uid if pod is not None else ""
        has_own_event = any(not uid or not event.subject.uid or event.subject.uid == uid for event in own)
        if pod is not None and not has_own_event and was_preempted(pod):
            condition = next(each for each in pod.status.conditions if each.type == DISRUPTION)
            yield (
                Preemption(
                    evidence=Evidence.CONDITION,
                    at=condition.last_transition_time,
                    message=condition.message,
                    node=pod.spec.node_name,
                    possible_preemptors=_suspects(self._cluster, pod.spec.node_name, pod),
                ),
                uid,
            )
        for event in own:
            yield self.by_event(event), event.subject.uid

    def by_event(self, event: Event) -> Preemption:
        """The eviction that an event of the cluster reports."""
        return _by_event(event, self._index, self._cluster)


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
    """Finds preemptors among the pods of a cluster, which is indexed once."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        # The first pod with each key.
        self._by_uid = {pod.metadata.uid: pod for pod in reversed(cluster.pods) if pod.metadata.uid}
        self._by_name = {pod.key: pod for pod in reversed(cluster.pods)}

    def pod(self, preemptor: PodLocation) -> Pod | None:
        """The preemptor by its UID, or by its name if only that is known."""
        if preemptor.uid and (pod := self._by_uid.get(preemptor.uid)):
            return pod
        pod = self._by_name.get(preemptor.pod)
        # A pod with the same name and another UID is another pod.
        return pod if pod is not None and not (preemptor.uid and pod.metadata.uid) else None


def _by_event(event: Event, index: _EventIndex, cluster: ClusterSnapshot) -> Preemption:
    by = read_preempted(event)
    is_named = bool(by.uid or by.name)
    return Preemption(
        evidence=Evidence.EVENT if is_named else Evidence.ANONYMOUS_EVENT,
        at=event.last_time,
        message=event.text,
        node=by.node,
        is_pod_group=by.is_pod_group,
        preemptor=index.preemptor(by) if is_named else None,
        possible_preemptors=[] if is_named else _suspects(cluster, by.node, None),
        other_victims=[key for key in index.evicted[_cause(by)] if key != event.subject.key] if is_named else [],
    )


class _EventIndex:
    """Index of preemptors and victims in all events and pods."""

    def __init__(self, cluster: ClusterSnapshot, preempted: Sequence[Event]) -> None:
        """``preempted`` are the events about evictions, the latest first."""
        # All victims of a preemptor on the same node, by what their events share.
        self.evicted: dict[tuple[str, ...], dict[str, None]] = {}
        for event in preempted:
            by = read_preempted(event)
            for cause in {_cause(by), _cause(by._replace(uid=""))}:
                self.evicted.setdefault(cause, {})[event.subject.key] = None
        self._cluster = cluster
        # The name of each object with a UID according to any event; it may be gone.
        self._names: dict[tuple[bool, str], ObjectReference] = {}
        for event in cluster.events:
            for each in (event.subject, event.related):
                if each is not None and each.uid and each.name and each.kind in ("", "Pod", "PodGroup"):
                    self._names.setdefault((each.kind == "PodGroup", each.uid), each)
        self._preemptors = Preemptors(cluster)

    def _may_be_unread(self, namespace: str) -> bool:
        """Return whether the input lacks pods of the namespace; it is empty if it is not known.

        A dump without nodes may be one of a few namespaces.
        """
        unread = self._cluster.unread.get("Pod")
        if unread is not None and unread.state is KindState.UNREADABLE:
            return not namespace or namespace != unread.namespace
        if "Pod" in self._cluster.listed or not lacks_all_nodes(self._cluster):
            return False
        return all(pod.metadata.namespace != namespace for pod in self._cluster.pods)

    def preemptor(self, by: PreemptedBy) -> PodLocation:
        """What is known of the preemptor."""
        reference = ObjectReference(namespace=by.namespace, name=by.name) if by.name else None
        if reference is None and by.uid:
            reference = self._names.get((by.is_pod_group, by.uid))
        key = reference.key if reference is not None else ""
        phase = PodPhase.NOT_FOUND if key else PodPhase.UNKNOWN
        if self._may_be_unread(reference.namespace if reference is not None else ""):
            phase = PodPhase.NOT_READ
        known = PodLocation(pod=key, uid=by.uid, phase=phase)
        pod = None if by.is_pod_group else self._preemptors.pod(known)
        return known if pod is None else location_of(pod)


def _cause(by: PreemptedBy) -> tuple[str, ...]:
    """The part that two events about the same preemption share."""
    return (by.node, by.uid) if by.uid else (by.node, by.namespace, by.name)


def _suspects(cluster: ClusterSnapshot, node: str, victim: Pod | None) -> list[PodLocation]:
    """The pods that are nominated to the node, and more important than the victim."""
    if not node:
        return []
    return [
        location_of(pod)
        for pod in cluster.pods
        if pod.status.nominated_node_name == node
        and not pod.spec.node_name
        and not pod.is_terminal
        and (victim is None or pod.priority > victim.priority)
    ]


def location_of(pod: Pod) -> PodLocation:
    """The pod with its current location."""
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


class PreemptedBy(NamedTuple):
    """The preemptor and the node, as far as known; all but ``is_pod_group`` may be empty."""

    uid: str = ""
    namespace: str = ""
    name: str = ""
    node: str = ""
    is_pod_group: bool = False


def read_preempted(event: Event) -> PreemptedBy:
    """Parse the event; unknown wordings are left empty."""
    match = PREEMPTED_TEXT.fullmatch(event.text.strip())
    groups = match.groupdict() if match else {}
    related = event.related
    found = PreemptedBy(
        uid=groups.get("uid") or groups.get("bare_uid") or "",
        namespace=groups.get("namespace") or "",
        name=groups.get("name") or "",
        node=groups.get("node") or "",
        is_pod_group=groups.get("type") == "podgroup",
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
    answer: EvictionsOfPod,
    cluster: ClusterSnapshot,
    before: ClusterSnapshot,
    scheduler: Scheduler,
    *,
    now: datetime,
    version: Iterable[Assumption] = (),
    assumptions: Iterable[Assumption] = (),
) -> EvictionsOfPod:
    """Explain each eviction with a known preemptor in the snapshot from ``before``.

    A preemptor that does not exist there yet is added as it is in ``cluster`` now, as if it had just been created.
    ``version`` has the assumptions about that snapshot's version.
    """
    earlier, current = Preemptors(before), Preemptors(cluster)
    items = []
    for item in answer.items:
        preemption = item.preemption
        if preemption is not None and preemption.preemptor is not None:
            reconstruction = _reconstruction(
                answer.victim.pod,
                earlier.pod(preemption.preemptor),
                current.pod(preemption.preemptor),
                before,
                scheduler,
                now=now,
                assumptions=assumptions,
            )
            preemption = msgspec.structs.replace(preemption, reconstruction=reconstruction)
        items.append(msgspec.structs.replace(item, preemption=preemption))
    is_any = any(each.preemption is not None and each.preemption.reconstruction is not None for each in items)
    assumptions_before = [*version, *unread_of(before, [BUDGETS])] if is_any else []
    return msgspec.structs.replace(answer, items=items, assumptions=[*answer.assumptions, *assumptions_before])


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
    explain_input = ExplainInput(pod=pod if is_waiting else as_pending(pod))
    verdict = explain_pods(
        AnalysisContext(remaining, scheduler, taken_at or now, assumptions=assumptions), [explain_input]
    )[0]
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
