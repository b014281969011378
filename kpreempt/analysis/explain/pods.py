"""The main question: what becomes of pods in a cluster, each of them on its own.

For a pod that preempts: the requests with which it is scheduled and nothing is evicted, proven by a verdict. The
filters say how much is free on the nodes that lack least, so few verdicts are enough; other changes are not tried here.

For a pod that evicts others or stays unschedulable: whether one more node of a kind that the cluster has would place
it. A new node's own filters say which kinds could take the pod; the smallest of them is proven by a whole verdict
on the cluster with that node. Autoscalers decide by rules of their own whether they add one; those are not modeled.

Also how full the nodes are that verdicts speak of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

import msgspec

from kpreempt.analysis.algorithms import AnalysisContext, Scheduler, timed_by_part
from kpreempt.analysis.explain.single_edits import edit_pod, lower_requests
from kpreempt.analysis.nodes.copies import (
    NewNodes,
    Sample,
    allocatable_of,
    informational_assumptions,
    informational_kind,
    with_nodes,
)
from kpreempt.analysis.unread import BUDGETS
from kpreempt.model.cluster import REDACTED_AT, ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.schedulers.kube.framework.resources import pod_requests, requests_in_units
from kpreempt.verdict import Assumption, ClusterSummary, DefaultedField, Outcome, PodSummary, Proposal, Verdict
from kpreempt.verdict.details import InsufficientResources
from kpreempt.verdict.story import NodeUse, Occupancy, OneMoreNode
from kpreempt.verdict.unread import unread_of

_PREEMPTS = (Outcome.PREEMPTS, Outcome.PREEMPTS_VIOLATING_BUDGETS)
_WANTS_ROOM = (Outcome.UNSCHEDULABLE, *_PREEMPTS)


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A pod as the scheduler would see it, and what is known of how it came to look so.

    ``origin`` is where it comes from (``Deployment shop/api``), empty for a plain pod. ``admission`` is what was filled
    in. ``found`` is the pod as the cluster has it, where it does, and ``manifest`` what a new one is made of.
    """

    pod: Pod
    found: Pod | None = None
    manifest: Pod | None = None
    origin: str = ""
    admission: list[DefaultedField] = []
    assumptions: list[Assumption] = []


GoesOn = Callable[[int, Verdict, Any], Verdict]


def explain_pods(
    context: AnalysisContext,
    questions: Iterable[Question],
    *,
    node_name: str = "",
    proposes: bool = False,
    simulates_on: bool = False,
    records_steps: bool = True,
    simulate_rest: GoesOn | None = None,
) -> list[Verdict]:
    """The verdict on each pod against the same cluster, in the order of the questions.

    With a ``node_name`` each verdict tells the whole story of that node; otherwise, where it ``proposes``, that of a
    pod which never lands says what would have to be different, and that of one which preempts the requests with which
    it need not. Where it ``simulates_on``, each tells what happens then, too. Nothing is changed. Raises
    ``NotFoundError`` for a node that is not in the cluster.

    Without ``records_steps`` only the best candidates carry the steps of choosing their victims, unless there is a
    ``node_name``. ``simulate_rest`` adds to each verdict what follows from it; it gets the place of the question and
    the cluster as the scheduler has it.
    """
    cluster, scheduler, phases, at = context.cluster, context.scheduler, context.phases, context.time
    if node_name:
        from kpreempt.analysis.nodes.changes import check_node  # noqa: PLC0415 - few ask about a node

        check_node(cluster, node_name)
    with phases.phase("prepare"):
        prepared = scheduler.prepare(cluster, now=at, expects_alike=simulate_rest is not None)
    verdicts = []
    within = timed_by_part(scheduler, phases)
    for place, question in enumerate(questions):
        verdict = explain_pod(
            cluster,
            question,
            scheduler,
            prepared,
            now=context.now,
            assumptions=context.assumptions,
            records_steps=records_steps or bool(node_name),
            phases=phases,
        )
        if node_name or (proposes and verdict.outcome == Outcome.UNSCHEDULABLE and cluster.nodes):
            with phases.phase("proposals"):
                verdict = _with_story(verdict, within, cluster, prepared, question, node_name, now=at)
        elif proposes and verdict.outcome in _PREEMPTS:
            with phases.phase("proposals"):
                # The requests with which nobody has to go, if they are found.
                stated = _stated_tolerations(question)
                found = requests_that_fit(within, prepared, question.pod, verdict, stated)
            verdict = verdict if found is None else msgspec.structs.replace(verdict, proposals=[found])
        if proposes and not node_name and verdict.outcome in _WANTS_ROOM and cluster.nodes:
            with phases.phase("proposals"):
                one_more = one_more_node(within, cluster, prepared, question.pod, verdict, now=at)
            verdict = msgspec.structs.replace(verdict, one_more_node=one_more)
        proposals = [*verdict.proposals, *(verdict.node_report.proposals if verdict.node_report is not None else ())]
        if any(each.outcome is not Outcome.LANDS for each in proposals):
            # A proposal has somebody evicted, and budgets may not have been read.
            both = dict.fromkeys([*verdict.assumptions, *unread_of(cluster, [BUDGETS])])
            verdict = msgspec.structs.replace(verdict, assumptions=list(both))
        if simulates_on:
            from kpreempt.analysis.simulation.engine import SimulationStart, simulate  # noqa: PLC0415 - few questions go on

            with phases.phase("aftermath"):
                aftermath, assumed, _ = simulate(
                    cluster, SimulationStart(arriving=[question.pod]), scheduler, now=at, prepared=prepared
                )
            both = dict.fromkeys([*verdict.assumptions, *assumed])
            verdict = msgspec.structs.replace(verdict, aftermath=aftermath, assumptions=list(both))
        if simulate_rest is not None:
            verdict = simulate_rest(place, verdict, prepared)
        verdicts.append(verdict)
    return verdicts


