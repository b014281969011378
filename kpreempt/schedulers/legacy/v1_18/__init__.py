"""kube-scheduler 1.18 (v1.18.19): the framework with its default profile, and its preemption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kpreempt.schedulers.legacy.base.extenders import Extender
from kpreempt.schedulers.legacy.base.gate_names import GATES_1_18
from kpreempt.schedulers.legacy.base.scheduler import LegacyScheduler
from kpreempt.schedulers.legacy.base.switches import read_switches
from kpreempt.schedulers.legacy.v1_18.profile import default_plugins
from kpreempt.schedulers.legacy.v1_18.version import ALGORITHM, Version118

# The gates that decide here, with their defaults.
MODELLED_GATES = {"EvenPodsSpread": True, "NonPreemptingPriority": False, "PodOverhead": True}


def scheduler(
    configuration: Mapping[str, Any] | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    extenders: Sequence[Extender] = (),
) -> LegacyScheduler:
    """The scheduler with these settings; raises ``UsageError`` and ``ConfigurationError`` as ``read_switches`` does."""
    switches = read_switches(ALGORITHM, MODELLED_GATES, GATES_1_18, configuration, feature_gates)
    counts_overhead = switches.gates["PodOverhead"]
    version = Version118(
        default_plugins(counts_overhead=counts_overhead, spreads_pods=switches.gates["EvenPodsSpread"]),
        counts_overhead=counts_overhead,
        never_preempts=switches.gates["NonPreemptingPriority"],
    )
    return LegacyScheduler(
        version,
        extenders=extenders,
        scheduler_name=switches.scheduler_name,
        no_preemption=switches.no_preemption,
        assumptions=switches.assumptions,
    )


__all__ = ["ALGORITHM", "scheduler"]
