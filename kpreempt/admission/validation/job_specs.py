"""Validate the specs of Jobs, also in CronJobs.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/batch/validation/validation.go`` (``validateJobSpec``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from kpreempt.admission.validation.pod_parts import elements
from kpreempt.admission.validation.pods import check_template
from kpreempt.admission.validation.problems import (
    Document,
    Problems,
    Server,
    duplicate,
    invalid,
    required,
    too_long,
    too_many,
    unsupported,
)
from kpreempt.admission.validation.values import dns_subdomain, qualified_name
from kpreempt.admission.validation.workloads import check_non_negative
from kpreempt.model.documents import Path, mapping_in

INDEXED = "Indexed"
_NON_INDEXED = "NonIndexed"
_NEVER, _ON_FAILURE = "Never", "OnFailure"
_FAIL_INDEX = "FailIndex"
_ACTIONS = ("Count", _FAIL_INDEX, "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_FAILED = "Failed"
_REPLACEMENT = (_FAILED, "TerminatingOrFailed")
_NON_NEGATIVE = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_MAX_INDEXES = 100_000
_MANY_COMPLETIONS = 100_000
# Limits of Jobs with more completions than that and a backoff limit for each index.
_MAX_OF_MANY = 10_000
_MAX_RULES = 20
_MAX_PATTERNS = 20
_MAX_EXIT_CODES = 255
_MAX_MANAGER = 63
_MAX_INDEXES_TEXT = 64 * 1024
_URL_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_INDEX = re.compile(r"[+-]?[0-9]+")


def check_job_spec(spec: Document, server: Server, path: Path, *, old: Document | None = None) -> Problems:
    """Validate the spec of a Job or a CronJob's Job, except its selector; ``old`` is the spec before an update."""
    yield from check_non_negative(spec, _NON_NEGATIVE, path)
    if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
        yield required((*path, "backoffLimitPerIndex"), "when maxFailedIndexes is specified")
    if "managedBy" in spec:
        yield from _manager(spec["managedBy"], (*path, "managedBy"))
    mode = spec.get("completionMode", _NON_INDEXED)
    if mode == INDEXED:
        yield from _indexed(spec, path)
    elif mode == _NON_INDEXED:
        for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if field in spec:
                yield invalid((*path, field), spec[field], "requires indexed completion mode")
    else:
        yield unsupported((*path, "completionMode"), mode, (INDEXED, _NON_INDEXED))
    if "podFailurePolicy" in spec:
        yield from _failure_policy(spec, (*path, "podFailurePolicy"))
    if "successPolicy" in spec:
        yield from _success_policy(spec, (*path, "successPolicy"))
    yield from _replacement_policy(spec, (*path, "podReplacementPolicy"))
    template = None if old is None else mapping_in(old, "template")
    yield from check_template(mapping_in(spec, "template"), server, (*path, "template"), old=template)
    yield from _restart_policy(spec, (*path, "template", "spec", "restartPolicy"))


