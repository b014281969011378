"""One scheduling cycle for one pod (``pkg/scheduler/schedule_one.go``, v1.36.3), with all its evidence.

It differs from the real scheduler in two ways: it evaluates every node instead of stopping at
``percentageOfNodesToScore``, and if the choice is random, the verdict holds every node that may be chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import compress, repeat
from operator import attrgetter, is_, not_
from typing import TYPE_CHECKING

import msgspec

from kpreempt.model.frozen import frozen
from kpreempt.model.pod import Pod
from kpreempt.model.quantity import wrap_int64
from kpreempt.schedulers.equal_pods import unfollowed
from kpreempt.schedulers.kube.assumptions import (
    MISSED_ERRORS,
    claim_assumptions,
    devices_on,
    effects_of,
    extender_node_limit_assumptions,
    nomination_assumptions,
    out_of_tree_error_assumptions,
    rounded_images,
    unordered_budgets,
    unpatched,
    unprotected,
    victims_by_node,
)
from kpreempt.schedulers.kube.disabled_gates import assume_of_pod
from kpreempt.schedulers.kube.extender_session import ExtenderSession, extender_session_of
from kpreempt.schedulers.kube.framework.answers import checked_eligibility
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.decision_cache import PodCache
from kpreempt.schedulers.kube.framework.interface import (
    NO_NODES,
    FrameworkError,
    NodeToStatus,
    PluginError,
    PostFilterResult,
    no_node_message,
)
from kpreempt.schedulers.kube.framework.node_info import MarkedNodes, NodeInfo
from kpreempt.schedulers.kube.framework.out_of_tree import attributed_to
from kpreempt.schedulers.kube.framework.runner import FilteredNodes, Framework
from kpreempt.schedulers.kube.node_report import is_permanently_unschedulable
from kpreempt.schedulers.kube.plugins.dynamic_resources import pod_devices
from kpreempt.schedulers.kube.preemption.evaluator import first_error, preemption_rules
from kpreempt.schedulers.kube.preemption.odds import sampling_of
from kpreempt.schedulers.kube.profile import Profile
from kpreempt.schedulers.kube.versions import Behavior
from kpreempt.schedulers.unread import READ_BY_TODAYS, DecidedPod, judged
from kpreempt.verdict import (
    SUCCESS,
    Assumption,
    AssumptionKind,
    Candidate,
    Code,
    Eligibility,
    Outcome,
    Sampling,
    Status,
    Verdict,
    Victim,
)

if TYPE_CHECKING:
    from kpreempt.schedulers.kube.bulk.pod_table import Integers


class Cycle:
    """The state and the steps of one cycle.

    ``frame`` is the verdict with what is known in advance: the algorithm, the pod, the cluster, and assumptions.
    """

    def __init__(
        self,
        framework: Framework,
        profile: Profile,
        behavior: Behavior,
        pod: Pod,
        state: CycleState,
        frame: Verdict,
    ) -> None:
        self._framework = framework
        self._profile = profile
        self._behavior = behavior
        self._cluster = framework.cluster
        self._pod = pod
        self._state = state
        self._extender_calls = extender_session_of(state)
        self._frame = frame
        self._node_infos = framework.cluster.node_infos
        # The plugins whose PreFilter restricted the nodes.
        self._restricting: list[str] = []
        # Every node's status after filtering.
        self._evaluated: dict[str, Status] = {}
        # The same if it is cached and not every status needs to be listed.
        self._known: FilteredNodes | None = None
        # The number of nodes that pass the filters, before extenders are called.
        self._passing_filters = 0
        # The node search, if it stops before all feasible nodes are found.
        self._search: Sampling | None = None
        self._takes_nominated = True
        self._post_filter: PostFilterResult | None = None
        self._may_miss_errors = False

    def run(self) -> Verdict:
        """Filter, then score or preempt."""
        if not self._node_infos:
            return self._verdict(Outcome.UNSCHEDULABLE, message=NO_NODES)
        try:
            with self._state.phases.phase("filter"):
                node_names, pre_filter, self._restricting = self._framework.run_pre_filter(self._state, self._pod)
                if pre_filter.is_success:
                    if (known := self._known_failure()) is not None:
                        return known
                    filtered, feasible, evaluated = self._filter(node_names)
            if not pre_filter.is_success:
                filtered = NodeToStatus()
                filtered.absent = pre_filter
                evaluated = {node_info.name: pre_filter for node_info in self._node_infos}
                return self._preempt(filtered, evaluated, pre_filter)
            if feasible:
                sampling = self._search
                if len(feasible) != self._passing_filters:
                    sampling = self._sampling(node_names, len(feasible))
                return self._score(evaluated, feasible, sampling)
            return self._remember(self._preempt(filtered, evaluated, None))
        except FrameworkError as error:
            calls = self._extender_calls.calls if self._extender_calls is not None else []
            is_extender = any(call.extender == error.status.plugin for call in calls)
            extender = f" of extender {error.status.plugin}" if is_extender else ""
            reason = f"the scheduler fails with an error{extender}: {error}"
            # Also if only sample nodes were evaluated.
            every = dict(zip(self._cluster.by_name, self._known.all, strict=True)) if self._known is not None else {}
            return self._verdict(
                Outcome.UNCERTAIN if self._may_miss_errors else Outcome.UNSCHEDULABLE,
                [
                    *out_of_tree_error_assumptions(self._framework.plugins, self._extender_calls, reason),
                    *([MISSED_ERRORS] if self._may_miss_errors else ()),
                ],
                reason=reason,
                message=str(error),
                error=str(error),
                filter=(evaluated := every or self._evaluated),
                feasible_nodes=[name for name, status in evaluated.items() if status.is_success],
            )

    def _kind(self) -> PodCache | None:
        """The key of pods that fail as this one does, in the same cluster; ``None`` if there may be no others."""
        state = self._state
        is_alone = (
            state.records_nodes
            or self._extender_calls is not None
            # It may wait for victims on its nominated node.
            or bool(self._pod.status.nominated_node_name)
            or bool(self._cluster.places_nominated_to(self._pod))
            or not self._framework.all_filters_are_node_local(state)
        )
        return None if is_alone else state.scheduling_findings

    def _known_failure(self) -> Verdict | None:
        """The verdict as on an earlier pod with the same requirements that found no node in this cluster."""
        kind = self._kind()
        known = self._framework.failures.get(kind) if kind is not None else None
        if known is None:
            return None
        verdict, post_filter = known
        return effects_of(msgspec.structs.replace(verdict, pod=self._frame.pod), self._pod, self._cluster, post_filter)

    def _remember(self, verdict: Verdict) -> Verdict:
        """Keep the verdict on a pod that finds no node, unless it says anything about this pod alone."""
        kind = self._kind()
        is_general = verdict.outcome is Outcome.UNSCHEDULABLE and list(verdict.assumptions) == list(
            self._frame.assumptions
        )
        if kind is not None and is_general and not verdict.error:
            self._framework.failures[kind] = verdict, self._post_filter
        return verdict

    def _filter(self, node_names: frozenset[str] | None) -> tuple[NodeToStatus, Sequence[NodeInfo], dict[str, Status]]:
        """Return every node's status (or samples, if these are enough) and the feasible nodes."""
        if not self._state.records_nodes and node_names is None and self._extender_calls is None:
            # The ordinary code path reports errors.
            with suppress(FrameworkError):
                self._known = self._framework.filtered_nodes(self._state, self._pod)
        if self._known is not None:
            passing = MarkedNodes(self._node_infos, self._known.passing)
            self._search = self._sampling(None, len(passing))
            self._passing_filters = len(passing)
            return self._known, passing, self._known.examples
        filtered = NodeToStatus()
        if node_names is not None:
            filtered.absent = self._absent()
        evaluated: dict[str, Status] = {}
        # A running scheduler tries the nominated node even if PreFilter excluded it.
        preferred = self._pod.status.nominated_node_name if self._cluster.is_queued else ""
        nodes = self._node_infos
        if node_names is not None:
            evaluated = {node_info.name: filtered.absent for node_info in nodes}
            nodes = [each for each in nodes if each.name in node_names or each.name == preferred]
        try:
            statuses = self._framework.run_filters_on_cluster(self._state, self._pod, nodes)
        except FrameworkError as error:
            self._may_miss_errors = self._stops_early(node_names, nodes)
            raise self._error_by_name(error, nodes) from error
        is_feasible = list(map(is_, statuses, repeat(SUCCESS)))
        feasible = list(compress(nodes, is_feasible))
        found = dict(zip(map(attrgetter("name"), nodes), statuses, strict=True))
        evaluated.update(found)
        if not feasible:
            filtered.statuses = found
        elif len(feasible) < len(nodes):
            filtered.statuses = dict(compress(found.items(), map(not_, is_feasible)))
        self._evaluated = evaluated
        self._passing_filters = len(feasible)
        self._search = self._sampling(node_names, len(feasible))
        if self._extender_calls is not None:
            feasible = self._call_extenders(self._extender_calls, filtered, feasible, preferred)
        return filtered, feasible, evaluated

    def _stops_early(self, node_names: frozenset[str] | None, nodes: Sequence[NodeInfo]) -> bool:
        """Return whether the search may find enough nodes before it reaches one on which a filter fails."""
        if self._framework.has_out_of_tree_plugins or self._sampling(node_names, len(nodes)) is None:
            return False
        fitting = 0
        for node_info in nodes:
            try:
                status = self._framework.run_filters_with_nominated_pods(self._state, self._pod, node_info)
            except FrameworkError:
                continue
            fitting += status.is_success
        return self._sampling(node_names, fitting) is not None

    def _error_by_name(self, error: FrameworkError, nodes: Sequence[NodeInfo]) -> FrameworkError:
        """Return the first error by node name.

        Nodes are filtered in parallel, so any of the errors may be reported.

        An out-of-tree plugin may return a different result when called again.
        """
        if self._framework.has_out_of_tree_plugins:
            return error
        for node_info in sorted(nodes, key=lambda each: each.name):
            try:
                self._framework.run_filters_with_nominated_pods(self._state, self._pod, node_info)
            except FrameworkError as found:
                return found
        return error

    def _score(self, evaluated: dict[str, Status], feasible: Sequence[NodeInfo], sampling: Sampling | None) -> Verdict:
        plugin_scores: dict[str, dict[str, int]] = {}
        extender_session = self._extender_calls
        with self._state.phases.phase("score"):
            # A single candidate is chosen without scoring.
            is_rated = self._state.records_nodes or len(feasible) > 1
            sums = self._sums(feasible) if is_rated else None
            if sums is None and is_rated:
                plugin_scores = self._framework.run_scores(self._state, self._pod, feasible)
            # A single node is chosen without scores, and score plugins are not called.
            if plugin_scores and extender_session is not None and len(feasible) > 1:
                given = extender_session.prioritize(feasible)
                plugin_scores = {node: scores | given[node] for node, scores in plugin_scores.items()}
        if not self._state.records_odds and (sums is not None or not is_rated):
            return self._likely(evaluated, feasible, sums, sampling)
        names = [node_info.node.metadata.name for node_info in feasible]
        scores = self._totals(plugin_scores)
        if not is_rated:
            scores = dict.fromkeys(names, 0)
        elif sums is not None:
            scores = dict(zip(names, sums.tolist(), strict=True))
        best = max(scores.values())
        chosen = [node for node, score in scores.items() if score == best]
        nominated = self._pod.status.nominated_node_name
        is_taken = self._takes_nominated and nominated in scores
        return self._verdict(
            Outcome.LANDS,
            [] if is_taken else rounded_images(self._framework.plugins, self._pod, feasible, self._cluster),
            filter=evaluated,
            feasible_nodes=names,
            scores=scores,
            plugin_scores=plugin_scores if self._state.records_scores else {},
            chosen_nodes=chosen,
            # The real scheduler tries the nominated node first, and if it fits, chooses it without scoring.
            lands_on=[nominated] if is_taken else chosen,
            devices=devices_on(scores, self._state),
            sampling=None if is_taken else sampling,
        )

    def _likely(
        self,
        evaluated: dict[str, Status],
        feasible: Sequence[NodeInfo],
        sums: Integers | None,
        sampling: Sampling | None,
    ) -> Verdict:
        """The verdict with the best nodes only; without ``sums``, there is one node."""
        best, chosen = 0, [each.name for each in feasible] if sums is None else []
        if sums is not None:
            assert self._state.places is not None
            best = int(sums.max())
            chosen = [self._node_infos[place].name for place in self._state.places[sums == best].tolist()]
        nominated = self._pod.status.nominated_node_name
        is_taken = bool(nominated) and self._takes_nominated and any(each.name == nominated for each in feasible)
        scores = dict.fromkeys([nominated] if is_taken else chosen, best)
        return self._verdict(
            Outcome.LANDS,
            filter=evaluated,
            feasible_nodes=list(scores),
            scores=scores,
            chosen_nodes=chosen,
            lands_on=list(scores),
            devices=devices_on(scores, self._state),
            sampling=None if is_taken else sampling,
        )

    def _totals(self, plugin_scores: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
        """Return each node's total score."""
        # Without score plugins and extenders, every node's total is 1.
        base = 0 if self._framework.plugins.scores or self._extender_calls is not None else 1
        # Nodes with the same scores usually share a record.
        records = {id(each): each for each in plugin_scores.values()}
        totals = {key: wrap_int64(base + sum(each.values())) for key, each in records.items()}
        return {node: totals[id(by_plugin)] for node, by_plugin in plugin_scores.items()}

    def _sums(self, feasible: Sequence[NodeInfo]) -> Integers | None:
        """Return each node's total score if all nodes are scored in bulk and scores per plugin are not needed."""
        state, framework = self._state, self._framework
        can_rate = framework.rates_at_once and framework.plugins.scores
        if state.records_scores or self._extender_calls is not None or not can_rate:
            return None
        import numpy as np  # noqa: PLC0415 - loaded in big clusters

        size = len(self._node_infos)
        if isinstance(feasible, MarkedNodes):
            state.places = feasible.places
        elif len(feasible) == size:
            state.places = np.arange(size)
        else:
            position = self._cluster.position
            state.places = np.array([position[node_info.name] for node_info in feasible], np.int64)
        sums = framework.run_scores_in_sum(state, self._pod, feasible)
        if sums is None:
            state.places = None
        return sums

    def _sampling(self, node_names: frozenset[str] | None, feasible: int) -> Sampling | None:
        by_name = self._cluster.by_name
        profile = self._profile
        return sampling_of(
            len(by_name) if node_names is None else len(node_names & by_name.keys()),
            feasible,
            percentage=profile.percentage_of_nodes_to_score,
            is_scoring=not self._behavior.searches_one_node_without_scores
            or bool(self._framework.plugins.scores)
            or profile.has_extenders,
            is_restricted=node_names is not None,
        )

    def _preempt(self, filtered: NodeToStatus, evaluated: dict[str, Status], pre_filter: Status | None) -> Verdict:
        result, status = None, SUCCESS
        if self._framework.plugins.post_filters:
            result, status = self._framework.run_post_filter(self._state, self._pod, filtered)
            self._post_filter = result
        message = no_node_message(
            len(self._node_infos),
            filtered,
            pre_filter=pre_filter.message if pre_filter else "",
            post_filter=status.message,
        )
        evidence = result.evidence if result else None
        nominated = (result.nominated_node_names if result else None) or []
        candidates = {candidate.node: candidate for candidate in evidence.candidates} if evidence else {}
        memory = self._framework.memory
        victims = victims_by_node(
            [candidates[node] for node in nominated], self._cluster, memory.budgets if memory is not None else None
        )
        outcome = _outcome(nominated, candidates, victims, self._extender_calls)
        status_of = evaluated.__getitem__ if self._known is None else self._known.outline_of
        eligibility = evidence.eligibility if evidence else self._eligibility(filtered)
        is_permanent = outcome == Outcome.UNSCHEDULABLE and is_permanently_unschedulable(
            self._framework, self._state, self._pod, status_of, pre_filter
        )
        if outcome == Outcome.UNSCHEDULABLE and not is_permanent and eligibility is not None and eligibility.is_waiting:
            outcome = Outcome.WAITS_FOR_VICTIMS
        error = f"preemption fails with an error: {status.message}" if status.code == Code.ERROR else ""
        # The device claims that PostFilter deallocated.
        claims = pod_devices(self._state)
        return self._verdict(
            outcome,
            [
                *unfollowed(evidence.alternatives if evidence else None),
                *unordered_budgets(evidence, self._cluster),
                *unpatched(self._pod, victims, self._cluster),
                *unprotected(self._framework.plugins, self._pod, status.plugin, victims),
                *(out_of_tree_error_assumptions(self._framework.plugins, self._extender_calls, error) if error else ()),
            ],
            reason=_in_turn(pre_filter, error),
            filter=evaluated,
            pre_filter=pre_filter,
            permanently_unschedulable=is_permanent,
            eligibility=eligibility,
            eviction_rule=evidence.eviction_rule if evidence else "",
            potential_nodes=evidence.potential_nodes if evidence else [],
            dry_run=evidence.dry_run if evidence else {},
            candidates=evidence.candidates if evidence else [],
            selection=evidence.selection if evidence else None,
            odds=evidence.odds if evidence else None,
            alternatives=evidence.alternatives if evidence else None,
            nominated_nodes=nominated,
            devices=devices_on(candidates, self._state),
            victims=victims,
            message=message,
            # If there is no candidate, one of the errors that ended a dry run is reported.
            error=failed.message if evidence and (failed := first_error(evidence.dry_run)) else "",
            post_filter=result,
            deallocated_claims=claims.deallocated if claims else [],
            deleted_claims=claims.deleted if claims else [],
        )

    def _eligibility(self, filtered: NodeToStatus) -> Eligibility | None:
        """Return whether the pod could have preempted if an earlier PostFilter ended the attempt or this one failed."""
        rules = preemption_rules(self._framework.plugins)
        if rules is None:
            return None
        try:
            with attributed_to(rules.name):
                return checked_eligibility(rules.eligibility(self._state, frozen(self._pod), filtered.copy()))
        except PluginError:
            return None

    def _verdict(
        self,
        outcome: Outcome,
        assumptions: Sequence[Assumption] = (),
        *,
        post_filter: PostFilterResult | None = None,
        **parts: object,
    ) -> Verdict:
        claims = claim_assumptions(self._pod, self._state, self._cluster)
        is_open = any(each.kind is not AssumptionKind.INFORMATIONAL for each in claims)
        judged_outcome, unread = self._judged(outcome, parts.get("feasible_nodes"))
        verdict = msgspec.structs.replace(
            self._frame,
            outcome=Outcome.UNCERTAIN if is_open else judged_outcome,
            restricted_by=self._restricting,
            assumptions=[
                *self._frame.assumptions,
                *assume_of_pod(self._pod, self._behavior),
                *nomination_assumptions(self._pod, self._cluster),
                *extender_node_limit_assumptions(self._extender_calls, self._passing_filters, self._search),
                *unread,
                *claims,
                *assumptions,
            ],
            extender_calls=self._extender_calls.calls if self._extender_calls is not None else [],
            **parts,
        )
        return effects_of(verdict, self._pod, self._cluster, post_filter)

    def _judged(self, outcome: Outcome, feasible: object) -> tuple[Outcome, list[Assumption]]:
        """Adjust the outcome for what could not be read."""
        args = self._profile.plugin_args.get("PodTopologySpread") or {}
        defaults = args.get("defaultConstraints") or []
        seen = DecidedPod(
            self._pod,
            self._cluster.cluster,
            outcome,
            choices=len(feasible) if isinstance(feasible, list) and outcome is Outcome.LANDS else 0,
            spreads_by_default=any(each.get("whenUnsatisfiable") == "DoNotSchedule" for each in defaults),
            selects_namespaces=lambda: self._cluster.has_namespace_selectors,
        )
        return judged(seen, READ_BY_TODAYS)

    def _call_extenders(
        self, extender_session: ExtenderSession, filtered: NodeToStatus, feasible: list[NodeInfo], preferred: str
    ) -> list[NodeInfo]:
        """Return the nodes that extenders also accept; a nominated node is checked first, on its own."""
        first = [each for each in feasible if each.name == preferred]
        try:
            passing = extender_session.filter(first, filtered)
        except FrameworkError:
            # A running scheduler logs the error and continues with all nodes.
            passing = []
        if passing:
            # It is chosen, and the extenders are not called about the others.
            self._search = None
            return passing
        # From here on, scores decide, even if extenders now accept the nominated node.
        self._takes_nominated = not preferred
        passing = extender_session.filter(feasible, filtered)
        names = {each.name for each in passing}
        silent = extender_session.rejected_silently
        # What an extender reports about nodes that were not sent to it also counts.
        for name in self._evaluated:
            if name in names:
                self._evaluated[name] = SUCCESS
            elif name in filtered.statuses:
                self._evaluated[name] = filtered.statuses[name]
            elif name in silent:
                # A node rejected without a reason counts as unresolvable.
                self._evaluated[name] = filtered.absent.of_plugin(silent[name])
        return passing

    def _absent(self) -> Status:
        """Return the status of nodes that PreFilter excluded."""
        if self._behavior.dry_runs_absent_nodes:
            return Status(Code.UNSCHEDULABLE)
        reasons = []
        if self._behavior.explains_absent_nodes:
            reasons.append(f"node(s) didn't satisfy plugin(s) [{' '.join(self._restricting)}]")
        elif self._behavior.reports_omitted_nodes:
            reasons.append("node is filtered out by the prefilter result")
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def _in_turn(pre_filter: Status | None, error: str) -> str:
    """Return the reason why the pod is not placed if preemption fails with an error.

    PreFilter's message comes first, as in the event. If no eviction could have helped, preemption is not a reason.
    """
    if pre_filter is None or not error:
        return error
    return "" if pre_filter.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE else f"{pre_filter.message}; {error}"


def _outcome(
    nominated: list[str],
    candidates: Mapping[str, Candidate],
    victims: Mapping[str, list[Victim]],
    extender_session: ExtenderSession | None,
) -> Outcome:
    """Return the outcome, from the scheduler's violation count or, if extenders changed victims, the budgets."""
    if not nominated:
        return Outcome.UNSCHEDULABLE
    meddled = extender_session.changed if extender_session is not None else set()
    if any(
        any(use.remaining < 0 for victim in victims[node] for use in victim.budgets)
        if node in meddled
        else candidates[node].num_pdb_violations
        for node in nominated
    ):
        return Outcome.PREEMPTS_VIOLATING_BUDGETS
    return Outcome.PREEMPTS
