"""What switches an old scheduler: feature gates, and the few fields of its configuration that decide here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kpreempt.errors import ConfigurationError, UsageError
from kpreempt.model.pod import DEFAULT_SCHEDULER_NAME
from kpreempt.schedulers.legacy.base.gate_names import ALL_GATES
from kpreempt.verdict import Assumption
from kpreempt.verdict.records import FEATURE_GATE, SETTING_NOT_MODELLED

KIND = "KubeSchedulerConfiguration"
DISABLED = "preemption is switched off (disablePreemption)"
NO_POD_PRIORITY = "the feature gate PodPriority is off, so there is no preemption"
_GROUP = "kubescheduler.config.k8s.io"
# In which its configuration can be written.
_API_VERSIONS = {
    "kube-1.8": ("componentconfig/v1alpha1",),
    "kube-1.13": (f"{_GROUP}/v1alpha1",),
    "kube-1.18": (f"{_GROUP}/v1alpha1", f"{_GROUP}/v1alpha2"),
}
_HEADER = frozenset(("apiVersion", "kind"))


class Switches(NamedTuple):
    """Settings as they count. ``gates`` are those that are modelled; ``no_preemption`` says why there is none."""

    gates: dict[str, bool]
    scheduler_name: str
    no_preemption: str
    assumptions: list[Assumption]


def read_switches(
    algorithm: str,
    modelled: Mapping[str, bool],
    known: frozenset[str],
    configuration: Mapping[str, Any] | None,
    feature_gates: Mapping[str, bool] | None,
) -> Switches:
    """The settings of a scheduler whose ``known`` gates are those of its release, of which ``modelled`` have defaults.

    Gates of another release, and gates and fields that are not modelled, become assumptions. Raises ``UsageError`` for
    a gate that no release has, and ``ConfigurationError`` for a configuration that is none.
    """
    gates, assumptions = dict(modelled), []
    for name, value in (feature_gates or {}).items():
        if name in modelled:
            gates[name] = value
        else:
            assumptions.append(_gate_assumption(algorithm, name, known))
    fields = dict(configuration or {})
    if configuration is not None and fields.get("kind") != KIND:
        raise ConfigurationError(f"the scheduler's configuration is not a {KIND}", hint=f"kind: {KIND}")
    version, versions = fields.get("apiVersion"), _API_VERSIONS[algorithm]
    if version and version not in versions:
        raise ConfigurationError(f'no kind "{KIND}" is registered for version "{version}"', hint=" or ".join(versions))
    disabled = _typed(fields, "disablePreemption", bool, False)
    name = _typed(fields, "schedulerName", str, "") or DEFAULT_SCHEDULER_NAME
    assumptions += _source_assumptions(fields)
    assumptions += [
        Assumption(KIND, field, f"this field is not modelled for {algorithm}, and left out")
        for field in fields
        if field not in _HEADER
    ]
    off = "" if gates.get("PodPriority", True) else NO_POD_PRIORITY
    return Switches(gates, name, DISABLED if disabled else off, assumptions)


def _gate_assumption(algorithm: str, name: str, known: frozenset[str]) -> Assumption:
    if name in known:
        return Assumption("scheduler", f"{FEATURE_GATE}{name}", SETTING_NOT_MODELLED)
    if name in ALL_GATES:
        return Assumption("scheduler", f"{FEATURE_GATE}{name}", f"{algorithm} has no such gate, and passes over it")
    similar = next((gate for gate in sorted(ALL_GATES) if gate.lower() == name.lower()), "")
    raise UsageError(f"--feature-gates: unrecognized feature gate: {name}", hint=similar)


def _source_assumptions(fields: dict[str, Any]) -> list[Assumption]:
    """Take the source of predicates and priorities out, and say what of it is not read."""
    source = fields.get("algorithmSource")
    if not isinstance(source, Mapping):
        return []
    del fields["algorithmSource"]
    if source.get("policy") is not None:
        problem = "the Policy that it names is not read; --policy-config gives one"
        return [Assumption(KIND, "algorithmSource.policy", problem)]
    if source.get("provider") in (None, "DefaultProvider"):
        return []
    problem = "this provider is not modelled; the default one is, which differs in scores"
    return [Assumption(KIND, "algorithmSource.provider", problem)]


def _typed(fields: dict[str, Any], name: str, kind: type, default: Any) -> Any:
    """Take a field out; raises ``ConfigurationError`` where it is of another type."""
    value = fields.pop(name, None)
    if value is None:
        return default
    if not isinstance(value, kind):
        raise ConfigurationError(f"{KIND}: {name} is not a {'boolean' if kind is bool else 'text'}")
    return value
