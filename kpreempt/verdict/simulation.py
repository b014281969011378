"""What happens after a scheduler's decision: evictions, replacements, and the pods that these displace in turn."""

from __future__ import annotations

from enum import StrEnum

from kpreempt.verdict.base import SparseRecord

# The reason of a step in which a pod has ended because its containers succeeded.
COMPLETED = "completed"
# The reason of a step in which a pod is evicted to drain its node.
DRAINED = "drained"
# The reasons of a step in which a pod cannot start: its volume is attached to another node; the kubelet does not admit
# it.
ATTACHED_ELSEWHERE = "attached-elsewhere"
NOT_ADMITTED = "not-admitted"


class StepKind(StrEnum):
    """What happens in a step.

    ``Scaled``: a controller changes the size of a ReplicaSet. ``Created``: a pod is created. ``Bound``: a pod is bound.
    ``Nominated``: a pod is nominated, and waits for its victims, which are evicted. ``Terminating``: a pod is deleted
    or evicted, and starts to terminate. ``Terminated``: a pod has terminated, for whatever reason. ``Pending``: a pod
    fits on no node, and no eviction helps; the step is not repeated for a pod that was pending at the start and still
    is. ``Rejected``: the API server rejects the creation of a pod. ``Blocked``: a pod has a node but cannot start
    there, temporarily or permanently.
    """

    SCALED = "Scaled"
    CREATED = "Created"
    BOUND = "Bound"
    NOMINATED = "Nominated"
    TERMINATING = "Terminating"
    TERMINATED = "Terminated"
    PENDING = "Pending"
    REJECTED = "Rejected"
    BLOCKED = "Blocked"


class SimulationStep(SparseRecord, frozen=True, kw_only=True):
    """A step of a simulation; ``at`` is the number of seconds since the start.

    ``pod`` is the pod, or the ReplicaSet that is scaled to ``replicas``. ``owner`` is its controller (``ReplicaSet
    api``). ``cause`` is the pod that a victim is evicted for, the node that is deleted with its pods (``Node n1``), or
    the pod that a new one replaces; ``reason`` is why a pod is deleted (``scale-down``, ``update``, ``node-deleted``,
    ``drained``), or ended without being deleted (``completed``). ``violated`` are the budgets that the eviction
    violates. ``tied`` are the nodes that the scheduler picks from at random. ``message`` is the scheduler's for a
    pending pod, the API server's for a rejected one, or says why a pod cannot start, in which case the ``reason`` is
    ``attached-elsewhere`` or ``not-admitted``.
    """

    at: float
    kind: StepKind
    pod: str
    priority: int = 0
    owner: str = ""
    node: str = ""
    cause: str = ""
    reason: str = ""
    replicas: int | None = None
    violated: list[str] = []
    tied: list[str] = []
    message: str = ""


class Displaced(SparseRecord, frozen=True, kw_only=True):
    """A pod that was evicted or lost, and its replacement.

    ``cause`` is the pod that it was evicted for, which itself replaced another victim if ``depth`` is more than 1.
    ``workload`` is the top-level owner (``Deployment shop/api``). ``replacement`` is the pod created in its place, if
    any; ``lands_on`` is the replacement's node, empty if it is still pending. ``with_node``: it was not evicted, but
    lost with its node, which is the ``cause`` (``Node n1``). ``drained``: it was evicted to drain that node. ``lost``:
    no controller recreates it.
    """

    pod: str
    priority: int
    node: str
    cause: str
    depth: int = 1
    owner: str = ""
    workload: str = ""
    violated: list[str] = []
    replacement: str = ""
    lands_on: str = ""
    with_node: bool = False
    drained: bool = False
    lost: bool = False


class UnscheduledPod(SparseRecord, frozen=True, kw_only=True):
    """A pod that has no node at the end, with the scheduler's last message.

    ``was_running``: it replaced a running pod. ``pending_before``: it had no node at the start. ``workload`` is the
    top-level owner (``Deployment shop/api``). ``uncertain``: its outcome cannot be predicted.
    """

    pod: str
    priority: int
    owner: str = ""
    workload: str = ""
    pending_before: bool = False
    uncertain: bool = False
    message: str = ""
    was_running: bool = False


