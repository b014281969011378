"""Pods and nodes as they are sent: the records' own shape, that of the API without what no scheduler reads.

It holds no environment of containers and no annotation but those that a record keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod


def uid_of(pod: Pod) -> str:
    """The pod's UID; where a snapshot has none, ``namespace/name`` stands for it."""
    return pod.metadata.uid or pod.key


def pod_document(pod: Pod) -> dict[str, Any]:
    """A pod, with a UID and with the scheduler's name even where that is the usual one."""
    document: dict[str, Any] = msgspec.to_builtins(pod, enc_hook=str)
    document["metadata"] = {**document.get("metadata", {}), "uid": uid_of(pod)}
    document["spec"] = {"containers": [], **document.get("spec", {}), "schedulerName": pod.spec.scheduler_name}
    return {"status": {}, **document}


def node_list(nodes: Sequence[Node]) -> dict[str, Any]:
    """A ``v1.NodeList``."""
    empty: dict[str, Any] = {"metadata": {}, "spec": {}, "status": {}}
    return {"metadata": {}, "items": [{**empty, **msgspec.to_builtins(node, enc_hook=str)} for node in nodes]}
