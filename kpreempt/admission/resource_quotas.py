"""The ResourceQuota usage of a pod that is to be created, and which quotas reject it.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/quota/v1/evaluator/core/pods.go`` and ``k8s.io/apiserver`` v0.36.3
``pkg/admission/plugin/resourcequota/controller.go`` (``CheckRequest``). The plugin's own configuration can limit
resources even without a quota. It is unknown, except that of GKE, where pods of the system's classes need a quota for
their class: ``cluster/gce/gci/configure-helper.sh`` creates one in ``kube-system``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kpreempt.admission.pod_resources import add_amounts, format_nano, total_limits, total_requests
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod, ResourceList
from kpreempt.model.quantity import Quantity, quantity
from kpreempt.model.workloads import ResourceQuota, ScopeRequirement
from kpreempt.verdict import Assumption, AssumptionKind

_ONE = quantity("1")
_REQUESTS, _LIMITS = "requests.", "limits."
_HUGE_PAGES = "hugepages-"
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_COUNTS = ("pods", "count/pods")
# If a quota counts one of these, every container must specify it.
_REQUIRED = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
# Resources that pod-level requests and limits support.
_POD_LEVEL = ("cpu", "memory")
_CLASSES = "PriorityClass"
_GKE_QUOTA = "gcp-critical-pods"

Amounts = dict[str, Quantity]


def counts_pods(resource: str) -> bool:
    """Return whether a quota of this resource applies to pods."""
    if resource in (*_COUNTS, *_COMPUTE) or resource.startswith((_HUGE_PAGES, f"{_REQUESTS}{_HUGE_PAGES}")):
        return True
    if resource.startswith((_REQUESTS, _LIMITS)):
        prefix, _, name = resource.partition(".")
        return name in _COMPUTE or (prefix == "requests" and _is_extended(name))
    return False


def usage_of(pod: Pod) -> Amounts:
    """Return a pod's quota usage, by quota resource name; a finished pod only counts as an object."""
    if pod.is_terminal:
        return {"count/pods": _ONE}
    requests, limits = _amounts_of(pod)
    return {"count/pods": _ONE, **_compute(requests, limits)}


def covers(quota: ResourceQuota, pod: Pod) -> bool:
    """Return whether the quota applies to the pod: it counts a pod resource, and all its scopes match."""
    if quota.metadata.namespace != pod.metadata.namespace or not any(map(counts_pods, quota.limits)):
        return False
    return all(_is_in_scope(pod, each) for each in _requirements_of(quota))


def rejection(quota: ResourceQuota, used: Mapping[str, Quantity], pod: Pod, usage: Mapping[str, Quantity]) -> str:
    """Return why the quota rejects a pod that it covers, in the API server's words, or an empty string.

    ``used`` is the quota's current usage, and ``usage`` that of the pod.
    """
    name, hard = quota.metadata.name, quota.limits
    if missing := _unspecified(pod, [each for each in hard if counts_pods(each)]):
        return f"failed quota: {name}: must specify {missing}"
    counted = {key: amount for key, amount in usage.items() if key in hard and amount.nano}
    if unknown := sorted(key for key in counted if key not in used):
        return f"status unknown for quota: {name}, resources: {','.join(unknown)}"
    exceeded = [key for key, amount in counted.items() if used[key].nano + amount.nano > hard[key].nano]
    if not exceeded:
        return ""
    requested, there, limited = (_listed(amounts, exceeded) for amounts in (counted, used, hard))
    return f"exceeded quota: {name}, requested: {requested}, used: {there}, limited: {limited}"


def uncovered_scopes(class_name: str, namespace: str, quotas: Sequence[ResourceQuota]) -> str:
    """Return why GKE rejects a pod of a class without a quota for it in its namespace, or an empty string."""

    def requirements(of: str, name: str = "") -> Iterator[ScopeRequirement]:
        in_namespace = (each for each in quotas if each.metadata.namespace == of and name in ("", each.metadata.name))
        requested = (requirement for quota in in_namespace for requirement in _requirements_of(quota))
        return (each for each in requested if each.scope_name == _CLASSES and _has_class(class_name, each))

    limited = next(requirements("kube-system", _GKE_QUOTA), None)
    if limited is None or next(requirements(namespace), None) is not None:
        return ""
    return f"insufficient quota to match these scopes: [{{PriorityClass In [{' '.join(limited.values)}]}}]"


