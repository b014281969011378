"""Objects that a change deletes, as a user names them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import msgspec

from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.rollout.kinds import CLUSTER_KINDS, POD_OWNERS, cluster_kind_of, is_pod_owner
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
_SHORT_WITHOUT_MEANING = {"cm": "ConfigMap", "sa": "ServiceAccount", "ing": "Ingress", "netpol": "NetworkPolicy"}
_PARTS_WITH_NAMESPACE = 3


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


def missing_from(base: Iterable[Document], documents: Iterable[Document]) -> list[str]:
    """The objects of ``base`` that are not among ``documents``, as ``parse_deletion`` reads them.

    Both are ``shape.prepared``. Kinds that mean nothing to scheduling, or are custom ones, are left out.
    """
    there = {_name_of(each) for each in documents}
    known = (each for each in base if is_pod_owner(each) or cluster_kind_of(each) is not None)
    return [name for name in dict.fromkeys(map(_name_of, known)) if name not in there]


def _name_of(document: Document) -> str:
    metadata = document["metadata"]
    namespace = metadata.get("namespace")
    return "/".join((document["kind"], *([namespace] if namespace else ()), metadata["name"]))


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
    word, dot, _ = text.lower().partition(".")
    kind = _WORDS.get(word)
    if kind is not None:
        return kind, True
    other = _OTHER_WORDS.get(word)
    if other is not None or dot:
        # Custom resources are named with their group.
        return other or text, False
    near = difflib.get_close_matches(word, [*_WORDS, *_OTHER_WORDS], n=1)
    raise UsageError(f'"{text[:80]}" is no kind of object', hint=near[0] if near else "")


def _plural(kind: str) -> str:
    word = kind.lower()
    if word.endswith("s"):
        return f"{word}es"
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"


def _words(kinds: tuple[str, ...], short: dict[str, str]) -> dict[str, str]:
    return {**short, **{kind.lower(): kind for kind in kinds}, **{_plural(kind): kind for kind in kinds}}


_WORDS = _words((*CLUSTER_KINDS, *POD_OWNERS), _SHORT)
_OTHER_WORDS = _words(_WITHOUT_MEANING, _SHORT_WITHOUT_MEANING)
