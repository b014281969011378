"""The settings of an old scheduler: feature gates, some configuration fields, extenders, and a Policy file.

A Policy file sets predicates, priorities and extenders; since 1.18 a KubeSchedulerConfiguration sets extenders, too.
The fields are those of ``api/v1/types.go`` (v1.13.12; the same in 1.8 and 1.18), for extenders ``ExtenderConfig``
(v1.8.15 and v1.13.12) and ``Extender`` (``k8s.io/kube-scheduler`` v0.18.19 ``config/v1/types.go``), whose names are
case-insensitive since 1.13. Validation follows each version's ``factory/plugins.go``, ``api/validation`` and
``legacy_registry.go``. Of priorities only names and weights are used: scores are not computed for the old schedulers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from kpreempt.errors import ConfigurationError, UsageError
from kpreempt.model.pod import DEFAULT_SCHEDULER_NAME
from kpreempt.model.urls import without_secrets
from kpreempt.schedulers.extender_protocol import V1_13, ExtenderSettings, read_settings
from kpreempt.schedulers.extender_protocol import Dialect as Protocol
from kpreempt.schedulers.legacy.base.gate_names import ALL_GATES, GATES_BY_ALGORITHM
from kpreempt.schedulers.legacy.base.node_info import NodeInfo
from kpreempt.schedulers.legacy.base.predicates import PASSES, Filter, State, rejection
from kpreempt.verdict import Assumption, AssumptionKind, Status
from kpreempt.verdict.records import FEATURE_GATE, SETTING_UNMODELED

CONFIGURATION_KIND = "KubeSchedulerConfiguration"
CONFIGURATION_GROUP = "kubescheduler.config.k8s.io"
DISABLED = "preemption is disabled (disablePreemption)"
NO_POD_PRIORITY = "the feature gate PodPriority is off, so there is no preemption"
# The priority functions of all versions.
PRIORITIES = frozenset(
    (
        "BalancedResourceAllocation",
        "EqualPriority",
        "ImageLocalityPriority",
        "InterPodAffinityPriority",
        "LeastRequestedPriority",
        "MostRequestedPriority",
        "NodeAffinityPriority",
        "NodePreferAvoidPodsPriority",
        "SelectorSpreadPriority",
        "ServiceSpreadingPriority",
        "TaintTolerationPriority",
    )
)
_EXTENDERS = "extenders"
_READ_HERE = frozenset(("apiVersion", "kind"))


class Dialect(NamedTuple):
    """What a version supports: feature gates, configuration fields and Policy files.

    ``gates`` are the modeled gates with their defaults; ``assumed_gates`` has the assumption for a gate that is assumed
    to be on although it is off by default. ``api_versions`` are those of its configuration; ``states_extenders`` means
    that all except the first of them can set extenders. ``priorities`` are the names of its priority functions,
    ``priority_arguments`` the arguments of custom ones. ``quotes`` formats a name in its messages.
    ``extender_weight_always`` rejects an extender without a weight even if it does not score; ``has_preempt_verb``
    means that extenders support preemption. ``names_fields`` rejects unknown fields and names the field in other
    messages (1.18). ``folds_case`` makes extender fields case-insensitive; 1.8 does not, and has fewer of them.
    ``protocol`` is the extender protocol; ``ignorable_last`` calls ignorable extenders last.
    """

    algorithm: str
    gates: Mapping[str, bool]
    api_versions: tuple[str, ...]
    priorities: frozenset[str]
    priority_arguments: tuple[str, ...]
    assumed_gates: Mapping[str, str] = {}
    states_extenders: bool = False
    quotes: Callable[[str], str] = str
    extender_weight_always: bool = False
    has_preempt_verb: bool = True
    names_fields: bool = False
    folds_case: bool = True
    protocol: Protocol = V1_13
    ignorable_last: bool = False


class ManagedResource(msgspec.Struct, frozen=True, rename="camel"):
    """A resource managed by an extender."""

    name: str = ""
    ignored_by_scheduler: bool = False


class ExtenderConfig(msgspec.Struct, frozen=True, rename="camel"):
    """An extender, and the calls it supports. ``http_timeout`` is in nanoseconds."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    enable_https: bool = False
    tls_config: dict[str, Any] | None = None
    http_timeout: int = 0
    node_cache_capable: bool = False
    managed_resources: list[ManagedResource] | None = None
    ignorable: bool = False

    @property
    def address(self) -> str:
        """The address, without user name and password."""
        return without_secrets(self.url_prefix) or "an extender"

    def __repr__(self) -> str:
        return f"ExtenderConfig({self.address!r})"