class QuotaRejection(SparseRecord, frozen=True, kw_only=True):
    """The pods of a workload that a ResourceQuota rejects.

    ``pods`` is their maximum number at one time; ``since`` is the second of the first rejection, and ``message`` is the
    API server's message for it. ``quota`` is ``shop/compute``. ``rejected_after`` pods are still rejected at the end.
    """

    workload: str
    quota: str
    message: str
    pods: int
    since: float = 0.0
    rejected_after: int = 0


class BudgetMinimum(SparseRecord, frozen=True, kw_only=True):
    """A budget affected by the simulation: the disruptions it allows at the start, at the minimum, and at the end.

    ``violations`` counts the evictions that the budget did not allow.
    """

    budget: str
    before: int
    min: int
    after: int
    violations: int = 0


class SimulatedWorkload(SparseRecord, frozen=True, kw_only=True):
    """A workload that is changed, or that lost pods.

    ``workload`` is a kind with ``namespace/name``: for a ReplicaSet's pods the Deployment, and ``Pod shop/one`` for a
    pod without an owner. ``ready_before`` pods are ready at the start, ``ready_min`` at the worst time, which is first
    reached after ``ready_min_at`` seconds, and ``ready_after`` at the end. ``desired_before`` and ``desired_after`` are
    its size, ``None`` if unknown. ``nodes_before`` and ``nodes_after`` count its pods by node, without terminating
    ones. ``victims`` pods were evicted, and ``pending_after`` have no node at the end. ``is_changed``: it is part of
    the change. ``is_done``: its rollout is complete. A workload that never started, because it waits for another one
    that is not done, is ``held_by`` that (``Job shop/migrate``).
    """

    workload: str
    is_changed: bool = False
    is_done: bool = True
    desired_before: int | None = None
    desired_after: int | None = None
    ready_before: int = 0
    ready_min: int = 0
    ready_min_at: float = 0.0
    ready_after: int = 0
    pending_after: int = 0
    victims: int = 0
    held_by: str = ""
    nodes_before: dict[str, int] = {}
    nodes_after: dict[str, int] = {}


class BrokenDependencyKind(StrEnum):
    """The kind of a broken dependency.

    ``Affinity``: a running pod must run near a pod that is gone. ``Service``: a Service that had ready pods has none
    left. ``DaemonSet``: the DaemonSet's pod on a node cannot be recreated.
    """

    AFFINITY = "Affinity"
    SERVICE = "Service"
    DAEMON_SET = "DaemonSet"


class BrokenDependency(SparseRecord, frozen=True, kw_only=True):
    """Something that lost a dependency without having been evicted itself.

    ``subject`` is a pod or a service with its namespace; ``missing`` are the pods that it depends on and that are gone.
    ``since`` and ``until`` are in seconds; ``until`` is ``None`` if the dependency is still broken at the end.
    ``ready_before`` is the number of ready pods that a Service had at the start.
    """

    kind: BrokenDependencyKind
    subject: str
    node: str = ""
    missing: list[str] = []
    since: float = 0.0
    until: float | None = None
    ready_before: int = 0


class SimulationEnd(StrEnum):
    """How a simulation ends: nothing more happens, a state repeats, or it is stopped at a limit.

    ``NotSimulated``: where pods land is unknown, because the input lacks nodes or pods.
    """

    SETTLED = "Settled"
    LOOP = "Loop"
    ABORTED = "Aborted"
    NOT_SIMULATED = "NotSimulated"


class Simulation(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """A simulation from start to end.

    ``seconds`` is the time of the last event. ``displaced`` are all victims, each followed by those evicted for its
    replacement; ``depth`` is the length of the longest such chain. ``starts_at`` is the time in seconds at which each
    of the initial pods is bound; pods that never are, are missing. ``draws`` counts the scheduler's random choices,
    and ``attempts`` its attempts.
    ``rejected`` are pods that ResourceQuotas reject. ``loop`` are the workloads that keep displacing each other, if the
    simulation ends in a loop.
    """

    end: SimulationEnd
    seconds: float
    depth: int
    starts_at: dict[str, float]
    displaced: list[Displaced]
    pending: list[UnscheduledPod]
    budgets: list[BudgetMinimum]
    workloads: list[SimulatedWorkload] = []
    broken_dependencies: list[BrokenDependency] = []
    rejected: list[QuotaRejection] = []
    loop: list[str] = []
    draws: int = 0
    attempts: int = 0
    steps: list[SimulationStep]
