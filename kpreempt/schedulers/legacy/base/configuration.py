"""What configures an old scheduler besides a Policy file: gates, a few fields of its configuration, and extenders.

A Policy file states extenders, too, and since 1.18 a KubeSchedulerConfiguration does. The fields are those of
``ExtenderConfig`` (``api/v1/types.go``, v1.8.15 and v1.13.12) and ``Extender`` (``k8s.io/kube-scheduler`` v0.18.19
``config/v1/types.go``), which read their names in any case since 1.13.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from kpreempt.errors import ConfigurationError, UsageError
from kpreempt.model.pod import DEFAULT_SCHEDULER_NAME
from kpreempt.model.urls import without_secrets
from kpreempt.schedulers.extender_protocol import ExtenderSettings, read_settings
from kpreempt.schedulers.extender_protocol import dialect as protocols
from kpreempt.schedulers.legacy.base.gate_names import ALL_GATES, GATES_BY_ALGORITHM
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.records import FEATURE_GATE, SETTING_NOT_MODELLED

CONFIGURATION_KIND = "KubeSchedulerConfiguration"
CONFIGURATION_GROUP = "kubescheduler.config.k8s.io"
DISABLED = "preemption is switched off (disablePreemption)"
NO_POD_PRIORITY = "the feature gate PodPriority is off, so there is no preemption"
# The priority functions that all versions have.
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
    """What a version knows of its settings: of feature gates, of its configuration and of Policy files.

    ``gates`` are those that are modelled, with their defaults; ``assumed_gates`` says of what is assumed to be on
    although it is off by default. ``api_versions`` are those of its configuration; ``states_extenders`` says that all
    but the first of them state extenders.
    ``priorities`` are the names of its priority functions, ``priority_arguments`` the arguments of those of one's own.
    ``quotes`` says how a name stands in its messages. ``extender_weight_always`` refuses an extender without a weight
    even where it scores nothing; ``has_preempt_verb`` says whether extenders are asked about victims. ``names_fields``
    says that it refuses fields that there are not, and names the field in what it says of the others (1.18).
    ``folds_case`` reads the fields of extenders in any case; 1.8 does not, and has fewer of them. ``protocol`` is how
    extenders are asked; ``ignorable_last`` asks those last that may be ignored.
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
    protocol: protocols.Dialect = protocols.V1_13
    ignorable_last: bool = False


class ManagedResource(msgspec.Struct, frozen=True, rename="camel"):
    """A resource that an extender looks after."""

    name: str = ""
    ignored_by_scheduler: bool = False


class ExtenderConfig(msgspec.Struct, frozen=True, rename="camel"):
    """An extender, and the calls that it answers. ``http_timeout`` is in nanoseconds."""

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
        """Where it is, without a user's name and password."""
        return without_secrets(self.url_prefix) or "an extender"

    def __repr__(self) -> str:
        return f"ExtenderConfig({self.address!r})"


# What 1.8 knows, as it is written there: names that have no tag are Go's own.
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


def with_usual_names(extender: object, dialect: Dialect) -> object:
    """The fields of an extender that the version reads, under their usual names; what is no object stays as it is."""
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
    """The extenders in the order of the file, the resources that only they look after, and what to know of them."""

    settings: list[ExtenderSettings]
    ignored_resources: frozenset[str]
    assumptions: list[Assumption]


NO_EXTENDERS = ReadExtenders([], frozenset(), [])


def read_extenders(
    extenders: Sequence[ExtenderConfig], dialect: Dialect, subject: str, *, are_called: bool
) -> ReadExtenders:
    """What the extenders of a configuration come to; ``subject`` is the configuration's kind.

    Raises ``ConfigurationError`` for a TLS configuration that cannot be read.
    """
    settings = read_settings([msgspec.to_builtins(each) for each in extenders])
    ignored = frozenset(name for each in settings for name in each.ignored_resources)
    return ReadExtenders(settings, ignored, list(_assumptions(extenders, dialect, subject, are_called=are_called)))


def extender_problems(extenders: Sequence[ExtenderConfig], dialect: Dialect) -> Iterator[str]:
    """What the version's validation finds wrong with extenders."""
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
        where = f"extenders[{index}]"
        if not are_called:
            problem = f"{extender.address} is not called: {_powers(extender, dialect)} (--call-extenders allows it)"
            yield Assumption(subject, where, problem)
        elif extender.bind_verb:
            problem = f"{extender.address} binds pods itself, which is left out"
            yield Assumption(subject, f"{where}.bindVerb", problem, AssumptionKind.TOLD)


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


def configuration_extenders(
    configuration: Mapping[str, Any] | None, dialect: Dialect, *, are_called: bool
) -> tuple[ReadExtenders, Mapping[str, Any] | None]:
    """The extenders that the configuration states, and the configuration without them.

    Raises ``ConfigurationError`` for what is none, and in the scheduler's words for those that it refuses.
    """
    if configuration is None or _EXTENDERS not in configuration or not dialect.states_extenders:
        return NO_EXTENDERS, configuration
    if configuration.get("apiVersion") == dialect.api_versions[0]:
        return NO_EXTENDERS, configuration
    try:
        stated = [with_usual_names(each, dialect) for each in configuration[_EXTENDERS] or []]
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
    """Settings as they count. ``gates`` are those that are modelled; ``no_preemption`` says why there is none."""

    gates: dict[str, bool]
    scheduler_name: str
    no_preemption: str
    assumptions: list[Assumption]


def read_switches(
    dialect: Dialect, configuration: Mapping[str, Any] | None, feature_gates: Mapping[str, bool] | None
) -> Switches:
    """The settings of a scheduler, without its extenders.

    Gates of another release, and gates and fields that are not modelled, become assumptions. Raises ``UsageError`` for
    a gate that no release has, and ``ConfigurationError`` for a configuration that is none.
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
        problem = SETTING_NOT_MODELLED if is_known else f"{algorithm} has no such gate, and passes over it"
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
            problem = "the Policy that it names is not read; --policy-config gives one"
            assumptions.append(Assumption(CONFIGURATION_KIND, "algorithmSource.policy", problem))
        elif source.get("provider") not in (None, "DefaultProvider"):
            problem = "this provider is not modelled; the default one is, which differs in scores"
            assumptions.append(Assumption(CONFIGURATION_KIND, "algorithmSource.provider", problem))
    assumptions += [
        Assumption(CONFIGURATION_KIND, field, f"this field is not modelled for {algorithm}, and left out")
        for field in fields
        if field not in _READ_HERE
    ]
    off = "" if gates.get("PodPriority", True) else NO_POD_PRIORITY
    return Switches(gates, name, DISABLED if disabled else off, assumptions)


def _typed(fields: dict[str, Any], name: str, kind: type, default: Any) -> Any:
    """Take a field out; raises ``ConfigurationError`` where it is of another type."""
    value = fields.pop(name, None)
    if value is None:
        return default
    if not isinstance(value, kind):
        raise ConfigurationError(f"{CONFIGURATION_KIND}: {name} is not a {'boolean' if kind is bool else 'text'}")
    return value
