"""Apply the defaults of the API types to a pod, as far as scheduling needs them: ``defaults``, and computed values.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/core/v1/defaults.go`` and ``zz_generated.defaults.go``
(``SetObjectDefaults_Pod``), in their order: pod-level fields first, then rounding.
"""

from __future__ import annotations

import msgspec

from kpreempt.admission.defaults import POD_SPEC, container_defaults
from kpreempt.admission.pod_resources import round_up_to_milli, total_limits, total_requests
from kpreempt.admission.records import DEFAULT_RULES, REASON_API_DEFAULT, Admission, ApiServerRules
from kpreempt.model.meta import replace_in
from kpreempt.model.pod import Container, Pod, ResourceList, ResourceRequirements
from kpreempt.verdict import DefaultedField

_HUGE_PAGES_PREFIX = "hugepages-"


class ApiDefaults:
    """The defaults of the API types, for many pods.

    Containers shared by several pods, as in a snapshot, are processed once and stay shared.
    """

    def __init__(self, rules: ApiServerRules = DEFAULT_RULES) -> None:
        self._completes_resources = rules.pod_level_resources and not rules.pod_level_resources_fix_defaulting
        # Each list is stored with its result, so that no other list can reuse its identity.
        self._completed: dict[tuple[int, bool], tuple[list[Container], list[Container]]] = {}

    def applied_to(self, pod: Pod, *, has_fields: bool = False) -> Pod:
        """Apply ``apply_api_defaults``; pass ``has_fields`` if ``POD_SPEC`` has no missing fields in this pod."""
        spec = pod.spec if has_fields else POD_SPEC.filled(pod.spec)
        changes: dict[str, object] = {}
        for name, containers in (("containers", spec.containers), ("init_containers", spec.init_containers)):
            key = id(containers), spec.host_network
            if key not in self._completed:
                filled = container_defaults(is_pod=True, on_host_network=spec.host_network)(None, containers)
                finished = [msgspec.structs.replace(each, resources=_rounded(each.resources)) for each in filled]
                self._completed[key] = containers, containers if finished == containers else finished
            if self._completed[key][1] is not containers:
                changes[name] = self._completed[key][1]
        if spec.resources is not None:
            resources = spec.resources
            if self._completes_resources:
                resources = _pod_level_resources(_with_all_requests(pod), resources)
            resources = _rounded(resources)
            if resources != spec.resources:
                changes["resources"] = resources
        overhead = round_up_to_milli(spec.overhead) if spec.overhead else spec.overhead
        if overhead is not spec.overhead:
            changes["overhead"] = overhead
        if changes:
            spec = msgspec.structs.replace(spec, **changes)
        return pod if spec is pod.spec else msgspec.structs.replace(pod, spec=spec)


def apply_api_defaults(pod: Pod, rules: ApiServerRules = DEFAULT_RULES) -> Pod:
    """Apply the defaults of the API types, without those of admission plugins.

    Limits fill in missing requests, pod-level requests follow from pod-level limits, container ports become host ports
    on the host network, and amounts are rounded up to thousandths. If nothing is missing, the same object is returned,
    so applying the defaults twice changes nothing.
    """
    return ApiDefaults(rules).applied_to(pod)


def admit_api_defaults(pod: Pod, rules: ApiServerRules = DEFAULT_RULES) -> Admission:
    """Apply the defaults as a step of admission; added requests and host ports are its changes."""
    defaulted = apply_api_defaults(pod, rules)
    changes: list[DefaultedField] = []
    for field, before, after in (
        ("containers", pod.spec.containers, defaulted.spec.containers),
        ("initContainers", pod.spec.init_containers, defaulted.spec.init_containers),
    ):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            path = f"spec.{field}[{index}]"
            changes += _added(f"{path}.resources.requests", old.resources.requests, new.resources.requests)
            for place, (before_port, port) in enumerate(zip(old.ports, new.ports, strict=True)):
                if before_port.host_port != port.host_port:
                    field_path = f"{path}.ports[{place}].hostPort"
                    changes.append(DefaultedField(field_path, str(port.host_port), REASON_API_DEFAULT))
    return Admission(defaulted, [*changes, *_added_to_pod(pod, defaulted)])


def admit_pod_level_resources(pod: Pod, rules: ApiServerRules) -> Admission:
    """Complete pod-level resources after admission (gate PodLevelResourcesFixDefaulting).

    Unlike before, requests are sufficient for that, and limits that all containers have become pod limits, too. Follows
    ``DefaultPodLevelResources`` in ``pkg/api/pod/util.go`` of v1.37.1.
    """
    resources = pod.spec.resources
    if resources is None or not (rules.pod_level_resources and rules.pod_level_resources_fix_defaulting):
        return Admission(pod)
    resources = _pod_level_resources(pod, resources, by_requests=True)
    # Set limits for requested resources that every container limits; never below the request.
    containers = [*pod.spec.containers, *pod.spec.init_containers]
    total, limits = total_limits(pod), dict(resources.limits)
    for name, request in resources.requests.items():
        if name not in limits and all(name in each.resources.limits for each in containers):
            limits[name] = max(total[name], request, key=lambda amount: amount.nano)
    resources = msgspec.structs.replace(resources, limits=limits)
    completed = replace_in(pod, "spec", resources=_rounded(resources))
    return Admission(completed, _added_to_pod(pod, completed))


def _added_to_pod(before: Pod, after: Pod) -> list[DefaultedField]:
    old, new = before.spec.resources, after.spec.resources
    if old is None or new is None:
        return []
    return [
        *_added("spec.resources.limits", old.limits, new.limits),
        *_added("spec.resources.requests", old.requests, new.requests),
    ]


def _added(path: str, before: ResourceList, after: ResourceList) -> list[DefaultedField]:
    return [
        DefaultedField(f"{path}.{name}", str(amount), REASON_API_DEFAULT)
        for name, amount in after.items()
        if before.get(name) != amount
    ]


def _with_all_requests(pod: Pod) -> Pod:
    """Set missing container requests to the limits, without rounding."""
    filled = container_defaults(is_pod=True)
    spec = pod.spec
    containers, init_containers = filled(spec, spec.containers), filled(spec, spec.init_containers)
    return replace_in(pod, "spec", containers=containers, init_containers=init_containers)


def _pod_level_resources(
    pod: Pod, resources: ResourceRequirements, *, by_requests: bool = False
) -> ResourceRequirements:
    """Complete pod-level resources from the containers and from the pod's limits.

    Without any limits no requests are added, unless ``by_requests``.
    """
    limits, requests = dict(resources.limits), dict(resources.requests)
    if limits or requests:
        for name, amount in total_limits(pod).items():
            if name.startswith(_HUGE_PAGES_PREFIX) and name not in requests:
                limits.setdefault(name, amount)
    if limits or (by_requests and requests):
        for name, amount in total_requests(pod).items():
            if name in ("cpu", "memory"):
                requests.setdefault(name, amount)
        for name, amount in limits.items():
            if name in ("cpu", "memory") or name.startswith(_HUGE_PAGES_PREFIX):
                requests.setdefault(name, amount)
    return msgspec.structs.replace(resources, limits=limits, requests=requests)


def _rounded(resources: ResourceRequirements) -> ResourceRequirements:
    return msgspec.structs.replace(
        resources, requests=round_up_to_milli(resources.requests), limits=round_up_to_milli(resources.limits)
    )