def _manager(name: str, path: Path) -> Problems:
    if not name:
        yield required(path)
        return
    host, _, rest = name.partition("/")
    if not host or not rest:
        yield invalid(path, name, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        if problem := dns_subdomain(host):
            yield invalid(path, host, problem)
        if not _URL_PATH.fullmatch(rest):
            yield invalid(path, rest, f"Invalid path (regex used for validation is '{_URL_PATH.pattern}')")
    if len(name.encode()) > _MAX_MANAGER:
        yield too_long(path, _MAX_MANAGER)


def _indexed(spec: Document, path: Path) -> Problems:
    completions, parallelism = spec.get("completions"), spec.get("parallelism", 0)
    failed, at = spec.get("maxFailedIndexes"), (*path, "maxFailedIndexes")
    if completions is None:
        yield required((*path, "completions"), f"when completion mode is {INDEXED}")
    if parallelism > _MAX_INDEXES:
        detail = f"must be less than or equal to {_MAX_INDEXES} when completion mode is {INDEXED}"
        yield invalid((*path, "parallelism"), parallelism, detail)
    if failed is not None:
        if completions is not None and failed > completions:
            yield invalid(at, failed, "must be less than or equal to completions")
        if failed > _MAX_INDEXES:
            yield invalid(at, failed, f"must be less than or equal to {_MAX_INDEXES}")
    if (completions or 0) > _MANY_COMPLETIONS and "backoffLimitPerIndex" in spec:
        yield from _many_completions(failed, parallelism, path)


def _many_completions(failed: int | None, parallelism: int, path: Path) -> Problems:
    if failed is None:
        detail = f"must be specified when completions is above {_MANY_COMPLETIONS}"
        yield required((*path, "maxFailedIndexes"), detail)
    detail = (
        f"must be less than or equal to {_MAX_OF_MANY} when completions are above {_MANY_COMPLETIONS} and used with "
        "backoff limit per index"
    )
    for field, value in (("parallelism", parallelism), ("maxFailedIndexes", failed or 0)):
        if value > _MAX_OF_MANY:
            yield invalid((*path, field), value, detail)


def _one_of(value: str, known: Sequence[str], path: Path) -> Problems:
    if not value:
        names = " ".join(f'"{each}"' for each in known)
        yield required(path, f"valid values: [{names}]")
    elif value not in known:
        yield unsupported(path, value, known)


def _failure_policy(spec: Document, path: Path) -> Problems:
    template = mapping_in(spec, "template", "spec")
    names = {
        each.get("name", "") for field in ("containers", "initContainers") for each, _ in elements(template, field, ())
    }
    policy = spec["podFailurePolicy"]
    rules = policy.get("rules") or ()
    if len(rules) > _MAX_RULES:
        yield too_many((*path, "rules"), len(rules), _MAX_RULES)
    for rule, at in elements(policy, "rules", path):
        action = rule.get("action", "")
        if action == _FAIL_INDEX and "backoffLimitPerIndex" not in spec:
            yield invalid((*at, "action"), action, "requires the backoffLimitPerIndex to be set")
        yield from _one_of(action, _ACTIONS, (*at, "action"))
        yield from _failure_rule(rule, names, at)


def _failure_rule(rule: Document, names: set[str], path: Path) -> Problems:
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or ()
    if codes is not None:
        yield from _exit_codes(codes, names, (*path, "onExitCodes"))
    at = (*path, "onPodConditions")
    if len(conditions) > _MAX_PATTERNS:
        yield too_many(at, len(conditions), _MAX_PATTERNS)
    for index, pattern in enumerate(conditions):
        kind = pattern.get("type", "")
        if problem := qualified_name(kind):
            yield invalid((*at, index, "type"), kind, problem)
        yield from _one_of(pattern.get("status", "True"), _STATUSES, (*at, index, "status"))
    if codes is not None and conditions:
        yield invalid(path, rule, "specifying both OnExitCodes and OnPodConditions is not supported")
    elif codes is None and not conditions:
        yield invalid(path, rule, "specifying one of OnExitCodes and OnPodConditions is required")


def _exit_codes(codes: Document, names: set[str], path: Path) -> Problems:
    operator, container = codes.get("operator", ""), codes.get("containerName")
    yield from _one_of(operator, _OPERATORS, (*path, "operator"))
    if container is not None and container not in names:
        detail = "must be one of the container or initContainer names in the pod template"
        yield invalid((*path, "containerName"), container, detail)
    values, at = list(codes.get("values") or ()), (*path, "values")
    if not values:
        yield invalid(at, values, "at least one value is required")
    elif len(values) > _MAX_EXIT_CODES:
        yield too_many(at, len(values), _MAX_EXIT_CODES)
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            yield invalid((*at, index), value, "must not be 0 for the In operator")
        if value in values[:index]:
            yield duplicate((*at, index), value)
    if values != sorted(values):
        yield invalid(at, values, "must be ordered")


def _success_policy(spec: Document, path: Path) -> Problems:
    policy = spec["successPolicy"]
    if spec.get("completionMode") != INDEXED:
        yield invalid(path, policy, "requires indexed completion mode")
        return
    rules = policy.get("rules") or ()
    if not rules:
        yield required((*path, "rules"), "at least one rules must be specified when the successPolicy is specified")
    elif len(rules) > _MAX_RULES:
        yield too_many((*path, "rules"), len(rules), _MAX_RULES)
    # A Job without completions is invalid anyway.
    if "completions" in spec:
        for rule, at in elements(policy, "rules", path):
            yield from _success_rule(rule, spec["completions"], at)


def _success_rule(rule: Document, completions: int, path: Path) -> Problems:
    indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    if indexes is None and count is None:
        yield required(path, "at least one of succeededCount or succeededIndexes must be specified")
    total = 0
    if indexes is not None:
        at = (*path, "succeededIndexes")
        if len(indexes.encode()) > _MAX_INDEXES_TEXT:
            yield too_long(at, _MAX_INDEXES_TEXT)
        try:
            total = _count_indexes(indexes, completions)
        except ValueError as error:
            yield invalid(at, indexes, f"error parsing succeededIndexes: {error}")
    if count is not None:
        yield from check_non_negative(rule, ("succeededCount",), path)
        limits = [(completions, "specified completions")]
        if indexes is not None:
            limits.append((total, "indexes in the specified succeededIndexes field"))
        for limit, name in limits:
            if count > limit:
                detail = f"must be less than or equal to {limit} (the number of {name})"
                yield invalid((*path, "succeededCount"), count, detail)


def _count_indexes(text: str, completions: int) -> int:
    """Count the indexes of ``0,2-5``. Raises ``ValueError`` if they are not increasing or not below completions."""
    total, last = 0, None
    for interval in text.split(",") if text else ():
        limits = interval.split("-")
        if len(limits) > 2:
            detail = "violates the requirement that an index interval can have at most two parts separated by '-'"
            raise ValueError(f'the fragment "{interval}" {detail}')
        numbers = [_index(each, completions) for each in limits]
        first, end = numbers[0], numbers[-1]
        if len(numbers) > 1 and first >= end:
            raise ValueError(f"non-increasing order, previous: {first}, current: {end}")
        if last is not None and last >= first:
            raise ValueError(f"non-increasing order, previous: {last}, current: {first}")
        total, last = total + end - first + 1, end
    return total


def _index(text: str, completions: int) -> int:
    if not _INDEX.fullmatch(text):
        raise ValueError(f'cannot convert string to integer for index: "{text}"')
    if int(text) >= completions:
        raise ValueError(f'too large index: "{text}"')
    return int(text)


def _replacement_policy(spec: Document, path: Path) -> Problems:
    policy = spec.get("podReplacementPolicy")
    known = (_FAILED,) if "podFailurePolicy" in spec else _REPLACEMENT
    if policy is not None and policy not in known:
        yield unsupported(path, policy, known)


def _restart_policy(spec: Document, path: Path) -> Problems:
    policy: Any = mapping_in(spec, "template", "spec").get("restartPolicy")
    if policy in (None, "", "Always"):
        yield required(path, f'valid values: "{_ON_FAILURE}", "{_NEVER}"')
    elif policy not in (_ON_FAILURE, _NEVER):
        yield unsupported(path, policy, (_NEVER, _ON_FAILURE))
    elif "podFailurePolicy" in spec and policy != _NEVER:
        yield invalid(path, policy, f'only "{_NEVER}" is supported when podFailurePolicy is specified')
