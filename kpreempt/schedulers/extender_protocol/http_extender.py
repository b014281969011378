"""An HTTP extender as a scheduler calls it (``extender.go`` of v1.8.15, v1.13.12, v1.18.19 and v1.36.3).

Differences from upstream: pods without a UID are sent with a placeholder, and a response on which a real scheduler
panics makes the call fail.

A ``Dialect`` describes the differences between versions. Field names: ``api/v1/types.go`` of v1.8.15 and v1.13.12,
``k8s.io/kube-scheduler/extender/v1/types.go`` v0.18.19 and v0.36.3. Messages: ``extender.go`` of these.

Pods and nodes are sent in the API's format without fields that no scheduler reads: container environments are dropped,
and only the annotations that records keep are sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

import msgspec

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.schedulers.extender_protocol.answers import (
    ExtenderError,
    ExtenderStatusError,
    HostPriority,
    MetaVictims,
    read_filter_result,
    read_preemption_result,
    read_priorities,
)
from kpreempt.schedulers.extender_protocol.settings import ExtenderSettings

# A verb of Go's ``fmt``, with its flags, width and precision, or a percent sign at the end.
_GO_VERB = re.compile(r"%([-+# 0]*[0-9]*(?:\.[0-9]*)?)(.?)", re.DOTALL)


class Call(Protocol):
    """POST JSON to a URL and return the response body. Raises ``ExtenderError``, or its subclass for another status."""

    def __call__(self, url: str, body: bytes, /) -> bytes:
        """Send ``body``."""


# Creates the ``Call`` of an extender.
Connect = Callable[[ExtenderSettings], Call]


class FilteredNode(NamedTuple):
    """A node that passes. ``returned`` is the returned object, if the response has complete objects."""

    name: str
    returned: Node | None = None


class FilterAnswer(NamedTuple):
    """The nodes that pass, in response order, and the reasons of the others.

    Evictions cannot help on ``unresolvable`` nodes, even if ``failed`` has them, too. ``was_called`` is true if a call
    was made.
    """

    passing: list[FilteredNode]
    failed: dict[str, str]
    unresolvable: dict[str, str]
    was_called: bool = True


class NodeVictims(NamedTuple):
    """The victims on a node in order, and the number of PDB violations."""

    pods: Sequence[Pod]
    num_violations: int = 0


# The pods of a node by name; ``None`` for an unknown node.
PodsOfNode = Callable[[str], Sequence[Pod] | None]


class HttpExtender:
    """An extender in a configuration. Methods that call it raise ``ExtenderError``, and no other exception."""

    def __init__(self, settings: ExtenderSettings, dialect: Dialect, call: Call) -> None:
        self.settings = settings
        self._dialect = dialect
        self._call = call
        self._managed = frozenset(settings.managed_resources)
        # The address, which messages use as the name; the position in the configuration if the address is empty.
        self.name = settings.address or f"extenders[{settings.index}]"
        # Whether scheduling continues when the extender fails.
        self.is_ignorable = settings.ignorable
        # The calls it takes part in: preemption, filter, prioritize.
        self.supports_preemption = dialect.has_preempt_verb and bool(settings.preempt_verb)
        self.is_filter = bool(settings.filter_verb)
        self.is_prioritizer = bool(settings.prioritize_verb)

    def is_interested(self, pod: Pod) -> bool:
        """Return whether a container names a managed resource, even with amount 0; always true if it manages none."""
        if not self._managed or not self._dialect.knows_interest:
            return True
        return any(
            not self._managed.isdisjoint(each.resources.requests) or not self._managed.isdisjoint(each.resources.limits)
            for each in (*pod.spec.containers, *pod.spec.init_containers)
        )

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> FilterAnswer:
        """Return which nodes pass; all of them if no verb is configured.

        If the response has neither node names nor nodes, none passes. Returned objects replace the sent ones. Unknown
        names are an error if the version checks them, otherwise they are accepted.
        """
        if not self.settings.filter_verb:
            return FilterAnswer([FilteredNode(node.name) for node in nodes], {}, {}, was_called=False)
        body = self._send(self.settings.filter_verb, self._arguments(pod, nodes))
        result = read_filter_result(body, has_unresolvable=self._dialect.has_unresolvable)
        if result.error:
            raise ExtenderError(_go_format(result.error) if self._dialect.formats_errors else result.error)
        if self.settings.node_cache_capable and result.node_names is not None:
            known = {node.name for node in nodes}
            unknown = [name for name in result.node_names if name not in known]
            if unknown and self._dialect.rejects_unknown_names:
                raise ExtenderError(
                    f"extender {_quoted(self.name)} claims a filtered node {_quoted(unknown[0])} "
                    "which is not found in the input node list"
                )
            passing = [FilteredNode(name) for name in result.node_names]
        else:
            passing = [FilteredNode(node.name, node) for node in result.nodes or ()]
        return FilterAnswer(passing, result.failed, result.unresolvable)

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> list[HostPriority]:
        """Return the scores in response order, before weighting; zeros if no verb is configured.

        The response may name any node, and a node twice; upstream adds the scores up.
        """
        if not self.settings.prioritize_verb:
            return [HostPriority(node.name, 0) for node in nodes]
        return read_priorities(self._send(self.settings.prioritize_verb, self._arguments(pod, nodes)))

    def process_preemption(
        self, pod: Pod, candidates: Mapping[str, NodeVictims], pods_of: PodsOfNode
    ) -> dict[str, NodeVictims]:
        """Return the candidates that the extender keeps, with its victims; nodes that were sent come first.

        It may name any node in the cluster, and any pod on it. Unknown nodes and pods are an error. If the version does
        not count violations, they are 0.
        """
        if not self.supports_preemption:
            raise ExtenderError(f"preempt verb is not defined for extender {self.name} but run into ProcessPreemption")
        names, sends_uids = self._dialect.names, self.settings.node_cache_capable
        # Before 1.36, the number was dropped when UIDs are sent.
        is_counted = self._dialect.counts_violations or not sends_uids
        victims = {
            node: {
                names.pods: [
                    {names.uid: uid_of(victim)} if sends_uids else pod_document(victim) for victim in each.pods
                ],
                names.violations: each.num_violations if is_counted else 0,
            }
            for node, each in sorted(candidates.items())
        }
        arguments = {
            names.pod: pod_document(pod),
            names.victims: None if sends_uids else victims,
            names.meta_victims: victims if sends_uids else None,
        }
        answer = read_preemption_result(self._send(self.settings.preempt_verb, arguments))
        order = [*(node for node in candidates if node in answer), *(node for node in answer if node not in candidates)]
        return {node: self._victims(node, answer[node], pods_of) for node in order}

    def _victims(self, node: str, meta: MetaVictims, pods_of: PodsOfNode) -> NodeVictims:
        pods = pods_of(node)
        if pods is None:
            raise ExtenderError(self._dialect.unknown_node.format(address=self.settings.address, node=node))
        # If several pods share a UID, the first counts.
        by_uid = {uid_of(pod): pod for pod in reversed(pods)}
        for uid in meta.uids:
            if uid not in by_uid:
                raise ExtenderError(
                    f"extender: {self.name} claims to preempt pod (UID: &{{{uid}}}) on node: {node}, "
                    "but the pod is not found on that node"
                )
        violations = meta.num_violations if self._dialect.counts_violations else 0
        return NodeVictims([by_uid[uid] for uid in meta.uids], violations)

    def _arguments(self, pod: Pod, nodes: Sequence[Node]) -> dict[str, Any]:
        names, sends_names = self._dialect.names, self.settings.node_cache_capable
        empty: dict[str, Any] = {"metadata": {}, "spec": {}, "status": {}}
        items = [] if sends_names else [{**empty, **msgspec.to_builtins(node, enc_hook=str)} for node in nodes]
        return {
            names.pod: pod_document(pod),
            names.nodes: None if sends_names else {"metadata": {}, "items": items},
            names.node_names: [node.name for node in nodes] if sends_names else None,
        }

    def _send(self, verb: str, arguments: Mapping[str, Any]) -> bytes:
        if not self._dialect.names.sends_nulls:
            arguments = {name: value for name, value in arguments.items() if value}
        try:
            return self._call(self.settings.url(verb), msgspec.json.encode(arguments))
        except ExtenderStatusError as error:
            at = {"url": self.settings.shown_url(verb), "address": self.settings.address}
            raise ExtenderError(self._dialect.status_words.format(verb=verb, status=error.status, **at)) from None


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _go_format(text: str) -> str:
    """Format a text like ``fmt.Errorf`` does without arguments."""

    def formatted(match: re.Match[str]) -> str:
        verb = match[2]
        if not verb:
            return "%!(NOVERB)"
        return "%" if verb == "%" else f"%!{verb}(MISSING)" if verb.isprintable() else match[0]

    return _GO_VERB.sub(formatted, text)


class Names(NamedTuple):
    """Field names in requests. Without ``sends_nulls``, empty fields are omitted."""

    pod: str
    nodes: str
    node_names: str
    victims: str
    meta_victims: str
    pods: str
    uid: str
    violations: str
    sends_nulls: bool


class Dialect(NamedTuple):
    """The protocol of one version.

    ``rejects_unknown_names`` makes unknown node names an error; otherwise the node is taken from the scheduler's cache.
    ``formats_errors`` passes an extender's error through Go's formatting, which changes every percent sign.
    ``counts_violations`` keeps the number of PDB violations in requests and responses. ``has_unresolvable`` supports
    nodes on which no eviction can help; ``knows_interest`` supports managed resources. ``status_words`` is the message
    for a status other than 200, with ``{verb}``, ``{url}``, ``{address}`` and ``{status}``; ``unknown_node`` is the
    message for victims on an unknown node, with ``{address}`` and ``{node}``.
    """

    names: Names
    status_words: str
    rejects_unknown_names: bool = False
    formats_errors: bool = True
    counts_violations: bool = False
    has_unresolvable: bool = False
    knows_interest: bool = True
    has_preempt_verb: bool = True
    unknown_node: str = (
        "extender: {address} claims to preempt on node: {node} but the node is not found in nodeNameToInfo map"
    )


_FAILED = "Failed {verb} with extender at URL {url}, code {status}"
_NOT_IN_SNAPSHOT = 'nodeinfo not found for node name "{node}"'
_OLD_NAMES = Names(
    "pod", "nodes", "nodenames", "nodeToVictims", "nodeNameToMetaVictims", "pods", "uid", "numPDBViolations", False
)
_NEW_NAMES = Names(
    "Pod", "Nodes", "NodeNames", "NodeNameToVictims", "NodeNameToMetaVictims", "Pods", "UID", "NumPDBViolations", True
)

V1_8 = Dialect(_OLD_NAMES, _FAILED.replace("{url}", "{address}"), knows_interest=False, has_preempt_verb=False)
# The version panics on unknown nodes, with or without victims; this is its message.
V1_13 = Dialect(_OLD_NAMES, _FAILED)
V1_18 = Dialect(_NEW_NAMES, _FAILED, rejects_unknown_names=True, unknown_node=_NOT_IN_SNAPSHOT)
CURRENT = Dialect(
    _NEW_NAMES,
    _FAILED.replace("Failed", "failed"),
    rejects_unknown_names=True,
    formats_errors=False,
    counts_violations=True,
    has_unresolvable=True,
    unknown_node=_NOT_IN_SNAPSHOT,
)


def uid_of(pod: Pod) -> str:
    """Return the pod's UID, or ``namespace/name`` if the snapshot has none."""
    return pod.metadata.uid or pod.key


def pod_document(pod: Pod) -> dict[str, Any]:
    """Return a pod with a UID, and with ``protocol: TCP``, which the API server defaults and records omit."""
    document: dict[str, Any] = _plain(pod)
    document["metadata"] = {**document.get("metadata", {}), "uid": uid_of(pod)}
    document["spec"] = {"containers": [], **document.get("spec", {})}
    return {"status": {}, **document}


def _plain(value: Any) -> Any:
    """Convert to plain data with all nonempty fields; the records' own encoding omits every default."""
    if isinstance(value, msgspec.Struct):
        named = [(name, getattr(value, attribute), default) for attribute, name, default in _fields(type(value))]
        return {name: _plain(each) for name, each, default in named if each != default or (each and _plain(each))}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return msgspec.to_builtins(value, enc_hook=str)


@cache
def _fields(record: type[msgspec.Struct]) -> list[tuple[str, str, object]]:
    """Return attribute, name and default of each field."""
    return [(each.name, each.encode_name, each.default) for each in msgspec.structs.fields(record)]
