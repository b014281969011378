"""The fields of a pod's line that a recording reads: its node, and its scheduler's decisions."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from kpreempt.model.meta import OwnerReference, Time, controller_of
from kpreempt.model.pod import TERMINAL_PHASES, PodCondition
from kpreempt.model.workloads import deployment_name
from kpreempt.snapshot.decode import Json
from kpreempt.snapshot.recording.orders import CachedPod
from kpreempt.verdict.verify import REDACTED

# The scheduler's message if no node fits, which it finds out before it assumes the pod on a node.
_NO_NODE = re.compile(r"0/\d+ nodes are available")
# In messages about a preemption that was not tried, or found no victims.
NO_PREEMPTION = "preemption: "


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}
    owner_references: Sequence[OwnerReference] = ()
    deletion_timestamp: Time | None = None


class _Empty(msgspec.Struct, frozen=True):
    """A value of which only the presence matters."""


class _Volume(msgspec.Struct, frozen=True, rename="camel"):
    persistent_volume_claim: _Empty | None = None
    ephemeral: _Empty | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""
    scheduler_name: str = ""
    priority: int = 0
    volumes: Sequence[_Volume] = ()
    resource_claims: Sequence[msgspec.Raw] = ()
    scheduling_gates: Sequence[msgspec.Raw] = ()


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    nominated_node_name: str = ""
    conditions: Sequence[PodCondition] = ()


class PodLine(msgspec.Struct, frozen=True):
    """The few fields of a pod that are read."""

    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def workload(self) -> str:
        """The pod's controller or the Deployment above it, ``Deployment shop/web``; without one, ``Pod shop/web``."""
        owner = controller_of(self.metadata)
        if owner is None:
            return f"Pod {self.key}"
        deployment = deployment_name(self.metadata.labels, owner.name) if owner.kind == "ReplicaSet" else ""
        kind, name = ("Deployment", deployment) if deployment else (owner.kind, owner.name)
        return f"{kind} {self.metadata.namespace}/{name}"

    @property
    def is_leaving(self) -> bool:
        """Whether it is terminating, or about to be: a pod without a node may still be bound before it is deleted."""
        target = self.condition("DisruptionTarget")
        is_disrupted = bool(self.spec.node_name) and target is not None and target.status == "True"
        return self.metadata.deletion_timestamp is not None or is_disrupted

    @property
    def is_ending(self) -> bool:
        """Whether it is terminating or has finished."""
        return self.is_leaving or self.status.phase in TERMINAL_PHASES

    @property
    def has_claims(self) -> bool:
        """Whether something else must be bound before the pod, which takes time."""
        claims = (claim for each in self.spec.volumes for claim in (each.persistent_volume_claim, each.ephemeral))
        return bool(self.spec.resource_claims) or any(claim is not None for claim in claims)

    def condition(self, type_: str) -> PodCondition | None:
        """Return the condition of a type, if the pod has it."""
        return next((each for each in self.status.conditions if each.type == type_), None)

    @property
    def rejection(self) -> str:
        """Why its scheduler could not schedule it, or an empty string."""
        scheduled = self.condition("PodScheduled")
        is_rejected = scheduled is not None and scheduled.status == "False" and scheduled.reason != "SchedulingGated"
        return scheduled.message if scheduled is not None and is_rejected else ""

    @property
    def may_have_preempted(self) -> bool:
        """Whether no node fits, and the message does not say that preemption failed."""
        return bool(_NO_NODE.match(self.rejection)) and NO_PREEMPTION not in self.rejection


_LINE = msgspec.json.Decoder(PodLine)


def redacted_rejection(rejection: str, number: int) -> str:
    """Return a replacement for a scheduler's message, with its own number.

    It keeps the number of nodes, if any, and whether the message is about preemption.
    """
    nodes = _NO_NODE.match(rejection)
    about = f" {NO_PREEMPTION.rstrip()}" if NO_PREEMPTION in rejection else ""
    return f"{nodes[0] if nodes else 'refused'}: {REDACTED} {number}]{about and f'{about} {REDACTED}]'}"


def pod_line(line: Json) -> PodLine:
    """Parse the pod in a line."""
    return _LINE.decode(line)


def observed_pod(line: Json) -> CachedPod:
    """Return the pod for the order of a node's pods; finished pods are on no node, because schedulers ignore them."""
    pod = _LINE.decode(line)
    is_finished = pod.status.phase in TERMINAL_PHASES
    rejection = pod.rejection
    return CachedPod(
        key=pod.key,
        uid=pod.metadata.uid,
        node="" if is_finished else pod.spec.node_name,
        is_waiting=not is_finished and not pod.spec.node_name,
        rejection=rejection,
        is_gated=bool(pod.spec.scheduling_gates),
        has_failed=bool(rejection) and not pod.spec.node_name and not _NO_NODE.match(rejection),
    )
