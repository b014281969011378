"""The kinds of objects in a change: those that a snapshot holds, and those that own pods.

For some other kinds it is known that they never lead to pods. A kind that is missing from that list requires a waiver,
a kind that is listed by mistake hides pods; so the list has only certain ones. Also: the names by which users refer to
kinds, and the objects that a change deletes.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

import msgspec

from kpreempt.analysis.document_reader import Document
from kpreempt.errors import UsageError
from kpreempt.model.documents import group_of, mapping_in
from kpreempt.model.kinds import AUTOSCALER_KINDS, KINDS, Kind

# Owners of pods, with the groups that Kubernetes' own controllers watch.
POD_OWNERS: dict[str, tuple[str, ...]] = {
    "Deployment": ("apps", "extensions"),
    "StatefulSet": ("apps",),
    "DaemonSet": ("apps", "extensions"),
    "ReplicaSet": ("apps", "extensions"),
    "ReplicationController": ("",),
    "Job": ("batch",),
    "CronJob": ("batch",),
}
# The field with the number of pods.
SIZE_FIELDS = {
    "Deployment": "replicas",
    "StatefulSet": "replicas",
    "ReplicaSet": "replicas",
    "ReplicationController": "replicas",
    "Job": "parallelism",
}
# Kinds with a number of replicas, which people and autoscalers set.
SCALED_KINDS = tuple(kind for kind, field in SIZE_FIELDS.items() if field == "replicas")

ADMISSION = "admissionregistration.k8s.io"
MUTATING = ("MutatingWebhookConfiguration", "MutatingAdmissionPolicy")
VALIDATING = ("ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")

# The kinds that a snapshot holds. A NodePool is treated like any custom resource in a change.
CLUSTER_KINDS = {name: kind for name, kind in KINDS.items() if name not in AUTOSCALER_KINDS}

# Other cluster-scoped kinds; all other unknown kinds are assumed to be namespaced, as most custom resources are.
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


# Kinds whose name is a plural.
_PLURAL_KINDS = ("endpoints",)


def plural_of(kind: str) -> str:
    """The plural of a kind in lower case, as in resource names: ``priorityclasses``.

    For custom resources it is only likely; what kubectl and the API server accept for sure is in their definition.
    """
    word = kind.lower()
    if word in _PLURAL_KINDS:
        return word
    if word.endswith(("s", "x", "ch", "sh")):
        return f"{word}es"
    return f"{word[:-1]}ies" if word.endswith("y") and word[-2:-1] not in "aeiou" else f"{word}s"


def is_pod_owner(document: Document) -> bool:
    """Whether the object is a built-in workload; without a version, only the kind counts."""
    groups = POD_OWNERS.get(str(document.get("kind")))
    return groups is not None and (not document.get("apiVersion") or group_of(document) in groups)


def cluster_kind_of(document: Document) -> Kind | None:
    """The kind of the object if a snapshot holds such objects, else ``None``."""
    kind = CLUSTER_KINDS.get(str(document.get("kind")))
    if kind is None or (document.get("apiVersion") and group_of(document) not in kind.groups):
        return None
    return kind


def is_known(document: Document) -> bool:
    """Whether a snapshot holds objects of this kind, or it is a workload."""
    return is_pod_owner(document) or cluster_kind_of(document) is not None


def is_other(document: Document) -> bool:
    """Whether no snapshot holds objects of this kind, and it could affect pods."""
    return not is_known(document) and not makes_no_pods(group_of(document), str(document.get("kind")))


def is_mutating(document: Document) -> bool:
    """Whether the object configures changes to objects at admission."""
    return group_of(document) == ADMISSION and document.get("kind") in MUTATING


def is_namespaced(document: Document) -> bool:
    """Whether objects of this kind are namespaced."""
    kind = cluster_kind_of(document)
    return kind.is_namespaced if kind is not None else str(document.get("kind")) not in _OTHER_CLUSTER_WIDE


# By API group; ``*`` means every kind of the group.
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
    # They may reject pods, which cannot be predicted; a rejection is visible when the change is applied.
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
# Kinds that no snapshot holds and that affect pods.
_UNMODELED = {
    (
        "autoscaling",
        "HorizontalPodAutoscaler",
    ): "autoscalers are not evaluated: workloads keep the replicas they specify",
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): "its changes to pods are unknown",
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): "its changes to pods are unknown",
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): "its changes to pods are unknown",
    ("batch.volcano.sh", "Job"): "Volcano jobs are not simulated",
    ("kustomize.config.k8s.io", "Kustomization"): "is not built; pass the output of kubectl kustomize instead",
}
_ANY = "*"
_WORDS = {
    group: {form for kind in kinds for form in (kind.lower(), plural_of(kind))} for group, kinds in _HARMLESS.items()
}


def makes_no_pods(group: str, kind: str) -> bool:
    """Whether objects of this kind certainly never create, change or delete pods.

    The kind is as in manifests, or as users write it, in plural and in any case (``certificates``).
    """
    words = _WORDS.get(group, set())
    return _ANY in words or kind.lower() in words


def unknown_effect(document: Document) -> tuple[str, str]:
    """What is unknown about an object whose kind no snapshot holds, and the field; empty if it does not matter."""
    group, kind = group_of(document), str(document["kind"])
    if message := _UNMODELED.get((group, kind)):
        return message, "spec"
    if isinstance(mapping_in(document, "spec", "template", "spec").get("containers"), list):
        return f"the controller of {kind} objects is not simulated: its pods are not created", "spec.template"
    if makes_no_pods(group, kind):
        return "", ""
    # Any such kind has a controller, which may create or delete pods, or change their number.
    return f"the controller of {kind} objects is not simulated: no pods are created or changed for it", "spec"


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
# Kinds that do not affect scheduling, but may be deleted along with others.
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
    """An object to delete; ``namespace`` is empty for cluster-scoped kinds, ``has_meaning`` if pods may be affected."""

    kind: str
    namespace: str
    name: str
    has_meaning: bool = True

    @property
    def described(self) -> str:
        """``Deployment shop/api``."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def only_in(base: Iterable[Document], documents: Iterable[Document]) -> list[Deletion]:
    """The objects of ``base`` that are not in ``documents``, in the order of ``base``; both are ``prepared``."""
    existing = {_deletion_of(each) for each in documents}
    return [each for each in dict.fromkeys(map(_deletion_of, base)) if each not in existing]


