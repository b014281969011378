"""Validate Namespaces.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/core/validation/validation.go`` (``ValidateNamespace``).
"""

from __future__ import annotations

from kpreempt.admission.validation.metadata import check_finalizers, check_metadata, check_metadata_update
from kpreempt.admission.validation.problems import Document, Problems, Server, invalid
from kpreempt.admission.validation.values import dns_label, qualified_name
from kpreempt.model.documents import mapping_in

_FINALIZERS = ("spec", "finalizers")


def check_namespace(document: Document, old: Document | None, _: Server) -> Problems:
    """Validate a Namespace; an update of its finalizers has no effect."""
    if old is not None:
        yield from check_metadata_update(document, old)
        return
    yield from check_metadata(document, name=dns_label, is_namespaced=False)
    finalizers = mapping_in(document, "spec").get("finalizers") or []
    for each in finalizers:
        if problem := qualified_name(each):
            yield invalid(_FINALIZERS, each, problem)
    yield from check_finalizers(finalizers, _FINALIZERS)


VALIDATORS = {"Namespace": check_namespace}
