"""What controllers do next, and what stops them. A caller carries actions out in their order, and then asks again."""

from __future__ import annotations

from typing import Literal

import msgspec

from kpreempt.errors import KpreemptError

# Why a pod is deleted: its owner is too big, has another template by now, or another pod is in its place; it has
# finished; its node is none of its owner's; its Job has finished, or is suspended.
DeletionReason = Literal["scale-down", "update", "duplicate", "finished", "misplaced", "job-finished", "job-suspended"]


class CreatePods(msgspec.Struct, frozen=True, omit_defaults=True):
    """``count`` pods are made, all alike. Of those with an identity there is one: a name, a node or an index.

    ``name`` is that of a StatefulSet's pod, ``node_name`` where a DaemonSet's has to go, ``index`` the completion that
    a Job's pod works on. ``revision`` names the template, where the controller chooses between two.
    """

    count: int = 1
    name: str = ""
    node_name: str = ""
    index: int | None = None
    revision: str = ""


class DeletePod(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pod is asked to end; it is gone after its grace period and without finalizers."""

    name: str
    reason: DeletionReason


class ReleasePod(msgspec.Struct, frozen=True, omit_defaults=True):
    """A Job takes its finalizer off a pod that it has counted."""

    name: str


class CreateReplicaSet(msgspec.Struct, frozen=True, omit_defaults=True):
    """A Deployment makes a ReplicaSet of its present template, with ``replicas`` pods.

    ``desired_replicas`` and ``max_replicas`` are what the controller notes on it: the Deployment's size, without and
    with the surge.
    """

    replicas: int
    desired_replicas: int
    max_replicas: int


class ScaleReplicaSet(msgspec.Struct, frozen=True, omit_defaults=True):
    """A Deployment gives one of its ReplicaSets ``replicas`` pods, and notes its own size on it, as above."""

    name: str
    replicas: int
    desired_replicas: int
    max_replicas: int


Action = CreatePods | DeletePod | ReleasePod | CreateReplicaSet | ScaleReplicaSet


class SyncError(KpreemptError):
    """A controller cannot go on with an object, and upstream's would try again and again; the message says why.

    ``controllers_words`` is what the controller itself would say, where that is known, and else the message. Where it
    depends on the order of a Go map, ``any_of`` has all that it may say.
    """

    def __init__(self, message: str, *, controllers_words: str = "", any_of: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.controllers_words = controllers_words or message
        self.any_of = any_of
