"""kube-scheduler 1.13."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kpreempt.schedulers.extender_protocol import Connect, ExtenderSettings
from kpreempt.schedulers.legacy.base.extenders import Extender
from kpreempt.schedulers.legacy.base.gate_names import GATES_1_13
from kpreempt.schedulers.legacy.base.http_extenders import http_extenders
from kpreempt.schedulers.legacy.base.policy import read_policy
from kpreempt.schedulers.legacy.base.scheduler import LegacyScheduler
from kpreempt.schedulers.legacy.base.switches import read_switches
from kpreempt.schedulers.legacy.v1_13.policy import DIALECT, filters_of_policy
from kpreempt.schedulers.legacy.v1_13.predicates import default_predicates
from kpreempt.schedulers.legacy.v1_13.version import Version113

BY_TAINTS = "TaintNodesByCondition"
# The gates that are modelled, with their defaults.
GATES = {"PodPriority": True, BY_TAINTS: True}


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

    Raises ``UsageError`` and ``ConfigurationError`` as ``read_switches`` and ``read_policy`` do.
    """
    switches = read_switches(Version113.algorithm, GATES, GATES_1_13, configuration, feature_gates)
    by_taints, assumptions = switches.gates[BY_TAINTS], list(switches.assumptions)
    version, filters = Version113(), default_predicates(taint_nodes_by_condition=by_taints)
    configured: Sequence[ExtenderSettings] = ()
    if policy is not None:
        read = read_policy(policy, DIALECT, calls_extenders=connect is not None)
        configured = read.extenders.settings
        version.ignored_resources = read.extenders.ignored_resources
        filters, about = filters_of_policy(read.policy, taint_nodes_by_condition=by_taints)
        version.stops_at_first = not read.policy.always_check_all_predicates
        assumptions += [*read.assumptions, *about]
    return LegacyScheduler(
        version,
        filters=filters,
        extenders=[*extenders, *http_extenders(configured, DIALECT.protocol, connect)],
        scheduler_name=switches.scheduler_name,
        no_preemption=switches.no_preemption,
        assumptions=assumptions,
        gates=switches.gates,
    )
