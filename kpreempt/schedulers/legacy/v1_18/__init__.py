"""kube-scheduler 1.18 (v1.18.19): the framework with its default profile, and its preemption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kpreempt.schedulers.legacy.base.extenders import Extender
from kpreempt.schedulers.legacy.base.gate_names import GATES_1_18
from kpreempt.schedulers.legacy.base.policy import read_policy
from kpreempt.schedulers.legacy.base.scheduler import LegacyScheduler
from kpreempt.schedulers.legacy.base.switches import read_switches
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
) -> LegacyScheduler:
    """The scheduler with these settings, as plain data. ``policy`` is a Policy file, ``extenders`` are to be asked.

    Raises ``UsageError`` and ``ConfigurationError`` as ``read_switches``, ``read_policy`` and ``plugins_of_policy`` do.
    """
    switches = read_switches(ALGORITHM, MODELLED_GATES, GATES_1_18, configuration, feature_gates)
    counts_overhead, spreads_pods = switches.gates["PodOverhead"], switches.gates["EvenPodsSpread"]
    assumptions, stops_at_first = list(switches.assumptions), True
    if policy is None:
        plugins = default_plugins(counts_overhead=counts_overhead, spreads_pods=spreads_pods)
    else:
        read = read_policy(policy, DIALECT)
        stated = read.policy.predicates
        plugins = plugins_of_policy(stated, counts_overhead=counts_overhead, spreads_pods=spreads_pods)
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
        extenders=extenders,
        scheduler_name=switches.scheduler_name,
        no_preemption=switches.no_preemption,
        assumptions=assumptions,
    )


__all__ = ["ALGORITHM", "scheduler"]