def _with_story(
    verdict: Verdict,
    scheduler: Scheduler,
    cluster: ClusterSnapshot,
    prepared: Any,
    question: Question,
    node_name: str,
    *,
    now: datetime,
) -> Verdict:
    """The verdict with the story of a node, and without a ``node_name`` with what would have to be different.

    What tries changes is loaded here: a pod that finds room needs none.
    """
    from kpreempt.analysis.explain.change_search import Situation  # noqa: PLC0415
    from kpreempt.analysis.explain.node_report import explain_node, propose  # noqa: PLC0415

    situation = Situation(cluster, prepared, question.pod, verdict)
    stated = _stated_tolerations(question)
    if node_name:
        story = explain_node(scheduler, situation, node_name, stated, now=now)
        return msgspec.structs.replace(verdict, node_report=story)
    found = propose(scheduler, situation, stated, now=now)
    return msgspec.structs.replace(verdict, proposals=found.proposals, proposal_search=found.search)


def _stated_tolerations(question: Question) -> int:
    """How many tolerations the pod has without those that admission added."""
    added = sum(each.path.startswith("spec.tolerations[") for each in question.admission)
    return max(0, len(question.pod.spec.tolerations) - added)


def explain_pod(
    cluster: ClusterSnapshot,
    question: Question,
    scheduler: Scheduler,
    prepared: Any,
    *,
    now: datetime,
    assumptions: Iterable[Assumption] = (),
    records_steps: bool = True,
    phases: Phases = NO_PHASES,
) -> Verdict:
    """The verdict on one pod in a cluster that ``scheduler`` has prepared, with all that is known around it."""
    verdict = scheduler.decide(prepared, question.pod, records_steps=records_steps, phases=phases)
    found, counts = question.found, []
    if found is not None and not found.spec.node_name:
        from kpreempt.analysis.pending.states import other_node_counts  # noqa: PLC0415 - most are about new pods

        counts = other_node_counts([found], len(cluster.nodes), now)
    return msgspec.structs.replace(
        verdict,
        pod=_found(msgspec.structs.replace(verdict.pod, origin=question.origin), found),
        cluster=described(verdict.cluster, cluster, now),
        admission=[*verdict.admission, *question.admission],
        assumptions=[*assumptions, *question.assumptions, *verdict.assumptions, *counts],
    )


def _found(summary: PodSummary, found: Pod | None) -> PodSummary:
    """The summary with where the pod is now, if it is on a node or has finished."""
    if found is None or not (found.spec.node_name or found.is_terminal):
        return summary
    phase = "Running" if found.status.phase == "Running" else "Pending"
    if found.is_terminal:
        phase = "Finished"
    elif found.metadata.deletion_timestamp is not None:
        phase = "Terminating"
    return msgspec.structs.replace(summary, current_node=found.spec.node_name, current_phase=phase)


def described(summary: ClusterSummary, cluster: ClusterSnapshot, now: datetime) -> ClusterSummary:
    """A scheduler's summary of a cluster with what the snapshot says of itself; a redacted one has no age."""
    taken_at = cluster.taken_at
    is_dated = taken_at is not None and taken_at != REDACTED_AT
    return msgspec.structs.replace(
        summary,
        version=cluster.version,
        taken_at=taken_at,
        age_seconds=max(0, int((now - taken_at).total_seconds())) if taken_at and is_dated else None,
        skipped=cluster.skipped,
    )


# Nodes whose filters are asked, and verdicts at most.
_LOOKED_AT = 12
_VERDICTS = 3
# On more nodes a verdict takes too long for what nobody asked for.
_MAX_NODES = 3000
# A request that is cut by more than that is another pod.
_MOST_CUT = 0.5

_Amounts = dict[str, tuple[int, int]]


