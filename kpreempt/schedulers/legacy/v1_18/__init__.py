"""kube-scheduler 1.18 (v1.18.19): the framework with its default profile, and its preemption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kpreempt.schedulers.extender_protocol import Connect, with_ignorable_last
from kpreempt.schedulers.legacy.base.extenders import Extender
from kpreempt.schedulers.legacy.base.gate_names import GATES_1_18
from kpreempt.schedulers.legacy.base.http_extenders import http_extenders
from kpreempt.schedulers.legacy.base.policy import read_policy
from kpreempt.schedulers.legacy.base.scheduler import LegacyScheduler
from kpreempt.schedulers.legacy.base.switches import read_switches
from kpreempt.schedulers.legacy.v1_18.configuration import configuration_extenders, without_extenders
from kpreempt.schedulers.legacy.v1_18.policy import DIALECT, plugins_of_policy
from kpreempt.schedulers.legacy.v1_18.profile import default_plugins
from kpreempt.schedulers.legacy.v1_18.version import ALGORITHM, Version118

# The gates that decide here, with their defaults.
MODELLED_GATES = {"EvenPodsSpread": True, "NonPreemptingPriority": False, "PodOverhead": True}


def scheduler(
    configuration: Mapping[str, Any] | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    *,
    policy: Mapping[str, Any] | None = None,
    extenders: Sequence[Extender] = (),
    connect: Connect | None = None,
) -> LegacyScheduler:
    """The scheduler with these settings, as plain data. ``policy`` is a Policy file, ``extenders`` are to be asked.

    With ``connect`` the extenders of the configuration are asked, too; otherwise each is an assumption.

    Raises ``UsageError`` and ``ConfigurationError`` as ``read_switches``, ``read_policy`` and ``plugins_of_policy`` do.
    """
    read_from = configuration_extenders(configuration, DIALECT, are_called=connect is not None)
    switches = read_switches(ALGORITHM, MODELLED_GATES, GATES_1_18, without_extenders(configuration), feature_gates)
    counts_overhead, spreads_pods = switches.gates["PodOverhead"], switches.gates["EvenPodsSpread"]
    assumptions, stops_at_first = list(switches.assumptions), True
    if policy is None:
        ignored = read_from.ignored_resources
        plugins = default_plugins(counts_overhead=counts_overhead, spreads_pods=spreads_pods, ignored=ignored)
        assumptions += read_from.assumptions
    else:
        read = read_policy(policy, DIALECT, calls_extenders=connect is not None)
        # Those of the configuration do not count then.
        read_from, stated = read.extenders, read.policy.predicates
        plugins = plugins_of_policy(
            stated,
            counts_overhead=counts_overhead,
            spreads_pods=spreads_pods,
            ignored=read_from.ignored_resources,
        )
        stops_at_first = not read.policy.always_check_all_predicates
        assumptions += read.assumptions
    version = Version118(
        plugins,
        counts_overhead=counts_overhead,
        never_preempts=switches.gates["NonPreemptingPriority"],
        stops_at_first=stops_at_first,
    )
    return LegacyScheduler(
        version,
        extenders=[*extenders, *http_extenders(with_ignorable_last(read_from.settings), DIALECT.protocol, connect)],
        scheduler_name=switches.scheduler_name,
        no_preemption=switches.no_preemption,
        assumptions=assumptions,
        gates=switches.gates,
    )


__all__ = ["ALGORITHM", "scheduler"]
