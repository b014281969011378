"""Validate where pods may run, and how they find names: all of a pod's spec but its volumes and containers.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/core/validation/validation.go`` (``ValidatePodSpec``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kpreempt.admission.validation.addresses import address_problem
from kpreempt.admission.validation.affinity import check_affinity, check_spread_constraints
from kpreempt.admission.validation.metadata import check_label_key, check_labels
from kpreempt.admission.validation.pod_parts import elements
from kpreempt.admission.validation.problems import (
    Document,
    Problems,
    Server,
    duplicate,
    invalid,
    required,
    unsupported,
)
from kpreempt.admission.validation.values import (
    MAX_SUBDOMAIN,
    dns_label,
    dns_subdomain,
    label_value,
    qualified_name,
)
from kpreempt.model.documents import Path

_EFFECTS = frozenset({"NoSchedule", "PreferNoSchedule", "NoExecute"})
_OPERATORS = frozenset({"Equal", "Exists"})
# Known since 1.35, but disabled by default.
_COMPARING = frozenset({"Gt", "Lt"})
_CLAIM_SOURCES = ("resourceClaimName", "resourceClaimTemplateName")
_NO_DNS = "None"
_DNS_POLICIES = frozenset({"ClusterFirstWithHostNet", "ClusterFirst", "Default", _NO_DNS})
_MAX_NAMESERVERS = 3
_MAX_SEARCHES = 32
_MAX_SEARCH_BYTES = 2048
_RELAXED_LABEL = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_RELAXED_SUBDOMAIN = re.compile(rf"{_RELAXED_LABEL}(\.{_RELAXED_LABEL})*")
# The first versions that allow underscores in search domains, and that parse IP addresses strictly.
_RELAXED_SEARCHES, _STRICT_ADDRESSES = 33, 36


def check_placement(spec: Document, server: Server, path: Path, labels: Mapping[str, str]) -> Problems:
    """Validate the scheduling and the names of a pod's spec at ``path``; ``labels`` are those of the pod or template.

    A new pod's labels are added to the selectors of its affinities and spread constraints; for the update of a pod,
    whose selectors already have them, give no labels.
    """
    added = labels if path == ("spec",) else {}
    yield from check_labels(spec.get("nodeSelector") or {}, (*path, "nodeSelector"))
    yield from check_affinity(spec.get("affinity") or {}, server, (*path, "affinity"), added)
    yield from _tolerations(spec, server, path)
    yield from check_spread_constraints(spec, server, path, added)
    yield from _scheduling_gates(spec, path)
    yield from _resource_claims(spec, path)
    yield from _dns(spec, server, path)
    yield from _host_aliases(spec, server, path)


def _tolerations(spec: Document, server: Server, path: Path) -> Problems:
    for toleration, at in elements(spec, "tolerations", path):
        key, operator = toleration.get("key"), toleration.get("operator", "")
        effect = toleration.get("effect", "")
        if key:
            yield from check_label_key(key, (*at, "key"))
        elif operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield invalid((*at, "operator"), operator, detail)
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            yield invalid((*at, "effect"), effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
        if effect and effect not in _EFFECTS:
            yield unsupported((*at, "effect"), effect, _EFFECTS)
        yield from _tolerated_value(operator, toleration.get("value", ""), server, at)


def _tolerated_value(operator: str, value: str, server: Server, path: Path) -> Problems:
    at = (*path, "value")
    if operator in ("Equal", ""):
        if problem := label_value(value):
            yield invalid(at, value, problem)
    elif operator == "Exists":
        if value:
            yield invalid(at, value, "value must be empty when `operator` is 'Exists'")
    else:
        known = _OPERATORS | _COMPARING if server.minor >= 35 and operator in _COMPARING else _OPERATORS
        yield unsupported((*path, "operator"), operator, known)


def _scheduling_gates(spec: Document, path: Path) -> Problems:
    names: set[str] = set()
    for gate, at in elements(spec, "schedulingGates", path):
        name = gate.get("name", "")
        if problem := qualified_name(name):
            yield invalid((*at, "name"), name, problem)
        if name in names:
            yield duplicate((*at, "name"), name)
        names.add(name)


def _resource_claims(spec: Document, path: Path) -> Problems:
    names: set[str] = set()
    for claim, at in elements(spec, "resourceClaims", path):
        name = claim.get("name")
        if not name:
            yield required((*at, "name"))
        elif name in names:
            yield duplicate((*at, "name"), name)
        elif problem := dns_label(name):
            yield invalid((*at, "name"), name, problem)
        else:
            names.add(name)
        given = [field for field in _CLAIM_SOURCES if claim.get(field) is not None]
        if len(given) > 1:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            yield invalid(at, claim, detail)
        if not given:
            yield invalid(at, claim, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
        for field in given:
            if problem := dns_subdomain(claim[field]):
                yield invalid((*at, field), claim[field], problem)


def _dns(spec: Document, server: Server, path: Path) -> Problems:
    policy, config, at = spec.get("dnsPolicy", ""), spec.get("dnsConfig"), (*path, "dnsConfig")
    if policy and policy not in _DNS_POLICIES:
        yield unsupported((*path, "dnsPolicy"), policy, _DNS_POLICIES)
    if policy == _NO_DNS and config is None:
        yield required(at, "must provide `dnsConfig` when `dnsPolicy` is None")
    if config is None:
        return
    servers = config.get("nameservers") or []
    if policy == _NO_DNS and not servers:
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield required((*at, "nameservers"), detail)
    if len(servers) > _MAX_NAMESERVERS:
        yield invalid((*at, "nameservers"), servers, f"must not have more than {_MAX_NAMESERVERS} nameservers")
    for index, address in enumerate(servers):
        yield from _address(address, server, (*at, "nameservers", index))
    yield from _searches(config.get("searches") or [], server, (*at, "searches"))
    for option, where in elements(config, "options", at):
        if not option.get("name"):
            yield required(where, "must not be empty")


def _address(address: str, server: Server, path: Path) -> Problems:
    if problem := address_problem(address, is_strict=server.minor >= _STRICT_ADDRESSES):
        yield invalid(path, address, problem)


def _searches(searches: list[str], server: Server, path: Path) -> Problems:
    if len(searches) > _MAX_SEARCHES:
        yield invalid(path, searches, f"must not have more than {_MAX_SEARCHES} search paths")
    if len(" ".join(searches).encode()) > _MAX_SEARCH_BYTES:
        detail = f"must not have more than {_MAX_SEARCH_BYTES} characters (including spaces) in the search list"
        yield invalid(path, searches, detail)
    for index, search in enumerate(searches):
        if problem := _search(search, is_relaxed=server.minor >= _RELAXED_SEARCHES):
            yield invalid((*path, index), search, problem)


def _search(search: str, *, is_relaxed: bool) -> str:
    """Check a search domain, which may end with a dot; relaxed ones may have underscores, or be only a dot."""
    name = search.removesuffix(".")
    is_relaxed_name = len(name) <= MAX_SUBDOMAIN and bool(_RELAXED_SUBDOMAIN.fullmatch(name))
    return "" if is_relaxed and (search == "." or is_relaxed_name) else dns_subdomain(name)


def _host_aliases(spec: Document, server: Server, path: Path) -> Problems:
    for alias, at in elements(spec, "hostAliases", path):
        yield from _address(alias.get("ip", ""), server, (*at, "ip"))
        for index, name in enumerate(alias.get("hostnames") or ()):
            if problem := dns_subdomain(name):
                yield invalid((*at, "hostnames", index), name, problem)
