"""A StatefulSet."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kpreempt.analysis.simulation.client import Client
from kpreempt.analysis.simulation.cluster import OwnerKey
from kpreempt.analysis.simulation.controllers.naming import Maker
from kpreempt.controllers.actions import CreatePods, DeletePod
from kpreempt.controllers.pods import REVISION_LABEL
from kpreempt.controllers.stateful_set import StatefulSetState, ordinal_of, reconcile_stateful_set
from kpreempt.model.pod import Pod, Volume

_LABEL_OF_NAME = "statefulset.kubernetes.io/pod-name"
_LABEL_OF_INDEX = "apps.kubernetes.io/pod-index"


class StatefulSetController:
    """Keeps numbered pods. ``makers`` are by the revision that they make pods of."""

    def __init__(self, owner: OwnerKey, stateful_set: StatefulSetState, makers: Mapping[str, Maker]) -> None:
        namespace, kind, name = owner
        self.workload = f"{kind} {namespace}/{name}"
        self.owners = (owner,)
        self.wanted = stateful_set.replicas
        self.min_ready_seconds = stateful_set.min_ready_seconds
        self._set = stateful_set
        self._makers = makers

    def sync(self, client: Client) -> bool:
        """``updateStatefulSet``."""
        pods = client.controlled(client.pods_of(self.owners[0]))
        step = reconcile_stateful_set(self._set, pods, client.now)
        self._set = step.stateful_set
        for action in step.actions:
            if isinstance(action, CreatePods):
                self._create(client, action)
            elif isinstance(action, DeletePod):
                client.delete(f"{self.owners[0][0]}/{action.name}", action.reason)
        return bool(step.actions)

    def is_done(self, client: Client) -> bool:
        """Whether all pods are ready, and those that an update reaches are of the present template."""
        pods = {ordinal_of(pod.name): pod for pod in client.controlled(client.pods_of(self.owners[0]))}
        state = self._set
        ordinals = range(state.start, state.start + state.replicas)
        reached = ordinals[max(state.partition or 0, 0) :] if state.strategy == "RollingUpdate" else ()
        return sorted(pods) == list(ordinals) and all(
            pod.is_ready and not pod.is_terminating and (ordinal not in reached or self._is_new(pod.revision))
            for ordinal, pod in pods.items()
        )

    def state(self) -> object:
        """What its status says."""
        return self._set

    def _is_new(self, revision: str) -> bool:
        return revision == self._set.update_revision

    def _create(self, client: Client, action: CreatePods) -> None:
        maker = self._makers.get(action.revision) or self._makers[self._set.update_revision]
        labels = {
            _LABEL_OF_NAME: action.name,
            _LABEL_OF_INDEX: str(ordinal_of(action.name)),
            REVISION_LABEL: action.revision,
        }
        client.create(with_claims_of(maker.make(name=action.name, labels=labels), maker.prototype.metadata.name))


def with_claims_of(pod: Pod, prototype_name: str) -> Pod:
    """The pod with its own claims, where the prototype's are named after that pod."""

    def own(volume: Volume) -> Volume:
        claim = volume.persistent_volume_claim
        if claim is None or claim.claim_name != f"{volume.name}-{prototype_name}":
            return volume
        claim = msgspec.structs.replace(claim, claim_name=f"{volume.name}-{pod.metadata.name}")
        return msgspec.structs.replace(volume, persistent_volume_claim=claim)

    volumes = [own(volume) for volume in pod.spec.volumes]
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, volumes=volumes))
