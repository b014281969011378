"""PodTopologySpread: matching pods per domain (``plugins/podtopologyspread/filtering.go``, v1.18.19).

Pods that are being deleted are not counted, but taken off when they are removed in a dry run. Constraints over one
topology key share their counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kpreempt.model.labels import LabelSelector
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.schedulers.legacy.base.filtering import LegacyError
from kpreempt.schedulers.legacy.base.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.legacy.v1_18.framework import CycleState, FilterPlugin, PodState, refused
from kpreempt.schedulers.legacy.v1_18.selectors import selector_error
from kpreempt.verdict import SUCCESS, Code, Status
from kpreempt.verdict.details import SpreadConflict

REASON = "node(s) didn't match pod topology spread constraints"

# The count of a path that no domain has taken (MaxInt32).
NO_COUNT = 2**31 - 1
MAX_DOMAINS = 20


class Constraint(NamedTuple):
    """A hard constraint; no selector selects nothing."""

    max_skew: int
    topology_key: str
    selector: LabelSelector | None

    def selects(self, pod: Pod) -> bool:
        """Whether the pod has the labels."""
        return self.selector is not None and self.selector.matches(pod.metadata.labels)


class CriticalPaths:
    """The domain with the fewest matching pods, and another one.

    Enough to know the minimum while only the counts of one node's domain change.
    """

    __slots__ = ("_first", "_second")

    def __init__(self, first: tuple[str, int] = ("", NO_COUNT), second: tuple[str, int] = ("", NO_COUNT)) -> None:
        self._first = first
        self._second = second

    @property
    def minimum(self) -> int:
        """The fewest matching pods of any domain; ``NO_COUNT`` where there is no domain."""
        return self._first[1]

    def clone(self) -> CriticalPaths:
        return CriticalPaths(self._first, self._second)

    def update(self, domain: str, count: int) -> None:
        """Take note of a domain's count, new or changed."""
        if domain == self._first[0]:
            self._first = (domain, count)
        elif domain == self._second[0]:
            self._second = (domain, count)
        elif count < self._first[1]:
            self._first, self._second = (domain, count), self._first
            return
        elif count < self._second[1]:
            self._second = (domain, count)
            return
        else:
            return
        if self._first[1] > self._second[1]:
            self._first, self._second = self._second, self._first


class SpreadState(PodState):
    """Matching pods per topology key and domain."""

    __slots__ = ("_namespace", "constraints", "counts", "paths")

    def __init__(self, pod: Pod) -> None:
        self._namespace = pod.metadata.namespace
        self.constraints = [
            Constraint(each.max_skew, each.topology_key, each.label_selector)
            for each in pod.spec.topology_spread_constraints
            if each.when_unsatisfiable == "DoNotSchedule"
        ]
        self.counts: dict[tuple[str, str], int] = {}
        self.paths = {constraint.topology_key: CriticalPaths() for constraint in self.constraints}

    def clone(self) -> SpreadState:
        """A copy with counts of its own."""
        copy = SpreadState.__new__(SpreadState)
        copy._namespace = self._namespace
        copy.constraints = self.constraints
        copy.counts = dict(self.counts)
        copy.paths = {key: paths.clone() for key, paths in self.paths.items()}
        return copy

    def count_all(self, pod: Pod, nodes: Sequence[NodeInfo]) -> None:
        """Count on the nodes that the pod's node affinity takes and that have all topology keys."""
        if not self.constraints:
            return
        for node_info in nodes:
            node = node_info.node
            if not pod.spec.selects(node.name, node.labels) or not self._has_all_keys(node):
                continue
            for constraint in self.constraints:
                matching = sum(1 for other in self._counted(node_info.pods) if constraint.selects(other))
                pair = (constraint.topology_key, node.labels[constraint.topology_key])
                self.counts[pair] = self.counts.get(pair, 0) + matching
        for (key, domain), count in self.counts.items():
            self.paths[key].update(domain, count)

    def _counted(self, pods: Sequence[PodInfo]) -> Iterator[Pod]:
        for other in pods:
            metadata = other.pod.metadata
            if metadata.deletion_timestamp is None and metadata.namespace == self._namespace:
                yield other.pod

    def _has_all_keys(self, node: Node) -> bool:
        return all(constraint.topology_key in node.labels for constraint in self.constraints)

    def update(self, moved: PodInfo, node: Node, delta: int) -> None:
        """A pod came to the node (1) or left it (-1), be it on its way out, and whatever the node affinity says."""
        pod = moved.pod
        if pod.metadata.namespace != self._namespace or not self._has_all_keys(node):
            return
        for constraint in self.constraints:
            if constraint.selects(pod):
                key = constraint.topology_key
                domain = node.labels[key]
                count = self.counts.get((key, domain), 0) + delta
                self.counts[key, domain] = count
                self.paths[key].update(domain, count)

    def shown_counts(self, key: str, domain: str) -> dict[str, int]:
        """Counts for a reader: of the domains with the fewest pods, and of ``domain``, in the order of names."""
        counts = {each: count for (of_key, each), count in self.counts.items() if of_key == key}
        fewest = sorted(counts, key=lambda each: (counts[each], each))[: MAX_DOMAINS - 1]
        return {each: counts[each] for each in sorted({*fewest, domain} & counts.keys())}


class PodTopologySpread(FilterPlugin):
    """Refuses nodes without a topology key, and those whose domain would have too many matching pods."""

    name = "PodTopologySpread"

    def pre_filter(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> SpreadState:
        """Count all pods; a selector that cannot be parsed ends the attempt."""
        state = SpreadState(pod.pod)
        for constraint in state.constraints:
            error = selector_error(constraint.selector)
            if error:
                raise LegacyError(f"obtaining pod's hard topology spread constraints: {error}")
        state.count_all(pod.pod, nodes)
        return state

    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        """The skew of each constraint if the pod came here; nothing is for good."""
        spread = state.of(SpreadState)
        labels = node_info.node.labels
        for constraint in spread.constraints:
            key = constraint.topology_key
            if key not in labels:
                missing = SpreadConflict(key, "", max_skew=constraint.max_skew, selector=_text(constraint))
                return refused(Code.UNSCHEDULABLE, REASON, detail=missing)
            count, minimum = spread.counts.get((key, labels[key]), 0), spread.paths[key].minimum
            self_match = int(constraint.selects(state.pod.pod))
            skew = count + self_match - minimum
            if skew > constraint.max_skew:
                detail = SpreadConflict(
                    topology_key=key,
                    topology_value=labels[key],
                    count=count,
                    self_match=self_match,
                    minimum=minimum,
                    skew=skew,
                    max_skew=constraint.max_skew,
                    selector=_text(constraint),
                    counts=spread.shown_counts(key, labels[key]),
                )
                return refused(Code.UNSCHEDULABLE, REASON, detail=detail)
        return SUCCESS


def _text(constraint: Constraint) -> str:
    return "nothing" if constraint.selector is None else str(constraint.selector)
