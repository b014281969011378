"""Kinds of which nothing makes pods: neither their controllers, nor what these make in turn.

Any other kind that no snapshot holds may have pods made of it. A kind that is missing here costs a waiver, one that is
here by mistake hides pods: so only what is sure is here.
"""

from __future__ import annotations

from kpreempt.analysis.rollout.kinds import plural_of

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
