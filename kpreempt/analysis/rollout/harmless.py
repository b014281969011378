"""What is known of kinds that no snapshot holds: above all, of which nothing makes pods, not even in the end.

Any other kind that no snapshot holds may have pods made of it. A kind that is missing here costs a waiver, one that is
here by mistake hides pods: so only what is sure is here.
"""

from __future__ import annotations

from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.rollout.kinds import group_of, plural_of
from kpreempt.analysis.rollout.pod_defaults import mapping_in

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
    ("resource.k8s.io", "ResourceClaimTemplate"): "claims made from it are not evaluated",
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): "what it changes in pods is not known",
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): "what it changes in pods is not known",
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): "what it changes in pods is not known",
    ("batch.volcano.sh", "Job"): "jobs of Volcano are not played",
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
    template = mapping_in(mapping_in(document, "spec"), "template")
    if isinstance(mapping_in(template, "spec").get("containers"), list):
        return f"the controller of a {kind} is not known, so that none of its pods are made", "spec.template"
    if makes_no_pods(group, kind):
        return "", ""
    # Whatever it is, there is a controller for it, which may make pods, delete them, or change their number.
    return f"what a controller makes of {kind} objects is not known: no pods are made or changed for it", "spec"