# The fields of 1.8 as written there: names without a tag are Go's field names.
_NAMES_1_8 = {
    name: name
    for name in (
        "urlPrefix",
        "filterVerb",
        "prioritizeVerb",
        "weight",
        "enableHttps",
        "tlsConfig",
        "httpTimeout",
        "nodeCacheCapable",
    )
} | {"BindVerb": "bindVerb"}
_TLS_NAMES_1_8 = ("Insecure", "ServerName", "CertFile", "KeyFile", "CAFile", "CertData", "KeyData", "CAData")


def with_default_names(extender: object, dialect: Dialect) -> object:
    """Return the extender fields that the version reads, under their usual names; other values are unchanged."""
    if not isinstance(extender, Mapping):
        return extender
    if not dialect.folds_case:
        fields = {_NAMES_1_8[name]: value for name, value in extender.items() if name in _NAMES_1_8}
        tls = fields.get("tlsConfig")
        if isinstance(tls, Mapping):
            fields["tlsConfig"] = {name: tls[name] for name in _TLS_NAMES_1_8 if name in tls}
    else:
        fields = _folded(extender, ExtenderConfig)
        managed = fields.get("managedResources")
        if isinstance(managed, list):
            fields["managedResources"] = [
                _folded(each, ManagedResource) if isinstance(each, Mapping) else each for each in managed
            ]
    return {name: value for name, value in fields.items() if value is not None}


def _folded(fields: Mapping[Any, Any], record: type[msgspec.Struct]) -> dict[str, Any]:
    known = {field.encode_name.lower(): field.encode_name for field in msgspec.structs.fields(record)}
    return {known.get(str(name).lower(), str(name)): value for name, value in fields.items()}


class ReadExtenders(NamedTuple):
    """The extenders in file order, the resources that only they manage, and the assumptions."""

    settings: list[ExtenderSettings]
    ignored_resources: frozenset[str]
    assumptions: list[Assumption]


NO_EXTENDERS = ReadExtenders([], frozenset(), [])


def read_extenders(
    extenders: Sequence[ExtenderConfig], dialect: Dialect, subject: str, *, are_called: bool
) -> ReadExtenders:
    """Read the extenders of a configuration; ``subject`` is the configuration's kind.

    Raises ``ConfigurationError`` for an invalid TLS configuration.
    """
    settings = read_settings([msgspec.to_builtins(each) for each in extenders])
    ignored = frozenset(name for each in settings for name in each.ignored_resources)
    return ReadExtenders(settings, ignored, list(_assumptions(extenders, dialect, subject, are_called=are_called)))


def extender_problems(extenders: Sequence[ExtenderConfig], dialect: Dialect) -> Iterator[str]:
    """Yield the errors of the version's validation of extenders."""
    named = dialect.names_fields
    for index, extender in enumerate(extenders):
        if extender.weight <= 0 and (extender.prioritize_verb or dialect.extender_weight_always):
            field = f"extenders[{index}].weight: Invalid value: {extender.weight}: must have a positive weight"
            words = f"Priority for extender {extender.address} should have a positive weight"
            yield f"{field if named else words} applied to it"
    binders = sum(bool(extender.bind_verb) for extender in extenders)
    if binders > 1:
        field = f'extenders: Invalid value: "found {binders} extenders implementing bind": only one extender can '
        yield f"{field}implement bind" if named else f"Only one extender can implement bind, found {binders}"


