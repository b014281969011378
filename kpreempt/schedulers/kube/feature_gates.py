"""How settings of feature gates are read and refused (``featuregate/feature_gate.go``, component-base v0.36.3)."""

from __future__ import annotations

from collections.abc import Mapping

from kpreempt.errors import UsageError
from kpreempt.scheduler_table import DEFAULT_VERSION
from kpreempt.schedulers.kube.versions import (
    GATE_FIELDS,
    Behaviour,
    Gate,
    behaviour,
    known_gates,
    needed_gates,
    told_gates,
)

# Modelled is what it does where it is on by default; before, devices were allocated otherwise.
_DEVICES = "DynamicResourceAllocation"
_OF_DEVICES = frozenset(name for name in GATE_FIELDS if name.startswith("DRA"))
_OPTION = "--feature-gates"
_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))
# Settings of all gates in a stage.
_ALL = {"AllAlpha": "alpha", "AllBeta": "beta"}


def parse_feature_gates(text: str) -> dict[str, bool]:
    """The settings in a text like ``A=true,B=false``, as the scheduler's option takes it.

    Raises ``UsageError`` for a part that is not ``NAME=BOOL``. Whether there are such gates is seen when they are set.
    """
    settings: dict[str, bool] = {}
    for part in text.split(","):
        if not part:
            continue
        name, separator, value = (piece.strip() for piece in part.partition("="))
        if not separator:
            raise UsageError(f"{_OPTION}: missing bool value for {name}", hint=f"{name}=true")
        if value not in _TRUE | _FALSE:
            reason = f'strconv.ParseBool: parsing "{value}": invalid syntax'
            raise UsageError(f"{_OPTION}: invalid value of {name}={value}, err: {reason}", hint="true, false")
        settings[name] = value in _TRUE
    return settings


def behaviour_with(settings: Mapping[str, bool], version: str = DEFAULT_VERSION) -> tuple[Behaviour, list[str]]:
    """What holds in the version with ``settings`` (registered name to value) applied to its gates.

    Beside it the names of the gates that the scheduler's decisions depend on and that are set to something else than
    what is modelled here. Raises ``UsageError`` where the scheduler would refuse the settings.
    """
    if not settings:
        return behaviour(version), []
    known = known_gates(version)
    values = _applied(settings, known, needed_gates(version))
    told = {name for name, gate in told_gates(version).items() if values[name] != gate.default}
    told |= {name for name in _OF_DEVICES & known.keys() if values[name] and known[name].stage == "alpha"}
    if values.get(_DEVICES) and not known[_DEVICES].default:
        told.add(_DEVICES)
    return behaviour(version, values), sorted(told)


def _applied(
    settings: Mapping[str, bool], gates: Mapping[str, Gate], dependencies: Mapping[str, tuple[str, ...]]
) -> dict[str, bool]:
    unknown = sorted(name for name in settings if name not in gates and name not in _ALL)
    if unknown:
        # A gate that differs in the letters' case only, if there is one.
        similar = next((name for name in gates if name.lower() == unknown[0].lower()), "")
        raise UsageError(f"{_OPTION}: unrecognized feature gate: {unknown[0]}", hint=similar)
    values = {name: gate.default for name, gate in gates.items()}
    for all_of, stage in _ALL.items():
        if all_of in settings:
            values |= {name: settings[all_of] for name, gate in gates.items() if gate.stage == stage}
    values |= {name: value for name, value in settings.items() if name in values}
    locked = [
        f"cannot set feature gate {name} to {str(value).lower()}, feature is locked to {str(not value).lower()}"
        for name, value in sorted(settings.items())
        if name in gates and gates[name] == ("locked", not value)
    ]
    problems = locked or [
        f"{name} is enabled, but depends on features that are disabled: [{' '.join(disabled)}]"
        for name, needed in dependencies.items()
        if values.get(name) and (disabled := [other for other in needed if not values.get(other)])
    ]
    if problems:
        raise UsageError(f"{_OPTION}: {problems[0] if len(problems) == 1 else '[' + ', '.join(problems) + ']'}")
    return values
