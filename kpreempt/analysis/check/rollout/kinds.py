"""The kinds of object that a change can be about: which of them a snapshot holds, and which have pods.

Of kinds that no snapshot holds it is known of some that nothing makes pods of them, not even in the end. One that is
missing there costs a waiver, one that is there by mistake hides pods: so only what is sure is there. Then the words in
which users name kinds, and the objects that a change deletes.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

import msgspec

from kpreempt.analysis.document_reader import Document, mapping_in
from kpreempt.errors import UsageError
from kpreempt.model.kinds import KINDS, Kind

# Owners of pods, in the groups that Kubernetes' own controllers look at.
POD_OWNERS: dict[str, tuple[str, ...]] = {
    "Deployment": ("apps", "extensions"),
    "StatefulSet": ("apps",),
    "DaemonSet": ("apps", "extensions"),
    "ReplicaSet": ("apps", "extensions"),
    "ReplicationController": ("",),
    "Job": ("batch",),
    "CronJob": ("batch",),
}
# The field that says how many pods there are.
SIZE_FIELDS = {
    "Deployment": "replicas",
    "StatefulSet": "replicas",
    "ReplicaSet": "replicas",
    "ReplicationController": "replicas",
    "Job": "parallelism",
}

ADMISSION = "admissionregistration.k8s.io"
MUTATING = ("MutatingWebhookConfiguration", "MutatingAdmissionPolicy")

# The kinds that a snapshot holds. What makes nodes is a custom resource to a change as any other.
CLUSTER_KINDS = {name: kind for name, kind in KINDS.items() if name != "NodePool"}

# Kinds beyond those that have no namespace; all others that are not known have one, as most custom resources do.
_OTHER_CLUSTER_WIDE = frozenset(
    {
        "APIService",
        "CertificateSigningRequest",
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "FlowSchema",
        "IngressClass",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "PriorityLevelConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
        "VolumeAttributesClass",
    }
)


def plural_of(kind: str) -> str:
    """The kind in the plural, in lower case, as resources are called: ``priorityclasses``."""
    word = kind.lower()
    if word.endswith("s"):
        return f"{word}es"
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"


def group_of(document: Document) -> str:
    """The API group of an object; the core group is an empty text."""
    api_version = document.get("apiVersion")
    return api_version.rpartition("/")[0] if isinstance(api_version, str) else ""


def is_pod_owner(document: Document) -> bool:
    """Whether the object is a workload of Kubernetes' own; without a version the kind decides alone."""
    groups = POD_OWNERS.get(str(document.get("kind")))
    return groups is not None and (not document.get("apiVersion") or group_of(document) in groups)


def cluster_kind_of(document: Document) -> Kind | None:
    """The kind of the object where a snapshot holds such objects, or ``None``."""
    kind = CLUSTER_KINDS.get(str(document.get("kind")))
    if kind is None or (document.get("apiVersion") and group_of(document) not in kind.groups):
        return None
    return kind


def is_known(document: Document) -> bool:
    """Whether the object is of a kind that a snapshot holds, or a workload."""
    return is_pod_owner(document) or cluster_kind_of(document) is not None


def is_other(document: Document) -> bool:
    """Whether no snapshot holds objects of this kind, and it is not sure that they mean nothing."""
    return not is_known(document) and not makes_no_pods(group_of(document), str(document.get("kind")))


def is_mutating(document: Document) -> bool:
    """Whether the object says which objects somebody changes before they are stored."""
    return group_of(document) == ADMISSION and document.get("kind") in MUTATING


def is_namespaced(document: Document) -> bool:
    """Whether objects of this kind are in namespaces."""
    kind = cluster_kind_of(document)
    return kind.is_namespaced if kind is not None else str(document.get("kind")) not in _OTHER_CLUSTER_WIDE


