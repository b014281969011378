"""Why the API server's admission plugins reject an object that is valid by itself.

Follows the validating plugins of ``k8s.io/kubernetes`` v1.36.3 that are on by default (``pkg/kubeapiserver/options/
plugins.go``): ``plugin/pkg/admission/{priority,security/podsecurity,serviceaccount,storage/persistentvolume/resize}``,
and ``namespace/lifecycle`` of ``k8s.io/apiserver`` v0.36.3. Plugins that compare pods with classes, LimitRanges and
quotas are in ``admit`` and ``resource_quotas``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kpreempt.admission.limit_ranges import storage_out_of_bounds
from kpreempt.admission.plugin_state import PluginState
from kpreempt.admission.pod_plugins import insecurity, rejection_of_pod, terminating
from kpreempt.admission.pod_security import check_labels
from kpreempt.admission.priority import global_default
from kpreempt.admission.validation.problems import Document, Problem, Problems, Server
from kpreempt.admission.validation.values import amount
from kpreempt.model.cluster import KindState, state_of
from kpreempt.model.documents import group_of, mapping_in, mappings_in
from kpreempt.model.storage import BETA_STORAGE_CLASS_ANNOTATION

_REQUESTS = ("spec", "resources", "requests")
_DEFAULT_POLICY = "PreemptLowerPriority"
_CLASSES = "PriorityClass"

_Check = Callable[[Document, Document | None, PluginState, Server], Problems]


def plugin_problems(document: Document, old: Document | None, state: PluginState, server: Server) -> Problems:
    """Yield why plugins reject a new object, or its update from ``old``.

    ``document`` is the complete object after the update.
    """
    namespace = mapping_in(document, "metadata").get("namespace")
    if old is None and namespace and (reason := terminating(namespace, state)):
        yield Problem(("metadata", "namespace"), reason)
        return
    group = group_of(document)
    check = _CHECKS.get((group, str(document.get("kind"))))
    if check is not None:
        yield from check(document, old, state, server)


def _check_namespace(document: Document, old: Document | None, *_: object) -> Problems:
    """Labels of Pod Security must be valid; an update keeps the problems that there are."""
    found = list(check_labels(_labels(document)))
    if old is None or found != list(check_labels(_labels(old))):
        yield from found


def _labels(document: Document) -> Mapping[str, str]:
    return mapping_in(document, "metadata", "labels")


def _check_priority_class(document: Document, old: Document | None, state: PluginState, _: Server) -> Problems:
    """There may be one global default."""
    default = global_default(list(state.classes.values()))
    if default is None or not document.get("globalDefault"):
        return
    name = default.metadata.name
    if old is None or name != mapping_in(document, "metadata").get("name"):
        reason = f"PriorityClass {name} is already marked as default. Only one default can exist"
        yield Problem(("globalDefault",), reason)


def _check_claim(document: Document, old: Document | None, state: PluginState, _: Server) -> Problems:
    """A claim must be within the bounds of LimitRanges, and can only grow if its class allows that."""
    if old is not None and _size(document) == _size(old):
        return
    namespace = str(mapping_in(document, "metadata").get("namespace"))
    requests = {name: amount(each) for name, each in mapping_in(document, *_REQUESTS).items()}
    if reason := storage_out_of_bounds(namespace, requests, state.cluster.limit_ranges):
        yield Problem(_REQUESTS, reason)
    if old is not None and _size(document) > _size(old):
        yield from _check_larger_claim(document, old, state)


def _size(claim: Document) -> int:
    """The requested storage in billionths of a byte."""
    return amount(mapping_in(claim, *_REQUESTS).get("storage", 0)).nano


def _check_larger_claim(document: Document, old: Document, state: PluginState) -> Problems:
    path = (*_REQUESTS, "storage")
    if mapping_in(old, "status").get("phase", "Bound") != "Bound":
        yield Problem(path, "Only bound persistent volume claims can be expanded")
        return
    name = _class_of(document)
    is_known = name in state.expandable or state_of(state.cluster, "StorageClass") is KindState.READ
    if is_known and not (name and name == _class_of(old) and state.expandable.get(name)):
        reason = (
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support "
            "resize"
        )
        yield Problem(path, reason)


def _class_of(claim: Document) -> str:
    name = mapping_in(claim, "metadata", "annotations").get(BETA_STORAGE_CLASS_ANNOTATION)
    return str(mapping_in(claim, "spec").get("storageClassName") or "") if name is None else str(name)


def _check_pod(document: Document, old: Document | None, state: PluginState, server: Server) -> Problems:
    """Pods must conform to the Pod Security Standards of their namespace when they are created or get new images."""
    if old is None:
        yield from _check_priority(mapping_in(document, "spec"), state)
        reason = rejection_of_pod(document, state, server.minor)
    else:
        reason = insecurity(document, state, server.minor).enforce if _images(document) != _images(old) else ""
    if reason:
        yield Problem((), reason)


def _images(pod: Document) -> list[tuple[str, list[str]]]:
    keys = ("containers", "initContainers")
    return [(key, [str(each.get("image")) for each in mappings_in(mapping_in(pod, "spec"), key)]) for key in keys]


def _check_priority(spec: Mapping[str, object], state: PluginState) -> Problems:
    """A priority or a policy that a new pod specifies must be that of its class."""
    name = spec.get("priorityClassName")
    if state_of(state.cluster, _CLASSES) is not KindState.READ or (name and name not in state.classes):
        return
    chosen = state.classes[str(name)] if name else global_default(list(state.classes.values()))
    value = chosen.value if chosen is not None else 0
    policy = (chosen.preemption_policy if chosen is not None else None) or _DEFAULT_POLICY
    for field, what, computed in (
        ("priority", "integer value of priority", value),
        ("preemptionPolicy", "string value of PreemptionPolicy", policy),
    ):
        given = spec.get(field)
        if given is not None and given != computed:
            reason = (
                f"the {what} ({given}) must not be provided in pod spec; priority admission controller computed "
                f"{computed} from the given PriorityClass name"
            )
            yield Problem(("spec", field), reason)


_CHECKS: Mapping[tuple[str, str], _Check] = {
    ("", "Namespace"): _check_namespace,
    ("", "PersistentVolumeClaim"): _check_claim,
    ("", "Pod"): _check_pod,
    ("scheduling.k8s.io", "PriorityClass"): _check_priority_class,
}
