"""Extenders as a Policy file states them, and since 1.18 a KubeSchedulerConfiguration.

The fields are those of ``ExtenderConfig`` (``api/v1/types.go``, v1.8.15 and v1.13.12) and ``Extender``
(``k8s.io/kube-scheduler`` v0.18.19 ``config/v1/types.go``), which read their names in any case since 1.13.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from kpreempt.model.urls import without_secrets
from kpreempt.schedulers.extender_protocol import ExtenderSettings, read_settings
from kpreempt.schedulers.legacy.base.policy_dialect import Dialect
from kpreempt.verdict import Assumption, AssumptionKind


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
