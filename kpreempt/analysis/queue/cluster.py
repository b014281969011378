"""The pods and nodes of a cluster that events change, and the records of these events."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, Protocol

import msgspec

from kpreempt.admission import apply_object_defaults, fill_priorities
from kpreempt.analysis.what_if import plain_document
from kpreempt.errors import InputError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.documents import mapping_in
from kpreempt.model.meta import DEFAULT_NAMESPACE, replace_in, with_creation_time
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod, PodCondition
from kpreempt.verdict import AssumptionKind
from kpreempt.verdict.unread import missing

_POD_SCHEDULED = "PodScheduled"


class Decode(Protocol):
    """Converts plain data to a typed object. Raises ``InputError`` with ``source`` and ``line``."""

    def __call__(self, kind: str, document: dict[str, Any], /, *, source: str, line: int) -> Any:
        """The record of an object of that kind."""


class QueueCluster:
    """The pods by ``namespace/name`` and the nodes by name, as events change them."""

    def __init__(self, cluster: ClusterSnapshot, decode: Decode) -> None:
        self.pods: dict[str, Pod] = {pod.key: pod for pod in cluster.pods if not pod.is_terminal}
        self.nodes: dict[str, Node] = {node.name: node for node in cluster.nodes}
        self._cluster, self._decode = cluster, decode

    @property
    def cluster(self) -> ClusterSnapshot:
        """The current cluster."""
        return msgspec.structs.replace(self._cluster, pods=list(self.pods.values()), nodes=list(self.nodes.values()))

    def new_pod(self, at: TimedEvent) -> Pod:
        """The pod that an event adds, created at the event's time by default. Raises ``InputError``."""
        pod: Pod = self._completed(self._decoded("Pod", at.event.pod, at), at.time)
        if pod.key in self.pods:
            raise at.error(f"pod {pod.key} already exists", path="pod", hint="updatePod")
        cluster = msgspec.structs.replace(self._cluster, pods=[pod])
        admitted, assumptions = fill_priorities(cluster, created=[pod.key])
        if any(each.kind is AssumptionKind.UNCERTAIN for each in assumptions):
            problem = missing(self._cluster, "PriorityClass", f'PriorityClass "{pod.spec.priority_class_name}"')
            raise at.error(problem, path="pod.spec.priorityClassName")
        return admitted.pods[0]

    def pod(self, at: TimedEvent) -> Pod:
        """The pod of an event, by its name or object. Raises ``InputError`` if it does not exist."""
        if isinstance(at.event.pod, str):
            key = at.event.pod if "/" in at.event.pod else f"{DEFAULT_NAMESPACE}/{at.event.pod}"
        else:
            metadata = mapping_in(at.event.pod or {}, "metadata")
            key = f"{metadata.get('namespace') or DEFAULT_NAMESPACE}/{metadata.get('name', '')}"
        if key not in self.pods:
            raise at.error(f"pod {key} does not exist", path="pod", hint=", ".join(list(self.pods)[:5]))
        return self.pods[key]

    def changed_pod(self, at: TimedEvent) -> Pod:
        """The pod with the event's patch. Raises ``InputError``."""
        changed: Pod = self._completed(self._patched(self.pod(at), "Pod", at.event.pod, at), at.time)
        return changed

    def new_node(self, at: TimedEvent) -> Node:
        """The node that an event adds. Raises ``InputError``."""
        node: Node = self._completed(self._decoded("Node", at.event.node, at), at.time)
        if node.name in self.nodes:
            raise at.error(f"node {node.name} already exists", path="node", hint="updateNode")
        return node

    def node(self, at: TimedEvent) -> Node:
        """The node of an event. Raises ``InputError`` if it does not exist."""
        reference = at.event.node
        name = reference if isinstance(reference, str) else str(mapping_in(reference or {}, "metadata").get("name", ""))
        if name not in self.nodes:
            raise at.error(f"node {name} does not exist", path="node", hint=", ".join(list(self.nodes)[:5]))
        return self.nodes[name]

    def changed_node(self, at: TimedEvent) -> Node:
        """The node with the event's patch. Raises ``InputError``."""
        changed: Node = self._completed(self._patched(self.node(at), "Node", at.event.node, at), at.time)
        return changed

    def _decoded(self, kind: str, document: object, at: TimedEvent) -> Any:
        if not isinstance(document, dict):
            raise at.error("expected a complete object, as in a manifest", path=kind.lower())
        decoded = self._decode(kind, document, source=at.source, line=at.line)
        if not decoded.metadata.name:
            raise at.error("is missing", path=f"{kind.lower()}.metadata.name")
        return decoded

    def _patched(self, old: Pod | Node, kind: str, patch: object, at: TimedEvent) -> Any:
        if not isinstance(patch, dict):
            raise at.error("expected a patch with the object's metadata.name", path=kind.lower())
        return self._decode(kind, merged(plain_document(old), patch), source=at.source, line=at.line)

    def _completed(self, record: Any, now: datetime) -> Any:
        """The pod or node as the API server would store it."""
        metadata = with_creation_time(record.metadata, now)
        if isinstance(record, Pod):
            metadata = msgspec.structs.replace(metadata, namespace=metadata.namespace or DEFAULT_NAMESPACE)
        return apply_object_defaults(msgspec.structs.replace(record, metadata=metadata))


