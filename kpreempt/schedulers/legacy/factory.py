"""An old scheduler by its name, with its settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from kpreempt.scheduler_table import LEGACY_ROWS
from kpreempt.schedulers.extender_protocol import Connect, with_ignorable_last
from kpreempt.schedulers.legacy.base.configuration import configuration_extenders, read_switches
from kpreempt.schedulers.legacy.base.extenders import Extender, http_extenders
from kpreempt.schedulers.legacy.base.policy import read_policy
from kpreempt.schedulers.legacy.base.scheduler import LegacyScheduler
from kpreempt.schedulers.legacy.base.version import Version


def legacy_scheduler(
    algorithm: str,
    configuration: Mapping[str, Any] | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    *,
    policy: Mapping[str, Any] | None = None,
    extenders: Sequence[Extender] = (),
    connect: Connect | None = None,
) -> LegacyScheduler:
    """The scheduler with these settings, as plain data. ``policy`` is a Policy file, ``extenders`` are to be asked.

    With ``connect`` the extenders of the configuration are asked, too; otherwise each is an assumption.

    Raises ``UsageError`` and ``ConfigurationError`` as ``read_switches`` and ``read_policy`` do, and for predicates
    with which the real scheduler ends at once.
    """
    version: type[Version] = import_module(f"{__package__}.{LEGACY_ROWS[algorithm].package}.version").VERSION
    dialect, is_called = version.dialect, connect is not None
    read_from, rest = configuration_extenders(configuration, dialect, are_called=is_called)
    switches = read_switches(dialect, rest, feature_gates)
    read, assumptions = None, read_from.assumptions
    if policy is not None:
        # The extenders of the configuration do not count then.
        read = read_policy(policy, dialect, calls_extenders=is_called)
        read_from, assumptions = read.extenders, read.assumptions
    made = version.configured(switches.gates, read.policy if read is not None else None, read_from.ignored_resources)
    settings = with_ignorable_last(read_from.settings) if dialect.ignorable_last else read_from.settings
    return LegacyScheduler(
        made,
        extenders=[*extenders, *http_extenders(settings, dialect.protocol, connect)],
        scheduler_name=switches.scheduler_name,
        no_preemption=switches.no_preemption,
        assumptions=[*switches.assumptions, *assumptions, *made.assumptions],
        gates=switches.gates,
    )
