"""The parameters of a policy's binding.

Follows ``CollectParams`` in ``k8s.io/apiserver`` v0.36.3 ``pkg/admission/plugin/policy/generic/policy_dispatcher.go``.
"""

from __future__ import annotations

from typing import Any

from kpreempt.admission.policies.matching import selector_of, selects
from kpreempt.admission.policies.requests import Request, name_of
from kpreempt.admission.policies.state import PolicyState
from kpreempt.admission.validation.problems import Document
from kpreempt.model.documents import mapping_in


class ConfigurationError(Exception):
    """A policy's binding cannot be used; its failure policy decides. ``str`` is the API server's message."""


class NotEvaluatedError(Exception):
    """A policy's binding applies, and is not evaluated; ``str`` is the reason."""


def params_of(policy: Document, binding: Document, request: Request, state: PolicyState) -> list[Document | None]:
    """Return the parameters with which a policy is evaluated, one after the other; ``None`` is no parameter.

    Raises ``ConfigurationError`` and ``NotEvaluatedError``.
    """
    kind, reference = mapping_in(policy, "spec").get("paramKind"), mapping_in(binding, "spec").get("paramRef")
    if not isinstance(kind, dict) or not isinstance(reference, dict):
        return [None]
    version, name = str(kind.get("apiVersion")), str(kind.get("kind"))
    group = version.rpartition("/")[0]
    candidates = state.of_kind(name, group)
    found = _selected(_in_namespace(candidates, reference, request), reference)
    is_missing = not found if reference.get("name") else not state.is_complete(group, name)
    if is_missing and not state.is_complete(group, name):
        raise NotEvaluatedError(f"its parameters ({name}) were not read")
    if any(each.get("apiVersion") != version for each in found):
        raise NotEvaluatedError(f"its parameters ({name}) are in another version than {version}")
    if not found and reference.get("parameterNotFoundAction") == "Deny":
        raise ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")
    return [*found]


def _in_namespace(candidates: list[Document], reference: dict[str, Any], request: Request) -> list[Document]:
    """Parameters are in the namespace of the reference or the request, unless their kind is cluster-scoped."""
    own = str(reference.get("namespace") or "")
    if not any(mapping_in(each, "metadata").get("namespace") for each in candidates):
        if own and candidates:
            raise ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        return candidates
    namespace = own or request.namespace
    if not namespace:
        words = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        raise ConfigurationError(words)
    return [each for each in candidates if mapping_in(each, "metadata").get("namespace") == namespace]


def _selected(candidates: list[Document], reference: dict[str, Any]) -> list[Document]:
    if reference.get("name"):
        return [each for each in candidates if name_of(each) == reference["name"]]
    selector = selector_of(reference.get("selector"))
    if selector is None:
        raise NotEvaluatedError("the selector of its parameters cannot be read")
    return [each for each in candidates if selects(selector, mapping_in(each, "metadata", "labels"))]
