"""Objects that a change deletes, as a user names them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

import msgspec

from kpreempt.analysis.check.rollout.kinds import (
    CLUSTER_KINDS,
    POD_OWNERS,
    group_of,
    is_known,
    makes_no_pods,
    plural_of,
)
from kpreempt.analysis.document_reader import Document
from kpreempt.errors import UsageError

_SHORT = {
    "cj": "CronJob",
    "deploy": "Deployment",
    "ds": "DaemonSet",
    "job": "Job",
    "limits": "LimitRange",
    "no": "Node",
    "ns": "Namespace",
    "pc": "PriorityClass",
    "pdb": "PodDisruptionBudget",
    "po": "Pod",
    "pv": "PersistentVolume",
    "pvc": "PersistentVolumeClaim",
    "quota": "ResourceQuota",
    "rc": "ReplicationController",
    "rs": "ReplicaSet",
    "sc": "StorageClass",
    "sts": "StatefulSet",
    "svc": "Service",
}
# What means nothing to scheduling, and may yet be deleted along with what does.
_WITHOUT_MEANING = (
    "ConfigMap",
    "Secret",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
    "Ingress",
    "IngressClass",
    "NetworkPolicy",
    "Endpoints",
    "EndpointSlice",
    "CustomResourceDefinition",
    "Lease",
)
_SHORT_WITHOUT_MEANING = {
    "cm": "ConfigMap",
    "crd": "CustomResourceDefinition",
    "ing": "Ingress",
    "netpol": "NetworkPolicy",
    "sa": "ServiceAccount",
}
_PARTS_WITH_NAMESPACE = 3
_VERSION = re.compile(r"v\d+(?:(?:alpha|beta)\d+)?\.?")


class Deletion(msgspec.Struct, frozen=True):
    """An object that goes. ``namespace`` is empty for kinds without, ``has_meaning`` is whether any pod may care."""

    kind: str
    namespace: str
    name: str
    has_meaning: bool = True

    @property
    def described(self) -> str:
        """``Deployment shop/api``."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def only_in(base: Iterable[Document], documents: Iterable[Document]) -> list[Deletion]:
    """The objects of ``base`` that are not among ``documents``, in its order. Both are ``shape.prepared``."""
    there = {_deletion_of(each) for each in documents}
    return [each for each in dict.fromkeys(map(_deletion_of, base)) if each not in there]


def _deletion_of(document: Document) -> Deletion:
    metadata, kind = document["metadata"], document["kind"]
    has_meaning = is_known(document)
    if not has_meaning and not makes_no_pods(group_of(document), kind):
        kind = f"{kind}.{group_of(document)}".rstrip(".")
    return Deletion(kind, metadata.get("namespace", ""), metadata["name"], has_meaning)


def parse_deletion(text: str, namespace: str) -> Deletion:
    """What ``KIND/NAME`` or ``KIND/NAMESPACE/NAME`` means; without a namespace the object is in ``namespace``.

    Kinds are known in any case, short or plural, with or without their group. Raises ``UsageError``.
    """
    parts = text.split("/")
    if not 2 <= len(parts) <= _PARTS_WITH_NAMESPACE or not all(parts):
        raise UsageError(f'"{text[:80]}" does not name an object', hint="KIND/NAME or KIND/NAMESPACE/NAME")
    kind, has_meaning = _kind(parts[0])
    known = CLUSTER_KINDS.get(kind)
    if known is not None and not known.is_namespaced:
        if len(parts) == _PARTS_WITH_NAMESPACE:
            raise UsageError(f'"{text[:80]}": a {kind} is in no namespace', hint=f"{parts[0]}/{parts[2]}")
        return Deletion(kind, "", parts[1])
    where = parts[1] if len(parts) == _PARTS_WITH_NAMESPACE else namespace
    return Deletion(kind, where, parts[-1], has_meaning)


def _kind(text: str) -> tuple[str, bool]:
    word, dot, rest = text.lower().partition(".")
    kind = _WORDS.get(word)
    # kubectl takes ``deployments.apps`` and ``deployments.v1.apps``. Another group has kinds of its own.
    group = _VERSION.sub("", rest)
    if kind is not None:
        known = CLUSTER_KINDS.get(kind)
        groups = (*(known.groups if known is not None else ()), *POD_OWNERS.get(kind, ()))
        if not group or group in groups:
            return kind, True
    other = _OTHER_WORDS.get(word)
    if dot or other is not None:
        # Custom resources are named with their group.
        return text if group or other is None else other, False
    near = difflib.get_close_matches(word, [*_WORDS, *_OTHER_WORDS], n=1)
    raise UsageError(f'"{text[:80]}" is no kind of object', hint=near[0] if near else "")


def _words(kinds: tuple[str, ...], short: dict[str, str]) -> dict[str, str]:
    return {**short, **{kind.lower(): kind for kind in kinds}, **{plural_of(kind): kind for kind in kinds}}


_WORDS = _words((*CLUSTER_KINDS, *POD_OWNERS), _SHORT)
_OTHER_WORDS = _words(_WITHOUT_MEANING, _SHORT_WITHOUT_MEANING)
