"""What differs between versions in how a scheduler speaks with its extenders.

Names of fields: ``api/v1/types.go`` of v1.8.15 and v1.13.12, ``k8s.io/kube-scheduler/extender/v1/types.go`` v0.18.19
and v0.36.3. Words: ``extender.go`` of v1.8.15, v1.13.12, v1.18.19 and v1.36.3.

Pods and nodes are sent in the records' own shape, that of the API without what no scheduler reads: no environment of
containers, and no annotation but those that a record keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod


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


def left_out_if_empty(names: Names, fields: dict[str, Any]) -> dict[str, Any]:
    """The fields as that version writes them."""
    return fields if names.sends_nulls else {name: value for name, value in fields.items() if value}


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


def node_list(nodes: Sequence[Node]) -> dict[str, Any]:
    """A ``v1.NodeList``."""
    empty: dict[str, Any] = {"metadata": {}, "spec": {}, "status": {}}
    return {"metadata": {}, "items": [{**empty, **msgspec.to_builtins(node, enc_hook=str)} for node in nodes]}
