"""What a version of the scheduler hands into the cycle that all share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from kpreempt.model.pod import Pod
from kpreempt.schedulers.choice import Criterion
from kpreempt.schedulers.legacy.base.budgets import BudgetRule
from kpreempt.schedulers.legacy.base.cluster import Cluster
from kpreempt.schedulers.legacy.base.filtering import Filter, State
from kpreempt.schedulers.legacy.base.messages import numbered_message
from kpreempt.schedulers.legacy.base.node_info import Accounting, PodInfo
from kpreempt.schedulers.legacy.base.resources import Amounts
from kpreempt.schedulers.legacy.base.victims import Importance
from kpreempt.verdict import Assumption, Code, Eligibility, Status

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

    algorithm: str
    accounting: Accounting
    # In the order in which they run; ``filters`` of a scheduler may be fewer.
    default_filters: Sequence[Filter]
    stops_at_first: bool = True
    counts_nominated: bool = True
    budget_rule: BudgetRule
    # 1.8 asks extenders whether the chosen node fits without its victims; later ones ask before they choose.
    asks_extenders_after_choice: bool = False
    clears_nominations: bool = True
    words: Words

    def nominated_node(self, pod: Pod) -> str:
        """The node that the pod is nominated to, or nothing."""
        return pod.status.nominated_node_name

    @abstractmethod
    def requests(self, pod: Pod) -> Amounts:
        """What the pod to be scheduled asks for."""

    def check_pod(self, cluster: Cluster, pod: Pod) -> None:  # noqa: B027 (most versions have nothing to check)
        """Raise ``LegacyError`` where the pod is given up before any node is looked at."""

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

    def importance(self, now: datetime) -> Importance:
        """Who is put back before whom: the higher priority."""
        return lambda one, other: one.priority > other.priority

    @abstractmethod
    def criteria(self, now: datetime) -> Sequence[Criterion]:
        """The rules of the choice."""

    def is_waiting(self, pod: Pod) -> bool:
        """Whether the pod has been given a node but waits to be bound, which its eviction ends (1.18)."""
        return False

    message: Callable[[int, dict[str, Status]], str] = staticmethod(numbered_message)

    def assumptions_about_candidates(self, cluster: Cluster, pod: PodInfo, nodes: Sequence[str]) -> list[Assumption]:
        """What is random in the search for victims on these nodes and shown in one of its ways."""
        return []

    def assumptions_about(self, cluster: Cluster, pod: Pod) -> list[Assumption]:
        """What of the pod or the cluster this version would take into account and is not modelled."""
        return []
