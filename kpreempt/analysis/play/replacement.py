"""The pod that a controller makes in the place of one that has to go, and when it does."""

from __future__ import annotations

from enum import Enum

import msgspec

from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod, PodStatus


class Moment(Enum):
    """When a controller makes the next pod: as soon as the old one is told to go, or once it is gone."""

    AT_ONCE = "at once"
    ONCE_GONE = "once gone"


# ReplicaSets and Jobs count active pods only; the others keep one pod per name or node.
_MOMENTS = {
    "ReplicaSet": Moment.AT_ONCE,
    "ReplicationController": Moment.AT_ONCE,
    "Job": Moment.AT_ONCE,
    "StatefulSet": Moment.ONCE_GONE,
    "DaemonSet": Moment.ONCE_GONE,
}
_NAMED_AS_BEFORE = "StatefulSet"


def moment_of(pod: Pod) -> Moment | None:
    """When the pod is replaced, or ``None`` where no controller that is known would."""
    owner = controller_of(pod.metadata)
    return _MOMENTS.get(owner.kind) if owner is not None else None


def is_known_owner(pod: Pod) -> bool:
    """Whether it is known what manages the pod, or that nothing does."""
    owner = controller_of(pod.metadata)
    return owner is None or owner.kind in _MOMENTS


def replacement_of(pod: Pod, number: int) -> Pod:
    """The new pod; ``number`` tells it from others that take the place of pods of the same owner."""
    owner = controller_of(pod.metadata)
    name = pod.metadata.name
    if owner is not None and owner.kind != _NAMED_AS_BEFORE:
        name = f"{name.rpartition('-')[0] or name}-new-{number}"
    metadata = msgspec.structs.replace(
        pod.metadata,
        name=name,
        uid=f"new-{number}",
        creation_timestamp=None,
        deletion_timestamp=None,
        deletion_grace_period_seconds=None,
    )
    spec = msgspec.structs.replace(pod.spec, node_name="")
    return msgspec.structs.replace(pod, metadata=metadata, spec=spec, status=PodStatus(phase="Pending"))