def rejected_by_quotas(pod: Pod, cluster: ClusterSnapshot) -> list[Assumption]:
    """Return an assumption for each quota that would reject a new pod."""
    covering = [quota for quota in cluster.resource_quotas if covers(quota, pod)]
    counts, usage = QuotaCounts(cluster.pods), usage_of(pod)
    rejections = {quota.key: rejection(quota, counts.used_of(quota), pod, usage) for quota in covering}
    return [
        Assumption(
            f"ResourceQuota {key}",
            "spec.hard",
            f"the API server would reject the pod: {message}",
            AssumptionKind.UNCERTAIN,
        )
        for key, message in rejections.items()
        if message
    ]


def changed(used: Mapping[str, Quantity], usage: Mapping[str, Quantity], by: int) -> Amounts:
    """Return the usage after adding (1) or removing (-1) a pod with this ``usage``, for resources that are counted."""
    return {key: _moved(amount, usage[key], by) if key in usage else amount for key, amount in used.items()}


class QuotaCounts:
    """The usage of quotas by pods, as their controller computes it.

    Pods that no quota scope distinguishes are added up once, regardless of the number of quotas.
    """

    def __init__(self, pods: Iterable[Pod]) -> None:
        self._pods = pods
        self._alike: dict[str, list[tuple[Pod, ResourceList]]] = {}

    def used_of(self, quota: ResourceQuota) -> Amounts:
        """Return the usage of a quota; what its status lacks is computed, as for a new quota."""
        known = quota.status.used
        known_amounts = {key: known[key] for key in known if key in quota.limits}
        return (
            known_amounts
            if all(key in known_amounts for key in quota.limits if counts_pods(key))
            else {**self.counted(quota), **known_amounts}
        )

    def counted(self, quota: ResourceQuota) -> Amounts:
        """Return the computed usage of a quota, regardless of its status."""
        total: ResourceList = {}
        namespace = quota.metadata.namespace
        if namespace not in self._alike:
            self._alike[namespace] = _added_up(pod for pod in self._pods if pod.metadata.namespace == namespace)
        for pod, usage in self._alike[namespace]:
            if covers(quota, pod):
                add_amounts(total, usage)
        return {key: total.get(key, quantity("0")) for key in quota.limits if counts_pods(key)}


def _added_up(pods: Iterable[Pod]) -> list[tuple[Pod, ResourceList]]:
    """Return one pod of each group with the same scopes, and the total usage of the group."""
    alike: dict[tuple[str, bool, bool, bool], tuple[Pod, ResourceList]] = {}
    for pod in pods:
        scopes = (
            pod.spec.priority_class_name,
            _is_terminating(pod),
            _is_best_effort(pod),
            _reaches_other_namespaces(pod),
        )
        add_amounts(alike.setdefault(scopes, (pod, {}))[1], usage_of(pod))
    return list(alike.values())


def _moved(amount: Quantity, more: Quantity, by: int) -> Quantity:
    nano = amount.nano + by * more.nano
    text = amount if amount.nano else more
    return quantity(format_nano(max(nano, 0), binary=text.text.endswith("i")))


def _compute(requests: ResourceList, limits: ResourceList) -> Amounts:
    usage: Amounts = {"pods": _ONE}
    for name in _COMPUTE:
        if name in requests:
            usage[name] = usage[f"{_REQUESTS}{name}"] = requests[name]
        if name in limits:
            usage[f"{_LIMITS}{name}"] = limits[name]
    for name, amount in requests.items():
        if name.startswith(_HUGE_PAGES):
            usage[name] = usage[f"{_REQUESTS}{name}"] = amount
        elif _is_extended(name):
            usage[f"{_REQUESTS}{name}"] = amount
    return usage


