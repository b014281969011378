"""kube-scheduler 1.8, where preemption began."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kpreempt.schedulers.extender_protocol import Connect, ExtenderSettings
from kpreempt.schedulers.legacy.base.extenders import Extender
from kpreempt.schedulers.legacy.base.gate_names import GATES_1_8
from kpreempt.schedulers.legacy.base.http_extenders import http_extenders
from kpreempt.schedulers.legacy.base.policy import read_policy
from kpreempt.schedulers.legacy.base.scheduler import LegacyScheduler
from kpreempt.schedulers.legacy.base.switches import read_switches
from kpreempt.schedulers.legacy.v1_8.policy import DIALECT, filters_of_policy
from kpreempt.schedulers.legacy.v1_8.predicates import DEFAULT_PREDICATES
from kpreempt.schedulers.legacy.v1_8.version import Version18
from kpreempt.verdict import Assumption

POD_PRIORITY = "PodPriority"
BY_TAINTS = "TaintNodesByCondition"
# The gates that are modelled. PodPriority was off by default, and with it preemption; to ask for it is to turn it on.
GATES = {POD_PRIORITY: True, BY_TAINTS: False}


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
    switches = read_switches(Version18.algorithm, GATES, GATES_1_8, configuration, feature_gates)
    assumptions = list(switches.assumptions)
    if POD_PRIORITY not in (feature_gates or {}):
        text = "it is assumed to be on; by default it is off in 1.8, and nobody is preempted"
        assumptions.insert(0, Assumption("scheduler", f"feature gate {POD_PRIORITY}", text))
    # With taints in their place, conditions alone keep no pod off; pressure still does.
    by_taints = switches.gates[BY_TAINTS]
    filters = [each for each in DEFAULT_PREDICATES if not (by_taints and each.name == "CheckNodeCondition")]
    configured: Sequence[ExtenderSettings] = ()
    if policy is not None:
        read = read_policy(policy, DIALECT, calls_extenders=connect is not None)
        configured = read.extenders.settings
        filters = filters_of_policy(read.policy, taint_nodes_by_condition=by_taints)
        assumptions += read.assumptions
    return LegacyScheduler(
        Version18(),
        filters=filters,
        extenders=[*extenders, *http_extenders(configured, DIALECT.protocol, connect)],
        scheduler_name=switches.scheduler_name,
        no_preemption=switches.no_preemption,
        assumptions=assumptions,
        gates=switches.gates,
    )
