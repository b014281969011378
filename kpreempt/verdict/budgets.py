"""What is wrong with PodDisruptionBudgets, what they protect, and who would break them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from kpreempt.verdict.at_risk import Threshold
from kpreempt.verdict.base import Record
from kpreempt.verdict.records import API_VERSION, Assumption, ClusterSummary


class Severity(StrEnum):
    """How much a finding matters: an error stops drains for good, or an outage is due; a note may well be meant."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """The worse the lower, from 0."""
        return list(Severity).index(self)


class FindingId(StrEnum):
    """What a finding is about; the values stay as they are from version to version.

    ``broken-by-preemption``: pending pods would evict more pods than the budget allows. ``never-allows``: it allows no
    disruption however healthy its pods are. ``min-available-above-pods``: the same, for it asks for more pods than
    there are to be. ``allows-none-at-hpa-minimum``: it allows no disruption once HorizontalPodAutoscalers have scaled
    its workloads down to their minReplicas. ``overlap``: its pods have another budget, too; the API server evicts no
    such pod, the scheduler counts every budget. ``no-scale``: the disruption controller cannot compute it, for some
    pods belong to something without a size. ``unmanaged-pods``: pods without a controller, which it does not expect.
    ``invalid-amount``: neither a number nor a percentage. ``selects-every-pod``: the selector is empty; the scheduler
    ignores such a budget, the disruption controller and the eviction API do not.
    """

    BROKEN_BY_PREEMPTION = "broken-by-preemption"
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


class RemedyAction(StrEnum):
    """What to do: set a field of the budget, scale a workload, raise its pods' priority, or see to the object."""

    SET = "Set"
    SCALE = "Scale"
    RAISE_PRIORITY = "RaisePriority"
    CREATE_BUDGET = "CreateBudget"
    DELETE = "Delete"


class Remedy(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One of the changes that would do away with a finding.

    ``field`` and ``value`` are of a budget's spec; setting maxUnavailable takes the place of minAvailable and the other
    way round. For ``Scale`` the value is the number of replicas, for ``RaisePriority`` the lowest priority that helps.
    ``target`` is a kind and a name in the finding's namespace.
    """

    action: RemedyAction
    target: str
    field: str = ""
    value: int | str = ""


class NearMiss(Record, frozen=True):
    """Pods that a selector misses by one label: what it wants, and what the pods have instead (empty: nothing)."""

    workload: str
    pods: int
    wanted: str
    found: str = ""


class Finding(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that is wrong, or worth knowing.

    ``subject`` is the budget or the workload (``PodDisruptionBudget web``), ``pods`` are those that it is about by
    name, ``objects`` the other budgets or workloads. ``number`` is how many replicas there are for
    ``no-budget``, for ``stale-status`` what the budget would allow, and for those about what it can ever allow how many
    pods there are to be, at the minimum of the autoscalers for ``allows-none-at-hpa-minimum``.
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
    """The pods of one owner that a budget selects. A ReplicaSet's are those of its Deployment; empty: no controller.

    ``replicas`` is how many there are to be; ``None`` where nothing says so.
    """

    workload: str
    pods: int
    ready: int
    replicas: int | None = None


class Breach(Record, frozen=True, kw_only=True):
    """A pending pod that would evict more pods of a budget than that allows.

    ``victims`` are those that the budget protects, on any of ``nodes``. The budget allows ``allowed`` disruptions
    before and ``left``, which is negative, after them, on the worst of the nodes. ``is_certain``: it breaks on every
    node that the choice can end with. ``position`` is the pod's place in the scheduling queue.
    """

    pod: str
    priority: int
    owner: str = ""
    position: int | None = None
    nodes: list[str]
    victims: list[str]
    allowed: int
    left: int
    is_certain: bool = True


class BreakingPriority(Record, frozen=True):
    """From which priority on a new pod would evict ``pod``, the least important one of a budget that allows none.

    The new pod asks for all that pods up to this ``priority`` hold on the node, and for what is free beside them.
    """

    pod: str
    node: str
    priority: int
    threshold: Threshold


class AuditedBudget(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A budget: what it protects, what it allows, and what is to say about it.

    ``expected``, ``desired``, ``healthy`` and ``allowed`` are its status, which is what the scheduler goes by.
    ``selector`` is ``None`` where there is none. ``pods`` counts those that have not finished. ``not_ready`` and
    ``leaving`` (terminating, or evicted a moment ago) are named; ``missing`` are still to be made.
    ``lets_unready_go`` says whether a drain may evict pods that are not ready whatever is allowed
    (``unhealthyPodEvictionPolicy: AlwaysAllow``), and ``is_counted`` whether the scheduler looks at the budget at all.
    """

    budget: str
    selector: str | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    expected: int = 0
    desired: int = 0
    healthy: int = 0
    allowed: int = 0
    pods: int = 0
    workloads: list[ProtectedWorkload] = []
    not_ready: list[str] = []
    leaving: list[str] = []
    missing: int = 0
    lets_unready_go: bool = False
    is_counted: bool = True
    breaches: list[Breach] = []
    breaking_priority: BreakingPriority | None = None
    findings: list[Finding] = []


class BudgetAudit(Record, frozen=True, kw_only=True):
    """The budgets that were asked about, by namespace and name, and the workloads that have none.

    ``pending`` counts the pods that were asked whether they break a budget. ``unsearched`` counts the budgets without
    allowance for which no priority was sought, for there are many.
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
    assumptions: list[Assumption] = []

    @property
    def findings(self) -> list[Finding]:
        """All findings, the worst first, then by namespace, subject and kind."""
        found = [finding for item in self.items for finding in item.findings]
        order = list(FindingId)
        return sorted(
            [*found, *self.unprotected],
            key=lambda each: (each.severity.rank, each.namespace, each.subject, order.index(each.id)),
        )
