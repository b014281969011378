"""Validate Services.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/core/validation/validation.go`` (``ValidateServiceCreate``,
``ValidateServiceUpdate``). Before, ``service_updates`` completes and drops fields as the API server's registry does.
What depends on the network of the cluster is not checked: the ranges of addresses and of node ports, which of them are
used, and which families of addresses there are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from kpreempt.admission.validation.addresses import address_problem, endpoint_problem, family_of, range_problem
from kpreempt.admission.validation.metadata import check_labels, check_metadata, check_metadata_update
from kpreempt.admission.validation.problems import (
    Document,
    Problems,
    Server,
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)
from kpreempt.admission.validation.service_updates import (
    HEADLESS,
    SERVICE_SPEC,
    SINGLE_STACK,
    check_changes,
    completed_spec,
    is_external,
    needs_health_check,
    type_of,
    updated_spec,
)
from kpreempt.admission.validation.values import (
    dns_1035_label,
    dns_label,
    dns_subdomain,
    port_name,
    port_number,
    qualified_name,
)
from kpreempt.model.documents import Path, mapping_in

# The versions in which gates are on by default, and in which a rule ends.
_STRICT_ADDRESSES = 36
_RELAXED_NAMES = 36
_TRAFFIC_DISTRIBUTION = 31
_SAME_ZONE = 34
_KUBELET_PORT_ALLOWED = 33

_KUBELET_PORT = 10250
_LONGEST_AFFINITY = 86400
_MAX_ADDRESSES = 2
_RANGES_ANNOTATION = "service.beta.kubernetes.io/load-balancer-source-ranges"
_TOPOLOGY_ANNOTATIONS = "service.kubernetes.io/topology-mode", "service.kubernetes.io/topology-aware-hints"
_BALANCED = "LoadBalancer"
_PREFER_CLOSE = "PreferClose"

# Fields with fixed values.
_VALUES: Mapping[str, Collection[str]] = {
    "type": ("ClusterIP", "ExternalName", _BALANCED, "NodePort"),
    "sessionAffinity": ("ClientIP", "None"),
    "internalTrafficPolicy": ("Cluster", "Local"),
    "ipFamilyPolicy": ("PreferDualStack", "RequireDualStack", SINGLE_STACK),
}
_FAMILIES = ("IPv4", "IPv6")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_TRAFFIC_POLICIES = ("Cluster", "Local")
# An empty string counts as missing.
_WITH_DEFAULT = frozenset({"type", "sessionAffinity"})


def check_service(document: Document, old: Document | None, server: Server) -> Problems:
    """Validate a Service.

    A Service in the cluster without an address, as written by hand, has one; it is not known which.
    """
    spec, before = completed_spec(mapping_in(document, "spec")), None
    if old is None:
        name = dns_label if server.minor >= _RELAXED_NAMES else dns_1035_label
        yield from check_metadata(document, name=name)
    else:
        yield from check_metadata_update(document, old)
        spec, before = updated_spec(spec, mapping_in(old, "spec"))
        yield from check_changes(spec, before)
    yield from _annotations(document, old, spec, server)
    yield from _by_type(spec, server, SERVICE_SPEC)
    yield from _ports(spec, (*SERVICE_SPEC, "ports"))
    yield from check_labels(spec.get("selector") or {}, (*SERVICE_SPEC, "selector"))
    yield from _fixed_values(spec, server)
    yield from _affinity(spec, (*SERVICE_SPEC, "sessionAffinityConfig", "clientIP", "timeoutSeconds"))
    if type_of(spec) != "ExternalName":
        yield from _addresses(spec, _known(before, "clusterIPs"), server)
        yield from _single_stack(spec, is_new=old is None)
    yield from _external_addresses(spec, _known(before, "externalIPs"), server)
    yield from _source_ranges(spec, _known(before, "loadBalancerSourceRanges"), server)
    yield from _load_balancer(spec)
    yield from _external_traffic(spec)


def _known(before: Document | None, field: str) -> Sequence[str]:
    """The values of the Service in the cluster, which may stay although they are invalid."""
    return [] if before is None else before.get(field) or []


def _annotations(document: Document, old: Document | None, spec: Document, server: Server) -> Problems:
    annotations = mapping_in(document, "metadata", "annotations")
    path: Path = ("metadata", "annotations")
    mode, hints = _TOPOLOGY_ANNOTATIONS
    if mode in annotations and annotations.get(hints, annotations[mode]) != annotations[mode]:
        yield invalid((*path, mode), annotations[mode], f"must match annotations[{hints}] when both are specified")
    ranges = annotations.get(_RANGES_ANNOTATION)
    if ranges is None or spec.get("loadBalancerSourceRanges"):
        return
    path = (*path, _RANGES_ANNOTATION)
    if type_of(spec) != _BALANCED:
        yield forbidden(path, "may only be used when `type` is 'LoadBalancer'")
    if ranges.strip() and mapping_in(old or {}, "metadata", "annotations").get(_RANGES_ANNOTATION) != ranges:
        for each in ranges.split(","):
            if problem := range_problem(each.strip(), is_strict=server.minor >= _STRICT_ADDRESSES):
                yield invalid(path, each, problem)


def _by_type(spec: Document, server: Server, path: Path) -> Problems:
    kind, ports, is_headless = type_of(spec), spec.get("ports") or [], spec.get("clusterIPs") == [HEADLESS]
    if not ports and not is_headless and kind != "ExternalName":
        yield required((*path, "ports"))
    if is_headless and kind in (_BALANCED, "NodePort"):
        yield invalid((*path, "clusterIP"), HEADLESS, f"may not be set to 'None' for {kind} services")
    for index, port in enumerate(ports):
        at = (*path, "ports", index)
        if kind == _BALANCED and port.get("port") == _KUBELET_PORT and server.minor < _KUBELET_PORT_ALLOWED:
            detail = f"may not expose port {_KUBELET_PORT} externally since it is used by kubelet"
            yield invalid((*at, "port"), _KUBELET_PORT, detail)
        if kind == "ClusterIP" and port.get("nodePort"):
            yield forbidden((*at, "nodePort"), "may not be used when `type` is 'ClusterIP'")
    if kind == "ExternalName":
        yield from _external_name(spec, path)


def _external_name(spec: Document, path: Path) -> Problems:
    for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(field) or (field == "ipFamilyPolicy" and field in spec):
            at = "clusterIP" if field == "clusterIPs" and "clusterIP" in spec else field
            yield forbidden((*path, at), "may not be set for ExternalName services")
    name = (spec.get("externalName") or "").removesuffix(".")
    if not name:
        yield required((*path, "externalName"))
    elif problem := dns_subdomain(name):
        yield invalid((*path, "externalName"), name, problem)


def _ports(spec: Document, path: Path) -> Problems:
    ports = spec.get("ports") or []
    seen: dict[str, set[Any]] = {"name": set(), "nodePort": set(), "port": set()}
    for index, port in enumerate(ports):
        at = (*path, index)
        yield from _port(port, len(ports) > 1, at)
        protocol = port.get("protocol") or "TCP"
        for field, known in seen.items():
            value = port.get(field)
            key = value if field == "name" else (protocol, value)
            if (value or field == "port") and key in known:
                yield duplicate(at if field == "port" else (*at, field), value)
            known.add(key)


def _port(port: Document, is_named: bool, path: Path) -> Problems:
    name, number = port.get("name") or "", port.get("port", 0)
    if is_named and not name:
        yield required((*path, "name"))
    checks: list[tuple[str, Any, Callable[[Any], str]]] = [("port", number, port_number)]
    if name:
        checks.append(("name", name, dns_label))
    target = port.get("targetPort") or number
    checks.append(("targetPort", target, port_name if isinstance(target, str) else port_number))
    if "appProtocol" in port:
        checks.append(("appProtocol", port["appProtocol"], qualified_name))
    for field, value, check in checks:
        if problem := check(value):
            yield invalid((*path, field), value, problem)
    protocol = port.get("protocol") or "TCP"
    if protocol not in _PROTOCOLS:
        yield unsupported((*path, "protocol"), protocol, _PROTOCOLS)


def _fixed_values(spec: Document, server: Server) -> Problems:
    values = dict(_VALUES)
    if server.minor >= _TRAFFIC_DISTRIBUTION:
        zones = ("PreferSameNode", "PreferSameZone") if server.minor >= _SAME_ZONE else ()
        values["trafficDistribution"] = (_PREFER_CLOSE, *zones)
    if type_of(spec) == "ExternalName":
        # If set, it is rejected.
        del values["ipFamilyPolicy"]
    for field, known in values.items():
        value = spec.get(field)
        if value is not None and value not in known and (value or field not in _WITH_DEFAULT):
            yield unsupported((*SERVICE_SPEC, field), value, known)


def _affinity(spec: Document, path: Path) -> Problems:
    seconds = mapping_in(spec, "sessionAffinityConfig", "clientIP").get("timeoutSeconds", 1)
    if spec.get("sessionAffinity") == "ClientIP" and not 0 < seconds <= _LONGEST_AFFINITY:
        yield invalid(path, seconds, f"must be greater than 0 and less than {_LONGEST_AFFINITY}")


def _addresses(spec: Document, known: Sequence[str], server: Server) -> Problems:
    """Validate the addresses in the cluster and their families."""
    path = (*SERVICE_SPEC, "clusterIPs")
    families, addresses, single = spec.get("ipFamilies") or [], spec.get("clusterIPs") or [], spec.get("clusterIP")
    if single and addresses[:1] != [single]:
        yield invalid(path, addresses, "first value must match `clusterIP`")
    elif addresses and not single:
        yield invalid(path, addresses, "must be empty when `clusterIP` is not specified")
    for index, family in enumerate(families):
        at = (*SERVICE_SPEC, "ipFamilies", index)
        if family not in _FAMILIES:
            yield unsupported(at, family, _FAMILIES)
        if family in families[:index]:
            yield duplicate(at, family)
    problems = list(_address_forms(addresses, known, server, path))
    yield from problems
    if len(addresses) > _MAX_ADDRESSES:
        yield invalid(path, addresses, f"may only hold up to {_MAX_ADDRESSES} values")
    if problems or addresses == [HEADLESS]:
        return
    found = [family_of(each) for each in addresses]
    if len(set(found)) < len(found):
        yield invalid(path, addresses, "may specify no more than one IP for each IP family")
    for index, (family, expected) in enumerate(zip(found, families, strict=False)):
        # The address of a Service in the cluster may be unknown.
        if family and expected in _FAMILIES and family != expected:
            detail = f"expected an {expected} value as indicated by `ipFamilies[{index}]`"
            yield invalid((*path, index), addresses[index], detail)


def _single_stack(spec: Document, *, is_new: bool) -> Problems:
    """Validate that there is one family unless the policy allows two; it is known only of a new Service."""
    has_two_by_default = spec.get("clusterIP") == HEADLESS and not spec.get("selector")
    policy = spec.get("ipFamilyPolicy", SINGLE_STACK if is_new and not has_two_by_default else None)
    for field in ("clusterIPs", "ipFamilies"):
        if policy == SINGLE_STACK and len(spec.get(field) or []) == _MAX_ADDRESSES:
            detail = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {field} are specified"
            yield invalid((*SERVICE_SPEC, "ipFamilyPolicy"), policy, detail)


def _address_forms(addresses: Sequence[str], known: Sequence[str], server: Server, path: Path) -> Problems:
    for index, each in enumerate(addresses):
        if index == 0 and each == HEADLESS:
            if len(addresses) > 1:
                yield invalid(path, addresses, "'None' must be the first and only value")
        elif each not in known and (problem := address_problem(each, is_strict=server.minor >= _STRICT_ADDRESSES)):
            yield invalid((*path, index), each, problem)


def _external_addresses(spec: Document, known: Sequence[str], server: Server) -> Problems:
    for index, each in enumerate(spec.get("externalIPs") or []):
        problem = "" if each in known else address_problem(each, is_strict=server.minor >= _STRICT_ADDRESSES)
        if problem := problem or endpoint_problem(each):
            yield invalid((*SERVICE_SPEC, "externalIPs", index), each, problem)


def _source_ranges(spec: Document, known: Sequence[str], server: Server) -> Problems:
    ranges, path = spec.get("loadBalancerSourceRanges") or [], (*SERVICE_SPEC, "loadBalancerSourceRanges")
    if ranges and type_of(spec) != _BALANCED:
        yield forbidden(path, "may only be used when `type` is 'LoadBalancer'")
    accepted = {each.strip() for each in known}
    for index, each in enumerate(map(str.strip, ranges)):
        if each not in accepted and (problem := range_problem(each, is_strict=server.minor >= _STRICT_ADDRESSES)):
            yield invalid((*path, index), each, problem)


def _load_balancer(spec: Document) -> Problems:
    if type_of(spec) != _BALANCED:
        for field in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if field in spec:
                yield forbidden((*SERVICE_SPEC, field), "may only be used when `type` is 'LoadBalancer'")
    elif "loadBalancerClass" in spec and (problem := qualified_name(spec["loadBalancerClass"])):
        yield invalid((*SERVICE_SPEC, "loadBalancerClass"), spec["loadBalancerClass"], problem)


def _external_traffic(spec: Document) -> Problems:
    policy, path = spec.get("externalTrafficPolicy") or "", (*SERVICE_SPEC, "externalTrafficPolicy")
    if policy and not is_external(spec):
        yield invalid(path, policy, "may only be set for externally-accessible services")
    elif policy and policy not in _TRAFFIC_POLICIES:
        yield unsupported(path, policy, _TRAFFIC_POLICIES)
    port, path = spec.get("healthCheckNodePort") or 0, (*SERVICE_SPEC, "healthCheckNodePort")
    if port and not needs_health_check(spec):
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield invalid(path, port, detail)
    elif port and (problem := port_number(port)):
        yield invalid(path, port, problem)


VALIDATORS = {"Service": check_service}
