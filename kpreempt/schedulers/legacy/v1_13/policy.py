"""Policy files of 1.13 (``factory.go`` and ``algorithmprovider/defaults/defaults.go``, v1.13.12).

Predicates run in the order of ``predicatesOrdering``, whatever that of the file; names that are not in it never run.
"""

from __future__ import annotations

from kpreempt.schedulers.extender_protocol import V1_13
from kpreempt.schedulers.legacy.base.filtering import Filter
from kpreempt.schedulers.legacy.base.policy import KIND, Policy
from kpreempt.schedulers.legacy.base.policy_dialect import Dialect
from kpreempt.schedulers.legacy.base.policy_predicates import SERVICE_AFFINITY, named_filters
from kpreempt.schedulers.legacy.v1_13.predicates import (
    LABELS_NOT_PRESENT,
    OF_CONDITIONS,
    PREDICATES,
    UNSCHEDULABLE,
    default_predicates,
)
from kpreempt.verdict import Assumption

DIALECT = Dialect(
    algorithm="kube-1.13",
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
            "RequestedToCapacityRatioPriority",
            "SelectorSpreadPriority",
            "ServiceSpreadingPriority",
            "TaintTolerationPriority",
        )
    ),
    priority_arguments=("serviceAntiAffinity", "labelPreference", "requestedToCapacityRatioArguments"),
    protocol=V1_13,
)
_TAINTS = "PodToleratesNodeTaints"


def _ordering() -> list[str]:
    """The names that run, in order: those of one's own labels and services come behind the taints."""
    names = [each.name for each in PREDICATES]
    place = names.index(_TAINTS) + 1
    own = ["PodToleratesNodeNoExecuteTaints", "CheckNodeLabelPresence", SERVICE_AFFINITY]
    return [*names[:place], *own, *names[place:]]


def filters_of_policy(policy: Policy, *, taint_nodes_by_condition: bool) -> tuple[tuple[Filter, ...], list[Assumption]]:
    """The predicates that run, and what to know of them; raises ``ConfigurationError`` where the scheduler ends."""
    if policy.predicates is None:
        return default_predicates(taint_nodes_by_condition=taint_nodes_by_condition), []
    if taint_nodes_by_condition:
        removed, mandatory = OF_CONDITIONS, [UNSCHEDULABLE, _TAINTS]
    else:
        removed, mandatory = frozenset((UNSCHEDULABLE,)), ["CheckNodeCondition"]
    registered = [each for each in PREDICATES if each.name not in removed]
    named = named_filters(policy.predicates, registered, mandatory, LABELS_NOT_PRESENT)
    ordering = _ordering()
    problem = (
        "1.13 takes a predicate of this name and never runs it, for it has no place in the order; nor is it run here"
    )
    never_run = [Assumption(KIND, f"predicate {name}", problem) for name in named if name not in ordering]
    return tuple(named[name] for name in ordering if name in named), never_run
