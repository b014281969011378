"""kube-scheduler 1.13."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kpreempt.schedulers.legacy.base.gate_names import GATES_1_13
from kpreempt.schedulers.legacy.base.scheduler import LegacyScheduler
from kpreempt.schedulers.legacy.base.switches import read_switches
from kpreempt.schedulers.legacy.v1_13.predicates import default_predicates
from kpreempt.schedulers.legacy.v1_13.version import Version113

BY_TAINTS = "TaintNodesByCondition"
# The gates that are modelled, with their defaults.
GATES = {"PodPriority": True, BY_TAINTS: True}


def scheduler(
    configuration: Mapping[str, Any] | None = None, feature_gates: Mapping[str, bool] | None = None
) -> LegacyScheduler:
    """The scheduler with a configuration as plain data, and feature gates.

    Raises ``UsageError`` and ``ConfigurationError`` as ``read_switches`` does.
    """
    switches = read_switches(Version113.algorithm, GATES, GATES_1_13, configuration, feature_gates)
    return LegacyScheduler(
        Version113(),
        filters=default_predicates(taint_nodes_by_condition=switches.gates[BY_TAINTS]),
        scheduler_name=switches.scheduler_name,
        no_preemption=switches.no_preemption,
        assumptions=switches.assumptions,
    )
