"""What a version of the scheduler hands into the cycle that all share, and its words (``FitError``, v1.13.12)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, NamedTuple, Self

from kpreempt.model.pod import Pod
from kpreempt.schedulers.choice import Criterion
from kpreempt.schedulers.legacy.base.configuration import KIND, Dialect, Policy, named_filters
from kpreempt.schedulers.legacy.base.node_info import Accounting, Amounts, Cluster, PodInfo, largest_request
from kpreempt.schedulers.legacy.base.predicates import BudgetRule, Filter, Importance, State
from kpreempt.verdict import Assumption, Code, Eligibility, Status

NO_NODES = "no nodes available to schedule pods"


def numbered_message(num_nodes: int, statuses: Mapping[str, Status]) -> str:
    """``0/N nodes are available: 2 REASON, 3 OTHER.``, of 1.13 and 1.18. The parts are sorted as text."""
    # A reason that a node has twice counts twice, as upstream counts.
    counts = Counter(reason for status in statuses.values() for reason in status.reasons)
    parts = sorted(f"{count} {reason}" for reason, count in counts.items())
    return f"0/{num_nodes} nodes are available: {', '.join(parts)}."


REASON_TERMINATING = "not eligible due to a terminating pod on the nominated node."


class Words(NamedTuple):
    """How a version writes down what it does.

    ``nomination`` is the field that holds the nominated node; ``preempted`` the text of a victim's event, with
    ``{pod}`` and ``{node}``. ``reports_failure_first`` says that the pod's own event comes before the preemption.
    ``event_limit`` is the number of bytes at which the event's text is cut.
    """

    nomination: str
    preempted: str
    reports_failure_first: bool
    event_limit: int | None = None


class Version(ABC):
    """The rules of one version, in the order in which a scheduling cycle comes to them."""

    dialect: Dialect
    accounting: Accounting
    # In the order in which they run.
    filters: Sequence[Filter]
    stops_at_first: bool = True
    counts_nominated: bool = True
    budget_rule: BudgetRule
    # 1.8 asks extenders whether the chosen node fits without its victims; later ones ask before they choose.
    asks_extenders_after_choice: bool = False
    clears_nominations: bool = True
    words: Words
    # What to know of the filters.
    assumptions: Sequence[Assumption] = ()
    # Raises ``LegacyError`` if the pod is given up before any node is looked at.
    check_pod: Callable[[Cluster, Pod], None] = staticmethod(lambda _cluster, _pod: None)
    # Which of two pods is put back first: the one with the higher priority.
    importance: Callable[[datetime], Importance] = staticmethod(
        lambda _: lambda one, other: one.priority > other.priority
    )
    # The rules of the choice.
    criteria: Callable[[datetime], Sequence[Criterion]]
    # Whether the pod has been given a node but waits to be bound, which its eviction ends (1.18).
    is_waiting: Callable[[Pod], bool] = staticmethod(lambda _: False)
    message: Callable[[int, dict[str, Status]], str] = staticmethod(numbered_message)
    # What is random in the search for victims on these nodes and shown in one of its ways.
    assumptions_about_candidates: Callable[[Cluster, PodInfo, Sequence[str]], list[Assumption]] = staticmethod(
        lambda _cluster, _pod, _nodes: []
    )
    # What of the pod or the cluster this version would take into account and is not modelled.
    assumptions_about: Callable[[Cluster, Pod], list[Assumption]] = staticmethod(lambda _cluster, _pod: [])

    @classmethod
    @abstractmethod
    def configured(cls, gates: Mapping[str, bool], policy: Policy | None, ignored: frozenset[str]) -> Self:
        """The version with these gates and this Policy file; resources that are ``ignored`` are left to extenders.

        Raises ``ConfigurationError`` for predicates with which the scheduler ends.
        """

    @property
    def algorithm(self) -> str:
        """Its name."""
        return self.dialect.algorithm

    def nominated_node(self, pod: Pod) -> str:
        """The node that the pod is nominated to, or nothing."""
        return pod.status.nominated_node_name

    @abstractmethod
    def requests(self, pod: Pod) -> Amounts:
        """What the pod to be scheduled asks for."""

    @abstractmethod
    def prepare_pod(self, cluster: Cluster, pod: PodInfo) -> State:
        """What the filters need to know of the pod; raises ``LegacyError`` where the cycle ends there."""

    def extender_refusal(self, extender: str, reason: str) -> Status:
        """A node's status where an extender refuses it; evictions may mend that, for all the scheduler knows.

        Without a reason the event's text does not count the node.
        """
        return Status(Code.NONE, [reason], extender) if reason else Status(Code.UNSCHEDULABLE, [], extender)

    @abstractmethod
    def may_help(self, status: Status) -> bool:
        """Whether evictions may mend a refusal with that status."""

    def eligibility(self, cluster: Cluster, pod: PodInfo) -> Eligibility:
        """Whether the pod may preempt: not while a pod of lower priority leaves its nominated node."""
        node_info = cluster.by_name.get(self.nominated_node(pod.pod))
        if node_info is not None and any(
            info.pod.metadata.deletion_timestamp is not None and info.priority < pod.priority for info in node_info.pods
        ):
            return Eligibility(False, REASON_TERMINATING)
        return Eligibility(True)


BY_TAINTS = "TaintNodesByCondition"
_IN_GENERAL_PREDICATES = frozenset(("HostName", "PodFitsHostPorts", "MatchNodeSelector", "PodFitsResources"))


class PredicateVersion(Version):
    """1.8 or 1.13, whose filters are predicates by name (``algorithmprovider/defaults/defaults.go``).

    ``predicates`` are all that a Policy file may name, and ``label_reason`` is what a node says that fails a predicate
    of custom labels. ``unresolvable`` are the reasons that no eviction fixes (``nodesWherePreemptionMightHelp``).
    ``removed`` and ``mandatory``, by whether taints stand for conditions, are the predicates that do not exist then,
    and those that run whatever the file names. ``ordering`` has the only names that run, in their order
    (``predicatesOrdering``); without one all run as they are named, and none if the file names none. Resources that are
    ``ignored`` are left to extenders.
    """

    predicates: ClassVar[Sequence[Filter]]
    label_reason: ClassVar[str]
    unresolvable: ClassVar[frozenset[str]]
    removed: ClassVar[Mapping[bool, frozenset[str]]]
    mandatory: ClassVar[Mapping[bool, Sequence[str]]]
    ordering: ClassVar[Sequence[str]] = ()
    # The state of a pod, which is a ``Metadata``.
    metadata: ClassVar[type[Any]]

    def __init__(self, *, by_taints: bool | None = None, ignored: frozenset[str] = frozenset()) -> None:
        self._by_taints = self.dialect.gates[BY_TAINTS] if by_taints is None else by_taints
        self._registered = [each for each in self.predicates if each.name not in self.removed[self._by_taints]]
        self.ignored = ignored
        self.filters = [each for each in self._registered if each.name not in _IN_GENERAL_PREDICATES]

    @classmethod
    def configured(cls, gates: Mapping[str, bool], policy: Policy | None, ignored: frozenset[str]) -> Self:
        """With the predicates that the file names, and the mandatory ones."""
        version = cls(by_taints=gates[BY_TAINTS], ignored=ignored)
        if policy is None:
            return version
        version.stops_at_first = cls.stops_at_first and not policy.always_check_all_predicates
        if policy.predicates is None and cls.ordering:
            return version
        mandatory = cls.mandatory[version._by_taints]
        named = named_filters(policy.predicates or (), version._registered, mandatory, cls.label_reason)
        version.filters = [named[name] for name in cls.ordering or named if name in named]
        problem = (
            "takes a predicate of this name and never runs it, for it has no place in the order; nor is it run here"
        )
        version.assumptions = [
            Assumption(KIND, f"predicate {name}", f"{cls.dialect.algorithm.removeprefix('kube-')} {problem}")
            for name in named
            if name not in (cls.ordering or named)
        ]
        return version

    def requests(self, pod: Pod) -> Amounts:
        """All containers, or an init container that asks for more."""
        return largest_request(pod, self.accounting.is_counted)

    def prepare_pod(self, cluster: Cluster, pod: PodInfo) -> State:
        state: State = self.metadata(cluster, pod, self.requests(pod.pod), self.ignored)
        return state

    def may_help(self, status: Status) -> bool:
        """Whether none of the reasons is on the list."""
        return self.unresolvable.isdisjoint(status.reasons)
