"""An extender over HTTP, as a scheduler asks it (``extender.go`` of v1.8.15, v1.13.12, v1.18.19 and v1.36.3).

Departures: pods without a UID are sent with a stand-in, and where a real scheduler panics on an answer the call fails.

A ``Dialect`` is what differs between versions. Names of fields: ``api/v1/types.go`` of v1.8.15 and v1.13.12,
``k8s.io/kube-scheduler/extender/v1/types.go`` v0.18.19 and v0.36.3. Words: ``extender.go`` of these.

Pods and nodes are sent in the records' own shape, that of the API without what no scheduler reads: no environment of
containers, and no annotation but those that a record keeps.
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
    """A POST of JSON to a URL: the body of the answer. Raises ``ExtenderError``, for another status its own kind."""

    def __call__(self, url: str, body: bytes, /) -> bytes:
        """Send ``body``."""


# Makes the calls of an extender.
Connect = Callable[[ExtenderSettings], Call]


class FilteredNode(NamedTuple):
    """A node that passes. ``returned`` is the object that came back, where whole objects do."""

    name: str
    returned: Node | None = None


class FilterAnswer(NamedTuple):
    """The nodes that pass, in the order of the answer, and why others do not.

    Nodes of ``unresolvable`` are beyond what evictions mend, even where ``failed`` has them, too. ``was_asked`` says
    whether there was a call at all.
    """

    passing: list[FilteredNode]
    failed: dict[str, str]
    unresolvable: dict[str, str]
    was_asked: bool = True


class NodeVictims(NamedTuple):
    """The victims on a node in their order, and how many budgets their eviction violates."""

    pods: Sequence[Pod]
    num_violations: int = 0


# The pods of a node by its name; ``None`` for a node that there is not.
PodsOfNode = Callable[[str], Sequence[Pod] | None]


class HttpExtender:
    """One extender of a configuration. Methods that call it raise ``ExtenderError``, and no other exception."""

    def __init__(self, settings: ExtenderSettings, dialect: Dialect, call: Call) -> None:
        self.settings = settings
        self._dialect = dialect
        self._call = call
        self._managed = frozenset(settings.managed_resources)
        # Where it is, which is also what messages call it; its place in the configuration if that says nothing.
        self.name = settings.address or f"extenders[{settings.index}]"
        # Whether scheduling goes on when it fails.
        self.is_ignorable = settings.ignorable
        # What it is asked about: victims, nodes, scores.
        self.supports_preemption = dialect.has_preempt_verb and bool(settings.preempt_verb)
        self.is_filter = bool(settings.filter_verb)
        self.is_prioritizer = bool(settings.prioritize_verb)

    def is_interested(self, pod: Pod) -> bool:
        """Whether a container asks for a resource that it manages, be it none of it; all pods where it names none."""
        if not self._managed or not self._dialect.knows_interest:
            return True
        return any(
            not self._managed.isdisjoint(each.resources.requests) or not self._managed.isdisjoint(each.resources.limits)
            for each in (*pod.spec.containers, *pod.spec.init_containers)
        )

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> FilterAnswer:
        """Which of the nodes pass; all of them without a verb.

        Where an answer has neither names that count nor nodes, none passes. Nodes that come back as objects are taken
        as they are; names that were not asked about are an error where the version says so, else taken as they are.
        """
        if not self.settings.filter_verb:
            return FilterAnswer([FilteredNode(node.name) for node in nodes], {}, {}, was_asked=False)
        body = self._send(self.settings.filter_verb, self._arguments(pod, nodes))
        result = read_filter_result(body, has_unresolvable=self._dialect.has_unresolvable)
        if result.error:
            raise ExtenderError(_go_format(result.error) if self._dialect.formats_errors else result.error)
        if self.settings.node_cache_capable and result.node_names is not None:
            known = {node.name for node in nodes}
            foreign = [name for name in result.node_names if name not in known]
            if foreign and self._dialect.refuses_foreign_names:
                raise ExtenderError(
                    f"extender {_quoted(self.name)} claims a filtered node {_quoted(foreign[0])} "
                    "which is not found in the input node list"
                )
            passing = [FilteredNode(name) for name in result.node_names]
        else:
            passing = [FilteredNode(node.name, node) for node in result.nodes or ()]
        return FilterAnswer(passing, result.failed, result.unresolvable)

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> list[HostPriority]:
        """The scores that it gives, in its order and before its weight; zeros without a verb.

        They may name any node, and some twice; upstream adds up.
        """
        if not self.settings.prioritize_verb:
            return [HostPriority(node.name, 0) for node in nodes]
        return read_priorities(self._send(self.settings.prioritize_verb, self._arguments(pod, nodes)))

    def process_preemption(
        self, pod: Pod, candidates: Mapping[str, NodeVictims], pods_of: PodsOfNode
    ) -> dict[str, NodeVictims]:
        """The candidates that it leaves, with the victims that it names, those that were asked about first.

        It may name any node of the cluster, and any pod on it. Victims without a node or a pod that there is are an
        error. Where the version does not count violations they are 0.
        """
        if not self.supports_preemption:
            raise ExtenderError(f"preempt verb is not defined for extender {self.name} but run into ProcessPreemption")
        names, sends_uids = self._dialect.names, self.settings.node_cache_capable
        # Before 1.36 the number was forgotten where UIDs are sent.
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
        # Of pods with one UID the first counts.
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
    """What ``fmt.Errorf`` makes of a text that is taken for a format without arguments."""

    def formatted(match: re.Match[str]) -> str:
        verb = match[2]
        if not verb:
            return "%!(NOVERB)"
        return "%" if verb == "%" else f"%!{verb}(MISSING)" if verb.isprintable() else match[0]

    return _GO_VERB.sub(formatted, text)


class Names(NamedTuple):
    """What fields are called in what is sent. Without ``sends_nulls`` what is empty is left out."""

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
    """A version's side of the protocol.

    ``refuses_foreign_names`` says that a node of a name that was not asked about is an error; otherwise it is taken
    from the scheduler's cache. ``formats_errors`` runs an extender's own error through Go's formatting, which makes
    something else of every percent sign. ``counts_violations`` keeps the numbers of violated budgets in both ways.
    ``has_unresolvable`` knows nodes that no eviction mends; ``knows_interest`` resources that an extender manages.
    ``status_words`` are the message for another status than 200, with ``{verb}``, ``{url}``, ``{address}`` and
    ``{status}``; ``unknown_node`` is that for victims on no node, with ``{address}`` and ``{node}``.
    """

    names: Names
    status_words: str
    refuses_foreign_names: bool = False
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
# The version panics where an unknown node is named with victims or without; the words are those that it has for it.
V1_13 = Dialect(_OLD_NAMES, _FAILED)
V1_18 = Dialect(_NEW_NAMES, _FAILED, refuses_foreign_names=True, unknown_node=_NOT_IN_SNAPSHOT)
CURRENT = Dialect(
    _NEW_NAMES,
    _FAILED.replace("Failed", "failed"),
    refuses_foreign_names=True,
    formats_errors=False,
    counts_violations=True,
    has_unresolvable=True,
    unknown_node=_NOT_IN_SNAPSHOT,
)


def uid_of(pod: Pod) -> str:
    """The pod's UID; where a snapshot has none, ``namespace/name`` stands for it."""
    return pod.metadata.uid or pod.key


def pod_document(pod: Pod) -> dict[str, Any]:
    """A pod, with a UID, and with what the API server fills in and the records leave out: ``protocol: TCP``."""
    document: dict[str, Any] = _plain(pod)
    document["metadata"] = {**document.get("metadata", {}), "uid": uid_of(pod)}
    document["spec"] = {"containers": [], **document.get("spec", {})}
    return {"status": {}, **document}


def _plain(value: Any) -> Any:
    """Plain data with all that is not empty, where the records' own encoding leaves every default out."""
    if isinstance(value, msgspec.Struct):
        named = [(name, getattr(value, attribute), default) for attribute, name, default in _fields(type(value))]
        return {name: _plain(each) for name, each, default in named if each != default or (each and _plain(each))}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return msgspec.to_builtins(value, enc_hook=str)


@cache
def _fields(record: type[msgspec.Struct]) -> list[tuple[str, str, object]]:
    """Attribute, name and default of each field."""
    return [(each.name, each.encode_name, each.default) for each in msgspec.structs.fields(record)]
