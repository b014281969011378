"""A workload that is deleted, with all its pods."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.analysis.simulation.client import Client
from kpreempt.analysis.simulation.cluster import OwnerKey
from kpreempt.controllers.pods import JOB_FINALIZER


class DeletionController:
    """Tells the pods of some owners to go, as the garbage collector does."""

    def __init__(self, workload: str, owners: Sequence[OwnerKey]) -> None:
        self.workload = workload
        self.owners = tuple(owners)
        self.wanted = 0
        self.min_ready_seconds = 0

    def sync(self, client: Client) -> bool:
        """Whatever is left goes, and a Job that is deleted no longer holds its pods."""
        did = False
        for owner in self.owners:
            for pod in client.pods_of(owner):
                if JOB_FINALIZER in pod.metadata.finalizers:
                    client.release(pod.key)
                if pod.metadata.deletion_timestamp is None:
                    client.delete(pod.key, "owner-deleted")
                    did = True
        return did

    def is_done(self, client: Client) -> bool:
        """Whether no pod is left."""
        return not any(client.pods_of(owner) for owner in self.owners)

    def state(self) -> object:
        return None
