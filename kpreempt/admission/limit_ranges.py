"""Container defaults of a namespace's LimitRanges, and the pods they reject.

Follows ``k8s.io/kubernetes`` v1.36.3 ``plugin/pkg/admission/limitranger`` and, for LimitRanges from manifests,
``SetDefaults_LimitRangeItem`` of ``pkg/apis/core/v1/defaults.go``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import msgspec

from kpreempt.admission.pod_resources import round_up_to_milli, total_limits, total_requests
from kpreempt.admission.records import Admission, rejected
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import replace_in
from kpreempt.model.pod import Container, Pod, ResourceList, ResourceRequirements
from kpreempt.model.quantity import MAX_INT64, Quantity
from kpreempt.model.storage import PersistentVolumeClaim
from kpreempt.model.workloads import LimitRange, LimitRangeItem
from kpreempt.verdict import Assumption, AssumptionKind, DefaultedField
from kpreempt.verdict.unread import unread_of

_POD_LEVEL_RESOURCES = ("cpu", "memory")
_ZERO = Quantity("0")


def admit_limit_ranges(pod: Pod, cluster: ClusterSnapshot) -> Admission:
    """Apply the defaults of the namespace's LimitRanges.

    The first LimitRange with a default for a resource wins. Upstream takes them in arbitrary order, so an assumption
    reports LimitRanges that differ, or that could not be read.
    """
    ranges, unread = _ranges_of(pod, cluster), unread_of(cluster, ["LimitRange"])
    if not ranges:
        return Admission(pod, assumptions=unread)
    changes: list[DefaultedField] = []
    given = ResourceRequirements(requests={}, limits={})
    for limit_range in ranges:
        pod = _with_defaults(pod, limit_range, given, changes)
    return Admission(pod, changes, [*unread, *_contradictions(pod, ranges, changes)])


def check_limit_ranges(pod: Pod, cluster: ClusterSnapshot) -> None:
    """Raise ``InputError`` if the limits of a LimitRange reject the pod, which has its defaults already."""
    ranges = _ranges_of(pod, cluster)
    if not ranges:
        return
    _check_default_limits(pod)
    # Many pods have the same resources, and are rejected for the same reason.
    by_amounts: dict[object, ResourceRequirements] = {}
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        both = (container.resources.requests, container.resources.limits)
        amounts = tuple(tuple((name, str(amount)) for name, amount in each.items()) for each in both)
        by_amounts[amounts] = container.resources
    resources = list(by_amounts.values())
    for limit_range in ranges:
        problem = next(_violations(pod, resources, limit_range), None)
        if problem is not None:
            raise rejected(pod, f"LimitRange {_name(limit_range)}: {problem}")


def _check_default_limits(pod: Pod) -> None:
    """Raise ``InputError`` if a container requests more than its limit, which may be a default."""
    for field, containers in (("containers", pod.spec.containers), ("initContainers", pod.spec.init_containers)):
        for index, container in enumerate(containers):
            limits = container.resources.limits
            for name, request in container.resources.requests.items():
                if name in limits and request.nano > limits[name].nano:
                    reason = (
                        f'spec.{field}[{index}].resources.requests: Invalid value: "{request}": must be less than or '
                        f"equal to {name} limit of {limits[name]}"
                    )
                    raise rejected(pod, reason)


def claim_out_of_bounds(claim: PersistentVolumeClaim, cluster: ClusterSnapshot) -> str:
    """Return why the LimitRanges of its namespace reject a claim; empty if they do not."""
    return storage_out_of_bounds(claim.metadata.namespace, claim.spec.resources.requests, cluster.limit_ranges)


def storage_out_of_bounds(namespace: str, requests: ResourceList, ranges: Sequence[LimitRange]) -> str:
    """Return why LimitRanges reject a claim with these ``requests`` in a namespace; empty if they do not."""
    for limit_range in ranges:
        if limit_range.metadata.namespace != namespace:
            continue
        for item in limit_range.spec.limits:
            if item.type == "PersistentVolumeClaim":
                # A claim has no limits: its request is compared with both bounds.
                for problem in _out_of_bounds(item, requests, {}, is_limited=False):
                    return f"LimitRange {_name(limit_range)}: {problem}"
    return ""


def _ranges_of(pod: Pod, cluster: ClusterSnapshot) -> list[LimitRange]:
    return [each for each in cluster.limit_ranges if each.metadata.namespace == pod.metadata.namespace]


def _name(limit_range: LimitRange) -> str:
    return f"{limit_range.metadata.namespace}/{limit_range.metadata.name}"


def _container_defaults(limit_range: LimitRange) -> ResourceRequirements:
    """Return default limits and requests of containers. If a LimitRange has several items, the last wins."""
    limits: ResourceList = {}
    requests: ResourceList = {}
    for item in limit_range.spec.limits:
        if item.type == "Container":
            item_limits = {**item.max, **item.default}
            limits.update(item_limits)
            requests.update({**item.min, **item_limits, **item.default_request})
    return ResourceRequirements(requests=round_up_to_milli(requests), limits=round_up_to_milli(limits))


def _with_defaults(
    pod: Pod, limit_range: LimitRange, given: ResourceRequirements, changes: list[DefaultedField]
) -> Pod:
    """Apply the defaults of a LimitRange that are not already ``given``."""
    whole = _container_defaults(limit_range)
    defaults = ResourceRequirements(
        requests={name: amount for name, amount in whole.requests.items() if name not in given.requests},
        limits={name: amount for name, amount in whole.limits.items() if name not in given.limits},
    )
    if not defaults.requests and not defaults.limits:
        return pod
    given.requests.update(defaults.requests)
    given.limits.update(defaults.limits)
    reason = f"LimitRange {_name(limit_range)}"

    def filled(container: Container, path: str) -> Container:
        have = container.resources
        changes.extend(_missing(f"{path}.resources.limits", have.limits, defaults.limits, reason))
        changes.extend(_missing(f"{path}.resources.requests", have.requests, defaults.requests, reason))
        resources = msgspec.structs.replace(
            have, requests={**defaults.requests, **have.requests}, limits={**defaults.limits, **have.limits}
        )
        return msgspec.structs.replace(container, resources=resources)

    containers = [filled(each, f"spec.containers[{index}]") for index, each in enumerate(pod.spec.containers)]
    starting = [filled(each, f"spec.initContainers[{index}]") for index, each in enumerate(pod.spec.init_containers)]
    return replace_in(pod, "spec", containers=containers, init_containers=starting)


def _missing(path: str, have: ResourceList, defaults: ResourceList, reason: str) -> Iterator[DefaultedField]:
    for name, amount in defaults.items():
        if name not in have:
            yield DefaultedField(f"{path}.{name}", str(amount), reason)


def _contradictions(pod: Pod, ranges: list[LimitRange], changes: list[DefaultedField]) -> list[Assumption]:
    """Return an assumption for each resource whose default differs between LimitRanges."""
    taken = {change.path.partition(".resources.")[2] for change in changes}
    seen: dict[str, tuple[Quantity, LimitRange]] = {}
    assumptions = []
    for limit_range in ranges:
        defaults = _container_defaults(limit_range)
        for field, amounts in (("limits", defaults.limits), ("requests", defaults.requests)):
            for resource, amount in amounts.items():
                key = f"{field}.{resource}"
                first, winner = seen.setdefault(key, (amount, limit_range))
                if key in taken and first != amount:
                    message = (
                        f"LimitRange {_name(winner)} sets {resource} {first} and {_name(limit_range)} {amount}; "
                        "the API server applies either; assuming the first"
                    )
                    path = f"spec.containers[].resources.{key}"
                    assumptions.append(Assumption(f"Pod {pod.key}", path, message, AssumptionKind.UNCERTAIN))
    return assumptions


def _violations(pod: Pod, resources: Sequence[ResourceRequirements], limit_range: LimitRange) -> Iterator[str]:
    """Yield the LimitRange violations of a pod whose containers have these ``resources``."""
    for item in limit_range.spec.limits:
        if item.type == "Container":
            for each in resources:
                yield from _out_of_bounds(item, each.requests, each.limits)
        elif item.type == "Pod":
            requests, limits = total_requests(pod), total_limits(pod)
            if pod.spec.resources is not None:
                for name in _POD_LEVEL_RESOURCES:
                    if name in pod.spec.resources.requests:
                        requests[name] = pod.spec.resources.requests[name]
                    if name in pod.spec.resources.limits:
                        limits[name] = pod.spec.resources.limits[name]
            yield from _out_of_bounds(item, requests, limits)


def _out_of_bounds(
    item: LimitRangeItem, requests: ResourceList, limits: ResourceList, *, is_limited: bool = True
) -> Iterator[str]:
    """Yield the API server's messages for amounts out of bounds; ``is_limited`` requires limits."""
    for name, least in item.min.items():
        request, limit = requests.get(name), limits.get(name)
        bound = f"minimum {name} usage per {item.type} is {least}"
        if request is None:
            yield f"{bound}.  No request is specified"
        elif _is_less(request, least):
            yield f"{bound}, but request is {request}"
        elif limit is not None and _is_less(limit, least):
            yield f"{bound}, but limit is {limit}"
    for name, most in item.max.items():
        request, limit = requests.get(name), limits.get(name)
        bound = f"maximum {name} usage per {item.type} is {most}"
        if limit is None and (is_limited or request is None):
            yield f"{bound}.  No {'limit' if is_limited else 'request'} is specified"
        elif limit is not None and _is_less(most, limit):
            yield f"{bound}, but limit is {limit}"
        elif request is not None and _is_less(most, request):
            yield f"{bound}, but request is {request}"
    for name, ratio in item.max_limit_request_ratio.items():
        requested_amount, most_used = requests.get(name, _ZERO), limits.get(name, _ZERO)
        bound = f"{name} max limit to request ratio per {item.type} is {ratio}"
        if requested_amount.nano == 0:
            yield f"{bound}, but no request is specified or request is 0"
        elif most_used.nano == 0:
            yield f"{bound}, but no limit is specified or limit is 0"
        elif Fraction(most_used.nano, requested_amount.nano) > Fraction(ratio.nano, 10**9):
            yield f"{bound}, but provided ratio is {most_used.nano / requested_amount.nano:f}"


def _is_less(left: Quantity, right: Quantity) -> bool:
    """Compare in thousandths as upstream does, or in whole units if those would overflow."""
    if max(left.value, right.value) <= MAX_INT64 // 1000:
        return left.milli_value < right.milli_value
    return left.value < right.value
