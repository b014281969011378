"""The Policy file, with which the old schedulers were told their predicates, priorities and extenders.

The fields are those of ``api/v1/types.go`` (v1.13.12) and the same in 1.8 and 1.18; what is refused is what each
version's ``factory/plugins.go``, ``api/validation`` and ``legacy_registry.go`` refuse. Of priorities nothing is used
but their names and weights: scores are not computed for the old schedulers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from kpreempt.errors import ConfigurationError
from kpreempt.schedulers.legacy.base.configuration import (
    Dialect,
    ExtenderConfig,
    ReadExtenders,
    extender_problems,
    raise_for,
    read_extenders,
    with_usual_names,
)
from kpreempt.schedulers.legacy.base.node_info import NodeInfo
from kpreempt.schedulers.legacy.base.predicates import PASSES, Filter, State, refusal
from kpreempt.verdict import Assumption, Status

KIND = "Policy"
SERVICE_AFFINITY = "CheckServiceAffinity"
# A second name, taken from before 1.0.
OLD_PORTS, PORTS = "PodFitsPorts", "PodFitsHostPorts"
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
    raise_for(_problems(policy, dialect))
    for predicate in policy.predicates or ():
        if predicate.argument is not None:
            made_of = (predicate.argument.service_affinity, predicate.argument.labels_presence)
            _check_arguments("predicate", predicate.name, sum(each is not None for each in made_of))
    for priority in policy.priorities or ():
        if priority.argument is not None:
            count = sum(priority.argument.get(name) is not None for name in dialect.priority_arguments)
            _check_arguments("priority", priority.name, count)
        elif priority.name not in dialect.priorities:
            raise type_not_found("Priority", dialect.quotes(priority.name))
    algorithm = dialect.algorithm
    assumptions = [Assumption(KIND, field, f"{algorithm} has no such field, and passes over it") for field in unknown]
    if policy.priorities:
        problem = f"known to {algorithm}, but scores are not computed for it; they choose among nodes that fit"
        assumptions.append(Assumption(KIND, "priorities", problem))
    extenders = read_extenders(policy.extenders or [], dialect, KIND, are_called=calls_extenders)
    return ReadPolicy(policy, extenders, [*assumptions, *extenders.assumptions])


def _check_arguments(what: str, name: str, count: int) -> None:
    if count != 1:
        raise ConfigurationError(
            f"Exactly 1 {what} argument is required, numArgs: {count}, {what.capitalize()}: {name}"
        )


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


def named_filters(
    stated: Iterable[Predicate], registered: Sequence[Filter], mandatory: Iterable[str], label_reason: str
) -> dict[str, Filter]:
    """The predicates that a Policy names, and the mandatory ones, by name.

    One with an argument takes the place of a registered one of its name. ``label_reason`` is what a node says that
    fails CheckNodeLabelPresence. Raises ``ConfigurationError`` where the scheduler ends.
    """
    known = {each.name: each for each in registered}
    known[OLD_PORTS] = Filter(OLD_PORTS, known[PORTS].check)
    names = []
    for predicate in stated:
        if predicate.argument is not None:
            check_name(predicate.name)
            presence = predicate.argument.labels_presence
            if presence is None:
                raise no_service_affinity(predicate.name)
            known[predicate.name] = _label_presence(predicate.name, presence, label_reason)
        elif predicate.name not in known:
            raise type_not_found("Predicate", predicate.name)
        names.append(predicate.name)
    return {name: known[name] for name in dict.fromkeys([*names, *mandatory])}


def no_service_affinity(name: str) -> ConfigurationError:
    """What is said of a predicate with ``serviceAffinity``."""
    return ConfigurationError(
        f"predicate {name}: serviceAffinity is not modelled, and without it the answer would be another",
        hint="leave the predicate out to see what the others decide",
    )


def _label_presence(name: str, presence: LabelsPresence, reason: str) -> Filter:
    labels = presence.labels or []

    def check(_: State, node_info: NodeInfo) -> Status:
        """All labels are there, or none is."""
        return PASSES if all((key in node_info.labels) is presence.presence for key in labels) else refusal(reason)

    return Filter(name, check)
