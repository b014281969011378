"""The claims that controllers make for a pod before it can be scheduled, as plain data.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/statefulset/stateful_set_utils.go`` and
``pkg/controller/volume/ephemeral``.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy

from kpreempt.analysis.document_reader import Document, DocumentReader

_TEMPLATES = "spec.volumeClaimTemplates[]"


def stateful_claims(
    spec: Document, pod_name: str, namespace: str, labels: Mapping[str, str], reader: DocumentReader
) -> tuple[list[Document], list[Document]]:
    """The claims of a StatefulSet's pod, and the pod's volumes that use them.

    ``spec`` is the StatefulSet's; ``labels`` are those of its selector, which its claims carry.
    """
    claims, volumes = [], []
    for template in reader.mappings(spec, "volumeClaimTemplates", "spec"):
        metadata = reader.mapping(template, "metadata", _TEMPLATES)
        volume = reader.name(metadata, "name")
        claim_name = f"{volume}-{pod_name}"
        volumes.append({"name": volume, "persistentVolumeClaim": {"claimName": claim_name}})
        claim_labels = {**reader.mapping(metadata, "labels", f"{_TEMPLATES}.metadata"), **labels}
        claim_metadata = {**metadata, "name": claim_name, "namespace": namespace, "labels": claim_labels}
        claims.append(_claim(template, claim_metadata))
    return claims, volumes


def ephemeral_claims(document: Document) -> list[Document]:
    """The claims that are made for the ephemeral volumes of a pod, which is given as plain data and stays as it is."""
    metadata, spec = document["metadata"], document.get("spec")
    volumes = spec.get("volumes") if isinstance(spec, dict) else None
    claims = []
    for volume in volumes if isinstance(volumes, list) else []:
        ephemeral = volume.get("ephemeral") if isinstance(volume, dict) else None
        template = ephemeral.get("volumeClaimTemplate") if isinstance(ephemeral, dict) else None
        if not isinstance(template, dict):
            continue
        owner = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": metadata["name"],
            "uid": metadata.get("uid") or "",
            "controller": True,
        }
        claim_metadata = {
            **(template.get("metadata") or {}),
            "name": f"{metadata['name']}-{volume.get('name')}",
            "namespace": metadata["namespace"],
            "ownerReferences": [owner],
        }
        claims.append(_claim(template, claim_metadata))
    return claims


def _claim(template: Document, metadata: Document) -> Document:
    return {
        **deepcopy(template),
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": deepcopy(metadata),
    }
