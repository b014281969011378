"""Objects of a cluster by their names, and as plain data."""

from __future__ import annotations

from typing import Any

import msgspec

from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.rollout.kinds import CLUSTER_KINDS
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import controller_of


class ClusterObjects:
    """The records of a cluster, found by kind, namespace and name; each kind is looked through when it is asked for."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        self._cluster = cluster
        self._by_kind: dict[str, dict[tuple[str, str], Any]] = {}
        self._by_owner: dict[str, dict[tuple[str, str, str], list[Any]]] = {}

    @property
    def node_count(self) -> int:
        """How many nodes there are."""
        return len(self._cluster.nodes)

    def find(self, kind: str, namespace: str, name: str) -> Any | None:
        """The record, or ``None`` where there is none of that name, or of that kind."""
        return self._of_kind(kind).get((namespace, name))

    def owned(self, kind: str, namespace: str, owner: str, owner_kind: str = "Deployment") -> list[Any]:
        """The records of a kind that an owner manages, in the order of the cluster."""
        owned = self._by_owner.get(kind)
        if owned is None:
            owned = self._by_owner[kind] = {}
            for record in self._of_kind(kind).values():
                above = controller_of(record.metadata)
                if above is not None:
                    owned.setdefault((record.metadata.namespace, above.kind, above.name), []).append(record)
        return owned.get((namespace, owner_kind, owner), [])

    def _of_kind(self, kind: str) -> dict[tuple[str, str], Any]:
        known = self._by_kind.get(kind)
        if known is None:
            records = getattr(self._cluster, CLUSTER_KINDS[kind].field) if kind in CLUSTER_KINDS else []
            known = {(each.metadata.namespace, each.metadata.name): each for each in records}
            self._by_kind[kind] = known
        return known


def record_document(kind: str, record: Any) -> Document:
    """A record as plain data, as far as a snapshot has it."""
    group = CLUSTER_KINDS[kind].groups[0]
    plain: Document = msgspec.to_builtins(record, enc_hook=str)
    return {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, **plain}
