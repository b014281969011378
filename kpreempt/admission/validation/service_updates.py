"""Complete Services as the API server's registry does before it validates them, and validate what may change.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/registry/core/service`` (``strategy.go``, ``storage/storage.go``,
``storage/alloc.go``), and ``pkg/apis/core/validation/validation.go`` for changes of addresses. The functions expect
specs of Services.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from kpreempt.admission.validation.addresses import family_of
from kpreempt.admission.validation.metadata import IMMUTABLE
from kpreempt.admission.validation.problems import Document, Problem, Problems, forbidden, invalid
from kpreempt.model.documents import Path

HEADLESS = "None"
SINGLE_STACK = "SingleStack"
SERVICE_SPEC: Path = ("spec",)

_BALANCED = "LoadBalancer"
_ELSEWHERE = "ExternalName"
# Stands for the address of a Service in the cluster if it is not known.
_SOME_ADDRESS = "allocated"
_CHANGED = "may not change once set"
_POLICY: Path = ("spec", "ipFamilyPolicy")
# Fields that are dropped if the type changes to one without them, unless they change, too.
_OF_ADDRESSES = ("ipFamilies", "ipFamilyPolicy")
_OF_BALANCERS = ("allocateLoadBalancerNodePorts", "loadBalancerClass")


def type_of(spec: Document) -> str:
    """The type of a Service."""
    return spec.get("type") or "ClusterIP"


def is_external(spec: Document) -> bool:
    """Whether a Service can be reached from outside of the cluster."""
    kind = type_of(spec)
    return kind in (_BALANCED, "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def needs_health_check(spec: Document) -> bool:
    """Whether a Service has a port for the health checks of a load balancer."""
    return type_of(spec) == _BALANCED and spec.get("externalTrafficPolicy") == "Local"


def completed_spec(spec: Document) -> dict[str, Any]:
    """Return a new Service with all of its addresses."""
    single = spec.get("clusterIP")
    return {**spec, "clusterIPs": [single]} if single and not spec.get("clusterIPs") else dict(spec)


def updated_spec(spec: Document, old: Document) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what is validated of an update: the Service, and the one in the cluster with all of its addresses."""
    before = _in_cluster(old, spec)
    after = _with_allocated(dict(spec), before)
    if type_of(after) == _ELSEWHERE != type_of(before):
        _drop_addresses(after, before)
    if _has_node_ports(before) and not _has_node_ports(after):
        _drop_node_ports(after, before)
    if type_of(before) == _BALANCED != type_of(after):
        _drop_same(after, before, _OF_BALANCERS)
    if needs_health_check(before) and not needs_health_check(after):
        _drop_same(after, before, ("healthCheckNodePort",))
    if is_external(before) and not is_external(after):
        _drop_same(after, before, ("externalTrafficPolicy",))
    return after, before


def _in_cluster(old: Document, spec: Document) -> dict[str, Any]:
    before = completed_spec(old)
    if before.get("clusterIPs"):
        before["clusterIP"] = before["clusterIPs"][0]
    elif type_of(old) != _ELSEWHERE:
        given = completed_spec(spec).get("clusterIPs") or []
        addresses = given if given and given != [HEADLESS] else [_SOME_ADDRESS]
        before |= {"clusterIP": addresses[0], "clusterIPs": addresses}
    if type_of(old) != _ELSEWHERE and not before.get("ipFamilies"):
        before["ipFamilies"] = spec.get("ipFamilies") or []
    return before


def _with_allocated(after: dict[str, Any], before: Document) -> dict[str, Any]:
    """Add the addresses that the Service has, unless they change."""
    if _ELSEWHERE in (type_of(after), type_of(before)):
        return completed_spec(after)
    addresses = before["clusterIPs"]
    single = after.get("clusterIP") or before["clusterIP"]
    plural = after.get("clusterIPs") or addresses
    if single != before["clusterIP"] and plural == addresses:
        plural = [single]
    return {**after, "clusterIP": single, "clusterIPs": plural, **_stack(after, before, plural)}


