"""The rules that a version passes to the shared cycle, and its messages (``FitError``, v1.13.12)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, NamedTuple, Self

from kpreempt.model.pod import Pod
from kpreempt.schedulers.choice import Criterion
from kpreempt.schedulers.legacy.base.configuration import KIND, Dialect, Policy, configured_filters
from kpreempt.schedulers.legacy.base.node_info import Accounting, Amounts, Cluster, PodInfo, largest_request
from kpreempt.schedulers.legacy.base.predicates import BudgetRule, Filter, Importance, State
from kpreempt.verdict import Assumption, Code, Eligibility, Status

NO_NODES = "no nodes available to schedule pods"


def numbered_message(num_nodes: int, statuses: Mapping[str, Status]) -> str:
    """Format ``0/N nodes are available: 2 REASON, 3 OTHER.`` as in 1.13 and 1.18, sorted as text."""
    # A reason that a node has twice counts twice, as upstream.
    counts = Counter(reason for status in statuses.values() for reason in status.reasons)
    parts = sorted(f"{count} {reason}" for reason, count in counts.items())
    return f"0/{num_nodes} nodes are available: {', '.join(parts)}."


REASON_TERMINATING = "not eligible due to a terminating pod on the nominated node."


class Words(NamedTuple):
    """A version's messages for its actions.

    ``nomination`` is the field with the nominated node; ``preempted`` the text of a victim's event, with ``{pod}`` and
    ``{node}``. ``reports_failure_first`` means that the pod's own event comes before the preemption. ``event_limit`` is
    the maximum length of the event's text in bytes.
    """

    nomination: str
    preempted: str
    reports_failure_first: bool
    event_limit: int | None = None


class Version(ABC):
    """The rules of a version, in the order in which a scheduling cycle applies them."""

    dialect: Dialect
    accounting: Accounting
    # In the order in which they run.
    filters: Sequence[Filter]
    stops_at_first: bool = True
    counts_nominated: bool = True
    budget_rule: BudgetRule
    # 1.8 calls extenders for the chosen node without its victims; later versions call them before the choice.
    calls_extenders_after_choice: bool = False
    clears_nominations: bool = True
    words: Words
    # Assumptions about the filters.
    assumptions: Sequence[Assumption] = ()
    # Raises ``LegacyError`` if the attempt ends before any node is filtered.
    check_pod: Callable[[Cluster, Pod], None] = staticmethod(lambda _cluster, _pod: None)
    # Which of two pods is reprieved first: the one with the higher priority.
    importance: Callable[[datetime], Importance] = staticmethod(
        lambda _: lambda one, other: one.priority > other.priority
    )
    # The rules of the choice.
    criteria: Callable[[datetime], Sequence[Criterion]]
    # Whether the pod is assigned to a node but still waits to be bound, which its eviction prevents (1.18).
    is_waiting: Callable[[Pod], bool] = staticmethod(lambda _: False)
    message: Callable[[int, dict[str, Status]], str] = staticmethod(numbered_message)
    # Random parts of the search for victims on these nodes, of which one outcome is shown.
    assumptions_about_candidates: Callable[[Cluster, PodInfo, Sequence[str]], list[Assumption]] = staticmethod(
        lambda _cluster, _pod, _nodes: []
    )
    # Parts of the pod or the cluster that this version reads but that are not modeled.
    assumptions_about: Callable[[Cluster, Pod], list[Assumption]] = staticmethod(lambda _cluster, _pod: [])

    @classmethod
    @abstractmethod
    def configured(cls, gates: Mapping[str, bool], policy: Policy | None, ignored: frozenset[str]) -> Self:
        """Configure the version with gates and a Policy file; ``ignored`` resources are left to extenders.

        Raises ``ConfigurationError`` for predicates that make the scheduler exit.
        """

    @property
    def algorithm(self) -> str:
        """The name of the algorithm."""
        return self.dialect.algorithm

    def nominated_node(self, pod: Pod) -> str:
        """Return the node that the pod is nominated to, or an empty string."""
        return pod.status.nominated_node_name

    @abstractmethod
    def requests(self, pod: Pod) -> Amounts:
        """Return the requests of the pod to schedule."""

    @abstractmethod
    def prepare_pod(self, cluster: Cluster, pod: PodInfo) -> State:
        """Compute the pod's state for the filters; raise ``LegacyError`` if the cycle ends here."""

    def extender_rejection(self, extender: str, reason: str) -> Status:
        """Return a node's status when an extender rejects it; the scheduler assumes that evictions may help.

        Without a reason, the event's text does not count the node.
        """
        return Status(Code.NONE, [reason], extender) if reason else Status(Code.UNSCHEDULABLE, [], extender)

    @abstractmethod
    def may_help(self, status: Status) -> bool:
        """Return whether evictions may help after a rejection with that status."""

    def eligibility(self, cluster: Cluster, pod: PodInfo) -> Eligibility:
        """Return whether the pod may preempt: not while a lower-priority pod on its nominated node is terminating."""
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

    ``predicates`` are all that a Policy file may name, and ``label_reason`` is the reason of a node that fails a
    predicate on custom labels. ``unresolvable`` are the reasons that no eviction fixes
    (``nodesWherePreemptionMightHelp``). ``removed`` and ``mandatory``, by whether taints replace conditions, are the
    predicates that do not exist, and those that always run. ``ordering`` lists the only names that run, in order
    (``predicatesOrdering``); without it all named predicates run in file order, and none if the file names none.
    Resources that are ``ignored`` are left to extenders.
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
        """Configure the predicates that the file names, and the mandatory ones."""
        version = cls(by_taints=gates[BY_TAINTS], ignored=ignored)
        if policy is None:
            return version
        version.stops_at_first = cls.stops_at_first and not policy.always_check_all_predicates
        if policy.predicates is None and cls.ordering:
            return version
        mandatory = cls.mandatory[version._by_taints]
        named = configured_filters(policy.predicates or (), version._registered, mandatory, cls.label_reason)
        version.filters = [named[name] for name in cls.ordering or named if name in named]
        problem = "accepts this predicate but never runs it: it is not in the predicate order. It is not run here"
        version.assumptions = [
            Assumption(KIND, f"predicate {name}", f"{cls.dialect.algorithm.removeprefix('kube-')} {problem}")
            for name in named
            if name not in (cls.ordering or named)
        ]
        return version

    def requests(self, pod: Pod) -> Amounts:
        """Return the requests of all containers, or of an init container if larger."""
        return largest_request(pod, self.accounting.is_counted)

    def prepare_pod(self, cluster: Cluster, pod: PodInfo) -> State:
        state: State = self.metadata(cluster, pod, self.requests(pod.pod), self.ignored)
        return state

    def may_help(self, status: Status) -> bool:
        """Return whether none of the reasons is unresolvable."""
        return self.unresolvable.isdisjoint(status.reasons)