def _assumptions(
    extenders: Sequence[ExtenderConfig], dialect: Dialect, subject: str, *, are_called: bool
) -> Iterator[Assumption]:
    for index, extender in enumerate(extenders):
        path = f"extenders[{index}]"
        if not are_called:
            # Describe what the extender's responses could change.
            powers = []
            if extender.filter_verb:
                powers.append("it could reject nodes")
                if not dialect.has_preempt_verb:
                    powers.append("including the node chosen for preemption, so that the next best is chosen")
            if extender.preempt_verb and dialect.has_preempt_verb:
                powers.append("it could remove candidate nodes and change their victims")
            if extender.prioritize_verb:
                powers.append("it could score nodes that fit")
            listed = ", ".join(powers) or "it does not affect preemption"
            problem = f"{extender.address} is not called: {listed} (use --call-extenders)"
            yield Assumption(subject, path, problem)
        elif extender.bind_verb:
            problem = f"{extender.address} binds pods itself, which is not modeled"
            yield Assumption(subject, f"{path}.bindVerb", problem, AssumptionKind.INFORMATIONAL)


def configuration_extenders(
    configuration: Mapping[str, Any] | None, dialect: Dialect, *, are_called: bool
) -> tuple[ReadExtenders, Mapping[str, Any] | None]:
    """Return the extenders in the configuration, and the configuration without them.

    Raises ``ConfigurationError`` for an invalid configuration, and with the scheduler's message for extenders it
    rejects.
    """
    if configuration is None or _EXTENDERS not in configuration or not dialect.states_extenders:
        return NO_EXTENDERS, configuration
    if configuration.get("apiVersion") == dialect.api_versions[0]:
        return NO_EXTENDERS, configuration
    try:
        stated = [with_default_names(each, dialect) for each in configuration[_EXTENDERS] or []]
        extenders = msgspec.convert(stated, list[ExtenderConfig])
    except (msgspec.ValidationError, TypeError) as error:
        raise ConfigurationError(f"{CONFIGURATION_KIND}: {_EXTENDERS}: {error}") from None
    raise_for(extender_problems(extenders, dialect))
    read = read_extenders(extenders, dialect, CONFIGURATION_KIND, are_called=are_called)
    return read, {name: value for name, value in configuration.items() if name != _EXTENDERS}


def raise_for(problems: Iterable[str]) -> None:
    """Raise ``ConfigurationError`` with all problems, if there are any."""
    found = list(problems)
    if found:
        raise ConfigurationError(found[0] if len(found) == 1 else f"[{', '.join(found)}]")


class Switches(NamedTuple):
    """The effective settings. ``gates`` are the modeled ones; ``no_preemption`` says why preemption is disabled."""

    gates: dict[str, bool]
    scheduler_name: str
    no_preemption: str
    assumptions: list[Assumption]