def _stack(after: Document, before: Document, addresses: Sequence[str]) -> dict[str, Any]:
    """The policy and the families of an updated Service, and its addresses if it has fewer than before."""
    policy = after.get("ipFamilyPolicy", before.get("ipFamilyPolicy"))
    families = after.get("ipFamilies") or []
    if policy == SINGLE_STACK:
        if addresses == before["clusterIPs"]:
            addresses = addresses[:1]
        if families == before["ipFamilies"]:
            families = families[:1]
    # Those of an unknown address and of a headless Service are not known.
    inferred = filter(None, map(family_of, addresses[len(families) :]))
    known = {} if policy is None else {"ipFamilyPolicy": policy}
    return {**known, "clusterIPs": addresses, "ipFamilies": [*families, *inferred]}


def _drop_addresses(after: dict[str, Any], before: Document) -> None:
    if (after.get("clusterIP") or before["clusterIP"]) == before["clusterIP"]:
        after["clusterIP"] = before["clusterIP"]
        _drop_same(after, before, ("clusterIP", "clusterIPs"))
    _drop_same(after, before, _OF_ADDRESSES)


def _drop_same(after: dict[str, Any], before: Document, fields: Collection[str]) -> None:
    for field in fields:
        # What a Service written by hand lacks is the same as in the manifest.
        if before.get(field) in (None, "", after.get(field)):
            after.pop(field, None)


def _has_node_ports(spec: Document) -> bool:
    return type_of(spec) in (_BALANCED, "NodePort")


def _drop_node_ports(after: dict[str, Any], before: Document) -> None:
    known = {port.get("nodePort") for port in before.get("ports") or []}
    ports = after.get("ports") or []
    if {port.get("nodePort") for port in ports if port.get("nodePort")} <= known:
        after["ports"] = [{key: value for key, value in port.items() if key != "nodePort"} for port in ports]


def check_changes(after: Document, before: Document) -> Problems:
    """Validate what changes, given the result of ``updated_spec``."""
    if type_of(after) == type_of(before) == _BALANCED:
        classes = [each.get("loadBalancerClass") for each in (after, before)]
        if classes[0] != classes[1]:
            yield invalid((*SERVICE_SPEC, "loadBalancerClass"), classes[0], _CHANGED)
    if needs_health_check(after) and needs_health_check(before):
        ports = [each.get("healthCheckNodePort") or 0 for each in (after, before)]
        if all(ports) and ports[0] != ports[1]:
            yield forbidden((*SERVICE_SPEC, "healthCheckNodePort"), IMMUTABLE)
    if _ELSEWHERE in (type_of(after), type_of(before)):
        return
    is_headless, was_headless = (each["clusterIPs"] == [HEADLESS] for each in (after, before))
    if not (is_headless and was_headless):
        yield from _changed_addresses(after, before)
    if not is_headless and not was_headless:
        yield from _changed_families(after, before)


def _changed_addresses(after: Document, before: Document) -> Problems:
    addresses, old = after["clusterIPs"], before["clusterIPs"]
    # Only the first one may never change; a second one may come and go.
    fixed = len(old) if len(old) == len(addresses) else 1
    for index in range(fixed):
        if addresses[index : index + 1] != old[index : index + 1]:
            yield _changed_address(after, index)
    if len(addresses) == 1 < len(old) and after.get("ipFamilyPolicy") != SINGLE_STACK:
        yield invalid(_POLICY, after.get("ipFamilyPolicy"), "must be 'SingleStack' to release the secondary cluster IP")


def _changed_address(after: Document, index: int) -> Problem:
    # The manifest usually has only the first one.
    path: Path = ("clusterIPs", index) if index else ("clusterIP",)
    return invalid((*SERVICE_SPEC, *path), after["clusterIPs"], _CHANGED)


def _changed_families(after: Document, before: Document) -> Problems:
    families, old = after["ipFamilies"], before["ipFamilies"]
    if not old or not families:
        return
    fixed = len(old) if len(old) == len(families) else 1
    if families[:fixed] != old[:fixed]:
        yield invalid((*SERVICE_SPEC, "ipFamilies", 0), families, _CHANGED)
    if len(families) == 1 < len(old) and after.get("ipFamilyPolicy") != SINGLE_STACK:
        yield invalid(_POLICY, after.get("ipFamilyPolicy"), "must be 'SingleStack' to release the secondary IP family")
