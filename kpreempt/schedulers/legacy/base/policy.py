"""The Policy file, with which the old schedulers were told their predicates, priorities and extenders.

The fields are those of ``api/v1/types.go`` (v1.13.12) and the same in 1.8 and 1.18; what is refused is what each
version's ``factory/plugins.go``, ``api/validation`` and ``legacy_registry.go`` refuse. Of priorities nothing is used
but their names and weights: scores are not computed for the old schedulers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from kpreempt.errors import ConfigurationError
from kpreempt.schedulers.legacy.base.policy_dialect import Dialect
from kpreempt.schedulers.legacy.base.policy_extenders import (
    ExtenderConfig,
    ReadExtenders,
    extender_problems,
    read_extenders,
    with_usual_names,
)
from kpreempt.verdict import Assumption

KIND = "Policy"
_API_VERSIONS = ("", "v1", "kubescheduler.config.k8s.io/v1")
_FIELDS = frozenset(
    (
        "apiVersion",
        "kind",
        "predicates",
        "priorities",
        "extenders",
        "hardPodAffinitySymmetricWeight",
        "alwaysCheckAllPredicates",
    )
)
# MaxWeight: the greatest Go integer, divided by the greatest score.
_WEIGHT_LIMIT = (2**63 - 1) // 10
_VALID_NAME = re.compile(r"[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])")


class Labels(msgspec.Struct, frozen=True):
    """The argument of CheckServiceAffinity."""

    labels: list[str] | None = None


class LabelsPresence(msgspec.Struct, frozen=True):
    """The argument of CheckNodeLabelPresence: labels that a node is to have, or without ``presence`` not to have."""

    labels: list[str] | None = None
    presence: bool = False


class PredicateArgument(msgspec.Struct, frozen=True, rename="camel"):
    """What a predicate of one's own is made of; just one of the two is to be there."""

    service_affinity: Labels | None = None
    labels_presence: LabelsPresence | None = None


class Predicate(msgspec.Struct, frozen=True):
    """A predicate by its name."""

    name: str = ""
    argument: PredicateArgument | None = None


class Priority(msgspec.Struct, frozen=True):
    """A priority function by its name."""

    name: str = ""
    weight: int = 0
    argument: dict[str, Any] | None = None


class Policy(msgspec.Struct, frozen=True, rename="camel"):
    """A Policy file; ``None`` where a list is left out."""

    predicates: list[Predicate] | None = None
    priorities: list[Priority] | None = None
    extenders: list[ExtenderConfig] | None = None
    hard_pod_affinity_symmetric_weight: int = 0
    always_check_all_predicates: bool = False


class ReadPolicy(NamedTuple):
    """A Policy file that the version takes, with its extenders, and what of it is not modelled."""

    policy: Policy
    extenders: ReadExtenders
    assumptions: list[Assumption]


def read_policy(document: Mapping[str, Any], dialect: Dialect, *, calls_extenders: bool = False) -> ReadPolicy:
    """A Policy file from plain data. Where extenders are not called, each is an assumption.

    Raises ``ConfigurationError`` for what is none, and with the scheduler's own words for one that it refuses.
    """
    kind, version = document.get("kind") or KIND, document.get("apiVersion") or ""
    if kind != KIND or version not in _API_VERSIONS:
        raise ConfigurationError(
            f'invalid policy: no kind "{kind}" is registered for version "{version}"',
            hint="kind: Policy, apiVersion: v1",
        )
    unknown = [field for field in document if field not in _FIELDS]
    if unknown and dialect.names_fields:
        raise ConfigurationError(f'invalid policy: strict decoder error: unknown field "{unknown[0]}"')
    try:
        fields = {key: value for key, value in document.items() if value is not None}
        if isinstance(fields.get("extenders"), list):
            fields["extenders"] = [with_usual_names(each, dialect) for each in fields["extenders"]]
        policy = msgspec.convert(fields, Policy)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"invalid policy: {error}") from None
    problems = list(_problems(policy, dialect))
    if problems:
        raise ConfigurationError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    for predicate in policy.predicates or ():
        _check_predicate(predicate)
    for priority in policy.priorities or ():
        _check_priority(priority, dialect)
    ignored = [
        Assumption(KIND, field, f"{dialect.algorithm} has no such field, and passes over it") for field in unknown
    ]
    extenders = read_extenders(policy.extenders or [], dialect, KIND, are_called=calls_extenders)
    return ReadPolicy(policy, extenders, [*ignored, *_assumptions(policy, dialect), *extenders.assumptions])


def check_name(name: str) -> None:
    """Raise ``ConfigurationError`` for a name that no predicate of one's own can have (1.8, 1.13)."""
    if not _VALID_NAME.fullmatch(name):
        pattern = f"^{_VALID_NAME.pattern}$"
        raise ConfigurationError(f'Algorithm name {name} does not match the name validation regexp "{pattern}".')


def type_not_found(what: str, name: str) -> ConfigurationError:
    """The end of a scheduler that does not know a name, which stands there as it is written in that version."""
    return ConfigurationError(f"Invalid configuration: {what} type not found for {name}")


def _problems(policy: Policy, dialect: Dialect) -> Iterator[str]:
    """What ``ValidatePolicy`` finds, and the check of the weight."""
    for priority in policy.priorities or ():
        if not 0 < priority.weight < _WEIGHT_LIMIT:
            yield f"Priority {priority.name} should have a positive weight applied to it or it has overflown"
    yield from extender_problems(policy.extenders or [], dialect)
    named = dialect.names_fields
    weight = policy.hard_pod_affinity_symmetric_weight
    if weight and not 1 <= weight <= 100:
        field = f"hardPodAffinitySymmetricWeight: Invalid value: {weight}: not in valid range [0-100]"
        yield field if named else f"invalid hardPodAffinitySymmetricWeight: {weight}, must be in the range 1-100"


def _check_predicate(predicate: Predicate) -> None:
    argument = predicate.argument
    if argument is None:
        return
    count = sum(each is not None for each in (argument.service_affinity, argument.labels_presence))
    if count != 1:
        raise ConfigurationError(
            f"Exactly 1 predicate argument is required, numArgs: {count}, Predicate: {predicate.name}"
        )


def _check_priority(priority: Priority, dialect: Dialect) -> None:
    argument = priority.argument
    if argument is None:
        if priority.name not in dialect.priorities:
            raise type_not_found("Priority", dialect.quotes(priority.name))
        return
    count = sum(argument.get(name) is not None for name in dialect.priority_arguments)
    if count != 1:
        raise ConfigurationError(
            f"Exactly 1 priority argument is required, numArgs: {count}, Priority: {priority.name}"
        )


def _assumptions(policy: Policy, dialect: Dialect) -> Iterator[Assumption]:
    algorithm = dialect.algorithm
    if policy.priorities:
        problem = f"known to {algorithm}, but scores are not computed for it; they choose among nodes that fit"
        yield Assumption(KIND, "priorities", problem)
