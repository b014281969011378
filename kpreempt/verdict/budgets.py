"""Problems of PodDisruptionBudgets, the workloads they protect, and the pods that would violate them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from kpreempt.verdict.at_risk import Threshold
from kpreempt.verdict.base import Record
from kpreempt.verdict.records import API_VERSION, Assumption, ClusterSummary
from kpreempt.verdict.remedies import Remedy, RemedySearch


class Severity(StrEnum):
    """How serious a finding is: an error blocks drains permanently or predicts a violation; a note may be intended."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """The rank, 0 for the worst."""
        return list(Severity).index(self)


class FindingId(StrEnum):
    """The problem that a finding reports; values are stable across versions.

    ``violated-by-preemption``: pending pods would evict more pods than the budget allows. ``never-allows``: the budget
    allows no disruptions even if all its pods are healthy. ``min-available-above-pods``: the budget never allows a
    disruption, because it requires more pods than are expected. ``allows-none-at-hpa-minimum``: the budget allows no
    disruptions once HorizontalPodAutoscalers have scaled its workloads down to their minReplicas. ``overlap``: the
    budget's pods also have another budget; the eviction API rejects their eviction, and the scheduler counts every
    budget. ``no-scale``: the disruption controller cannot compute the budget, because some pods belong to an object
    without a scale subresource. ``unmanaged-pods``: some of the budget's pods have no controller, and are not among the
    expected pods. ``invalid-amount``: the amount is neither a number nor a percentage. ``selects-every-pod``: the
    selector is empty; the scheduler ignores the budget, while the disruption controller and the eviction API apply it
    to every pod.
    """

    VIOLATED_BY_PREEMPTION = "violated-by-preemption"
    NEVER_ALLOWS = "never-allows"
    MIN_AVAILABLE_ABOVE_PODS = "min-available-above-pods"
    OVERLAP = "overlap"
    NO_SCALE = "no-scale"
    INVALID_AMOUNT = "invalid-amount"
    INVALID_SELECTOR = "invalid-selector"
    ALLOWS_NONE_NOW = "allows-none-now"
    ALLOWS_NONE_AT_HPA_MINIMUM = "allows-none-at-hpa-minimum"
    UNMANAGED_PODS = "unmanaged-pods"
    SELECTS_EVERY_POD = "selects-every-pod"
    NULL_SELECTOR = "null-selector"
    SELECTS_NOTHING = "selects-nothing"
    STALE_STATUS = "stale-status"
    NO_STATUS = "no-status"
    SEVERAL_WORKLOADS = "several-workloads"
    PROTECTS_NOTHING = "protects-nothing"
    NO_BUDGET = "no-budget"


class NearMiss(Record, frozen=True):
    """Pods that a selector misses by one label: the required label, and the label they have instead, if any."""

    workload: str
    pods: int
    expected: str
    found: str = ""


class Finding(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A problem that the audit found, or a fact worth knowing.

    ``subject`` is the budget or the workload (``PodDisruptionBudget web``), ``pods`` are the affected pods by name, and
    ``objects`` are the other budgets or workloads involved. ``number`` is the number of replicas for ``no-budget``, the
    disruptions that the spec would allow for ``stale-status``, and the number of expected pods for findings about what
    the budget can ever allow (at the autoscalers' minimum for ``allows-none-at-hpa-minimum``). With each of the
    ``remedies`` that solves it, the finding is gone, and nothing else is worse.
    """

    id: FindingId
    severity: Severity
    namespace: str
    subject: str
    pods: list[str] = []
    objects: list[str] = []
    number: int | None = None
    near_misses: list[NearMiss] = []
    remedies: list[Remedy] = []


class ProtectedWorkload(Record, frozen=True):
    """The pods of one owner that a budget selects; a ReplicaSet's pods count for its Deployment. Empty: no controller.

    ``replicas`` is the desired number, or ``None`` if it is unknown.
    """

    workload: str
    pods: int
    ready: int
    replicas: int | None = None


class PossibleViolation(Record, frozen=True, kw_only=True):
    """A pending pod that would evict more pods of a budget than the budget allows.

    ``victims`` are the protected pods among its victims on any of ``nodes``. The budget allows ``allowed`` disruptions
    before the evictions and ``remaining``, which is negative, after them, on the worst node. ``is_certain``: the budget
    is violated on every node that the choice can end with. ``position`` is the pod's position in the scheduling queue.
    """

    pod: str
    priority: int
    owner: str = ""
    position: int | None = None
    nodes: list[str]
    victims: list[str]
    allowed: int
    remaining: int
    is_certain: bool = True


class ViolatingPriority(Record, frozen=True):
    """The lowest priority at which a new pod would evict ``pod``, the least important pod of its budget.

    The budget allows no disruptions. The new pod requests as much as the pods up to this ``priority`` on the node, plus
    what is free there.
    """

    pod: str
    node: str
    priority: int
    threshold: Threshold


class AuditedBudget(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A budget: the pods it protects, the disruptions it allows, and its findings.

    ``expected_pods``, ``desired_healthy``, ``current_healthy`` and ``disruptions_allowed`` are from its status, which
    the scheduler uses. ``selector`` is ``None`` if the budget has none. ``pods`` counts pods that have not finished.
    ``not_ready`` and ``terminating`` (including pods evicted a moment ago) list pods by name; ``missing`` counts those
    not created yet. ``always_allows_unhealthy`` says whether a drain may evict unready pods whatever is allowed
    (``unhealthyPodEvictionPolicy: AlwaysAllow``), and ``is_counted`` whether the scheduler considers the budget at all.
    ``manager`` is the custom resource (``Cluster db/pg``) that owns its pods; empty if they have none.
    """

    budget: str
    selector: str | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    expected_pods: int = 0
    desired_healthy: int = 0
    current_healthy: int = 0
    disruptions_allowed: int = 0
    pods: int = 0
    workloads: list[ProtectedWorkload] = []
    not_ready: list[str] = []
    terminating: list[str] = []
    missing: int = 0
    always_allows_unhealthy: bool = False
    is_counted: bool = True
    manager: str = ""
    violations: list[PossibleViolation] = []
    violating_priority: ViolatingPriority | None = None
    findings: list[Finding] = []


class BudgetAudit(Record, frozen=True, kw_only=True):
    """The requested budgets, by namespace and name, and the workloads that have none.

    ``pending`` counts the pods that were checked for budget violations. ``unsearched`` counts the budgets without
    allowed disruptions for which no priority was searched, because there are too many. ``search`` says how many
    remedies of all findings were tried.
    """

    api_version: str = API_VERSION
    kind: str = "BudgetAudit"
    algorithm: str = ""
    cluster: ClusterSummary = ClusterSummary()
    at: datetime | None = None
    pending: int = 0
    items: list[AuditedBudget] = []
    unprotected: list[Finding] = []
    unsearched: int = 0
    search: RemedySearch = RemedySearch()
    assumptions: list[Assumption] = []

    @property
    def findings(self) -> list[Finding]:
        """All findings, worst first, then by namespace, subject and kind."""
        found = [finding for item in self.items for finding in item.findings]
        order = list(FindingId)
        return sorted(
            [*found, *self.unprotected],
            key=lambda each: (each.severity.rank, each.namespace, each.subject, order.index(each.id)),
        )
