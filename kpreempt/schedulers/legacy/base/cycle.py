"""A scheduling attempt for a pod, and its preemption (``Schedule`` and ``Preempt``, ``core/generic_scheduler.go``).

Differences from upstream: every node is filtered, while the real scheduler may stop once enough fit; nodes that fit are
not scored; and if the choice is random, the verdict has every possible node.

``with_effects`` adds the resulting actions of the scheduler in order (``scheduler.go``, ``preempt`` and
``scheduleOne``): it deletes victims at once, including those that are already terminating. If several nodes tie, the
effects are those on the first of them. ``evaluate_node`` reports every filter's result for one node, including filters
that the scheduler would skip.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from kpreempt.model.meta import controller_name
from kpreempt.model.pod import Pod
from kpreempt.phases import Phases
from kpreempt.schedulers.budgets import SelectingBudgets, claimed_in_order
from kpreempt.schedulers.equal_pods import unfollowed
from kpreempt.schedulers.legacy.base.extenders import Extender, ExtenderCaller
from kpreempt.schedulers.legacy.base.node_info import Cluster, NodeInfo, PodInfo
from kpreempt.schedulers.legacy.base.predicates import (
    DryRun,
    Filter,
    FilterRun,
    Importance,
    LegacyError,
    State,
    Victims,
    choose,
)
from kpreempt.schedulers.legacy.base.version import NO_NODES, Version
from kpreempt.schedulers.unread import READ_BY_OLD, DecidedPod, judged
from kpreempt.verdict import (
    Alternatives,
    Assumption,
    AssumptionKind,
    Candidate,
    Code,
    Effect,
    Eligibility,
    NodeEvaluation,
    Outcome,
    PodChoice,
    PossibleOutcome,
    Selection,
    Status,
    Verdict,
    Victim,
)
from kpreempt.verdict.status import is_permanent


class Cycle:
    """The state of one attempt, and its steps.

    ``frame`` is the verdict with everything known in advance. ``no_preemption`` says why preemption is disabled, if it
    is.
    """

    def __init__(
        self,
        version: Version,
        filters: Sequence[Filter],
        extenders: Sequence[Extender],
        cluster: Cluster,
        pod: Pod,
        frame: Verdict,
        phases: Phases,
        *,
        no_preemption: str = "",
    ) -> None:
        self._version = version
        self._extenders = extenders
        self._extender_calls = ExtenderCaller(extenders, version, cluster, pod)
        self._cluster = cluster
        self._pod = pod
        self._info = PodInfo(pod, cluster.accounting)
        self._frame = frame
        self._phases = phases
        self._no_preemption = no_preemption
        # Statuses of nodes that only an extender names.
        self._strangers: dict[str, Status] = {}
        self.fits = FilterRun(
            filters,
            cluster,
            self._info,
            stops_at_first=version.stops_at_first,
            counts_nominated=version.counts_nominated,
        )

    def run(self) -> Verdict:
        """Filter, then schedule or preempt."""
        evaluated: dict[str, Status] = {}
        try:
            self._version.check_pod(self._cluster, self._pod)
            if not self._cluster.node_infos:
                return self._verdict(Outcome.UNSCHEDULABLE, message=NO_NODES)
            with self._phases.phase("filter"):
                state = self._version.prepare_pod(self._cluster, self._info)
                evaluated = {each.name: self.fits.status(state, each) for each in self._cluster.node_infos}
                errors = [status.message for status in evaluated.values() if status.code == Code.ERROR]
                if errors:
                    # Each once, with its count; several as a list (``CreateAggregateFromMessageCountMap``).
                    counted = Counter(errors).items()
                    messages = [each if count == 1 else f"{each} (repeated {count} times)" for each, count in counted]
                    raise LegacyError(messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]")
                feasible, evaluated, self._strangers = self._extender_calls.filter_nodes(evaluated)
        except LegacyError as error:
            last = self._extender_calls.calls[-1] if self._extender_calls.calls else None
            extender = f" of extender {last.extender}" if last is not None and last.error and not last.ignored else ""
            return self._verdict(
                Outcome.UNSCHEDULABLE,
                reason=f"the scheduler fails with an error{extender}: {error}",
                message=str(error),
                filter=evaluated,
            )
        if feasible:
            return self._land(evaluated, feasible)
        return self._preempt(state, evaluated)

    def _land(self, evaluated: dict[str, Status], feasible: list[str]) -> Verdict:
        about, assumptions = f"Pod {self._pod.key}", []
        if len(feasible) > 1:
            problem = f"it fits on {len(feasible)} nodes; scores are not computed for {self._version.algorithm}"
            assumptions.append(Assumption(about, "spec", problem, AssumptionKind.UNCERTAIN))
            assumptions += [
                Assumption(f"Extender {each.name}", "prioritizeVerb", f"not called to score {about}")
                for each in self._extenders
                if each.is_prioritizer
            ]
        unknown = [node for node in feasible if node not in self._cluster.by_name]
        if unknown:
            problem = f"an extender accepts node {unknown[0]}, which is not in the cluster"
            assumptions.append(Assumption(about, "spec", problem, AssumptionKind.UNCERTAIN))
        return self._verdict(
            Outcome.LANDS,
            assumptions,
            filter=evaluated,
            feasible_nodes=feasible,
            chosen_nodes=feasible,
            lands_on=feasible,
        )

    def preempt(self, evaluated: dict[str, Status]) -> Verdict:
        """Try to preempt, given the failure on each node; raise ``LegacyError`` if the pod cannot be prepared."""
        return self._preempt(self._version.prepare_pod(self._cluster, self._info), evaluated)

    def _preempt(self, state: State, evaluated: dict[str, Status]) -> Verdict:
        message = self._version.message(len(evaluated), evaluated | self._strangers)
        eligibility = self._version.eligibility(self._cluster, self._info)
        if self._no_preemption:
            eligibility = Eligibility(False, self._no_preemption)
        if not eligibility.eligible:
            is_final = all(map(is_permanent, evaluated.values()))
            return self._verdict(
                Outcome.WAITS_FOR_VICTIMS if eligibility.is_waiting and not is_final else Outcome.UNSCHEDULABLE,
                filter=evaluated,
                permanently_unschedulable=is_final,
                eligibility=eligibility,
                message=message,
            )
        potential = [info for info in self._cluster.node_infos if self._version.may_help(evaluated[info.name])]
        with self._phases.phase("dryRun"):
            candidates, dry_run = self._dry_runs(state, potential)
        nominated: list[str] = []
        selection, left, error = None, candidates, ""
        with self._phases.phase("choice"):
            try:
                left, selection, nominated = self._choose(candidates)
            except LegacyError as failure:
                error = f"preemption fails with an error: {failure}"
        victims = {node: victims_of(left[node].pods, self._cluster.budgets) for node in nominated}
        alternatives = self._alternatives(left, nominated)
        # The scheduler's count of PDB violations, and the actual one.
        overdraws = any(use.remaining < 0 for node in nominated for victim in victims[node] for use in victim.budgets)
        outcome = Outcome.PREEMPTS if nominated else Outcome.UNSCHEDULABLE
        if overdraws or any(left[node].num_violations for node in nominated):
            outcome = Outcome.PREEMPTS_VIOLATING_BUDGETS
        # Lower-priority pods nominated to the chosen node (the first if several tie), or the pod itself if preemption
        # fails.
        if not self._version.clears_nominations:
            nominations_to_clear = []
        elif not potential:
            nominations_to_clear = [self._pod.key]
        else:
            nominations_to_clear = [
                info.key
                for node in nominated[:1]
                for info in self._cluster.nominated_pods.get(node, ())
                if info.priority < self._info.priority
            ]
        return self._verdict(
            outcome,
            [
                *unfollowed(alternatives),
                *self._version.assumptions_about_candidates(self._cluster, self._info, list(left)),
            ],
            alternatives=alternatives,
            reason=error,
            filter=evaluated,
            permanently_unschedulable=outcome == Outcome.UNSCHEDULABLE and all(map(is_permanent, evaluated.values())),
            eligibility=eligibility,
            potential_nodes=[info.name for info in potential],
            dry_run=dry_run,
            candidates=[
                Candidate(node, [info.key for info in each.pods], each.num_violations, each.steps)
                for node, each in left.items()
            ],
            selection=selection,
            nominated_nodes=nominated,
            victims=victims,
            nominations_to_clear=nominations_to_clear,
            message=message,
        )

    def _dry_runs(self, state: State, potential: list[NodeInfo]) -> tuple[dict[str, Victims], dict[str, Status]]:
        """Return the victims on nodes where preemption helps, and why it does not help on others."""
        version, now = self._version, self._cluster.now
        dry_run = DryRun(self.fits, version.importance(now), version.budget_rule, self._cluster.budgets)
        outcomes = {info.name: dry_run.select_victims(state, info) for info in potential}
        candidates = {node: found for node, found in outcomes.items() if isinstance(found, Victims)}
        return candidates, {node: found for node, found in outcomes.items() if isinstance(found, Status)}

    def _choose(self, candidates: dict[str, Victims]) -> tuple[dict[str, Victims], Selection | None, list[str]]:
        """Return the remaining candidates, the course of the choice, and the nodes that can be chosen."""
        criteria = self._version.criteria(self._cluster.now)
        if not self._version.calls_extenders_after_choice:
            candidates = self._extender_calls.process_preemption(candidates)
            if not candidates:
                return candidates, None, []
            selection = choose(candidates, criteria)
            return candidates, selection, selection.tied
        remaining = dict(candidates)
        while remaining:
            selection = choose(remaining, criteria)
            passing = [
                node
                for node in selection.tied
                if self._extender_calls.passes_without(self._cluster.by_name[node], remaining[node].pods)
            ]
            if passing:
                return candidates, msgspec.structs.replace(selection, tied=passing), passing
            for node in selection.tied:
                del remaining[node]
        return candidates, None, []

    def _alternatives(self, candidates: Mapping[str, Victims], nominated: Sequence[str]) -> Alternatives | None:
        """Return the outcomes of other orders of equal pods; ``None`` if the order is known or cannot matter."""
        if self._cluster.snapshot.has_scheduler_order or not nominated:
            return None
        importance = self._version.importance(self._cluster.now)
        parted = {node: part_equals(each, importance, self._cluster.budgets) for node, each in candidates.items()}
        if not any(each.choices for each in parted.values()):
            return None
        outcomes = [
            PossibleOutcome(node, parted[node].victims, parted[node].choices, candidates[node].num_violations)
            for node in nominated
        ]
        return Alternatives(outcomes, exact=all(each.is_exact for each in parted.values()))

    def _verdict(self, outcome: Outcome, assumptions: Sequence[Assumption] = (), **parts: object) -> Verdict:
        about = self._version.assumptions_about(self._cluster, self._pod)
        outcome, unread = judged(DecidedPod(self._pod, self._cluster.snapshot, outcome), READ_BY_OLD)
        verdict = msgspec.structs.replace(
            self._frame,
            outcome=outcome,
            extender_calls=self._extender_calls.calls,
            assumptions=[*self._frame.assumptions, *unread, *about, *assumptions],
            **parts,
        )
        return with_effects(verdict, self._pod, self._version, self._cluster)


_CUT = " ..."


def with_effects(verdict: Verdict, pod: Pod, version: Version, cluster: Cluster) -> Verdict:
    """Return the verdict with its ``effects``."""
    if verdict.outcome == Outcome.UNCERTAIN:
        return verdict
    target, words = f"pod {pod.key}", version.words
    if verdict.outcome == Outcome.LANDS:
        return msgspec.structs.replace(verdict, effects=[Effect("bind", target, f"node {verdict.lands_on[0]}")])
    # The message as an event carries it.
    event_text, encoded = verdict.message, verdict.message.encode()
    if words.event_limit is not None and len(encoded) > words.event_limit:
        event_text = encoded[: words.event_limit - len(_CUT)].decode(errors="ignore") + _CUT
    failure = [
        Effect("event", target, f"Warning FailedScheduling: {event_text}"),
        Effect("setCondition", target, f"PodScheduled=False Unschedulable: {verdict.message}"),
    ]
    effects = []
    if verdict.nominated_nodes:
        node = verdict.nominated_nodes[0]
        effects.append(Effect("nominate", target, f"{words.nomination}={node}"))
        waiting = {info.key for info in cluster.by_name[node].pods if version.is_waiting(info.pod)}
        for victim in verdict.victims[node]:
            victim_target = f"pod {victim.pod}"
            effects.append(Effect("delete", victim_target, f"grace period {victim.grace_period_seconds} s"))
            if victim.pod in waiting:
                effects.append(Effect("rejectWaiting", victim_target, "preempted"))
            event_text = words.preempted.format(pod=pod.key, node=node)
            effects.append(Effect("event", victim_target, f"Normal Preempted: {event_text}"))
    nominated = version.nominated_node(pod)
    # The pod itself loses its nomination even if it has none.
    cleared = [key for key in verdict.nominations_to_clear if key != pod.key or nominated]
    effects += [Effect("clearNomination", f"pod {key}", f"{words.nomination} is cleared") for key in cleared]
    if nominated and not verdict.nominated_nodes and pod.key not in verdict.nominations_to_clear:
        effects.append(Effect("keepNomination", target, f"{words.nomination}={nominated} stays"))
    effects = [*failure, *effects] if words.reports_failure_first else [*effects, *failure]
    return msgspec.structs.replace(verdict, effects=effects)


def victims_of(pods: Sequence[PodInfo], budgets: SelectingBudgets) -> list[Victim]:
    """Return the victims in order, each with the PDB allowances its eviction uses after those before it."""
    return [
        Victim(
            pod=info.key,
            priority=info.priority,
            owner=controller_name(info.pod.metadata),
            start_time=info.start,
            grace_period_seconds=info.pod.spec.grace_seconds,
            terminating=info.pod.metadata.deletion_timestamp is not None,
            budgets=taken,
        )
        for info, taken in zip(pods, claimed_in_order(budgets.selecting(info.pod) for info in pods), strict=True)
    ]


def evaluate_node(
    version: Version, filters: Sequence[Filter], cluster: Cluster, pod: Pod, node_info: NodeInfo
) -> NodeEvaluation:
    """Run all filters on the node, with and without its lower-priority pods; inputs are not changed."""
    info = PodInfo(pod, cluster.accounting)
    try:
        version.check_pod(cluster, pod)
        state = version.prepare_pod(cluster, info)
    except LegacyError as error:
        return NodeEvaluation(pre_filter=Status(Code.ERROR, [str(error)]))
    run = FilterRun(
        filters, cluster, info, stops_at_first=version.stops_at_first, counts_nominated=version.counts_nominated
    )
    lower = [each for each in node_info.pods if each.priority < info.priority]
    statuses = _statuses(run, state, node_info)
    without: list[Status] = []
    if lower:
        state, node_info = state.clone(), node_info.clone()
        for each in lower:
            node_info.remove_pod(each)
            state.remove_pod(each, node_info)
        without = _statuses(run, state, node_info)
    return NodeEvaluation(
        filters=statuses,
        lower_priority_pods=[each.key for each in lower],
        without_lower=without,
        nominated_pods=[each.key for each in run.nominated_pods(node_info.name)],
    )


def _statuses(run: FilterRun, state: State, node_info: NodeInfo) -> list[Status]:
    """Return each filter's status; a rejection with nominated pods takes precedence over one without them."""
    situations = run.situations(state, node_info)
    statuses = []
    for each in run.filters:
        answers = []
        for situation in situations:
            try:
                answers.append(each.check(*situation))
            except LegacyError as error:
                answers.append(Status(Code.ERROR, [str(error)]))
        rejections = (status for status in answers if not status.is_success)
        statuses.append(next(rejections, answers[-1]).of_plugin(each.name))
    return statuses