def after_failed_attempt(pod: Pod, now: datetime, *, is_error: bool) -> Pod:
    """The pod after a failed attempt, with the condition that reports it."""
    reason = "SchedulerError" if is_error else "Unschedulable"
    before = next((each for each in pod.status.conditions if each.type == _POD_SCHEDULED), None)
    since = before.last_transition_time if before and before.status == "False" else now
    condition = PodCondition(
        type=_POD_SCHEDULED, status="False", reason=reason, last_transition_time=since, last_probe_time=now
    )
    others = [each for each in pod.status.conditions if each.type != _POD_SCHEDULED]
    return replace_in(pod, "status", conditions=[*others, condition])


class EventKind(StrEnum):
    """What happened. The last row are actions of the scheduler; all others are changes of the cluster."""

    ADD_POD = "addPod"
    UPDATE_POD = "updatePod"
    DELETE_POD = "deletePod"
    BIND_POD = "bindPod"
    ADD_NODE = "addNode"
    UPDATE_NODE = "updateNode"
    DELETE_NODE = "deleteNode"
    CHANGE_OBJECT = "changeObject"
    WAIT = "wait"
    POP = "pop"
    UNSCHEDULABLE = "unschedulable"
    NOMINATE = "nominate"
    CLEAR_NOMINATION = "clearNomination"
    MOVE_ALL = "moveAll"
    ACTIVATE = "activate"


# The fields that each kind requires in addition to its time.
_NEEDS: dict[EventKind, tuple[str, ...]] = {
    EventKind.ADD_POD: ("pod",),
    EventKind.UPDATE_POD: ("pod",),
    EventKind.DELETE_POD: ("pod",),
    EventKind.BIND_POD: ("pod", "node"),
    EventKind.ADD_NODE: ("node",),
    EventKind.UPDATE_NODE: ("node",),
    EventKind.DELETE_NODE: ("node",),
    EventKind.CHANGE_OBJECT: ("resource", "action"),
    EventKind.NOMINATE: ("pod", "node"),
    EventKind.CLEAR_NOMINATION: ("pod",),
    EventKind.ACTIVATE: ("pod",),
}


class QueueEvent(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One event, as in a file of events.

    ``time`` is absolute, or relative to the previous event (``+5s``); without it both happen at once. ``pod`` and
    ``node`` are names (``namespace/name``), objects to add, or merge patches (RFC 7386) to apply. ``plugins`` are those
    that rejected the ``unschedulable`` pod; ``pending_plugins`` wait for something else, and ``is_error`` means that
    the attempt failed with an error. ``cycle`` is that of the attempt, if it is not the pod's last one.
    """

    event: EventKind
    time: str = ""
    pod: str | dict[str, Any] | None = None
    node: str | dict[str, Any] | None = None
    plugins: list[str] = []
    pending_plugins: list[str] = []
    is_error: bool = msgspec.field(name="error", default=False)
    cycle: int | None = None
    resource: str = ""
    action: Literal["", "Add", "Update", "Delete"] = ""


class TimedEvent(msgspec.Struct, frozen=True):
    """An event with its absolute time and its source."""

    event: QueueEvent
    time: datetime
    source: str = ""
    line: int = 0

    def error(self, problem: str, *, path: str = "", hint: str = "") -> InputError:
        """An error about this event."""
        name = f"event {self.event.event}"
        return InputError(problem, source=self.source, line=self.line, object_name=name, path=path, hint=hint)

    def check(self) -> None:
        """Raise ``InputError`` if a field that this kind of event requires is missing."""
        for field in _NEEDS.get(self.event.event, ()):
            if not getattr(self.event, field):
                raise self.error("is missing", path=field)


def merged(document: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a merge patch (RFC 7386): mappings are merged, null removes, everything else replaces."""
    result = dict(document)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            before = result.get(key)
            result[key] = merged(before if isinstance(before, dict) else {}, value)
        else:
            result[key] = value
    return result
