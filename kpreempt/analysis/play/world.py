"""The cluster as it changes in a play."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import msgspec

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.play.budgets import Budgets
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod

DEFAULT_GRACE_SECONDS = 30
# A century: no play is that long, and the calendar ends some time.
_LONGEST_GRACE_SECONDS = 100 * 365 * 24 * 3600


class World:
    """Pods by key in the order in which they came, and the budgets. ``now`` is the time of the start."""

    def __init__(self, cluster: ClusterSnapshot, scheduler: Scheduler, now: datetime) -> None:
        self._cluster = cluster
        self._scheduler = scheduler
        self._now = now
        self.pods: dict[str, Pod] = {pod.key: pod for pod in cluster.pods}
        self.budgets = Budgets(cluster.pod_disruption_budgets)
        self._prepared: Any = None
        self._is_stale = True
        # Changes when what the scheduler looks at does.
        self.version = 0

    def prepared(self, at: float) -> Any:
        """The cluster as it is now, ready for the scheduler."""
        if self._is_stale:
            cluster = msgspec.structs.replace(
                self._cluster, pods=list(self.pods.values()), pod_disruption_budgets=self.budgets.now
            )
            self._prepared = self._scheduler.prepare(cluster, now=self.time(at), before=self._prepared)
            self._is_stale = False
        return self._prepared

    def create(self, pod: Pod, at: float) -> Pod:
        """A pod is made; returns it as it is stored."""
        if pod.metadata.creation_timestamp is None:
            metadata = msgspec.structs.replace(pod.metadata, creation_timestamp=self.time(at))
            pod = msgspec.structs.replace(pod, metadata=metadata)
        self._put(pod)
        return pod

    def bind(self, key: str, node: str, at: float) -> None:
        """A pod is bound, and runs at once."""
        pod = self.pods[key]
        status = msgspec.structs.replace(
            pod.status, phase="Running", start_time=self.time(at), nominated_node_name="", conditions=[]
        )
        self._put(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node), status=status))
        self.budgets.change(pod, 1)

    def nominate(self, key: str, node: str) -> None:
        """A pod waits for room on a node; lower ones that did lose their nomination."""
        pod = self.pods[key]
        for other in list(self.pods.values()):
            is_lower = other.status.nominated_node_name == node and other.priority < pod.priority
            if is_lower and not other.spec.node_name:
                self._put(_nominated(other, ""))
        self._put(_nominated(pod, node))

    def leave(self, key: str, at: float) -> float:
        """A pod is told to go; returns when it is gone."""
        pod = self.pods[key]
        gone_at = at + seconds_to_stop(pod)
        metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=self.time(gone_at))
        self._put(msgspec.structs.replace(pod, metadata=metadata))
        self.budgets.change(pod, -1)
        return gone_at

    def remove(self, key: str) -> Pod:
        """A pod is gone; returns it as it was."""
        pod = self.pods.pop(key)
        self._changed()
        return pod

    def seconds_until_gone(self, pod: Pod) -> float:
        """How long a pod that is on its way out already takes still."""
        deletion = pod.metadata.deletion_timestamp
        return max((deletion - self._now).total_seconds(), 0.0) if deletion is not None else 0.0

    def shape(self) -> frozenset[tuple[tuple[str, str, str, str, bool], int]]:
        """What is where, whatever it is called: how many pods of each owner are on a node, wait for one, or leave."""
        counts: Counter[tuple[str, str, str, str, bool]] = Counter()
        for pod in self.pods.values():
            owner = controller_of(pod.metadata)
            name = f"{owner.kind}/{owner.name}" if owner else pod.metadata.name
            is_leaving = pod.metadata.deletion_timestamp is not None
            counts[pod.metadata.namespace, name, pod.spec.node_name, pod.status.nominated_node_name, is_leaving] += 1
        return frozenset(counts.items())

    def _put(self, pod: Pod) -> None:
        self.pods[pod.key] = pod
        self._changed()

    def _changed(self) -> None:
        self._is_stale = True
        self.version += 1

    def time(self, at: float) -> datetime:
        """The time of day so many seconds after the start."""
        return self._now + timedelta(seconds=at)


def seconds_to_stop(pod: Pod) -> int:
    """How long the pod may take to stop, a century at most."""
    grace = pod.spec.termination_grace_period_seconds
    return DEFAULT_GRACE_SECONDS if grace is None else min(max(grace, 0), _LONGEST_GRACE_SECONDS)


def _nominated(pod: Pod, node: str) -> Pod:
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, nominated_node_name=node))
