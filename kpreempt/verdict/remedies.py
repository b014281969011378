"""What would help: changes that were applied in a simulation, and what they brought there.

Every command has the same record, so that a remedy has the same form whether a pod is pending, a rollout fails, a drain
is blocked or a Workload is not admitted.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from kpreempt.verdict.base import Record, UntrackedRecord


class RemedyStage(StrEnum):
    """When an expert would consider a remedy, earliest first.

    ``Repair``: something is broken, such as a pod that is not ready, a node that is gone or a stale annotation.
    ``Requester``: the pod or workload in question requests something else. ``Capacity``: a node is uncordoned or added.
    ``Limit``: a PodDisruptionBudget, a quota or another policy allows more. ``Priority``: the pod outranks others.
    ``Deletion``: an object is deleted.
    """

    REPAIR = "Repair"
    REQUESTER = "Requester"
    CAPACITY = "Capacity"
    LIMIT = "Limit"
    PRIORITY = "Priority"
    DELETION = "Deletion"


class ChangeKind(StrEnum):
    """The kind of a change. ``subject`` of the change is in parentheses.

    Changes to the pod in question: ``request`` (a resource), ``maxSkew``, ``nodeTaintsPolicy``, ``matchLabelKeys`` and
    ``topologySpread`` (a constraint), ``toleration`` (a taint), ``preference``, ``nodeSelector``, ``nodeAffinity``,
    ``podAffinity``, ``podAntiAffinity`` (what is dropped), ``labelValue`` (the requirement with another value),
    ``hostPort``, ``preemptionPolicy``, ``priority``, ``pin`` (a label).

    Changes to the cluster: ``set`` (an object, with a field and its new value; ``null`` removes the field), ``quota``
    (a resource of a flavor or queue, with the field of the quota, and the name of the resource as its value), ``scale``
    (a workload), ``repair`` (pods, or a node with the taint or device in ``field``), ``place`` (pods without a node),
    ``restart`` (a workload), ``uncordon`` and ``cordon`` (a node), ``addNode`` (a node that the new ones are like, with
    their allocatable resources as the value, and their number if there are several), ``budget`` (a
    PodDisruptionBudget), ``create`` (an object, with its most important field and value) and ``delete`` (an object).

    ``option``: the command gets an option (the option). ``order``: steps in another order (what to do first). ``wait``:
    nothing is done until a pod has terminated, or is ``scheduled`` (the field).
    """

    LABEL_VALUE = "labelValue"
    NODE_TAINTS_POLICY = "nodeTaintsPolicy"
    MATCH_LABEL_KEYS = "matchLabelKeys"
    REQUEST = "request"
    MAX_SKEW = "maxSkew"
    TOLERATION = "toleration"
    PREFERENCE = "preference"
    NODE_SELECTOR = "nodeSelector"
    NODE_AFFINITY = "nodeAffinity"
    POD_AFFINITY = "podAffinity"
    POD_ANTI_AFFINITY = "podAntiAffinity"
    SPREAD = "topologySpread"
    HOST_PORT = "hostPort"
    PREEMPTION_POLICY = "preemptionPolicy"
    PRIORITY = "priority"
    UNCORDON = "uncordon"
    BUDGET = "budget"
    CORDON = "cordon"
    PIN = "pin"
    SET = "set"
    QUOTA = "quota"
    RESTART = "restart"
    SCALE = "scale"
    REPAIR = "repair"
    PLACE = "place"
    ADD_NODE = "addNode"
    CREATE = "create"
    DELETE = "delete"
    OPTION = "option"
    ORDER = "order"
    WAIT = "wait"


class Change(UntrackedRecord, frozen=True, omit_defaults=True):
    """One change.

    ``before`` and ``after`` are set for numbers; for resources they are in milli-CPU, bytes or units. ``field`` is the
    path of a changed field in its object (``spec.strategy.type``), and ``value`` its new value.
    """

    kind: ChangeKind
    subject: str = ""
    before: int | None = None
    after: int | None = None
    field: str = ""
    value: Any = None


class ObjectEdit(Record, frozen=True, omit_defaults=True):
    """A change to an object (``Deployment shop/api``): a JSON merge patch, its creation, or its deletion.

    In a merge patch (RFC 7386), ``null`` removes a field, and a list replaces a list. If the edit ``creates`` the
    object, the patch is all of it. ``in_cluster`` means that the object in the cluster is edited, not its manifest.
    """

    object: str
    patch: dict[str, Any] = {}
    creates: bool = False
    deletes: bool = False
    in_cluster: bool = False


class Remedy(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Changes that together help, proven by a simulation with all of them.

    ``options`` are arguments with which the same command applies them, ``edits`` are what they change in the cluster or
    in the manifests. If a remedy has neither, its effect was simulated, but how to achieve it is up to the reader.

    ``solves`` the whole request, or else only the problem that it is listed for. ``nodes`` are those on which the pod
    then runs (several if the choice is random). ``evicted`` pods are evicted for it, or ``evictions`` of them if it is
    unknown which; all of them run again, or are replaced. ``stops`` are old pods of the same workload that are stopped
    first. Of the ``pods`` that wait for the same reason, ``scheduled`` then run. ``pending`` counts the pods that ran
    before and have no node at the end. No controller recreates the ``lost`` pods, and the ``interrupted`` workloads
    have no ready pod for a while; ``least_ready`` has the number of ready pods at the worst moment for workloads that
    have fewer than without the remedy. ``assumed`` lists assumptions of the simulation. ``clears_after`` is set if
    nothing needs to be done: the problem is over after this many seconds. ``manager`` is the custom resource (``Cluster
    db/pg``) whose operator may revert the changes.
    """

    stage: RemedyStage
    changes: list[Change]
    options: list[str] = []
    edits: list[ObjectEdit] = []
    solves: bool = True
    nodes: list[str] = []
    evicted: list[str] = []
    evictions: int = 0
    stops: list[str] = []
    scheduled: int = 0
    pods: int = 0
    pending: int = 0
    assumed: list[str] = []
    least_ready: dict[str, int] = {}
    lost: list[str] = []
    interrupted: list[str] = []
    clears_after: int | None = None
    manager: str = ""


