"""Validate kinds whose validation we do not have, as far as their schema allows: missing and unknown values.

A field that OpenAPI calls required is one that Go clients always send; the API server may accept objects without it.
So only types are checked for which the strategies in ``k8s.io/kubernetes`` v1.36.3 ``pkg/registry`` reject each of
these fields if it is missing, and each value outside an enum. The exceptions are in ``_NOT_REQUIRED``. Names, labels
and annotations of these kinds are checked, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kpreempt.admission.schema import ApiTypes, api_types, enums_of, fields_of, required_of, type_of_kind
from kpreempt.admission.validation.metadata import NameCheck, check_metadata, check_metadata_update
from kpreempt.admission.validation.problems import Document, Problems, Server, required, unsupported
from kpreempt.admission.validation.values import dns_subdomain
from kpreempt.model.documents import Path, group_of


def _path_segment(name: str) -> str:
    if name in (".", ".."):
        return f"may not be '{name}'"
    return next((f"may not contain '{each}'" for each in "/%" if each in name), "")


# The form of the names, by group and kind.
_KINDS: Mapping[tuple[str, str], NameCheck] = {
    **dict.fromkeys(
        [
            *(("", kind) for kind in ("ConfigMap", "Endpoints", "Node", "PersistentVolume", "PodTemplate", "Secret")),
            ("", "ServiceAccount"),
            ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
            ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
            ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
            ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
            ("coordination.k8s.io", "Lease"),
            ("discovery.k8s.io", "EndpointSlice"),
            *(("networking.k8s.io", kind) for kind in ("Ingress", "IngressClass", "NetworkPolicy")),
            ("node.k8s.io", "RuntimeClass"),
            *(("resource.k8s.io", kind) for kind in ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate")),
            *(("storage.k8s.io", kind) for kind in ("CSIDriver", "VolumeAttachment", "VolumeAttributesClass")),
        ],
        dns_subdomain,
    ),
    **{
        ("rbac.authorization.k8s.io", kind): _path_segment
        for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    },
}
_TYPES: frozenset[str] = frozenset(
    f"{package}.{name}"
    for package, names in {
        "admissionregistration.v1": """
            AuditAnnotation MatchCondition MatchResources MutatingWebhook NamedRuleWithOperations ParamRef
            RuleWithOperations ServiceReference ValidatingAdmissionPolicyBinding ValidatingAdmissionPolicyBindingSpec
            ValidatingAdmissionPolicySpec ValidatingWebhook Validation Variable""",
        "core.v1": """
            AWSElasticBlockStoreVolumeSource AzureDiskVolumeSource AzureFilePersistentVolumeSource
            CSIPersistentVolumeSource CephFSPersistentVolumeSource CinderPersistentVolumeSource EndpointAddress
            EndpointPort FlexPersistentVolumeSource GCEPersistentDiskVolumeSource GlusterfsPersistentVolumeSource
            HostPathVolumeSource ISCSIPersistentVolumeSource LocalVolumeSource NFSVolumeSource NodeSelector
            NodeSelectorRequirement PersistentVolumeSpec PortworxVolumeSource QuobyteVolumeSource
            RBDPersistentVolumeSource ScaleIOPersistentVolumeSource Taint TypedLocalObjectReference VolumeNodeAffinity
            VsphereVirtualDiskVolumeSource""",
        "discovery.v1": "Endpoint EndpointPort EndpointSlice",
        "meta.v1": "LabelSelectorRequirement",
        "networking.v1": """
            HTTPIngressPath HTTPIngressRuleValue IPBlock IngressClass IngressClassParametersReference IngressClassSpec
            IngressServiceBackend NetworkPolicyPort NetworkPolicySpec""",
        "node.v1": "RuntimeClass",
        "rbac.v1": "ClusterRoleBinding PolicyRule RoleBinding RoleRef Subject",
        "resource.v1": """
            CELDeviceSelector DeviceRequest DeviceSubRequest DeviceToleration ExactDeviceRequest
            OpaqueDeviceConfiguration""",
        "storage.v1": "VolumeAttachment VolumeAttachmentSpec VolumeAttributesClass",
    }.items()
    for name in names.split()
)
_NOT_REQUIRED = frozenset(
    {
        ("core.v1.ISCSIPersistentVolumeSource", "lun"),
        ("core.v1.ScaleIOPersistentVolumeSource", "secretRef"),
        ("discovery.v1.EndpointSlice", "endpoints"),
        ("networking.v1.NetworkPolicySpec", "podSelector"),
        ("rbac.v1.RoleRef", "apiGroup"),
    }
)


# These groups permit finalizers without a domain.
_ANY_FINALIZERS = frozenset({"admissionregistration.k8s.io", "coordination.k8s.io", "node.k8s.io"})


def check_other_kind(document: Document, old: Document | None, server: Server) -> Problems:
    """Validate an object of a kind that has no module in this package; kinds that are not known yield nothing."""
    group = group_of(document)
    name = _KINDS.get((group, str(document.get("kind"))))
    api = api_types()
    kind = type_of_kind(api, document)
    if name is None or kind is None:
        return
    has_rules = group not in _ANY_FINALIZERS
    if old is None:
        yield from check_metadata(document, name=name, has_own_rules=has_rules)
    else:
        yield from check_metadata_update(document, old, has_own_rules=has_rules)
    minor = server.minor if api.minors[0] <= server.minor <= api.minors[1] else None
    without_status = {key: value for key, value in document.items() if key != "status"}
    yield from _check(without_status, kind.type_name, (), api, minor)


def _check(value: Any, type_name: str, path: Path, api: ApiTypes, minor: int | None) -> Problems:
    if type_name.startswith("[]"):
        for index, each in enumerate(value):
            yield from _check(each, type_name[2:], (*path, index), api, minor)
    elif type_name.startswith("{}"):
        for key, each in value.items():
            yield from _check(each, type_name[2:], (*path, key), api, minor)
    elif type_name in api.types:
        if type_name in _TYPES:
            yield from _missing(value, type_name, path, api, minor)
            yield from _unsupported(value, type_name, path, api, minor)
        fields = fields_of(api, type_name)
        for key, each in value.items():
            if key in fields:
                yield from _check(each, fields[key].type_name, (*path, key), api, minor)


def _missing(value: Document, type_name: str, path: Path, api: ApiTypes, minor: int | None) -> Problems:
    for field in required_of(api, type_name, minor):
        if value.get(field) in (None, "", []) and (type_name, field) not in _NOT_REQUIRED:
            yield required((*path, field))


def _unsupported(value: Document, type_name: str, path: Path, api: ApiTypes, minor: int | None) -> Problems:
    for field, known in enums_of(api, type_name, minor).items():
        given = value.get(field) or []
        for index, each in enumerate([given] if isinstance(given, str) else given):
            if each not in known:
                yield unsupported((*path, field) if isinstance(given, str) else (*path, field, index), each, known)
