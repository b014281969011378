"""What the API server's admission plugins read: a cluster, and the accepted objects of a change so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from kpreempt.admission.priority import known_classes
from kpreempt.admission.validation.problems import Document
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.documents import group_of, mapping_in
from kpreempt.model.meta import ObjectMeta
from kpreempt.model.policy import PriorityClass
from kpreempt.model.workloads import ResourceQuota, ResourceQuotaSpec

# The account of pods that name none. A controller creates it in every namespace.
DEFAULT_ACCOUNT = "default"

_KINDS = frozenset(
    {
        *(("", "Namespace"), ("", "ResourceQuota"), ("", "ServiceAccount")),
        *(("scheduling.k8s.io", "PriorityClass"), ("storage.k8s.io", "StorageClass")),
    }
)


class NamespaceFacts(NamedTuple):
    """What plugins read of a namespace."""

    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    is_terminating: bool = False


class PluginState:
    """The objects that plugins read, by name or by namespace and name.

    ``accounts`` are ServiceAccounts. Those of a namespace are only known if its default one is among them. Which
    StorageClasses allow larger claims is in ``expandable``.
    """

    def __init__(self, cluster: ClusterSnapshot, accounts: Iterable[Document] = ()) -> None:
        """``accounts`` are the documents of all ServiceAccounts that could be read."""
        self.cluster = cluster
        self.namespaces = {
            each.metadata.name: NamespaceFacts(each.metadata.labels, each.metadata.annotations, each.is_terminating)
            for each in cluster.namespaces
        }
        self.classes = known_classes(cluster)
        self.expandable = {each.metadata.name: each.allow_volume_expansion is True for each in cluster.storage_classes}
        self.quotas = {each.key: each for each in cluster.resource_quotas}
        self.accounts = {_key(each) for each in accounts}

    def accept(self, document: Document) -> None:
        """Add an object as it is after a request; ``is_read_by_plugins`` must be true of it."""
        metadata, kind = mapping_in(document, "metadata"), document.get("kind")
        name = str(metadata.get("name"))
        if kind == "Namespace":
            is_terminating = self.namespaces.get(name, NamespaceFacts()).is_terminating
            facts = (mapping_in(metadata, "labels"), mapping_in(metadata, "annotations"))
            self.namespaces[name] = NamespaceFacts(*facts, is_terminating)
        elif kind == "PriorityClass":
            self.classes[name] = PriorityClass(
                metadata=ObjectMeta(name=name),
                value=document.get("value", 0),
                global_default=document.get("globalDefault") is True,
                preemption_policy=document.get("preemptionPolicy"),
            )
        elif kind == "StorageClass":
            self.expandable[name] = document.get("allowVolumeExpansion") is True
        elif kind == "ResourceQuota":
            quota = _quota(document)
            self.quotas[quota.key] = quota
        elif kind == "ServiceAccount":
            self.accounts.add(_key(document))

    def lacks_account(self, namespace: str, name: str) -> bool:
        """Return whether it is known that a ServiceAccount does not exist."""
        return (namespace, DEFAULT_ACCOUNT) in self.accounts and (namespace, name) not in self.accounts


def is_read_by_plugins(document: Document) -> bool:
    """Return whether plugins read objects of this kind to decide on others."""
    return (group_of(document), document.get("kind")) in _KINDS


def _key(document: Document) -> tuple[str, str]:
    metadata = mapping_in(document, "metadata")
    return str(metadata.get("namespace") or "default"), str(metadata.get("name"))


def _quota(document: Document) -> ResourceQuota:
    """A quota of a change, without its amounts."""
    spec = {key: each for key, each in mapping_in(document, "spec").items() if key in ("scopes", "scopeSelector")}
    namespace, name = _key(document)
    metadata = ObjectMeta(name=name, namespace=namespace)
    return ResourceQuota(metadata=metadata, spec=msgspec.convert(spec, ResourceQuotaSpec))
