"""Extender calls for one pod (``schedule_one.go`` and ``framework/preemption/preemption.go``, v1.36.3).

Extenders are called after the scheduler's own filters, together with its scores, and before a preemption candidate is
chosen. The bind verb is never called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from kpreempt.model.pod import Pod
from kpreempt.model.quantity import wrap_int64
from kpreempt.phases import Phases
from kpreempt.schedulers.choice import CandidateVictims
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.cycle_state import CycleState, TreeKey
from kpreempt.schedulers.kube.framework.interface import MAX_NODE_SCORE, FrameworkError, NodeToStatus
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.verdict import Code, ExtenderCall, Status

if TYPE_CHECKING:
    # Few schedulers have extenders; only those load the protocol.
    from kpreempt.schedulers.extender_protocol import FilterAnswer, HttpExtender, NodeVictims

# The maximum score that an extender should return, which is not enforced.
MAX_EXTENDER_PRIORITY = 10

_T = TypeVar("_T")
_STATE_KEY = TreeKey("extenders")


class ExtenderSession:
    """A scheduler's extenders, called for one pod; ``calls`` records the requests and their results."""

    def __init__(self, extenders: Sequence[HttpExtender], cluster: ClusterState, pod: Pod, phases: Phases) -> None:
        self.calls: list[ExtenderCall] = []
        # Nodes rejected without a reason, and the extender that rejected them.
        self.rejected_silently: dict[str, str] = {}
        self._interested = [extender for extender in extenders if extender.is_interested(pod)]
        self._cluster = cluster
        self._pod = pod
        self._phases = phases

    @property
    def changed(self) -> set[str]:
        """The candidates whose victims or numbers of violated budgets the extenders changed."""
        return {node for call in self.calls for node in (*call.changed, *call.violations)}

    @property
    def concerns_victims(self) -> bool:
        """Whether any extender takes part in preemption."""
        return any(extender.supports_preemption for extender in self._interested)

    def filter(self, nodes: list[NodeInfo], statuses: NodeToStatus) -> list[NodeInfo]:
        """Return the nodes that all extenders accept; the reasons for rejected nodes go to ``statuses``.

        Each extender receives the nodes that the previous ones accepted. Raises ``FrameworkError`` if an extender that
        is not ignorable fails.
        """
        for extender in self._interested:
            if not nodes:
                break
            if not extender.is_filter:
                continue
            sent = nodes
            answer = self._call(extender, "filter", len(sent), partial(self._filtered, extender, sent))
            if answer is None:
                continue
            found, nodes = answer
            # A node that is in both maps is unresolvable.
            for code, refused in (
                (Code.UNSCHEDULABLE, found.failed),
                (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, found.unresolvable),
            ):
                for name, message in refused.items():
                    statuses.statuses[name] = Status(code, [message], plugin=extender.name)
            left = {node_info.name for node_info in nodes}
            reasons = found.failed | found.unresolvable
            names = [node_info.name for node_info in sent]
            self.rejected_silently |= {
                name: extender.name for name in names if name not in left and name not in reasons
            }
            self.calls.append(
                ExtenderCall(
                    extender.name,
                    "filter",
                    nodes_sent=len(sent),
                    rejected={name: reasons.get(name, "") for name in names if name not in left},
                    unresolvable=[name for name in names if name in found.unresolvable],
                    added=[node_info.name for node_info in nodes if node_info.name not in names],
                    returns_nodes=any(each.returned is not None for each in found.passing),
                )
            )
        return nodes

    def _filtered(self, extender: HttpExtender, nodes: Sequence[NodeInfo]) -> tuple[FilterAnswer, list[NodeInfo]]:
        from kpreempt.schedulers.extender_protocol import ExtenderError  # noqa: PLC0415

        answer = extender.filter(self._pod, [node_info.node for node_info in nodes])
        known = {node_info.name: node_info for node_info in nodes}
        passing: dict[str, NodeInfo] = {}
        for each in answer.passing:
            if each.name not in self._cluster.by_name:
                # The real scheduler would choose the node and then fail to bind the pod to it.
                raise ExtenderError(f'extender "{extender.name}" accepts node "{each.name}", which does not exist')
            # A node returned as an object is used as it is: upstream makes a node without pods from it and scores that.
            passing[each.name] = (
                known[each.name] if each.returned is None else NodeInfo(each.returned, (), self._cluster.behavior)
            )
        return answer, list(passing.values())

    def prioritize(self, nodes: Sequence[NodeInfo]) -> dict[str, dict[str, int]]:
        """Return the weighted scores from extenders: node to extender to score. A failing extender gives none."""
        names = {node_info.name for node_info in nodes}
        scores: dict[str, dict[str, int]] = {name: {} for name in names}
        for extender in self._interested:
            if not extender.is_prioritizer:
                continue
            given = self._call(
                extender,
                "prioritize",
                len(nodes),
                partial(extender.prioritize, self._pod, [node_info.node for node_info in nodes]),
                is_ignored=True,
            )
            if given is None:
                continue
            factor = extender.settings.weight * (MAX_NODE_SCORE // MAX_EXTENDER_PRIORITY)
            for each in given:
                if each.host in names:
                    of_node = scores[each.host]
                    of_node[extender.name] = wrap_int64(of_node.get(extender.name, 0) + each.score * factor)
            scored = {each.host: each.score for each in given if each.host in names}
            self.calls.append(ExtenderCall(extender.name, "prioritize", nodes_sent=len(nodes), scores=scored))
        return scores

    def process_preemption(self, candidates: Mapping[str, CandidateVictims]) -> dict[str, CandidateVictims]:
        """Return the candidates that extenders accept, with the victims that they name.

        Each extender receives the candidates that the previous ones accepted. Raises ``FrameworkError`` if an extender
        that is not ignorable fails, or names a node without victims.
        """
        from kpreempt.schedulers.extender_protocol import NodeVictims  # noqa: PLC0415

        left = {node: NodeVictims(victims.pods, victims.num_violations) for node, victims in candidates.items()}
        for extender in self._interested:
            if not left:
                break
            if not extender.supports_preemption:
                continue
            sent = left
            answer = self._call(extender, "preempt", len(sent), partial(self._nodes_after, extender, sent))
            if answer is None:
                continue
            left = answer
            self.calls.append(
                ExtenderCall(
                    extender.name,
                    "preempt",
                    nodes_sent=len(sent),
                    removed=[node for node in sent if node not in left],
                    added=[node for node in left if node not in sent],
                    changed={
                        node: [pod.key for pod in victims.pods]
                        for node, victims in left.items()
                        if _keys(victims) != _keys(sent.get(node))
                    },
                    violations={
                        node: victims.num_violations
                        for node, victims in left.items()
                        if node not in sent or victims.num_violations != sent[node].num_violations
                    },
                )
            )
        return {node: CandidateVictims(list(each.pods), each.num_violations) for node, each in left.items()}

    def _nodes_after(self, extender: HttpExtender, candidates: Mapping[str, NodeVictims]) -> dict[str, NodeVictims]:
        from kpreempt.schedulers.extender_protocol import ExtenderError  # noqa: PLC0415

        found = extender.process_preemption(self._pod, candidates, self._pods_of)
        without = [node for node, victims in found.items() if not victims.pods]
        if without and not extender.is_ignorable:
            raise ExtenderError(f'expected at least one victim pod on node "{without[0]}"')
        return {node: victims for node, victims in found.items() if victims.pods}

    def _pods_of(self, node_name: str) -> list[Pod] | None:
        node_info = self._cluster.by_name.get(node_name)
        return None if node_info is None else [pod_info.pod for pod_info in node_info.pods]

    def _call(
        self, extender: HttpExtender, verb: str, num_nodes: int, call: Callable[[], _T], *, is_ignored: bool = False
    ) -> _T | None:
        """Call an extender; ``None`` if it fails and is ignorable."""
        from kpreempt.schedulers.extender_protocol import ExtenderError  # noqa: PLC0415

        try:
            with self._phases.part(f"extender {extender.name}"):
                return call()
        except ExtenderError as error:
            is_ignored = is_ignored or extender.is_ignorable
            self.calls.append(ExtenderCall(extender.name, verb, num_nodes, error=str(error), ignored=is_ignored))
            if is_ignored:
                return None
            raise FrameworkError(Status(Code.ERROR, [str(error)], plugin=extender.name)) from error


def call_extenders(state: CycleState, extender_session: ExtenderSession) -> None:
    """Make a cycle with this state call the extenders, too."""
    state.write(_STATE_KEY, extender_session)


def extender_session_of(state: CycleState) -> ExtenderSession | None:
    """Return what calls the extenders for the pod of this state, if there are any."""
    extender_session = state.read(_STATE_KEY)
    return extender_session if isinstance(extender_session, ExtenderSession) else None


def _keys(victims: NodeVictims | None) -> list[str] | None:
    return None if victims is None else [pod.key for pod in victims.pods]