class RemedySearch(Record, frozen=True, omit_defaults=True):
    """How thorough the search for remedies was: ``tried`` combinations of changes, and ``untried`` ones.

    ``reason`` says why it stopped or did not start: ``limit``, ``time``, ``size`` (of the cluster), or ``extender``,
    whose failure no change can fix; empty if all candidates were tried. ``kinds`` of new nodes were tried, and
    ``untried_kinds`` were not. ``extender_calls`` counts the calls that the search made.
    """

    tried: int = 0
    untried: int = 0
    reason: str = ""
    extender: str = ""
    extender_calls: int = 0
    kinds: int = 0
    untried_kinds: int = 0


class CauseKind(StrEnum):
    """A fact behind a rejection.

    ``RolloutDeadlock``: the old pods of the same workload (``pods``) hold what the new pod needs, and stay until the
    new pod is ready; ``subject`` is the workload, and ``nodes`` are where they run. ``NoSuchLabel``: no node has the
    label (``subject``) that the pod requires; ``values`` has the nodes by value that they have instead.
    ``TooLarge``: the pod requests more of a resource than any node has (``requested`` and ``largest`` in ``amounts``).
    ``NoSuchResource``: no node offers the resource; ``amounts`` has the capacity of nodes on which it is not
    allocatable. ``NodeGone``: a volume or claim (``subject``) is tied to nodes that do not exist (``nodes``).
    ``Parts``: what the request for a resource consists of (``amounts``), if it is not only the sum of the containers.
    ``Reserved``: the allocatable amount and the capacity of a node, ``allocatable`` and ``capacity`` in ``amounts``.
    ``EmptyDomain``: no pod can run in the domains (``nodes``) of a spread constraint that have the fewest pods.
    ``Fragmented``: enough of a resource is free in total (``free`` in ``amounts``), but at most ``most`` on a node
    (``nodes`` has one), of the ``requested``. ``OtherNode``: some of the ``pods`` in ``amounts`` (``pods``) that run on
    other nodes (``nodes``) and keep the pod out of a domain (``subject``); preemption evicts only pods of the node
    itself. ``NoDevices``: no ResourceSlice has a device for a node that rejects the claim (``subject``). ``Selector``:
    a CEL ``selector`` of the claim (``subject``), or of its device class (``resource``), rejects devices; ``values``
    has the nodes by what their devices have instead (``productName=L40S``).
    """

    ROLLOUT_DEADLOCK = "RolloutDeadlock"
    NO_SUCH_LABEL = "NoSuchLabel"
    TOO_LARGE = "TooLarge"
    NO_SUCH_RESOURCE = "NoSuchResource"
    NODE_GONE = "NodeGone"
    PARTS = "Parts"
    RESERVED = "Reserved"
    EMPTY_DOMAIN = "EmptyDomain"
    FRAGMENTED = "Fragmented"
    OTHER_NODE = "OtherNode"
    NO_DEVICES = "NoDevices"
    SELECTOR = "Selector"


class Cause(Record, frozen=True, omit_defaults=True):
    """A fact behind a rejection. ``resource`` is the resource, or what is held, in a few words (``host port 80/TCP``).

    Amounts are in milli-CPU, bytes and units. ``is_assumed``: the input lacks the strategy of the workload.
    """

    kind: CauseKind
    subject: str
    resource: str = ""
    pods: list[str] = []
    nodes: list[str] = []
    values: dict[str, list[str]] = {}
    amounts: dict[str, int] = {}
    selector: str = ""
    is_assumed: bool = False