def requests_that_fit(scheduler: Scheduler, prepared: Any, pod: Pod, verdict: Verdict, stated: int) -> Proposal | None:
    """The requests with which the pod lands, lowered by the smallest share; ``None`` where none of those tried do.

    None are sought on big clusters, where extenders would be called again, and where the order of volumes decides.
    """
    if len(verdict.filter) > _MAX_NODES or verdict.extender_calls or verdict.volume_choices is not None:
        return None
    verdicts = 0
    for node, amounts in _nearest(verdict)[:_LOOKED_AT]:
        edit = lower_requests(pod, amounts)
        if edit is None or verdicts == _VERDICTS:
            continue
        edited = edit_pod(pod, edit)
        evaluation = scheduler.describe_node(prepared, edited, node)
        if evaluation.pre_filter is not None or not all(status.is_success for status in evaluation.filters):
            continue
        verdicts += 1
        answer = scheduler.decide(prepared, edited, records_steps=False)
        if answer.outcome == Outcome.LANDS and answer.volume_choices is None:
            return Proposal(
                node=node,
                changes=list(edit.changes),
                options=edit.options(stated),
                outcome=answer.outcome,
                nodes=answer.lands_on,
            )
    return None


def _nearest(verdict: Verdict) -> list[tuple[str, _Amounts]]:
    """Nodes that lack resources, with what is requested and what is free of each; the least cut first."""
    found = []
    for node, status in verdict.filter.items():
        if not isinstance(status.detail, InsufficientResources):
            continue
        amounts = {each.resource: (each.requested, each.allocatable - each.used) for each in status.detail.shortfalls}
        cut = max((1 - after / max(before, 1) for before, after in amounts.values()), default=1.0)
        if "pods" not in amounts and cut <= _MOST_CUT:
            found.append((cut, node, amounts))
    return [(node, amounts) for _, node, amounts in sorted(found, key=lambda each: each[0])]


# On more nodes each verdict takes too long for what nobody asked for.
MAX_NODES = 5000
# On so many nodes a second kind is worth a verdict, too.
_FEW_NODES = 200
_MOST_VERDICTS = 8


def one_more_node(
    scheduler: Scheduler, cluster: ClusterSnapshot, prepared: Any, pod: Pod, verdict: Verdict, *, now: datetime
) -> OneMoreNode:
    """What is found for the pod, on which there is this verdict in the cluster; ``now`` is the snapshot's time.

    ``prepared`` is the cluster as the scheduler has made it ready.
    """
    if verdict.extender_calls:
        return OneMoreNode(not_searched="extenders would be called about nodes that there are not")
    if len(cluster.nodes) > MAX_NODES:
        return OneMoreNode(not_searched="not on a cluster of this size; --add-node NODE tries one")
    new = NewNodes(cluster, scheduler, now=now)
    taking = new.taking(pod)
    is_small = len(cluster.nodes) <= _FEW_NODES
    most = _MOST_VERDICTS if is_small else max(2, min(_MOST_VERDICTS, 4000 // len(cluster.nodes)))
    proved: list[Sample] = []
    nodes: list[str] = []
    assumed: list[Assumption] = []
    for sample in taking[:most]:
        grown = scheduler.prepare(with_nodes(cluster, sample.added), now=now, before=prepared)
        answer = scheduler.decide(grown, pod, records_steps=False)
        if answer.outcome is not Outcome.LANDS or answer.volume_choices is not None:
            continue
        if not proved:
            nodes = answer.lands_on or answer.chosen_nodes
            known = verdict.assumptions
            assumed = [*sample.added.assumptions, *(each for each in answer.assumptions if each not in known)]
        proved.append(sample)
        if not is_small:
            break
    return OneMoreNode(
        kinds=[informational_kind(sample.kind) for sample in proved],
        options=[f"--add-node={proved[0].kind.like.name}"] if proved else [],
        node=proved[0].name if proved else "",
        nodes=nodes,
        num_kinds=new.num_kinds,
        untried=new.untried + (0 if proved else len(taking[most:])),
        assumed=informational_assumptions(assumed),
    )


def occupancy_of(cluster: ClusterSnapshot, verdicts: Iterable[Verdict]) -> Occupancy:
    """Every node with what its pods request, those that are on their way out included, and the possible victims."""
    at_stake = {
        pod
        for verdict in verdicts
        for candidate in verdict.candidates
        for pod in (*candidate.victims, *(pod for each in candidate.possible for pod in each.pods))
    }
    used: dict[str, Counter[str]] = {}
    nominated: dict[str, list[str]] = {}
    requests = {}
    for pod in cluster.pods:
        if pod.is_terminal:
            continue
        if not pod.spec.node_name:
            if pod.status.nominated_node_name:
                nominated.setdefault(pod.status.nominated_node_name, []).append(pod.key)
            continue
        amounts = {**requests_in_units(pod_requests(pod)), "pods": 1}
        used.setdefault(pod.spec.node_name, Counter()).update(amounts)
        if pod.key in at_stake:
            requests[pod.key] = amounts
    nodes = {
        node.name: NodeUse(allocatable_of(node), dict(used.get(node.name, {})), nominated.get(node.name, []))
        for node in cluster.nodes
    }
    return Occupancy(nodes, requests)
