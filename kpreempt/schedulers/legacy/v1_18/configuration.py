"""Extenders of a KubeSchedulerConfiguration (``config/v1alpha2/types.go``, ``k8s.io/kube-scheduler`` v0.18.19)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kpreempt.errors import ConfigurationError
from kpreempt.schedulers.legacy.base.policy_dialect import Dialect
from kpreempt.schedulers.legacy.base.policy_extenders import (
    NO_EXTENDERS,
    ExtenderConfig,
    ReadExtenders,
    extender_problems,
    read_extenders,
    with_usual_names,
)
from kpreempt.schedulers.legacy.base.switches import KIND

_WITHOUT = "kubescheduler.config.k8s.io/v1alpha1"
_FIELD = "extenders"


def configuration_extenders(
    configuration: Mapping[str, Any] | None, dialect: Dialect, *, are_called: bool
) -> ReadExtenders:
    """The extenders that the configuration states, which the older of its versions cannot.

    Raises ``ConfigurationError`` for what is none, and in the scheduler's words for those that it refuses.
    """
    if configuration is None or not _has_extenders(configuration):
        return NO_EXTENDERS
    try:
        stated = [with_usual_names(each, dialect) for each in configuration[_FIELD] or []]
        extenders = msgspec.convert(stated, list[ExtenderConfig])
    except (msgspec.ValidationError, TypeError) as error:
        raise ConfigurationError(f"{KIND}: {_FIELD}: {error}") from None
    problems = list(extender_problems(extenders, dialect))
    if problems:
        raise ConfigurationError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return read_extenders(extenders, dialect, KIND, are_called=are_called)


def without_extenders(configuration: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The configuration without the extenders that are read here."""
    if configuration is None or not _has_extenders(configuration):
        return configuration
    return {name: value for name, value in configuration.items() if name != _FIELD}


def _has_extenders(configuration: Mapping[str, Any]) -> bool:
    return _FIELD in configuration and configuration.get("apiVersion") != _WITHOUT
