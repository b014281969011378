"""Simulate what the API server and controllers add to an object between its manifest and the scheduler."""

from kpreempt.admission.admit import admit
from kpreempt.admission.api_defaults import apply_api_defaults
from kpreempt.admission.cluster_defaults import (
    admit_claim,
    apply_cluster_defaults,
    apply_object_defaults,
    complete_cluster,
    fill_budget_statuses,
    fill_priorities,
)
from kpreempt.admission.priority import admit_priority
from kpreempt.admission.records import DEFAULT_RULES, Admission, ApiServerRules, PodRejectedError

__all__ = [
    "DEFAULT_RULES",
    "Admission",
    "ApiServerRules",
    "PodRejectedError",
    "admit",
    "admit_claim",
    "admit_priority",
    "apply_api_defaults",
    "apply_cluster_defaults",
    "apply_object_defaults",
    "complete_cluster",
    "fill_budget_statuses",
    "fill_priorities",
]