def _amounts_of(pod: Pod) -> tuple[ResourceList, ResourceList]:
    """Return requests and limits including pod-level ones and overhead, which counts only if there is a limit."""
    requests, limits = total_requests(pod), total_limits(pod)
    whole = pod.spec.resources
    if whole is not None:
        for total, own in ((requests, whole.requests), (limits, whole.limits)):
            total.update({key: own[key] for key in own if key in _POD_LEVEL or key.startswith(_HUGE_PAGES)})
    add_amounts(requests, pod.spec.overhead)
    add_amounts(limits, {key: amount for key, amount in pod.spec.overhead.items() if key in limits})
    return requests, limits


def _unspecified(pod: Pod, counted_resources: Iterable[str]) -> str:
    """Return ``limits.cpu for: app,proxy; …`` for required resources that containers do not specify."""
    whole = pod.spec.resources
    own = (*whole.requests, *whole.limits) if whole is not None else ()
    if any(key in _POD_LEVEL or key.startswith(_HUGE_PAGES) for key in own):
        return ""
    missing: dict[str, set[str]] = {}
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        there = _compute(container.resources.requests, container.resources.limits)
        for key in _REQUIRED.intersection(counted_resources) - there.keys():
            missing.setdefault(key, set()).add(container.name)
    return "; ".join(f"{key} for: {','.join(sorted(missing[key]))}" for key in sorted(missing))


def _requirements_of(quota: ResourceQuota) -> list[ScopeRequirement]:
    selector = quota.spec.scope_selector
    requested = [ScopeRequirement(scope_name=scope, operator="Exists") for scope in quota.spec.scopes]
    return [*requested, *(selector.match_expressions if selector is not None else ())]


def _is_in_scope(pod: Pod, requested: ScopeRequirement) -> bool:
    scope = requested.scope_name
    if scope in ("Terminating", "NotTerminating"):
        return _is_terminating(pod) == (scope == "Terminating")
    if scope in ("BestEffort", "NotBestEffort"):
        return _is_best_effort(pod) == (scope == "BestEffort")
    if scope == "CrossNamespacePodAffinity":
        return _reaches_other_namespaces(pod)
    return scope == _CLASSES and _has_class(pod.spec.priority_class_name, requested)


def _is_terminating(pod: Pod) -> bool:
    return pod.spec.active_deadline_seconds is not None and pod.spec.active_deadline_seconds >= 0


def _has_class(name: str, requested: ScopeRequirement) -> bool:
    if requested.operator == "Exists":
        return bool(name)
    if requested.operator == "DoesNotExist":
        return not name
    if requested.operator == "In":
        return bool(name) and name in requested.values
    return not name or name not in requested.values


def _is_best_effort(pod: Pod) -> bool:
    """Return whether the QoS class is BestEffort (``ComputePodQOS``); pod-level CPU and memory take precedence."""
    whole = pod.spec.resources
    parts = (
        [whole] if whole is not None else [each.resources for each in (*pod.spec.containers, *pod.spec.init_containers)]
    )
    amounts = (listed for part in parts for listed in (part.requests, part.limits))
    return not any(listed[key].nano > 0 for listed in amounts for key in _POD_LEVEL if key in listed)


def _reaches_other_namespaces(pod: Pod) -> bool:
    terms = pod.spec.affinity.pod_terms if pod.spec.affinity is not None else ()
    return any(term.namespaces or term.namespace_selector is not None for term in terms)


def _is_extended(name: str) -> bool:
    """Return whether a quota can count the resource as ``requests.NAME``: it is not one of Kubernetes' own."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith(_REQUESTS)


def _listed(amounts: Mapping[str, Quantity], names: Iterable[str]) -> str:
    return ",".join(
        f"{name}={format_nano(amounts[name].nano, binary=amounts[name].text.endswith('i'))}" for name in sorted(names)
    )
