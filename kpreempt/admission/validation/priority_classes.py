"""Validate PriorityClasses.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/scheduling/validation/validation.go`` and
``pkg/apis/scheduling/v1/helpers.go``.
"""

from __future__ import annotations

from kpreempt.admission.validation.metadata import check_immutable, check_metadata, check_metadata_update
from kpreempt.admission.validation.problems import Document, Problems, Server, forbidden, required, unsupported
from kpreempt.model.documents import mapping_in

_SYSTEM = "system-"
_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_HIGHEST = 1_000_000_000
_POLICIES = ("Never", "PreemptLowerPriority")
_DEFAULT_POLICY = "PreemptLowerPriority"
_POLICY = ("preemptionPolicy",)


def check_priority_class(document: Document, old: Document | None, _: Server) -> Problems:
    """Validate a PriorityClass; its value and its preemption policy never change."""
    if old is not None:
        yield from check_metadata_update(document, old)
        if document.get("value", 0) != old.get("value", 0):
            yield forbidden(("value",), "may not be changed in an update.")
        policy, before = (each.get("preemptionPolicy", _DEFAULT_POLICY) for each in (document, old))
        yield from check_immutable(policy, before, _POLICY)
        return
    yield from check_metadata(document, is_namespaced=False)
    name, value = mapping_in(document, "metadata").get("name", ""), document.get("value", 0)
    if name.startswith(_SYSTEM):
        if problem := _of_system(name, value, document.get("globalDefault", False)):
            detail = f"priority class names with '{_SYSTEM}' prefix are reserved for system use only. error: {problem}"
            yield forbidden(("metadata", "name"), detail)
    elif value > _HIGHEST:
        yield forbidden(("value",), f"maximum allowed value of a user defined priority is {_HIGHEST}")
    policy = document.get("preemptionPolicy", _DEFAULT_POLICY)
    if not policy:
        yield required(_POLICY)
    elif policy not in _POLICIES:
        yield unsupported(_POLICY, policy, _POLICIES)


def _of_system(name: str, value: int, is_default: bool) -> str:
    if name not in _SYSTEM_CLASSES:
        return f"{name} is not a known system priority class"
    if value != _SYSTEM_CLASSES[name]:
        return f"value of {name} PriorityClass must be {_SYSTEM_CLASSES[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""


VALIDATORS = {"PriorityClass": check_priority_class}