def _deletion_of(document: Document) -> Deletion:
    metadata, kind = document["metadata"], document["kind"]
    has_meaning = is_known(document)
    if not has_meaning and not makes_no_pods(group_of(document), kind):
        kind = f"{kind}.{group_of(document)}".rstrip(".")
    return Deletion(kind, metadata.get("namespace", ""), metadata["name"], has_meaning)


def parse_deletion(text: str, namespace: str) -> Deletion:
    """Parse ``KIND/NAME`` or ``KIND/NAMESPACE/NAME``; the default namespace is ``namespace``.

    Kinds can be in any case, short or plural, with or without their group. Raises ``UsageError``.
    """
    parts = text.split("/")
    if not 2 <= len(parts) <= _PARTS_WITH_NAMESPACE or not all(parts):
        raise UsageError(f'"{text[:80]}" is not an object name', hint="use KIND/NAME or KIND/NAMESPACE/NAME")
    kind, has_meaning = _kind(parts[0])
    known = CLUSTER_KINDS.get(kind)
    if known is not None and not known.is_namespaced:
        if len(parts) == _PARTS_WITH_NAMESPACE:
            raise UsageError(f'"{text[:80]}": a {kind} is not namespaced', hint=f"{parts[0]}/{parts[2]}")
        return Deletion(kind, "", parts[1])
    target = parts[1] if len(parts) == _PARTS_WITH_NAMESPACE else namespace
    return Deletion(kind, target, parts[-1], has_meaning)


def _kind(text: str) -> tuple[str, bool]:
    word, dot, rest = text.lower().partition(".")
    kind = _KIND_WORDS.get(word)
    # kubectl accepts ``deployments.apps`` and ``deployments.v1.apps``. The same kind in another group is another kind.
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
    raise UsageError(f'"{text[:80]}" is not a known kind', hint=near[0] if near else "")


def _words(kinds: tuple[str, ...], short: dict[str, str]) -> dict[str, str]:
    return {**short, **{kind.lower(): kind for kind in kinds}, **{plural_of(kind): kind for kind in kinds}}


_KIND_WORDS = _words((*CLUSTER_KINDS, *POD_OWNERS), _SHORT)
_OTHER_WORDS = _words(_WITHOUT_MEANING, _SHORT_WITHOUT_MEANING)