def read_switches(
    dialect: Dialect, configuration: Mapping[str, Any] | None, feature_gates: Mapping[str, bool] | None
) -> Switches:
    """Read the settings of a scheduler, without its extenders.

    Gates of other releases, and gates and fields that are not modeled, become assumptions. Raises ``UsageError`` for a
    gate that no release has, and ``ConfigurationError`` for an invalid configuration.
    """
    algorithm, set_gates = dialect.algorithm, feature_gates or {}
    gates = {**dialect.gates, **{name: value for name, value in set_gates.items() if name in dialect.gates}}
    assumptions = [
        Assumption("scheduler", f"feature gate {name}", text)
        for name, text in dialect.assumed_gates.items()
        if name not in set_gates
    ]
    for name in set_gates:
        if name in dialect.gates:
            continue
        if name not in ALL_GATES:
            similar = next((gate for gate in sorted(ALL_GATES) if gate.lower() == name.lower()), "")
            raise UsageError(f"--feature-gates: unrecognized feature gate: {name}", hint=similar)
        is_known = name in GATES_BY_ALGORITHM[algorithm]
        problem = SETTING_UNMODELED if is_known else f"{algorithm} does not have this gate and ignores it"
        assumptions.append(Assumption("scheduler", f"{FEATURE_GATE}{name}", problem))
    fields = dict(configuration or {})
    if configuration is not None and fields.get("kind") != CONFIGURATION_KIND:
        raise ConfigurationError(
            f"the scheduler's configuration is not a {CONFIGURATION_KIND}", hint=f"kind: {CONFIGURATION_KIND}"
        )
    version, versions = fields.get("apiVersion"), dialect.api_versions
    if version and version not in versions:
        raise ConfigurationError(
            f'no kind "{CONFIGURATION_KIND}" is registered for version "{version}"', hint=" or ".join(versions)
        )
    disabled = _typed(fields, "disablePreemption", bool, False)
    name = _typed(fields, "schedulerName", str, "") or DEFAULT_SCHEDULER_NAME
    source = fields.get("algorithmSource")
    if isinstance(source, Mapping):
        del fields["algorithmSource"]
        if source.get("policy") is not None:
            problem = "the referenced Policy is not read; pass it with --policy-config"
            assumptions.append(Assumption(CONFIGURATION_KIND, "algorithmSource.policy", problem))
        elif source.get("provider") not in (None, "DefaultProvider"):
            problem = "this provider is not modeled; using the default provider, which differs in scores"
            assumptions.append(Assumption(CONFIGURATION_KIND, "algorithmSource.provider", problem))
    assumptions += [
        Assumption(CONFIGURATION_KIND, field, f"not modeled for {algorithm}; ignored")
        for field in fields
        if field not in _READ_HERE
    ]
    off = "" if gates.get("PodPriority", True) else NO_POD_PRIORITY
    return Switches(gates, name, DISABLED if disabled else off, assumptions)


def _typed(fields: dict[str, Any], name: str, kind: type, default: Any) -> Any:
    """Remove and return a field; raise ``ConfigurationError`` if it has the wrong type."""
    value = fields.pop(name, None)
    if value is None:
        return default
    if not isinstance(value, kind):
        raise ConfigurationError(f"{CONFIGURATION_KIND}: {name} is not a {'boolean' if kind is bool else 'string'}")
    return value


KIND = "Policy"
SERVICE_AFFINITY = "CheckServiceAffinity"
# An alternative name from before 1.0.
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
# MaxWeight: the largest Go integer, divided by the maximum score.
_WEIGHT_LIMIT = (2**63 - 1) // 10
_VALID_NAME = re.compile(r"[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])")


class Labels(msgspec.Struct, frozen=True):
    """The argument of CheckServiceAffinity."""

    labels: list[str] | None = None


class LabelsPresence(msgspec.Struct, frozen=True):
    """The argument of CheckNodeLabelPresence: labels that a node must have or, without ``presence``, must not have."""

    labels: list[str] | None = None
    presence: bool = False


class PredicateArgument(msgspec.Struct, frozen=True, rename="camel"):
    """The argument of a custom predicate; exactly one field must be set."""

    service_affinity: Labels | None = None
    labels_presence: LabelsPresence | None = None


class Predicate(msgspec.Struct, frozen=True):
    """A predicate by name."""

    name: str = ""
    argument: PredicateArgument | None = None


class Priority(msgspec.Struct, frozen=True):
    """A priority function by name."""

    name: str = ""
    weight: int = 0
    argument: dict[str, Any] | None = None


class Policy(msgspec.Struct, frozen=True, rename="camel"):
    """A Policy file; a list that is missing is ``None``."""

    predicates: list[Predicate] | None = None
    priorities: list[Priority] | None = None
    extenders: list[ExtenderConfig] | None = None
    hard_pod_affinity_symmetric_weight: int = 0
    always_check_all_predicates: bool = False


class ReadPolicy(NamedTuple):
    """A Policy file that the version accepts, with its extenders, and the parts that are not modeled."""

    policy: Policy
    extenders: ReadExtenders
    assumptions: list[Assumption]


