"""The API versions that Kubernetes no longer serves, and since when.

The versions are those of Kubernetes' deprecated API migration guide, as of 1.36; it does not list beta versions of
kinds that never became stable.
"""

from __future__ import annotations

from collections.abc import Mapping

_ANY = "*"
_WORKLOADS = 16
_BETA = 22
# The minor version of Kubernetes 1 that no longer serves the kind in this API version.
_REMOVED: dict[str, Mapping[str, int]] = {
    "extensions/v1beta1": {"Ingress": _BETA, _ANY: _WORKLOADS},
    "apps/v1beta1": {_ANY: _WORKLOADS},
    "apps/v1beta2": {_ANY: _WORKLOADS},
    "admissionregistration.k8s.io/v1beta1": {
        "MutatingWebhookConfiguration": _BETA,
        "ValidatingWebhookConfiguration": _BETA,
    },
    "apiextensions.k8s.io/v1beta1": {_ANY: _BETA},
    "apiregistration.k8s.io/v1beta1": {_ANY: _BETA},
    "certificates.k8s.io/v1beta1": {"CertificateSigningRequest": _BETA},
    "coordination.k8s.io/v1beta1": {"Lease": _BETA},
    "networking.k8s.io/v1beta1": {"Ingress": _BETA, "IngressClass": _BETA},
    "rbac.authorization.k8s.io/v1beta1": {_ANY: _BETA},
    "scheduling.k8s.io/v1beta1": {"PriorityClass": _BETA},
    "storage.k8s.io/v1beta1": {
        **dict.fromkeys(("CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"), _BETA),
        "CSIStorageCapacity": 27,
    },
    "batch/v1beta1": {"CronJob": 25},
    "discovery.k8s.io/v1beta1": {_ANY: 25},
    "events.k8s.io/v1beta1": {_ANY: 25},
    "autoscaling/v2beta1": {_ANY: 25},
    "policy/v1beta1": {_ANY: 25},
    "node.k8s.io/v1beta1": {_ANY: 25},
    "autoscaling/v2beta2": {_ANY: 26},
    "flowcontrol.apiserver.k8s.io/v1beta1": {_ANY: 26},
    "flowcontrol.apiserver.k8s.io/v1beta2": {_ANY: 29},
    "flowcontrol.apiserver.k8s.io/v1beta3": {_ANY: 32},
}


def removed_in(api_version: str, kind: str) -> int | None:
    """The minor version of Kubernetes 1 that no longer serves the kind in this API version, if known."""
    kinds = _REMOVED.get(api_version, {})
    return kinds.get(kind, kinds.get(_ANY))
