"""The Policy file, with which the old schedulers were told their predicates, priorities and extenders.

The fields are those of ``api/v1/types.go`` (v1.13.12) and the same in 1.8 and 1.18; what is refused is what each
version's ``factory/plugins.go``, ``api/validation`` and ``legacy_registry.go`` refuse. Of priorities nothing is used
but their names and weights: scores are not computed for the old schedulers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from kpreempt.errors import ConfigurationError
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


class ManagedResource(msgspec.Struct, frozen=True, rename="camel"):
    """A resource that an extender looks after."""

    name: str = ""
    ignored_by_scheduler: bool = False


class ExtenderConfig(msgspec.Struct, frozen=True, rename="camel"):
    """An extender, and the calls that it answers."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    managed_resources: list[ManagedResource] | None = None


class Policy(msgspec.Struct, frozen=True, rename="camel"):
    """A Policy file; ``None`` where a list is left out."""

    predicates: list[Predicate] | None = None
    priorities: list[Priority] | None = None
    extenders: list[ExtenderConfig] | None = None
    hard_pod_affinity_symmetric_weight: int = 0
    always_check_all_predicates: bool = False


class Dialect(NamedTuple):
    """What a version knows of Policy files.

    ``priorities`` are the names of its priority functions, ``priority_arguments`` the arguments of those of one's own.
    ``quotes`` says how a name stands in its messages. ``extender_weight_always`` refuses an extender without a weight
    even where it scores nothing; ``has_preempt_verb`` says whether extenders are asked about victims. ``names_fields``
    says that it refuses fields that there are not, and names the field in what it says of the others (1.18).
    """

    algorithm: str
    priorities: frozenset[str]
    priority_arguments: tuple[str, ...]
    quotes: Callable[[str], str] = str
    extender_weight_always: bool = False
    has_preempt_verb: bool = True
    names_fields: bool = False


class ReadPolicy(NamedTuple):
    """A Policy file that the version takes, and what of it is not modelled."""

    policy: Policy
    assumptions: list[Assumption]


def read_policy(document: Mapping[str, Any], dialect: Dialect) -> ReadPolicy:
    """A Policy file from plain data.

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
        policy = msgspec.convert({key: value for key, value in document.items() if value is not None}, Policy)
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
    return ReadPolicy(policy, [*ignored, *_assumptions(policy, dialect)])


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
    extenders = policy.extenders or []
    named = dialect.names_fields
    for index, extender in enumerate(extenders):
        if extender.weight <= 0 and (extender.prioritize_verb or dialect.extender_weight_always):
            field = f"extenders[{index}].weight: Invalid value: {extender.weight}: must have a positive weight"
            words = f"Priority for extender {_address(extender)} should have a positive weight"
            yield f"{field if named else words} applied to it"
    binders = sum(bool(extender.bind_verb) for extender in extenders)
    if binders > 1:
        field = f'extenders: Invalid value: "found {binders} extenders implementing bind": only one extender can '
        yield f"{field}implement bind" if named else f"Only one extender can implement bind, found {binders}"
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
    for index, extender in enumerate(policy.extenders or ()):
        where = f"extenders[{index}]"
        yield Assumption(KIND, where, f"{_address(extender)} is not called: {_powers(extender, dialect)}")
        for resource in extender.managed_resources or ():
            if resource.ignored_by_scheduler:
                problem = f"{resource.name} is left to it by the scheduler, but looked at here like any resource"
                yield Assumption(KIND, f"{where}.managedResources", problem)


def _powers(extender: ExtenderConfig, dialect: Dialect) -> str:
    """What the extender's answers could change."""
    powers = []
    if extender.filter_verb:
        powers.append("it could refuse nodes")
        if not dialect.has_preempt_verb:
            powers.append("and the node that is chosen for preemption, so that the next best is taken")
    if extender.preempt_verb and dialect.has_preempt_verb:
        powers.append("it could strike nodes from the candidates and change their victims")
    if extender.prioritize_verb:
        powers.append("it could score nodes that fit")
    return ", ".join(powers) or "it has no part in who is evicted"


def _address(extender: ExtenderConfig) -> str:
    """Where the extender is, without a user's name and password."""
    try:
        parts = urlsplit(extender.url_prefix)
    except ValueError:
        return "an extender"
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl() or "an extender"
