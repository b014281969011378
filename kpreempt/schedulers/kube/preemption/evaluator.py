"""A complete preemption, from eligibility to the choice, and the PostFilter plugin that runs it.

Follows ``framework/preemption/preemption.go``, v1.36.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import compress, islice, repeat
from operator import attrgetter, eq
from typing import ClassVar

import msgspec

from kpreempt.model.frozen import frozen
from kpreempt.model.pod import Pod
from kpreempt.schedulers.choice import CandidateVictims, Criterion, default_criteria, select_nodes
from kpreempt.schedulers.equal_pods import Steps
from kpreempt.schedulers.kube.extender_session import ExtenderSession, extender_session_of
from kpreempt.schedulers.kube.framework.answers import NonsenseError, checked_eligibility, integer, text_of
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import (
    BulkDryRun,
    FrameworkError,
    Handle,
    NodeToStatus,
    PluginError,
    PostFilterPlugin,
    PostFilterResult,
    PreemptionEvidence,
    Victims,
    no_node_message,
)
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.framework.out_of_tree import OutOfTreePlugin
from kpreempt.schedulers.kube.framework.runner import FilteredNodes, Framework, ProfilePlugins
from kpreempt.schedulers.kube.preemption.importance import BudgetIndex, stand_in_order
from kpreempt.schedulers.kube.preemption.odds import SampledCandidate, odds_of, search_order
from kpreempt.schedulers.kube.preemption.remembered import CachedDryRun, RememberedDryRuns, rank_of
from kpreempt.schedulers.kube.preemption.rules import PreemptionRules, criteria_of
from kpreempt.schedulers.kube.preemption.ties import MAX_STEPS, alternatives_of
from kpreempt.schedulers.kube.preemption.victims import select_victims
from kpreempt.verdict import (
    SUCCESS,
    Alternatives,
    Candidate,
    Code,
    Eligibility,
    Odds,
    Reprieve,
    SearchOrder,
    Selection,
    Status,
)
from kpreempt.verdict.status import FOUND_PLACEMENT

REASON_NOT_HELPFUL = "Preemption is not helpful for scheduling"
REASON_NO_CANDIDATE = "no candidate node for preemption"


# Up to this many nodes are tried one by one if the results for the others are cached.
_SMALL_CLUSTER = 4
# Candidates whose steps are recorded when not all are requested: those shown to users.
MAX_WITH_STEPS = 5

# A candidate that violates a budget, if another one does not.
_NO_RIVAL = SampledCandidate(violates_budgets=True, rank=())


class Evaluator:
    """Runs preemptions on one cluster, with a plugin's rules."""

    def __init__(self, handle: Handle, rules: PreemptionRules) -> None:
        assert isinstance(handle.framework, Framework)
        self._handle = handle
        self._framework = handle.framework
        self._rules = rules
        self._cluster = handle.cluster
        self._chooses_victims = rules.chooses_victims

    @cached_property
    def _budgets(self) -> BudgetIndex:
        stops = self._handle.behavior.stops_at_violated_budget
        memory = self._framework.memory
        before = memory.budgets if memory is not None else None
        budgets = BudgetIndex(self._cluster.cluster.pod_disruption_budgets, before, stops_at_violated=stops)
        if memory is not None:
            memory.budgets = budgets
        return budgets

    def preempt(self, state: CycleState, pod: Pod, filtered: NodeToStatus) -> tuple[PostFilterResult | None, Status]:
        """Select the victims.

        Returns Success with the nodes that may be chosen; Unschedulable with no node if no eviction helps, which clears
        an earlier nomination; Unschedulable and no nomination result if the pod may not preempt now.
        """
        eligibility = checked_eligibility(self._rules.eligibility(state, pod, filtered))
        if not eligibility.eligible:
            evidence = PreemptionEvidence(eligibility, [], {}, [], None)
            return PostFilterResult(None, evidence), Status(Code.UNSCHEDULABLE, [eligibility.reason])
        if isinstance(filtered, FilteredNodes) and self._needs_best_only(state):
            with state.phases.phase("dryRun"):
                best = self._best_candidates(state, pod, filtered.resolvable)
            if best:
                return self._nominating(_evidence_of(eligibility, best))
        potential = potential_nodes(self._cluster.node_infos, filtered)
        with state.phases.phase("dryRun"):
            tried, steps_of = self._dry_runs(state, pod, potential, filtered)
        helped = [each for each in tried if each.helps]
        dry_run = {each.name: each.victims.status for each in tried if not each.helps}
        in_vain = PreemptionEvidence(eligibility, [each.name for each in potential], dry_run, [], None)
        if not helped:
            return self._without_candidate(in_vain)
        victims = {each.name: each.of_choice for each in helped}
        reviewed: list[Candidate] | None = None
        extender_session = extender_session_of(state)
        reviewing = extender_session if extender_session is not None and extender_session.concerns_victims else None
        if reviewing is not None:
            try:
                victims, reviewed = _reviewed(reviewing, victims, helped)
            except FrameworkError as error:
                return PostFilterResult(None, in_vain), error.status
            if not reviewed:
                return PostFilterResult(None, in_vain), Status(Code.UNSCHEDULABLE, [REASON_NO_CANDIDATE])
        with state.phases.phase("choice"):
            # The plugin's own rules of the choice, if any.
            own: tuple[Criterion, ...] = ()
            if self._rules.overrides("ordered_score_functions"):
                frozen_victims = {
                    node: each._replace(pods=list(map(frozen, each.pods))) for node, each in victims.items()
                }
                own = criteria_of(self._rules.ordered_score_functions(frozen_victims))
            criteria = own or default_criteria(self._cluster.now)
            # It is unknown what an extender or a plugin's own rules would do with some of the candidates, or with other
            # victims. With such rules, a candidate that violates no budget does not always win.
            is_default = not own and reviewing is None
            is_short = is_default and not state.records_scores
            selection = (
                Selection([], [each.name for each in _best(helped, self._cluster.now)])
                if is_short
                else select_nodes(victims, criteria)
            )
        with state.phases.phase("odds"):
            odds = (
                self._odds(in_vain.potential_nodes, helped, self._search_order(state, pod, filtered))
                if is_default and state.records_odds
                else None
            )
        alternatives = None
        if state.records_odds:
            alternatives = self._alternatives(state, helped, victims, criteria, selection, is_default=is_default)
        if reviewed is not None:
            candidates = reviewed
        elif state.records_scores:
            candidates = [each.candidate for each in helped]
        else:
            candidates = _that_may_win(helped, selection, odds, alternatives)
        if not state.records_steps and state.records_scores:
            with state.phases.phase("dryRun"):
                candidates = self._with_steps_of_best(state, pod, candidates, selection, helped, steps_of)
        evidence = PreemptionEvidence(
            eligibility,
            in_vain.potential_nodes,
            dry_run,
            candidates,
            selection,
            odds,
            alternatives=alternatives,
            depends_on_budget_order=any(each.victims.depends_on_budget_order for each in helped),
        )
        return self._nominating(evidence)

    def _needs_best_only(self, state: CycleState) -> bool:
        """Return whether the default rules choose, and only the candidates that they may choose matter."""
        session = extender_session_of(state)
        return not (
            state.records_steps
            or state.records_scores
            or state.records_odds
            or self._chooses_victims
            or self._rules.overrides("ordered_score_functions")
            or (session is not None and session.concerns_victims)
        )

    def _best_candidates(self, state: CycleState, pod: Pod, potential: bytearray) -> list[CachedDryRun]:
        """Return the candidates that the default rules may choose; none if all dry runs are needed to find them.

        ``potential`` marks the potential nodes. Only those that changed since the last dry run are tried.
        """
        remembered = self._remembered(state, pod, with_steps=False)
        if remembered is None or remembered.is_nominated:
            return []
        steps = Steps(MAX_STEPS)
        untried = [self._cluster.node_infos[place] for place in remembered.untried() if potential[place]]
        is_at_once = len(untried) > _SMALL_CLUSTER
        at_once = self._try_at_once(state, pod, untried, steps, is_brief=True) if is_at_once else BulkDryRun({})
        known = at_once.brief.helpful.keys() | at_once.brief.useless
        new = self._try(state, pod, [each for each in untried if each.name not in known], steps, at_once)
        if steps.remaining <= 0:
            return []
        remembered.remember_brief(at_once.brief)
        remembered.remember(new)
        return remembered.best(potential)

    def _without_candidate(self, in_vain: PreemptionEvidence) -> tuple[PostFilterResult, Status]:
        """Return the result if no eviction helps: an error, if a dry run ended with one."""
        error = first_error(in_vain.dry_run)
        if error is not None:
            return PostFilterResult(None, in_vain), error
        statuses = NodeToStatus()
        statuses.statuses = in_vain.dry_run
        statuses.absent = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [REASON_NOT_HELPFUL])
        message = no_node_message(len(self._cluster.node_infos), statuses)
        return PostFilterResult([], in_vain), Status(Code.UNSCHEDULABLE, [message])

    def _nominating(self, evidence: PreemptionEvidence) -> tuple[PostFilterResult, Status]:
        """Return the result if there are candidates."""
        assert evidence.selection is not None
        tied = evidence.selection.tied
        if not self._handle.behavior.reports_preemption:
            return PostFilterResult(tied, evidence), SUCCESS
        # The message names one node. The recorded runs chose the middle one of the tied nodes.
        node = tied[len(tied) // 2]
        victims = next(each.victims for each in evidence.candidates if each.node == node)
        found = f"{FOUND_PLACEMENT}{node}, preempting {len(victims)} victims"
        return PostFilterResult(tied, evidence, node), Status(Code.SUCCESS, [found])

    def _alternatives(
        self,
        state: CycleState,
        helped: Iterable[CachedDryRun],
        victims: Mapping[str, CandidateVictims],
        criteria: Sequence[Criterion],
        selection: Selection,
        *,
        is_default: bool,
    ) -> Alternatives | None:
        """Return what other orders of equal pods lead to, if the actual order is unknown."""
        open_ones = {
            each.name: outcomes for each in helped if (outcomes := each.victims.outcomes) and each.name in victims
        }
        if not open_ones:
            return None
        with state.phases.phase("choice"):
            # Unless victims are sorted again, those that violate a budget come first, in any order.
            knows_first_victims = self._handle.behavior.sorts_victims_again or not any(
                possible.num_violations for each in open_ones.values() for possible in each.possible
            )
            is_exact = is_default and knows_first_victims
            return alternatives_of(victims, open_ones, criteria, selection.tied, is_exact=is_exact)

    def _dry_runs(
        self, state: CycleState, pod: Pod, potential: list[NodeInfo], filtered: NodeToStatus
    ) -> tuple[list[CachedDryRun], Callable[[str], list[Reprieve] | None]]:
        """Find the victims on every potential node, in bulk if possible and one by one otherwise.

        Also returns a function that lists the steps on nodes evaluated in bulk.
        """
        steps = Steps(MAX_STEPS)
        # If PreFilter rejected the pod on all nodes, no filter has evaluated them yet.
        is_filtered = filtered.absent.code != Code.UNSCHEDULABLE
        remembered = self._remembered(state, pod, with_steps=state.records_steps) if is_filtered else None
        known: list[CachedDryRun | None] = (
            remembered.recall([each.name for each in potential]) if remembered is not None else [None] * len(potential)
        )
        untried = [node_info for node_info, tried in zip(potential, known, strict=True) if tried is None]
        is_worth_it = len(untried) == len(potential) or len(untried) > _SMALL_CLUSTER
        is_at_once = is_filtered and is_worth_it
        at_once = self._try_at_once(state, pod, untried, steps) if is_at_once else BulkDryRun({})
        new = self._try(state, pod, untried, steps, at_once)
        # A result that is unknown for lack of steps may be found another time.
        if remembered is not None and steps.remaining > 0:
            remembered.remember(new)
        rest = iter(new)
        return [next(rest) if each is None else each for each in known], at_once.steps_of

    def _try_at_once(
        self, state: CycleState, pod: Pod, untried: Sequence[NodeInfo], steps: Steps, *, is_brief: bool = False
    ) -> BulkDryRun:
        """Dry-run these nodes in bulk, as far as possible."""
        if self._handle.dry_run_at_once is None or self._chooses_victims:
            return BulkDryRun({})
        # Bulk runs use one order for all nodes, so they exclude nodes whose order is known from a recording.
        has_order = self._cluster.cluster.has_scheduler_order
        unordered = [each for each in untried if has_order or not self._in_order(pod, each)]
        if not unordered:
            return BulkDryRun({})
        return self._handle.dry_run_at_once(
            state, pod, unordered, self._budgets, None if has_order else steps, is_brief
        )

    def _try(
        self, state: CycleState, pod: Pod, untried: Sequence[NodeInfo], steps: Steps, at_once: BulkDryRun
    ) -> list[CachedDryRun]:
        """Return the results for these nodes; those that are not known ``at_once`` are dry-run one by one."""
        new = []
        for node_info in untried:
            found = at_once.victims.get(node_info.name)
            if found is None:
                orders = None if self._in_order(pod, node_info) else steps
                found = self._dry_run(state, pod, node_info, orders)
            new.append(CachedDryRun(node_info.name, found))
        return new

    def _remembered(self, state: CycleState, pod: Pod, *, with_steps: bool) -> RememberedDryRuns | None:
        """Return cached dry runs of such pods if no other node affects them and the plugin has no custom rules."""
        # If all filters are node-local, no plugin can distinguish pods with the same requirements on a node.
        findings = state.scheduling_findings or state.findings
        if findings is None or self._chooses_victims or not self._framework.all_filters_are_node_local(state):
            return None
        return RememberedDryRuns(findings, pod, self._cluster, self._budgets, with_steps=with_steps)

    def _dry_run(self, state: CycleState, pod: Pod, node_info: NodeInfo, orders: Steps | None) -> Victims:
        try:
            now = self._cluster.now
            outcome = select_victims(self._framework, self._rules, state, pod, node_info, self._budgets, now, orders)
        except FrameworkError as error:
            return Victims(error.status, [], 0, [])
        except PluginError as error:
            whose = f'plugin "{self._rules.name}": ' if isinstance(error, NonsenseError) else ""
            return Victims(Status(Code.ERROR, [f"{whose}{text_of(error)}"], plugin=self._rules.name), [], 0, [])
        if outcome.status.is_success and not outcome.pods:
            reason = f'expected at least one victim pod on node "{node_info.name}"'
            return outcome._replace(status=Status(Code.ERROR, [reason]))
        return outcome

    def _in_order(self, pod: Pod, node_info: NodeInfo) -> bool:
        """Return whether the evictable pods of a node are known to be in the scheduler's order."""
        priority = None if self._chooses_victims else pod.priority
        return stand_in_order(self._cluster.cluster, node_info, priority, scheduler=pod.spec.scheduler_name)

    def _search_order(self, state: CycleState, pod: Pod, filtered: NodeToStatus) -> SearchOrder:
        """Return the order in which a search goes through the rejected nodes."""
        # A nominated node is evaluated before all others, and nodes rejected by extenders are recorded after them.
        is_evaluated_first = pod.status.nominated_node_name in filtered.statuses
        return search_order(filtered, is_list_known=not is_evaluated_first and extender_session_of(state) is None)

    def _odds(self, potential: list[str], helped: Sequence[CachedDryRun], order: SearchOrder) -> Odds | None:
        """Return the odds of each outcome if the real search stops before it has evaluated all nodes."""
        requested = integer(self._rules.num_candidates(len(potential)), "num_candidates")
        if requested < 0:
            raise NonsenseError(f"num_candidates returned {requested}, which is not a valid number of candidates")
        if requested >= len(potential):
            return None
        # Only these can win: if there is a candidate without violations, every search includes one.
        has_clean = any(not each.victims.num_violations for each in helped)
        sampled = {
            each.name: _NO_RIVAL if has_clean and each.victims.num_violations else rank_of(each, self._cluster.now)
            for each in helped
        }
        return odds_of(potential, sampled, requested, order=order, parallelism=self._handle.parallelism)

    def _with_steps_of_best(
        self,
        state: CycleState,
        pod: Pod,
        candidates: list[Candidate],
        selection: Selection,
        helped: Sequence[CachedDryRun],
        steps_of: Callable[[str], list[Reprieve] | None],
    ) -> list[Candidate]:
        """Add the steps of victim selection to the candidates that lasted longest in the choice.

        ``helped`` has the victims of all, and ``steps_of`` lists the steps on nodes evaluated in bulk.
        """
        best = dict.fromkeys(selection.tied[:MAX_WITH_STEPS])
        for each in reversed(selection.rounds):
            if len(best) >= MAX_WITH_STEPS:
                break
            others = (name for name in each.values if name not in best)
            best |= dict.fromkeys(islice(others, MAX_WITH_STEPS - len(best)))
        remembered = self._remembered(state, pod, with_steps=True)
        known = dict(zip(best, remembered.recall(best), strict=True)) if remembered is not None else {}
        new: list[CachedDryRun] = []
        for found in helped:
            if found.name not in best or known.get(found.name) is not None:
                continue
            steps = steps_of(found.name)
            if steps is None:
                node_info = self._cluster.by_name[found.name]
                # The effect of the order of equal pods is already known; only the steps are missing.
                orders = None if self._in_order(pod, node_info) else Steps(0)
                steps = self._dry_run(state, pod, node_info, orders).steps
            new.append(CachedDryRun(found.name, found.victims._replace(steps=steps)))
        if remembered is not None:
            remembered.remember(new)
        tried = {name: tried for name, tried in known.items() if tried} | {each.name: each for each in new}
        # Nodes that were tried one by one have their steps already.
        is_at_once = self._handle.dry_run_at_once is not None and not self._chooses_victims

        def with_steps(candidate: Candidate) -> Candidate:
            best = tried.get(candidate.node)
            # An extender may have named other victims.
            if best is not None and best.candidate.victims == candidate.victims:
                return msgspec.structs.replace(candidate, steps=best.victims.steps)
            return msgspec.structs.replace(candidate, steps=[]) if is_at_once else candidate

        return list(map(with_steps, candidates))


def _that_may_win(
    helped: Iterable[CachedDryRun], selection: Selection, odds: Odds | None, alternatives: Alternatives | None
) -> list[Candidate]:
    """Return the candidates that may be chosen, including by chance or with an unknown order."""
    may_win = set(selection.tied).union(*(outcome.nodes for outcome in (odds.outcomes if odds else ())))
    may_win.update(outcome.node for outcome in (alternatives.outcomes if alternatives else ()))
    return [each.candidate for each in helped if each.name in may_win]


def _evidence_of(eligibility: Eligibility, best: Sequence[CachedDryRun]) -> PreemptionEvidence:
    """Return the evidence if only the best candidates are known."""
    return PreemptionEvidence(
        eligibility,
        [],
        {},
        [each.candidate for each in best],
        Selection([], [each.name for each in best]),
        depends_on_budget_order=any(each.victims.depends_on_budget_order for each in best),
    )


def _best(helped: Sequence[CachedDryRun], now: datetime) -> list[CachedDryRun]:
    """Return the candidates that are tied under the default rules."""
    ranks = [(each.rank or rank_of(each, now)).rank for each in helped]
    best = max(ranks)
    return list(compress(helped, map(eq, ranks, repeat(best))))


def potential_nodes(node_infos: list[NodeInfo], filtered: NodeToStatus) -> list[NodeInfo]:
    """Return the nodes whose rejections evictions may resolve, in snapshot order."""
    if isinstance(filtered, FilteredNodes):
        return list(compress(node_infos, filtered.resolvable))
    statuses = map(filtered.statuses.get, map(attrgetter("name"), node_infos), repeat(filtered.absent))
    return list(compress(node_infos, map(eq, map(attrgetter("code"), statuses), repeat(Code.UNSCHEDULABLE))))


def first_error(statuses: Mapping[str, Status]) -> Status | None:
    """Return the combined error of the nodes' statuses, if any has one; their order is unknown upstream."""
    errors = sorted(dict.fromkeys(status.message for status in statuses.values() if status.code == Code.ERROR))
    if not errors:
        return None
    # As upstream's aggregate prints them: without duplicates; a single one as it is, several as a list.
    return Status(Code.ERROR, [errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"])


def _reviewed(
    extender_session: ExtenderSession, victims: Mapping[str, CandidateVictims], helped: Sequence[CachedDryRun]
) -> tuple[dict[str, CandidateVictims], list[Candidate]]:
    """Return the candidates that extenders accept; the selection steps are included if the victims are unchanged."""
    left = extender_session.process_preemption(victims)
    found = {each.name: each.candidate for each in helped}
    reviewed = []
    for node, each in left.items():
        keys = [pod.key for pod in each.pods]
        steps = found[node].steps if node in found and found[node].victims == keys else []
        reviewed.append(Candidate(node, keys, each.num_violations, steps))
    return left, reviewed


class PreemptionPlugin(PreemptionRules, PostFilterPlugin):
    """Eligibility, dry run and choice, with the hooks of ``PreemptionRules``.

    Its reasons start with ``message_prefix``, which is DefaultPreemption's own; most out-of-tree plugins have none.
    """

    message_prefix: ClassVar[str] = "preemption: "

    def post_filter(
        self, state: CycleState, pod: Pod, filtered: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """Nominate a node, or say why no eviction helps."""
        result, status = self._evaluator.preempt(state, pod, filtered)
        if result is not None and result.evidence is not None and self.overrides("may_evict"):
            result = result._replace(evidence=result.evidence._replace(eviction_rule=self.name))
        if status.reasons:
            return result, Status(status.code, [f"{self.message_prefix}{status.message}"])
        return result, status

    @cached_property
    def _evaluator(self) -> Evaluator:
        return Evaluator(self.handle, self)


def preemption_rules(plugins: ProfilePlugins) -> PreemptionRules | None:
    """Return the rules of the profile's first plugin that preempts, if there is one."""
    for plugin in plugins.post_filters:
        own = plugin.plugin if isinstance(plugin, OutOfTreePlugin) else plugin
        if isinstance(own, PreemptionPlugin):
            return own
    return None
