"""Pods and nodes as they are sent: the records' own shape, that of the API without what no scheduler reads.

It holds no environment of containers and no annotation but those that a record keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod


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