def read_policy(document: Mapping[str, Any], dialect: Dialect, *, calls_extenders: bool = False) -> ReadPolicy:
    """Read a Policy file from plain data. If extenders are not called, each is an assumption.

    Raises ``ConfigurationError`` for an invalid file, and with the scheduler's own message for a rejected one.
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
            fields["extenders"] = [with_default_names(each, dialect) for each in fields["extenders"]]
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
    assumptions = [Assumption(KIND, field, f"{algorithm} does not have this field and ignores it") for field in unknown]
    if policy.priorities:
        problem = f"supported by {algorithm}, but kpreempt computes no scores for it; they choose among nodes that fit"
        assumptions.append(Assumption(KIND, "priorities", problem))
    extenders = read_extenders(policy.extenders or [], dialect, KIND, are_called=calls_extenders)
    return ReadPolicy(policy, extenders, [*assumptions, *extenders.assumptions])


def _check_arguments(what: str, name: str, count: int) -> None:
    if count != 1:
        raise ConfigurationError(
            f"Exactly 1 {what} argument is required, numArgs: {count}, {what.capitalize()}: {name}"
        )


def type_not_found(what: str, name: str) -> ConfigurationError:
    """Return the error of a scheduler for an unknown name, formatted as in its version."""
    return ConfigurationError(f"Invalid configuration: {what} type not found for {name}")


def _problems(policy: Policy, dialect: Dialect) -> Iterator[str]:
    """Yield the errors of ``ValidatePolicy`` and of the weight check."""
    for priority in policy.priorities or ():
        if not 0 < priority.weight < _WEIGHT_LIMIT:
            yield f"Priority {priority.name} should have a positive weight applied to it or it has overflown"
    yield from extender_problems(policy.extenders or [], dialect)
    named = dialect.names_fields
    weight = policy.hard_pod_affinity_symmetric_weight
    if weight and not 1 <= weight <= 100:
        field = f"hardPodAffinitySymmetricWeight: Invalid value: {weight}: not in valid range [0-100]"
        yield field if named else f"invalid hardPodAffinitySymmetricWeight: {weight}, must be in the range 1-100"


def configured_filters(
    stated: Iterable[Predicate], registered: Sequence[Filter], mandatory: Iterable[str], label_reason: str
) -> dict[str, Filter]:
    """Return the predicates that a Policy names, and the mandatory ones, by name.

    A predicate with an argument replaces a registered one of the same name. ``label_reason`` is the reason of a node
    that fails CheckNodeLabelPresence. Raises ``ConfigurationError`` if the scheduler would exit.
    """
    known = {each.name: each for each in registered}
    known[OLD_PORTS] = Filter(OLD_PORTS, known[PORTS].check)
    names = []
    for predicate in stated:
        if predicate.argument is not None:
            if not _VALID_NAME.fullmatch(predicate.name):
                rule = f'the name validation regexp "^{_VALID_NAME.pattern}$"'
                raise ConfigurationError(f"Algorithm name {predicate.name} does not match {rule}.")
            presence = predicate.argument.labels_presence
            if presence is None:
                raise no_service_affinity(predicate.name)
            known[predicate.name] = _label_presence(predicate.name, presence, label_reason)
        elif predicate.name not in known:
            raise type_not_found("Predicate", predicate.name)
        names.append(predicate.name)
    return {name: known[name] for name in dict.fromkeys([*names, *mandatory])}


def no_service_affinity(name: str) -> ConfigurationError:
    """Return the error for a predicate with ``serviceAffinity``."""
    return ConfigurationError(
        f"predicate {name}: serviceAffinity is not modeled, and the result would differ without it",
        hint="remove the predicate to see what the others decide",
    )


def _label_presence(name: str, presence: LabelsPresence, reason: str) -> Filter:
    labels = presence.labels or []

    def check(_: State, node_info: NodeInfo) -> Status:
        """Check that all labels are present, or that none is."""
        return PASSES if all((key in node_info.labels) is presence.presence for key in labels) else rejection(reason)

    return Filter(name, check)
