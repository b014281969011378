"""The scheduler that a command asks: its version, configuration file and feature gates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kpreempt.analysis.algorithms import Scheduler, scheduler_for
from kpreempt.cli.extensions import Extensions
from kpreempt.schedulers.kube.feature_gates import parse_feature_gates
from kpreempt.snapshot import read_document


class ConfiguredScheduler(NamedTuple):
    """A scheduler, its configuration as plain data where one was given, and the feature gates that were set."""

    scheduler: Scheduler
    configuration: Mapping[str, Any] | None
    feature_gates: Mapping[str, bool]


def read_scheduler(
    path: str | None,
    feature_gates: Sequence[str],
    algorithm: str | None = None,
    policy_path: str | None = None,
    extensions: Extensions = Extensions(),
) -> ConfiguredScheduler:
    """The scheduler of that name, with a configuration and a Policy from files, and the gates of ``GATE=true,...``.

    Raises ``InputError``, ``UsageError`` and ``ConfigurationError``.
    """
    configuration = read_document(path) if path else None
    policy = read_document(policy_path) if policy_path else None
    gates = {name: value for text in feature_gates for name, value in parse_feature_gates(text).items()}
    plugins = extensions.found(configuration) if configuration or extensions.plugins else []
    scheduler = scheduler_for(algorithm or "", configuration, gates, policy, plugins, extensions.connect)
    return ConfiguredScheduler(scheduler, configuration, gates)
