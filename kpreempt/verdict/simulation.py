"""What happens after a scheduler's decision: who leaves when, who comes in their place, who is displaced in turn."""

from __future__ import annotations

from enum import StrEnum

from kpreempt.verdict.base import SparseRecord

# The reason of a step in which a pod is gone since its containers have ended well.
COMPLETED = "completed"
# The reason of a step in which a pod is evicted so that its node gets empty.
DRAINED = "drained"
# The reasons of a step in which a pod is kept from starting: a volume of it is attached to another node; the kubelet
# does not admit it.
ATTACHED_ELSEWHERE = "attached-elsewhere"
NOT_ADMITTED = "not-admitted"


class StepKind(StrEnum):
    """What happens in a step.

    ``Scales``: a controller gives a ReplicaSet another size. ``Arrives``: a pod is created. ``Lands``: it is bound.
    ``Nominated``: victims are told to go, and it waits for their room. ``Leaves``: a pod is told to go, and stops.
    ``Gone``: it has stopped, told to or not. ``Waits``: no node for it, and nobody whose going would help; not told of
    a pod that waited at the start, and does still. ``Refused``: the API server does not let it be created.
    ``Blocked``: it has a node and cannot start there, for now or at all.
    """

    SCALES = "Scales"
    ARRIVES = "Arrives"
    LANDS = "Lands"
    NOMINATED = "Nominated"
    LEAVES = "Leaves"
    GONE = "Gone"
    WAITS = "Waits"
    REFUSED = "Refused"
    BLOCKED = "Blocked"


class SimulationStep(SparseRecord, frozen=True, kw_only=True):
    """A step, ``at`` seconds from the start.

    ``pod`` is what the step is about, or the ReplicaSet that is given a size of ``replicas``. ``owner`` is what manages
    it (``ReplicaSet api``). ``cause`` is the pod for whose sake a victim leaves, the node that is deleted under it
    (``Node n1``), or the pod in whose place one is made; ``reason`` why a pod is deleted (``scale-down``, ``update``,
    ``node-deleted``, ``drained``), or is gone though nobody told it to go (``completed``). ``violated`` are budgets
    that the leaving of a victim breaks. ``tied`` are the nodes among which the scheduler draws. ``message`` is the
    scheduler's, of a pod that waits, or the API server's, of one that is refused, or says why a pod cannot start, of
    which the ``reason`` is ``attached-elsewhere`` or ``not-admitted``.
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
    """A pod that had to go, and what came of it.

    ``cause`` is the pod that it had to go for, which took the place of another one where ``depth`` is more than 1.
    ``workload`` is what it belongs to in the end (``Deployment shop/api``). ``replacement`` is the pod that is made in
    its place, if one is; ``lands_on`` is where that ends, empty where it waits still. ``with_node`` where it was not
    evicted, but went with its node, which ``cause`` then names (``Node n1``); ``drained`` where it was evicted so that
    that node gets empty. ``lost`` where nothing makes it again.
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


class Waiting(SparseRecord, frozen=True, kw_only=True):
    """A pod that has no node in the end, with the scheduler's last message.

    ``was_running`` where it took the place of one that ran. ``waited_before`` where it had no node at the start.
    ``workload`` is what it belongs to in the end (``Deployment shop/api``). ``uncertain`` where it cannot be told what
    becomes of it.
    """

    pod: str
    priority: int
    owner: str = ""
    workload: str = ""
    waited_before: bool = False
    uncertain: bool = False
    message: str = ""
    was_running: bool = False


class Refusal(SparseRecord, frozen=True, kw_only=True):
    """What a ResourceQuota keeps a workload from making.

    ``pods`` are so many at one moment, at most; ``since`` is the second at which the first of them is refused.
    ``message`` is the API server's, of that one. ``quota`` is ``shop/compute``. ``left`` are still refused in the end.
    """

    workload: str
    quota: str
    message: str
    pods: int
    since: float = 0.0
    left: int = 0


class BudgetLow(SparseRecord, frozen=True, kw_only=True):
    """A budget that the simulation touches: the disruptions that it allows before, at least, and in the end.

    ``violations`` counts the victims that it did not allow to go.
    """

    budget: str
    before: int
    least: int
    after: int
    violations: int = 0


class SimulatedWorkload(SparseRecord, frozen=True, kw_only=True):
    """What becomes of a workload that is changed, or of which a pod had to go.

    ``workload`` is a kind with ``namespace/name``, of a ReplicaSet's pods that of its Deployment, and ``Pod shop/one``
    for a pod without an owner. Of ready pods there are ``ready_before`` at the start, ``ready_least`` at the worst
    moment, which is first reached at ``least_at`` seconds, and ``ready_after`` in the end. ``wanted_before`` and
    ``wanted_after`` are its size, ``None`` where nothing says so. ``nodes_before`` and ``nodes_after`` count its pods
    by node, without those on their way out. ``victims`` had to go, ``pending_after`` have no node in the end.
    ``is_changed`` where the change is about it; ``is_done``: all that the change asks for has come about. One that
    never began, since it comes after something that is not done, is ``held_by`` that (``Job shop/migrate``).
    """

    workload: str
    is_changed: bool = False
    is_done: bool = True
    wanted_before: int | None = None
    wanted_after: int | None = None
    ready_before: int = 0
    ready_least: int = 0
    least_at: float = 0.0
    ready_after: int = 0
    pending_after: int = 0
    victims: int = 0
    held_by: str = ""
    nodes_before: dict[str, int] = {}
    nodes_after: dict[str, int] = {}


class StrandedKind(StrEnum):
    """Why something is stranded.

    ``Affinity``: a running pod requires to be near a pod that is gone. ``Service``: none of the pods of a service that
    had some is ready. ``DaemonSet``: the pod of a node cannot come back.
    """

    AFFINITY = "Affinity"
    SERVICE = "Service"
    DAEMON_SET = "DaemonSet"


class Stranded(SparseRecord, frozen=True, kw_only=True):
    """Something that is worse off than before without having been evicted itself.

    ``subject`` is a pod or a service with its namespace; ``missing`` are the pods that it needs and that are gone.
    ``since`` is the second from which on it is so, and ``until`` until when, ``None`` where it is so in the end.
    """

    kind: StrandedKind
    subject: str
    node: str = ""
    missing: list[str] = []
    since: float = 0.0
    until: float | None = None


class SimulationEnd(StrEnum):
    """How a simulation ends: nothing more happens, the same happens over and over, or it is broken off."""

    SETTLED = "Settled"
    LOOP = "Loop"
    BROKEN_OFF = "BrokenOff"


class Simulation(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """A simulation from its start to its end.

    ``seconds`` is when the last thing happens. ``displaced`` are all victims, each followed by those that had to go for
    what took its place; ``depth`` is the length of the longest such chain. ``starts_at`` is when each of the pods that
    came first is bound, in seconds; those that never are, are missing. ``draws`` counts the choices that the scheduler
    leaves to chance. ``refused`` is what ResourceQuotas do not let be made. ``loop`` are the workloads whose pods go
    round, where the simulation ends so.
    """

    end: SimulationEnd
    seconds: float
    depth: int
    starts_at: dict[str, float]
    displaced: list[Displaced]
    waiting: list[Waiting]
    budgets: list[BudgetLow]
    workloads: list[SimulatedWorkload] = []
    stranded: list[Stranded] = []
    refused: list[Refusal] = []
    loop: list[str] = []
    draws: int = 0
    steps: list[SimulationStep]
