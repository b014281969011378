"""What controllers do next, what stops them, and the amounts and the facts of a version that they go by.

A caller carries actions out in their order, and then asks again. Amounts that are a number or a percentage of another
number follow ``k8s.io/apimachinery`` v0.36.3 ``pkg/util/intstr/intstr.go`` (``GetScaledValueFromIntOrPercent``).

The facts have the names that ``kpreempt/schedulers/kube/versions.py`` gives them; what each stands for says
``changes.py`` there. ``kpreempt/analysis/version_rules.py`` hands them on. The defaults are those of Kubernetes 1.36.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from kpreempt.errors import KpreemptError
from kpreempt.model.labels import parse_int64

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


# A sign and the digits of an int64; longer texts are numbers that upstream cannot read, or zeros in a row.
_LONGEST_NUMBER = 20
_MOST_SHOWN = 40


def scaled_value(amount: int | str, total: int, *, round_up: bool) -> int:
    """``amount`` itself where it is a number, or that percentage of ``total``, rounded to a whole number.

    Raises ``SyncError`` for a text that is no percentage.
    """
    if isinstance(amount, int):
        return amount
    digits = amount.removesuffix("%")
    percent = parse_int64(digits) if digits != amount and len(digits) <= _LONGEST_NUMBER else None
    if percent is None:
        problem = "invalid type: string is not a percentage"
        if digits != amount:
            why = "value out of range" if digits.lstrip("+-").isdecimal() and digits.isascii() else "invalid syntax"
            problem = f'invalid value "{amount}": strconv.Atoi: parsing "{digits}": {why}'
        shown = amount if len(amount) <= _MOST_SHOWN else f"{amount[:_MOST_SHOWN]}…"
        raise SyncError(
            f'"{shown}" is not a percentage',
            controllers_words=f"invalid value for IntOrString: {problem}",
        )
    return -(-percent * total // 100) if round_up else percent * total // 100


class ControllerRules(NamedTuple):
    """What the controllers of one version do otherwise than those of another."""

    counts_replaced_daemon_pods: bool = True
    counts_restarts_of_sidecars: bool = True
    job_managed_by: bool = True
    job_success_policy: bool = True
    keeps_jobs_until_their_pods_end: bool = True
    max_unavailable_stateful_set: bool = False
    pod_topology_labels_admission: bool = True
    updates_unavailable_pods_first: bool = False
    waits_for_min_ready_seconds: bool = True


USUAL = ControllerRules()