# By API group; of a group with ``*`` every kind.
_HARMLESS: dict[str, frozenset[str]] = {
    "": frozenset({"ConfigMap", "Secret", "ServiceAccount", "Endpoints", "PodTemplate", "Event"}),
    "rbac.authorization.k8s.io": frozenset({"*"}),
    "networking.k8s.io": frozenset({"Ingress", "IngressClass", "NetworkPolicy", "IPAddress", "ServiceCIDR"}),
    "discovery.k8s.io": frozenset({"EndpointSlice"}),
    "coordination.k8s.io": frozenset({"*"}),
    "certificates.k8s.io": frozenset({"*"}),
    "flowcontrol.apiserver.k8s.io": frozenset({"*"}),
    "apiextensions.k8s.io": frozenset({"CustomResourceDefinition"}),
    "apiregistration.k8s.io": frozenset({"APIService"}),
    # They may refuse pods. Which, nobody can tell; a refusal is told when it is applied.
    "admissionregistration.k8s.io": frozenset(
        {"ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    ),
    "apps": frozenset({"ControllerRevision"}),
    "storage.k8s.io": frozenset({"VolumeAttributesClass"}),
    "snapshot.storage.k8s.io": frozenset({"VolumeSnapshot", "VolumeSnapshotClass", "VolumeSnapshotContent"}),
    "gateway.networking.k8s.io": frozenset(
        {"GatewayClass", "HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute", "UDPRoute", "ReferenceGrant"}
    ),
    "cert-manager.io": frozenset({"Certificate", "CertificateRequest"}),
    "monitoring.coreos.com": frozenset({"ServiceMonitor", "PodMonitor", "PrometheusRule", "Probe", "ScrapeConfig"}),
    "networking.istio.io": frozenset({"VirtualService", "DestinationRule", "ServiceEntry"}),
    "security.istio.io": frozenset({"*"}),
    "external-secrets.io": frozenset({"ExternalSecret", "SecretStore", "ClusterSecretStore"}),
    "bitnami.com": frozenset({"SealedSecret"}),
    "traefik.io": frozenset({"IngressRoute", "Middleware", "TLSOption"}),
    "cilium.io": frozenset({"CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy"}),
    "crd.projectcalico.org": frozenset({"NetworkPolicy", "GlobalNetworkPolicy"}),
}
# Kinds that no snapshot holds and that do decide about pods.
_NOT_MODELLED = {
    ("autoscaling", "HorizontalPodAutoscaler"): "autoscalers are not evaluated: sizes stay as the workloads say",
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): "what it changes in pods is not known",
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): "what it changes in pods is not known",
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): "what it changes in pods is not known",
    ("batch.volcano.sh", "Job"): "jobs of Volcano are not simulated",
    ("kustomize.config.k8s.io", "Kustomization"): "is not built: give the output of kubectl kustomize",
}
_ANY = "*"
_WORDS = {
    group: {form for kind in kinds for form in (kind.lower(), plural_of(kind))} for group, kinds in _HARMLESS.items()
}


def makes_no_pods(group: str, kind: str) -> bool:
    """Whether it is sure that no pod is made, changed or deleted because of an object of this kind.

    The kind is as in manifests, or as users write it, in the plural and in any case (``certificates``).
    """
    words = _WORDS.get(group, set())
    return _ANY in words or kind.lower() in words


def what_is_not_known(document: Document) -> tuple[str, str]:
    """What is not known about an object of a kind that no snapshot holds, and where; empty where nothing matters."""
    group, kind = group_of(document), str(document["kind"])
    if message := _NOT_MODELLED.get((group, kind)):
        return message, "spec"
    if isinstance(mapping_in(document, "spec", "template", "spec").get("containers"), list):
        return f"the controller of a {kind} is not known, so that none of its pods are made", "spec.template"
    if makes_no_pods(group, kind):
        return "", ""
    # Whatever it is, there is a controller for it, which may make pods, delete them, or change their number.
    return f"what a controller makes of {kind} objects is not known: no pods are made or changed for it", "spec"


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
    """The objects of ``base`` that are not among ``documents``, in its order. Both are ``prepared``."""
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
    kind = _KIND_WORDS.get(word)
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
    near = difflib.get_close_matches(word, [*_KIND_WORDS, *_OTHER_WORDS], n=1)
    raise UsageError(f'"{text[:80]}" is no kind of object', hint=near[0] if near else "")


def _words(kinds: tuple[str, ...], short: dict[str, str]) -> dict[str, str]:
    return {**short, **{kind.lower(): kind for kind in kinds}, **{plural_of(kind): kind for kind in kinds}}


_KIND_WORDS = _words((*CLUSTER_KINDS, *POD_OWNERS), _SHORT)
_OTHER_WORDS = _words(_WITHOUT_MEANING, _SHORT_WITHOUT_MEANING)
