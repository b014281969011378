"""Past preemptions as events show them: what a pod replaces, and what evicts what again and again.

A ReplicaSet replaces a pod as soon as the pod is being deleted, and nothing links the two pods. So the owner and the
times identify the evicted pod, if only one fits; otherwise only the number of pods that fit is known. A StatefulSet's
new pod has the name of the old one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from kpreempt.analysis.preempted_by import PreemptionIndex, preempted_events
from kpreempt.controllers.actions import deployment_of, tied_node
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.event import PREEMPTED
from kpreempt.model.meta import ObjectName, controller_of, owner_name
from kpreempt.model.pod import Pod
from kpreempt.model.workloads import DaemonSet, Job, ReplicaSet, StatefulSet
from kpreempt.verdict.who_evicted import PodLocation
from kpreempt.verdict.workload import PreemptionsBetween, PriorityInversion, Replacement

_NEVER = datetime.min.replace(tzinfo=UTC)
# How long after an eviction a controller creates the replacement: usually, and at most.
_SOON, _LATEST = timedelta(seconds=5), timedelta(seconds=60)
# The endings of the names of pods (``k8s.io/apimachinery/pkg/util/rand``, v0.36.3).
_GENERATED = re.compile(r"(?P<owner>.+?)(?:-\d+)?-[bcdfghjklmnpqrstvwxz2456789]{5}")
_OF_GENERATED = ("ReplicaSet", "Job", "DaemonSet", "ReplicationController")
_NUMBERED = re.compile(r"(?P<owner>.+)-\d+")


class _Evicted(NamedTuple):
    """An evicted pod with its owner, if that is known; an old event does not name the preemptor."""

    pod: str
    uid: str
    node: str
    at: datetime
    preemptor: PodLocation
    owner: ObjectName | None


class PastPreemptions:
    """The preemptions that a cluster's events show, each evicted pod once."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        self._cluster = cluster
        self._pods = {pod.key: pod for pod in cluster.pods}
        self._workloads: dict[ObjectName, str] = {}
        self._by_owner: defaultdict[ObjectName, list[Pod]] = defaultdict(list)
        self._named: defaultdict[tuple[str, str], list[ObjectName]] = defaultdict(list)
        self._evicted: list[_Evicted] = []
        if any(event.reason == PREEMPTED for event in cluster.events):
            self._index()
            self._evicted += self._read()

    def _index(self) -> None:
        """Index the owners of pods; most clusters have no events about preemptions."""
        cluster = self._cluster
        for pod in cluster.pods:
            if (owner := owner_name(pod.metadata)) is not None:
                self._by_owner[owner].append(pod)
                deployment = deployment_of(pod, owner.name) if owner.kind == "ReplicaSet" else ""
                self._workloads[owner] = str(
                    owner._replace(kind="Deployment", name=deployment) if deployment else owner
                )
        for kind, record in self._controllers():
            owner = ObjectName.of(kind, record.metadata)
            above = controller_of(record.metadata)
            deployed = ObjectName("Deployment", owner.namespace, above.name if above is not None else "")
            is_deployed = above is not None and above.kind == "Deployment"
            self._workloads.setdefault(owner, str(deployed if is_deployed else owner))
        for owner in self._workloads:
            self._named[owner.namespace, owner.name].append(owner)

    def _controllers(self) -> Iterator[tuple[str, ReplicaSet | StatefulSet | Job | DaemonSet]]:
        cluster = self._cluster
        yield from (("ReplicaSet", each) for each in cluster.replica_sets)
        yield from (("StatefulSet", each) for each in cluster.stateful_sets)
        yield from (("Job", each) for each in cluster.jobs)
        yield from (("DaemonSet", each) for each in cluster.daemon_sets)

    def _read(self) -> Iterable[_Evicted]:
        index, seen = PreemptionIndex(self._cluster), set[tuple[str, str]]()
        # The first event about a pod is about the pod that evicted it.
        for event in reversed(preempted_events(self._cluster)):
            key = event.subject.key, event.subject.uid
            preemption = index.by_event(event)
            if event.last_time is None or key in seen:
                continue
            seen.add(key)
            pod = self._pods.get(event.subject.key)
            is_same = pod is not None and event.subject.uid in ("", pod.metadata.uid)
            owner = owner_name(pod.metadata) if pod is not None and is_same else self._owner_by_name(event.subject.key)
            preemptor = preemption.preemptor or PodLocation()
            yield _Evicted(*key, preemption.node, event.event_time or event.last_time, preemptor, owner)

    def _owner_by_name(self, key: str) -> ObjectName | None:
        """The owner of a pod that is gone, if its name shows it."""
        namespace, _, name = key.partition("/")
        found: list[ObjectName] = []
        for pattern, kinds in ((_GENERATED, _OF_GENERATED), (_NUMBERED, ("StatefulSet",))):
            if (match := pattern.fullmatch(name)) is not None:
                known = [self._named.get((namespace, base), ()) for base in (match["owner"], name.rpartition("-")[0])]
                found += [each for owners in known for each in owners if each.kind in kinds]
        return found[0] if len(set(found)) == 1 else None

    def replaced_by(self, pod: Pod) -> Replacement | None:
        """Which evicted pod the pod replaces, as far as its name, its owner and the times show it."""
        owner, created = owner_name(pod.metadata), pod.metadata.creation_timestamp
        if owner is None or created is None:
            return None
        own = [each for each in self._evicted if each.owner == owner and each.uid != pod.metadata.uid]
        if owner.kind == "DaemonSet":
            # A DaemonSet replaces a pod when it is gone, on the same node.
            same_node = [each for each in own if each.node == tied_node(pod) and _second(each.at) <= created]
            return _replacement(same_node[-1:], owner, is_certain=True) if same_node else None
        same_name = [each for each in own if each.pod == pod.key and _second(each.at) <= created]
        if same_name:
            return _replacement(same_name[-1:], owner, is_certain=True)
        if owner.kind == "StatefulSet":
            return None
        for within in (_SOON, _LATEST):
            possible = [each for each in own if timedelta() <= created - _second(each.at) <= within]
            if possible:
                first = _second(possible[0].at)
                rivals = [each for each in self._by_owner[owner] if _is_between(each, first, created + within)]
                return _replacement(possible, owner, is_certain=within is _SOON and len(rivals) <= len(possible))
        return None

    def between(self, pods: Iterable[Pod], *, least: int = 1) -> list[PreemptionsBetween]:
        """The preemptions by and of the workloads of these pods, by pair of workloads, most first.

        Only those with an inversion or at least ``least`` evicted pods.
        """
        if not self._evicted:
            return []
        selected = {self._workload_of(pod) for pod in pods}
        pairs: defaultdict[tuple[str, str], list[_Evicted]] = defaultdict(list)
        for each in self._evicted:
            preemptor = self._workload_of_preemptor(each.preemptor)
            victim = self._workloads[each.owner] if each.owner is not None else f"Pod {each.pod}"
            if preemptor and (preemptor in selected or victim in selected):
                pairs[preemptor, victim].append(each)
        found = [
            PreemptionsBetween.of_evictions(preemptor, victim, [each.at for each in evicted], self._inversion(evicted))
            for (preemptor, victim), evicted in pairs.items()
        ]
        found = [each for each in found if each.pods >= least or each.inversion is not None]
        return sorted(found, key=lambda each: (each.inversion is None, -each.pods, each.preemptor, each.victim))

    def pods_of(self, workload: str) -> list[Pod]:
        """The pods of a workload (``Deployment shop/web``)."""
        return [
            pod for pod in self._cluster.pods if workload in (self._workload_of(pod), str(owner_name(pod.metadata)))
        ]

    def _workload_of(self, pod: Pod) -> str:
        """The workload of a pod, or the pod itself."""
        owner = owner_name(pod.metadata)
        return self._workloads[owner] if owner is not None else f"Pod {pod.key}"

    def _workload_of_preemptor(self, preemptor: PodLocation) -> str:
        if not preemptor.pod:
            return f"Pod {preemptor.uid}" if preemptor.uid else ""
        pod = self._pods.get(preemptor.pod)
        if pod is not None and preemptor.uid in ("", pod.metadata.uid):
            return self._workload_of(pod)
        owner = self._owner_by_name(preemptor.pod)
        return self._workloads[owner] if owner is not None else f"Pod {preemptor.pod}"

    def _priority_like(self, preemptor: PodLocation) -> int | None:
        """The priority of a preemptor that is gone, if all pods of its controller have the same."""
        owner = self._owner_by_name(preemptor.pod)
        found = {pod.priority for pod in self._by_owner[owner]} if owner is not None else set()
        return found.pop() if len(found) == 1 else None

    def _inversion(self, evicted: list[_Evicted]) -> PriorityInversion | None:
        """Whether replacements of the evicted pods are more important than the pods that these were evicted for.

        Preemptors of unknown priority do not count, unless it is known of none.
        """
        own = [each.preemptor.priority for each in evicted]
        # Of preemptors that are gone, what their controller's other pods have.
        derived = [self._priority_like(each.preemptor) if each.preemptor.priority is None else None for each in evicted]
        known = [priority for priority in (*own, *derived) if priority is not None]
        most = max(known, default=None)
        since = min(_second(each.at) for each in evicted)
        owners, uids = {each.owner for each in evicted if each.owner is not None}, {each.uid for each in evicted}
        replacements = [
            pod
            for owner in owners
            for pod in self._by_owner[owner]
            if pod.is_active and pod.metadata.uid not in uids and _is_between(pod, since, None)
        ]
        replacements = [pod for pod in replacements if most is None or pod.priority > most]
        names = {pod.spec.priority_class_name for pod in replacements}
        class_name = names.pop() if len(names) == 1 else ""
        is_class_newer = self._is_class_newer(class_name, owners)
        # Without the preemptors' priority, only other priorities than those of the evicted pods are noticeable.
        if not replacements or (most is None and not is_class_newer):
            return None
        nodes = {each.node for each in evicted}
        return PriorityInversion(
            preemptor_priority=most,
            is_derived=any(priority is not None for priority in derived),
            gone_preemptors=own.count(None),
            unknown_priorities=len(evicted) - len(known),
            priority=min(pod.priority for pod in replacements),
            pods=len(replacements),
            priority_class_name=class_name,
            is_class_newer=is_class_newer,
            nodes=sorted({pod.spec.node_name for pod in replacements} & nodes - {""}),
        )

    def _is_class_newer(self, class_name: str, owners: Iterable[ObjectName]) -> bool:
        created = next(
            (
                each.metadata.creation_timestamp
                for each in self._cluster.priority_classes
                if each.metadata.name == class_name
            ),
            None,
        )
        known = {
            ObjectName.of(kind, each.metadata): each.metadata.creation_timestamp for kind, each in self._controllers()
        }
        times = [known.get(owner) for owner in owners]
        return created is not None and bool(times) and all(time is not None and time < created for time in times)


def _second(time: datetime) -> datetime:
    """Times of creation are in whole seconds."""
    return time.replace(microsecond=0)


def _is_between(pod: Pod, since: datetime, until: datetime | None) -> bool:
    created = pod.metadata.creation_timestamp or _NEVER
    return since <= created and (until is None or created <= until)


def _replacement(possible: list[_Evicted], owner: ObjectName, *, is_certain: bool) -> Replacement:
    return Replacement(
        pods=[each.pod for each in possible],
        owner=str(owner),
        preemptors=list(dict.fromkeys(filter(None, (each.preemptor.pod or each.preemptor.uid for each in possible)))),
        at=max(each.at for each in possible),
        is_certain=is_certain,
    )
