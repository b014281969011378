"""Volcano asked about one pod, as the other schedulers are, so that its answer can be held beside theirs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from kpreempt.analysis.questions import Decode
from kpreempt.analysis.volcano.sessions import Volcano, explain_submission, submit
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.model.volcano import VOLCANO_SCHEDULER_NAME
from kpreempt.model.wanted import NOTHING_WANTED
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.scheduler_table import VOLCANO
from kpreempt.schedulers.interface import NO_RULES, QueueRules, Settings
from kpreempt.schedulers.kube.versions import behaviour
from kpreempt.schedulers.volcano import VolcanoConfiguration
from kpreempt.verdict import (
    Assumption,
    Candidate,
    ClusterSummary,
    Code,
    NodeEvaluation,
    Outcome,
    PodSummary,
    Status,
    Verdict,
)
from kpreempt.verdict.at_risk import Standing
from kpreempt.verdict.volcano import Attempt, GangAnswer, GangOutcome

if TYPE_CHECKING:
    from kpreempt.schedulers.interface import PodChanges

_NO_BUDGETS = "Volcano asks no PodDisruptionBudget before it evicts; violations are not counted"
_NOT_TRIED = (GangOutcome.IGNORED, GangOutcome.INVALID, GangOutcome.NOT_ENQUEUED, GangOutcome.PANIC)
_SETTINGS = Settings(facts=behaviour()._asdict())


class Prepared(NamedTuple):
    """A cluster, and the time of the session."""

    cluster: ClusterSnapshot
    now: datetime


class VolcanoOfPods:
    """A scheduler that simulates a session with the one pod added, and tells what became of it.

    Pods that wait in the cluster are part of the session, so that a gang is complete where its other pods wait there.
    """

    algorithm = VOLCANO
    scheduler_names = frozenset({VOLCANO_SCHEDULER_NAME})
    wanted = NOTHING_WANTED
    tells_pods_apart = False
    goes_by_priority = False

    def __init__(self, configuration: VolcanoConfiguration, decode: Decode) -> None:
        self._configuration = configuration
        self._decode = decode

    def prepare(
        self,
        cluster: ClusterSnapshot,
        *,
        now: datetime,
        is_queued: bool = True,
        before: Prepared | None = None,
        changes: PodChanges | None = None,
        expects_alike: bool = False,
    ) -> Prepared:
        """Keep the cluster; a session looks at all of it anew."""
        return Prepared(cluster, now)

    @property
    def assumptions(self) -> list[Assumption]:
        """Those of its configuration, which every session has."""
        return list(self._configuration.assumptions)

    @property
    def settings(self) -> Settings:
        """Those of everybody: it has no feature gates."""
        return _SETTINGS

    def queue_rules(self, prepared: Callable[[], Prepared], phases: Phases = NO_PHASES) -> QueueRules:
        """None: Volcano's jobs are in no such queue."""
        return NO_RULES

    def decide(
        self,
        prepared: Prepared,
        pod: Pod,
        *,
        records_steps: bool = True,
        records_scores: bool = True,
        records_nodes: bool = True,
        phases: Phases = NO_PHASES,
        is_popped: bool = False,
    ) -> Verdict:
        """What the session makes of the pod."""
        cluster, now = prepared
        volcano = Volcano(self._configuration, now, with_scores=False)
        # While a simulation goes on, the pod is there and waits: it is itself, not one of the same name.
        others = [each for each in cluster.pods if each.key != pod.key or each.spec.node_name]
        cluster = msgspec.structs.replace(cluster, pods=others)
        submission = submit(cluster, now=now, decode=self._decode, pods=[(pod, "")])
        answer = explain_submission(submission, volcano, self._decode)[0]
        return _verdict(pod, cluster, answer)

    def tell_node(self, prepared: Prepared, pod: Pod, node_name: str) -> NodeEvaluation:
        """Nothing: a session does not look at one node for its own sake."""
        raise NotImplementedError

    def room_of_nodes(self, prepared: Prepared, pod: Pod, most: int) -> None:
        """Not known: a session decides about whole jobs."""

    def rank_victims(self, prepared: Prepared, node_name: str, priority: int) -> list[Standing]:
        """Nothing: who goes depends on the whole session."""
        raise NotImplementedError


def _verdict(pod: Pod, cluster: ClusterSnapshot, answer: GangAnswer) -> Verdict:
    task = next((task for task in answer.tasks if task.task == pod.key), None)
    attempts = [
        attempt
        for action in (answer.sessions[-1].actions if answer.sessions else ())
        for attempt in action.attempts
        if attempt.task == pod.key
    ]
    refused = attempts[-1].refused if attempts else {}
    victims = [victim.task for victim in answer.victims if victim.by == pod.key]
    outcome, node = Outcome.NEVER_LANDS, ""
    if answer.outcome in _NOT_TRIED:
        outcome = Outcome.NOT_SCHEDULED
    elif task is not None and task.status in ("Bound", "Pipelined"):
        outcome, node = (Outcome.PREEMPTS if victims else Outcome.LANDS), task.node
    lands = outcome is Outcome.LANDS
    budgets = [Assumption(VOLCANO, "PodDisruptionBudget", _NO_BUDGETS)] if victims else []
    return Verdict(
        algorithm=VOLCANO,
        outcome=outcome,
        reason=_reason(answer) if outcome is Outcome.NOT_SCHEDULED else "",
        pod=PodSummary(
            namespace=pod.metadata.namespace,
            name=pod.metadata.name,
            priority=pod.priority,
            priority_class_name=pod.spec.priority_class_name,
            scheduler_name=pod.spec.scheduler_name,
        ),
        cluster=ClusterSummary(nodes=len(cluster.nodes), pods=len(cluster.pods)),
        filter={name: Status(Code.UNSCHEDULABLE, [reason]) for name, reason in refused.items()},
        feasible_nodes=_fitting(cluster, refused) if lands else [],
        chosen_nodes=(_tied(attempts) or [node]) if lands else [],
        lands_on=[node] if lands else [],
        candidates=[Candidate(node, victims)] if victims else [],
        nominated_nodes=[node] if victims else [],
        message=task.message if task is not None and not node else "",
        assumptions=[*answer.assumptions, *budgets],
    )


def _reason(answer: GangAnswer) -> str:
    """Why the pod is not even tried."""
    if answer.outcome is GangOutcome.NOT_ENQUEUED:
        by = f", rejected by {answer.reason}" if answer.reason else ""
        return f"its pod group is not enqueued in queue {answer.queue}{by}"
    if answer.outcome is GangOutcome.PANIC:
        return f"the scheduler panics: {answer.reason}"
    return f"its pod group is {answer.outcome.lower()}: {answer.reason}"


def _fitting(cluster: ClusterSnapshot, refused: dict[str, str]) -> list[str]:
    return [node.metadata.name for node in cluster.nodes if node.metadata.name not in refused]


def _tied(attempts: list[Attempt]) -> list[str]:
    return attempts[-1].tied if attempts else []
