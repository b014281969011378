"""Why admission plugins that read only a pod's manifest and its namespace reject a new pod.

Follows ``k8s.io/kubernetes`` v1.36.3 ``plugin/pkg/admission`` (``serviceaccount``, ``security/podsecurity``,
``podnodeselector``) and ``k8s.io/apiserver`` v0.36.3 ``pkg/admission/plugin/{namespace/lifecycle,resourcequota}``. The
other plugins are in ``admit``. Secrets that an account does not list are not checked; few accounts require that.
"""

from __future__ import annotations

from collections.abc import Iterator

from kpreempt.admission.plugin_state import DEFAULT_ACCOUNT, NamespaceFacts, PluginState
from kpreempt.admission.pod_security import Violations, violations_of
from kpreempt.admission.resource_quotas import uncovered_scopes
from kpreempt.admission.validation.problems import Document
from kpreempt.model.cluster import KindState, state_of
from kpreempt.model.documents import mapping_in
from kpreempt.model.meta import DEFAULT_NAMESPACE
from kpreempt.verdict import Assumption
from kpreempt.verdict.unread import unread_of

_NODE_SELECTOR = "scheduler.alpha.kubernetes.io/node-selector"
_KIND = "Namespace"
# What is checked if a namespace's labels are unknown.
_USUAL = {"pod-security.kubernetes.io/enforce": "baseline"}


def terminating(namespace: str, state: PluginState) -> str:
    """Return why objects cannot be created in a namespace, or an empty string."""
    if not state.namespaces.get(namespace, NamespaceFacts()).is_terminating:
        return ""
    return f"unable to create new content in namespace {namespace} because it is being terminated"


def rejection_of_pod(pod: Document, state: PluginState, minor: int) -> str:
    """Return why plugins reject a new pod on a server of version 1.``minor``, or an empty string."""
    namespace, spec = _namespace_of(pod), mapping_in(pod, "spec")
    account = str(spec.get("serviceAccountName") or spec.get("serviceAccount") or DEFAULT_ACCOUNT)
    return (
        terminating(namespace, state)
        or (_no_account(namespace, account) if state.lacks_account(namespace, account) else "")
        or insecurity(pod, state, minor).enforce
        or uncovered_scopes(str(spec.get("priorityClassName") or ""), namespace, list(state.quotas.values()))
    )


def insecurity(pod: Document, state: PluginState, minor: int) -> Violations:
    """Return how a pod violates the Pod Security Standards of its namespace."""
    facts = state.namespaces.get(_namespace_of(pod), NamespaceFacts())
    return violations_of(pod, facts.labels, minor)


def assumptions_of_pod(pod: Document, subject: str, state: PluginState, minor: int) -> Iterator[Assumption]:
    """Yield what is assumed about plugins that may reject a new pod."""
    namespace = _namespace_of(pod)
    facts = state.namespaces.get(namespace)
    if facts is None:
        is_unreadable = state_of(state.cluster, _KIND) is KindState.UNREADABLE
        if is_unreadable and violations_of(pod, _USUAL, minor).enforce:
            yield from unread_of(state.cluster, [_KIND])
        return
    selector, own = _selector(facts.annotations.get(_NODE_SELECTOR, "")), mapping_in(pod, "spec", "nodeSelector")
    conflicts = [f"{key}={value}" for key, value in selector.items() if own.get(key, value) != value]
    if conflicts:
        message = (
            f"conflicts with the annotation {_NODE_SELECTOR} of namespace {namespace} ({', '.join(conflicts)}); "
            "the API server rejects the pod if its plugin PodNodeSelector is on, which is off by default"
        )
        yield Assumption(subject, "spec.nodeSelector", message)


def _namespace_of(pod: Document) -> str:
    return str(mapping_in(pod, "metadata").get("namespace") or DEFAULT_NAMESPACE)


def _no_account(namespace: str, name: str) -> str:
    return f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'


def _selector(text: str) -> dict[str, str]:
    """Parse ``zone=a,disk=ssd``."""
    pairs = (each.partition("=") for each in text.split(",") if "=" in each)
    return {key.strip(): value.lstrip("=").strip() for key, _, value in pairs}
