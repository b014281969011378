"""What is known about the end of a pod: its own condition and status, events, its owner, its node, and an audit log.

One reader serves a single pod, all pods of a workload, and all pods of a namespace: it indexes the cluster once. Texts
about the same pod (by UID) and of the same cause are one termination.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.evictions.changes import Changes
from kpreempt.analysis.evictions.clients import client_of, client_of_request, evicting_taints, remover_of
from kpreempt.analysis.pending.states import deletion_began
from kpreempt.analysis.preempted_by import PreemptionIndex, location_of
from kpreempt.analysis.unread import unread_events
from kpreempt.model.audit import AuditLog, AuditRequest
from kpreempt.model.cluster import ClusterSnapshot, KindState, state_of
from kpreempt.model.event import PREEMPTED, Event
from kpreempt.model.kinds import KINDS
from kpreempt.model.meta import ObjectMeta, controller_of
from kpreempt.model.pod import Pod
from kpreempt.model.terminations import (
    EvidenceSource,
    Termination,
    TerminationCause,
    exits_of,
    is_about_end,
    is_canceled,
    pod_deleted_by,
    termination_in,
    terminations_of,
)
from kpreempt.verdict import Assumption
from kpreempt.verdict.unread import unreadable_of
from kpreempt.verdict.who_evicted import (
    AlikePods,
    EvictionsOfPod,
    Evidence,
    ObjectChange,
    PodLocation,
    PodPhase,
    PodTermination,
    Preemption,
    Sources,
)

_OLDEST = datetime.min.replace(tzinfo=UTC)
_NODE_IN_TEXT = re.compile(r"from (?P<node>[\w.-]+) node| from Node (?P<of_controller>[\w.-]+)\.?$")
# A kubelet's last request about each pod that ends on its node.
_KUBELET_USER = "system:node:"
_SERVICE_ACCOUNTS_OF_OWNERS = {
    f"system:serviceaccount:kube-system:{name}": kind
    for name, kind in (
        ("replicaset-controller", "ReplicaSet"),
        ("replication-controller", "ReplicationController"),
        ("statefulset-controller", "StatefulSet"),
        ("daemon-set-controller", "DaemonSet"),
        ("job-controller", "Job"),
    )
}
# Causes that often end the pods that replace a pod, too.
_REPEATED = (TerminationCause.REJECTED, TerminationCause.NODE_PRESSURE, TerminationCause.LOCAL_STORAGE_LIMIT)
_OF_OWNERS = (TerminationCause.DELETED_BY_OWNER, TerminationCause.DELETED)
_SCHEDULER = "system:kube-scheduler"
_BY_CONTROLLER = {
    "system:serviceaccount:kube-system:generic-garbage-collector": TerminationCause.OWNER_DELETED,
    "system:serviceaccount:kube-system:namespace-controller": TerminationCause.OWNER_DELETED,
    "system:serviceaccount:kube-system:pod-garbage-collector": TerminationCause.NODE_GONE,
    "system:serviceaccount:kube-system:taint-eviction-controller": TerminationCause.NO_EXECUTE_TAINT,
    "system:serviceaccount:kube-system:node-controller": TerminationCause.NO_EXECUTE_TAINT,
    _SCHEDULER: TerminationCause.PREEMPTION,
}


class _Text(NamedTuple):
    """What one text says, the UID of its pod (empty if unknown), and the request of an audit log that it is from."""

    uid: str
    says: Termination
    owner: str = ""
    request: AuditRequest | None = None
    preemption: Preemption | None = None


def unread_for_evictions(cluster: ClusterSnapshot, items: Iterable[PodTermination]) -> list[Assumption]:
    """Events that could not be read, and pods if one of them may be a preemptor."""
    preemptors = (each.preemption.preemptor for each in items if each.preemption is not None)
    lacks_preemptor = any(each is not None and each.phase is PodPhase.NOT_READ for each in preemptors)
    return [*unread_events(cluster), *(unreadable_of(cluster, ["Pod"]) if lacks_preemptor else [])]


class EvictionReader:
    """Reads the ends of pods in a cluster, which it indexes once."""

    def __init__(
        self, cluster: ClusterSnapshot, audit: AuditLog | None = None, documents: Iterable[Document] = ()
    ) -> None:
        """``documents`` are complete owners and nodes, if they are known."""
        self._cluster = cluster
        self._audit = audit
        self._changes = Changes(documents)
        self._by_kind: dict[str, dict[tuple[str, str], ObjectMeta]] = {}
        self._preemptions = PreemptionIndex(cluster)
        self._nodes = {node.name: node for node in cluster.nodes}
        self._events: defaultdict[str, list[Event]] = defaultdict(list)
        self._node_events: defaultdict[str, list[Event]] = defaultdict(list)
        self._times: list[datetime] = []
        self._num_events = 0
        for event in cluster.events:
            kind = event.subject.kind
            key = pod_deleted_by(event) or (event.subject.key if kind in ("", "Pod") else "")
            if key:
                self._events[key].append(event)
            elif kind == "Node":
                self._node_events[event.subject.name].append(event)
            if is_about_end(event) or is_canceled(event):
                self._num_events += 1
            if event.last_time is not None:
                self._times.append(event.last_time)
        self._requests: defaultdict[str, list[AuditRequest]] = defaultdict(list)
        self._node_requests: defaultdict[str, list[AuditRequest]] = defaultdict(list)
        for request in audit.requests if audit is not None else ():
            ref = request.object_ref
            if ref.resource == "pods" and ref.name:
                self._requests[f"{ref.namespace}/{ref.name}"].append(request)
            elif ref.resource == "nodes" and ref.name:
                self._node_requests[ref.name].append(request)
        self._pods: dict[str, Pod] = {}
        self._by_owner: defaultdict[str, list[Pod]] = defaultdict(list)
        for pod in cluster.pods:
            self._pods.setdefault(pod.key, pod)
            owner = controller_of(pod.metadata)
            if owner is not None and owner.uid:
                self._by_owner[owner.uid].append(pod)

    def all_keys(self) -> Iterator[str]:
        """All pods that exist, or that anything shows to have ended."""
        yield from self._pods
        yield from (key for key in dict.fromkeys((*self._events, *self._requests)) if key not in self._pods)

    def pod(self, key: str) -> Pod | None:
        """The pod, if it exists."""
        return self._pods.get(key)

    def knows(self, key: str) -> bool:
        """Whether the pod exists, or anything shows that it did."""
        return key in self._pods or key in self._events or key in self._requests

    def sources(self) -> Sources:
        """What was looked at."""
        audit = self._audit
        return Sources(
            has_events=bool(self._cluster.events)
            or bool(self._cluster.skipped.get("Event"))
            or "Event" in self._cluster.listed,
            events=self._num_events,
            events_since=min(self._times, default=None),
            events_until=max(self._times, default=None),
            audit_requests=None if audit is None else len(audit.requests),
            audit_since=audit.since if audit is not None else None,
            audit_until=audit.until if audit is not None else None,
        )

    def read(self, key: str) -> EvictionsOfPod:
        """The pod, and the ends of it and of earlier pods of its name, those of the latest pod first."""
        pod = self._pods.get(key)
        items = self.terminations(key, with_alike=True)
        uid = next((each.uid for each in items if each.uid), "")
        location = PodLocation(pod=key, uid=uid, phase=PodPhase.NOT_FOUND)
        return EvictionsOfPod(
            victim=location_of(pod) if pod is not None else location,
            terminating_until=pod.metadata.deletion_timestamp if pod is not None else None,
            finalizers=pod.metadata.finalizers if pod is not None else [],
            items=items,
            sources=self.sources(),
            assumptions=unread_for_evictions(self._cluster, items),
        )

    def terminations(self, key: str, *, with_alike: bool = False) -> list[PodTermination]:
        """The ends of the pods of this name; ``with_alike`` counts other pods that ended in the same way."""
        pod = self._pods.get(key)
        texts = list(self._texts(key, pod))
        if pod is not None and not any(each.uid == pod.metadata.uid and _ends_pod(each.says) for each in texts):
            texts += self._without_evidence(pod)
        grouped: dict[tuple[str, TerminationCause, object], list[_Text]] = {}
        for each in texts:
            container = each.says.container
            about: object = container.name if container is not None else ""
            if each.preemption is not None and not each.uid:
                about = each.says.at
            grouped.setdefault((each.uid, each.says.cause, about), []).append(each)
        found = [self._termination(key, uid, group, with_alike=with_alike) for (uid, _, _), group in grouped.items()]
        own = pod.metadata.uid if pod is not None else ""
        latest: dict[str, datetime] = {}
        for item in found:
            latest[item.uid] = max(latest.get(item.uid, _OLDEST), item.at or _OLDEST)

        def order(item: PodTermination) -> tuple[bool, float, str, bool, bool, float]:
            # The pod that exists comes first, and an eviction before what followed from it.
            return (
                item.uid != own,
                -latest[item.uid].timestamp() if latest[item.uid] != _OLDEST else 0.0,
                item.uid,
                item.cause.ends_container_only,
                not item.is_eviction,
                -item.at.timestamp() if item.at is not None else 0.0,
            )

        return sorted(found, key=order)

    def _texts(self, key: str, pod: Pod | None) -> Iterator[_Text]:
        if pod is not None:
            for each in terminations_of(pod):
                if each.cause is not TerminationCause.PREEMPTION:
                    yield _Text(pod.metadata.uid, each)
        events = self._events.get(key, ())
        canceled = max((event.last_time or _OLDEST for event in events if is_canceled(event)), default=_OLDEST)
        # Events and requests without a UID are about the pod that existed then.
        uids = dict.fromkeys(event.subject.uid for event in events if event.subject.uid and not pod_deleted_by(event))

        def uid_at(uid: str, time: datetime | None) -> str:
            if uid:
                return uid
            if pod is not None:
                created = pod.metadata.creation_timestamp
                if time is None or created is None or time >= created:
                    return pod.metadata.uid
            others = [each for each in uids if pod is None or each != pod.metadata.uid]
            return others[0] if len(others) == 1 else ""

        for preemption, uid in self._preemptions.of(key, pod):
            source = EvidenceSource.CONDITION if preemption.evidence is Evidence.CONDITION else EvidenceSource.EVENT
            cause = TerminationCause.PREEMPTION
            says = Termination(cause, source, preemption.at, PREEMPTED, preemption.message)
            yield _Text(uid_at(uid, preemption.at), says, preemption=preemption)
        for event in events:
            time = event.last_time
            if pod_deleted_by(event):
                text, owner = event.text.strip(), f"{event.subject.kind} {event.subject.name}"
                cause = TerminationCause.DELETED_BY_OWNER
                says = Termination(cause, EvidenceSource.EVENT, time, event.reason, text, event.reporter)
                yield _Text(uid_at("", time), says, owner)
            elif event.reason != PREEMPTED and (found := termination_in(event)) is not None:
                if found.reason.startswith(("TaintManager", "DeviceTaint")) and (time or _OLDEST) <= canceled:
                    continue
                yield _Text(uid_at(event.subject.uid, time), found)
        for request in self._requests.get(key, ()):
            if (by_request := _by_request(request)) is not None:
                owner = by_request.detail
                uid = uid_at(request.object_ref.uid, request.at)
                yield _Text(uid, by_request._replace(detail=""), owner, request)

    def _without_evidence(self, pod: Pod) -> Iterator[_Text]:
        """What the pod's phase, its owner and its namespace say if nothing reported its end."""
        uid = pod.metadata.uid
        if pod.is_terminal:
            exits = [_Text(uid, each) for each in exits_of(pod)]
            if not exits and pod.status.phase == "Failed":
                exits.append(_Text(uid, Termination(TerminationCause.CONTAINERS_EXITED, EvidenceSource.OBJECT)))
            yield from exits
            return
        if pod.metadata.deletion_timestamp is None:
            return
        began, owner = deletion_began(pod), self._deleted_owner(pod)
        cause = TerminationCause.OWNER_DELETED if owner else TerminationCause.DELETED
        yield _Text(uid, Termination(cause, EvidenceSource.OBJECT, began), owner)

    def _deleted_owner(self, pod: Pod) -> str:
        """The owner of the pod that is deleted or being deleted, or its namespace, or an empty text."""
        namespace = self._objects("Namespace").get(("", pod.metadata.namespace))
        if namespace is not None and namespace.deletion_timestamp is not None:
            return f"Namespace {namespace.name}"
        owner = controller_of(pod.metadata)
        if owner is None or owner.kind not in KINDS or state_of(self._cluster, owner.kind) is not KindState.READ:
            return ""
        found = self._objects(owner.kind).get((pod.metadata.namespace, owner.name))
        is_another = found is not None and bool(found.uid and owner.uid) and found.uid != owner.uid
        is_leaving = found is None or is_another or found.deletion_timestamp is not None
        return f"{owner.kind} {owner.name}" if is_leaving else ""

    def _objects(self, kind: str) -> dict[tuple[str, str], ObjectMeta]:
        """The metadata of all objects of a kind, by namespace and name."""
        if kind not in self._by_kind:
            records = getattr(self._cluster, KINDS[kind].field)
            found = {(each.metadata.namespace, each.metadata.name): each.metadata for each in records}
            self._by_kind[kind] = found
        return self._by_kind[kind]

    def _termination(self, key: str, uid: str, group: Sequence[_Text], *, with_alike: bool) -> PodTermination:
        """All texts of one cause as one record."""
        says = [each.says for each in group]
        cause = says[0].cause
        pod = self._pods.get(key)
        pod = pod if pod is not None and pod.metadata.uid == uid else None
        node_name = self._node_of(key, pod, group)
        node = self._nodes.get(node_name)
        known: dict[str, Any] = {
            "uid": uid,
            "node": node_name,
            "preemption": next((each.preemption for each in group if each.preemption is not None), None),
            "owner": next((each.owner for each in group if each.owner), ""),
            "alike": self._alike(pod, cause, says) if pod is not None and with_alike else None,
        }
        accepted = [each.request for each in group if each.request is not None and each.request.is_accepted]
        if cause is TerminationCause.EVICTION_API:
            requests = [each for each in self._requests.get(key, ()) if each.is_eviction]
            cordon = self._changes.of_node(node_name, _first_time(says))
            known["client"] = client_of(says, accepted, node, self._node_events.get(node_name, ()), cordon)
            known["rejected_requests"] = sum(not each.is_accepted for each in requests)
        elif cause is TerminationCause.NODE_GONE and node is None:
            requests = self._node_requests.get(node_name, [])
            known["client"] = remover_of(requests, self._node_events.get(node_name, ()))
        elif cause is TerminationCause.DELETED_BY_CLIENT and accepted:
            known["client"] = client_of_request(accepted[0])
        elif cause is TerminationCause.NO_EXECUTE_TAINT and pod is not None:
            known["taints"] = evicting_taints(pod, node)
        if cause in _OF_OWNERS:
            known["owner_changes"] = self._owner_changes(key, pod, known["owner"], says)
        if pod is not None and not any(each.at for each in says):
            known["at"] = deletion_began(pod)
        return PodTermination.of_texts(says, **known)

    def _owner_changes(self, key: str, pod: Pod | None, owner: str, says: Iterable[Termination]) -> list[ObjectChange]:
        """The changes of the owner shortly before it, or something else, deleted the pod."""
        controller = controller_of(pod.metadata) if pod is not None else None
        kind, _, name = (f"{controller.kind} {controller.name}" if controller is not None else owner).partition(" ")
        return self._changes.of_owner(kind, key.partition("/")[0], name, _first_time(says)) if name else []

    def _node_of(self, key: str, pod: Pod | None, group: Sequence[_Text]) -> str:
        """The node that the pod was on, as far as anything says."""
        if pod is not None:
            return pod.spec.node_name
        for each in group:
            if each.preemption is not None and each.preemption.node:
                return each.preemption.node
            if match := _NODE_IN_TEXT.search(each.says.message):
                return match["node"] or match["of_controller"]
        return next((event.host for event in self._events.get(key, ()) if event.host), "")

    def _alike(self, pod: Pod, cause: TerminationCause, says: Iterable[Termination]) -> AlikePods | None:
        """Other pods of the same owner that ended for the same cause, and by rejection for the same reason."""
        owner = controller_of(pod.metadata)
        if owner is None or cause not in _REPEATED:
            return None
        reasons = {each.reason for each in says if each.source is EvidenceSource.STATUS}
        alike = [
            other
            for other in self._by_owner.get(owner.uid, ())
            if other is not pod
            and any(
                each.cause is cause and (each.source is not EvidenceSource.STATUS or each.reason in reasons)
                for each in terminations_of(other)
            )
        ]
        if not alike:
            return None
        created = [time for each in (pod, *alike) if (time := each.metadata.creation_timestamp) is not None]
        return AlikePods(
            owner=f"{owner.kind} {owner.name}",
            pods=len(alike),
            since=min(created, default=None),
            until=max(created, default=None),
            nodes=sorted({each.spec.node_name for each in (pod, *alike) if each.spec.node_name}),
        )


def _first_time(says: Iterable[Termination]) -> datetime | None:
    return min((each.at for each in says if each.at is not None), default=None)


def _ends_pod(says: Termination) -> bool:
    return not says.cause.ends_container_only


def _by_request(request: AuditRequest) -> Termination | None:
    """What an accepted request says about the end of its pod; its ``detail`` is the owner's kind."""
    if not request.is_accepted:
        return None
    user = request.username
    owner = ""
    if request.is_eviction:
        cause = TerminationCause.EVICTION_API
    elif not request.is_deletion or user.startswith(_KUBELET_USER):
        return None
    elif user in _SERVICE_ACCOUNTS_OF_OWNERS:
        cause, owner = TerminationCause.DELETED_BY_OWNER, _SERVICE_ACCOUNTS_OF_OWNERS[user]
    else:
        cause = _BY_CONTROLLER.get(user, TerminationCause.DELETED_BY_CLIENT)
    text = " ".join(filter(None, (request.verb, "pods", request.object_ref.subresource)))
    message = f"{text} by {user} ({request.user_agent})" if request.user_agent else f"{text} by {user}"
    return Termination(cause, EvidenceSource.AUDIT_LOG, request.at, request.verb, message, reporter=user, detail=owner)
