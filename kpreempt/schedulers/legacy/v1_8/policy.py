"""Policy files of 1.8 (``factory.go`` and ``algorithmprovider/defaults/defaults.go``, v1.8.15).

A missing list of predicates is an empty one here: then only the mandatory predicate runs.
"""

from __future__ import annotations

from kpreempt.schedulers.extender_protocol import V1_8
from kpreempt.schedulers.legacy.base.filtering import Filter
from kpreempt.schedulers.legacy.base.policy import Policy
from kpreempt.schedulers.legacy.base.policy_dialect import Dialect
from kpreempt.schedulers.legacy.base.policy_predicates import named_filters
from kpreempt.schedulers.legacy.v1_8.predicates import LABELS_NOT_PRESENT, PREDICATES

DIALECT = Dialect(
    algorithm="kube-1.8",
    priorities=frozenset(
        (
            "BalancedResourceAllocation",
            "EqualPriority",
            "ImageLocalityPriority",
            "InterPodAffinityPriority",
            "LeastRequestedPriority",
            "MostRequestedPriority",
            "NodeAffinityPriority",
            "NodePreferAvoidPodsPriority",
            "SelectorSpreadPriority",
            "ServiceSpreadingPriority",
            "TaintTolerationPriority",
        )
    ),
    priority_arguments=("serviceAntiAffinity", "labelPreference"),
    extender_weight_always=True,
    has_preempt_verb=False,
    folds_case=False,
    protocol=V1_8,
)
_CONDITION = "CheckNodeCondition"


def filters_of_policy(policy: Policy, *, taint_nodes_by_condition: bool) -> list[Filter]:
    """The predicates that run; raises ``ConfigurationError`` where the scheduler ends."""
    mandatory = "PodToleratesNodeTaints" if taint_nodes_by_condition else _CONDITION
    registered = [each for each in PREDICATES if not (taint_nodes_by_condition and each.name == _CONDITION)]
    return list(named_filters(policy.predicates or (), registered, (mandatory,), LABELS_NOT_PRESENT).values())
