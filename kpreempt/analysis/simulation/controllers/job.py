"""A Job. Its pods run for as long as the simulation says of them, unless they have to go.

How long that is is guessed, so that a deadline ends the Job only where a pod of it has no node by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import msgspec

from kpreempt.analysis.simulation.client import Client
from kpreempt.analysis.simulation.cluster import OwnerKey
from kpreempt.analysis.simulation.controllers.naming import Maker
from kpreempt.controllers.actions import CreatePods, DeletePod, ReleasePod
from kpreempt.controllers.job import reconcile_job
from kpreempt.controllers.job_records import JobState
from kpreempt.controllers.pods import COMPLETION_INDEX_LABEL, JOB_FINALIZER, ControlledPod, active_pods
from kpreempt.model.pod import Pod

# A deadline beyond this is not waited for.
_LONGEST_SECONDS = 7 * 24 * 3600


class JobController:
    """Keeps as many pods as may run side by side, and starts others after a wait where they fail."""

    def __init__(
        self, owner: OwnerKey, job: JobState, maker: Maker, workload: str, strangers: frozenset[str] = frozenset()
    ) -> None:
        """``workload`` is the name of the Job, or of the CronJob that it is of.

        ``strangers`` are the keys of pods of a Job before that had the same name; they go, and do not count.
        """
        self.workload = workload
        self._strangers = strangers
        self.min_ready_seconds = 0
        self.owners = (owner,)
        self._deadline = job.active_deadline_seconds
        self._job = msgspec.structs.replace(job, active_deadline_seconds=None)
        self._maker = maker

    @property
    def wanted(self) -> int | None:
        """As many as may run side by side, and are needed."""
        job = self._job
        if job.is_suspended or job.has_ended:
            return 0
        return job.parallelism if job.completions is None else max(min(job.parallelism, job.completions), 0)

    def sync(self, client: Client) -> bool:
        """``syncJob``."""
        namespace = self.owners[0][0]
        if self._dismiss(client):
            return True
        pods = client.controlled(self._own(client))
        had_begun = self._job.start_time is not None
        step = reconcile_job(self._due(pods), pods, client.now)
        after = msgspec.structs.replace(step.job, active_deadline_seconds=None)
        is_other_state, self._job = after != self._job, after
        if not had_begun and after.start_time is not None and self._has_deadline:
            client.call_again(self, timedelta(seconds=self._deadline or 0))
        for action in step.actions:
            if isinstance(action, CreatePods):
                self._create(client, action)
            elif isinstance(action, DeletePod):
                client.delete(f"{namespace}/{action.name}", action.reason)
            elif isinstance(action, ReleasePod):
                client.release(f"{namespace}/{action.name}")
        if not step.actions and step.retry_after is not None:
            client.call_again(self, step.retry_after)
        return bool(step.actions) or is_other_state

    def is_done(self, client: Client) -> bool:
        """Whether all pods that it wants at a time are ready; a Job that failed never gets there."""
        if self._job.ending == "Failed":
            return False
        pods = active_pods(client.controlled(self._own(client)))
        return len(pods) == self.wanted == sum(pod.is_ready for pod in pods)

    def state(self) -> object:
        """How many have failed, and in a row, and how many have succeeded."""
        return self._job.failed, self._job.failures_in_a_row, self._job.ending, self._job.succeeded

    @property
    def _has_deadline(self) -> bool:
        return self._deadline is not None and self._deadline <= _LONGEST_SECONDS

    def _due(self, pods: Sequence[ControlledPod]) -> JobState:
        """The Job, with its deadline where that ends it."""
        waits = any(not pod.node_name for pod in active_pods(pods))
        return msgspec.structs.replace(self._job, active_deadline_seconds=self._deadline) if waits else self._job

    def _own(self, client: Client) -> list[Pod]:
        return [pod for pod in client.pods_of(self.owners[0]) if pod.key not in self._strangers]

    def _dismiss(self, client: Client) -> bool:
        """Tell the pods of the Job before to go, without what would hold them; whether there were any to tell."""
        told = False
        for pod in client.pods_of(self.owners[0]) if self._strangers else ():
            if pod.key in self._strangers and JOB_FINALIZER in pod.metadata.finalizers:
                client.release(pod.key)
            if pod.key in self._strangers and pod.metadata.deletion_timestamp is None:
                client.delete(pod.key, "owner-deleted")
                told = True
        return told

    def _create(self, client: Client, action: CreatePods) -> None:
        labels = {} if action.index is None else {COMPLETION_INDEX_LABEL: str(action.index)}
        for _ in range(action.count):
            pod = self._maker.make(labels=labels)
            finalizers = [*pod.metadata.finalizers, JOB_FINALIZER]
            metadata = msgspec.structs.replace(pod.metadata, finalizers=list(dict.fromkeys(finalizers)))
            client.create(msgspec.structs.replace(pod, metadata=metadata))
