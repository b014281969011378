"""What the API server fills in to a new PersistentVolumeClaim: the default storage class and the volume mode.

Follows ``k8s.io/kubernetes`` v1.36.3 ``plugin/pkg/admission/storage/storageclass/setdefault``,
``pkg/volume/util/storageclass.go`` (the newest default class wins, then the name) and ``pkg/apis/core/v1/defaults.go``.
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from kpreempt.admission.pod_defaults import CLAIM_SPEC
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.storage import PersistentVolumeClaim, StorageClass

_DEFAULT_CLASS_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_BETA_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def admit_claim(claim: PersistentVolumeClaim, cluster: ClusterSnapshot) -> PersistentVolumeClaim:
    """The claim as the API server stores it, pending."""
    spec = claim.spec
    class_name = spec.storage_class_name
    if class_name is None and _BETA_CLASS_ANNOTATION not in claim.metadata.annotations:
        default = _default_class(cluster)
        class_name = default.metadata.name if default is not None else None
    status = msgspec.structs.replace(claim.status, phase=claim.status.phase or "Pending")
    spec = msgspec.structs.replace(CLAIM_SPEC.filled(spec), storage_class_name=class_name)
    return msgspec.structs.replace(claim, spec=spec, status=status)


def _default_class(cluster: ClusterSnapshot) -> StorageClass | None:
    defaults = [each for each in cluster.storage_classes if _is_default(each)]
    if not defaults:
        return None
    newest = max(each.metadata.creation_timestamp or _LONG_AGO for each in defaults)
    return min(
        (each for each in defaults if (each.metadata.creation_timestamp or _LONG_AGO) == newest),
        key=lambda each: each.metadata.name,
    )


def _is_default(storage_class: StorageClass) -> bool:
    return any(storage_class.metadata.annotations.get(key) == "true" for key in _DEFAULT_CLASS_ANNOTATIONS)