class Parted(NamedTuple):
    """The victims without equals that remain, and how many of each group of equals are evicted.

    ``is_exact`` means that equals do not differ in anything that a check or a budget reads, so others could be evicted
    instead.
    """

    victims: list[str]
    choices: list[PodChoice]
    is_exact: bool


def part_equals(victims: Victims, is_more_important: Importance, budgets: SelectingBudgets) -> Parted:
    """Separate victims with equals that are not evicted from the others."""
    groups: list[list[tuple[PodInfo, bool]]] = []
    evicted_keys = {info.key for info in victims.pods}
    for info in victims.candidates:
        for group in groups:
            first = group[0][0]
            if is_more_important(first, info) == is_more_important(info, first):
                group.append((info, info.key in evicted_keys))
                break
        else:
            groups.append([(info, info.key in evicted_keys)])
    certain: list[str] = []
    choices: list[PodChoice] = []
    is_exact = True
    for group in groups:
        going = [info.key for info, goes in group if goes]
        if len(going) in (0, len(group)):
            certain += going
            continue
        choices.append(PodChoice(len(going), [info.key for info, _ in group]))
        like = group[0][0].pod
        is_exact &= all(
            like.metadata.namespace == info.pod.metadata.namespace
            and like.metadata.labels == info.pod.metadata.labels
            and like.spec == info.pod.spec
            and budgets.selecting(like) == budgets.selecting(info.pod)
            for info, _ in group
        )
    return Parted(certain, choices, is_exact)
