"""Searches for changes to a pod or its cluster, one by one and in pairs, that have the desired result.

For each rejection by a node there are edits that could fix it, as alternatives with the smallest change first. An edit
is only a guess; a verdict decides whether it works. For a node that fits the pod but is not chosen, the edits come from
the criterion that eliminated it and from the advantages of other nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.explain.single_edits import (
    Edit,
    EditContext,
    EditOptions,
    FieldPath,
    allow_preemption,
    appended_toleration,
    drop_preferences,
    dropping,
    edit_cluster,
    edit_pod,
    first_reaching,
    just_above,
    lower_requests,
    most_requested,
    pods_on,
    raise_priority,
    raised,
    remove_pods,
    worth_trying,
)
from kpreempt.analysis.what_if import Assignment, Overrides, format_path
from kpreempt.errors import KpreemptError
from kpreempt.model.affinity import METADATA_NAME_FIELD, NodeSelectorTerm
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import format_requirement
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.model.taints import find_untolerated_taint
from kpreempt.verdict import Candidate, Change, ChangeKind, NodeEvaluation, Reprieve, Status, Verdict
from kpreempt.verdict.details import (
    AffinityConflict,
    InsufficientDevices,
    InsufficientResources,
    NodeAffinityMismatch,
    PortConflict,
    Shortfall,
    SpreadConflict,
    UntoleratedTaint,
    VolumeConflict,
    VolumeLimitExceeded,
)

_REPELLING = frozenset({"NoSchedule", "NoExecute"})
_MAX_REMOVED = 4
_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


def remedies_for(context: EditContext, rejections: Sequence[Status]) -> list[EditOptions]:
    """Alternative edits for each of these rejections by a node."""
    options: list[EditOptions] = []
    for status in rejections:
        remedy = _REMEDIES.get(type(status.detail))
        if remedy is not None:
            options += remedy(context, status.detail)
    return [options for options in options if options]


def _for_shortage(context: EditContext, detail: InsufficientResources) -> list[EditOptions]:
    """Lower the requests to what is free, for all resources that are short, or remove a pod that is large enough."""
    amounts = {
        each.resource: (each.requested, each.allocatable - each.used)
        for each in detail.shortfalls
        if each.resource != "pods"
    }
    # Pods on the node that may hold as much as is missing of everything, by the sum of their containers' requests.
    if any(each.exceeds_node for each in detail.shortfalls):
        large_enough = []
    else:
        missing = {each.resource: each.missing for each in detail.shortfalls if each.resource != "pods"}
        large_enough = [
            pod.key
            for pod in pods_on(context)
            if all(most_requested(pod, resource) >= amount for resource, amount in missing.items())
        ]
    options = [remove_pods(context, large_enough)]
    if len(amounts) == len(detail.shortfalls) and (edit := lower_requests(context.pod, amounts)):
        options.insert(0, [edit])
    return options


def _for_devices(context: EditContext, detail: InsufficientDevices) -> list[EditOptions]:
    """Remove as many pods with such devices as devices are missing, up to a few."""
    missing = detail.requested - (detail.matching - detail.allocated - detail.tainted)
    if detail.requested > detail.matching - detail.tainted or missing > _MAX_REMOVED:
        return []
    return [remove_pods(context, [pod for holder in detail.holders for pod in holder.pods], max(missing, 1))]


def _for_taint(context: EditContext, _: UntoleratedTaint) -> list[EditOptions]:
    """Tolerate all taints that repel the pod, or uncordon the node."""
    spec = context.node.spec
    taints = [
        taint for taint in spec.taints if find_untolerated_taint([taint], context.pod.spec.tolerations, _REPELLING)
    ]
    tolerations = [(taint.key, taint.value, taint.effect, str(taint)) for taint in taints]
    if spec.unschedulable and all(key != _UNSCHEDULABLE for key, *_rest in tolerations):
        tolerations.append((_UNSCHEDULABLE, "", "NoSchedule", f"{_UNSCHEDULABLE}:NoSchedule"))
    tolerate = Edit(
        changes=[Change(ChangeKind.TOLERATION, subject=text) for _key, _value, _effect, text in tolerations],
        overrides=Overrides(
            assignments=[
                Assignment(
                    appended_toleration(number),
                    {
                        "key": key,
                        **({"operator": "Equal", "value": value} if value else {"operator": "Exists"}),
                        "effect": effect,
                    },
                )
                for number, (key, value, effect, _text) in enumerate(tolerations)
            ]
        ),
    )
    # Do not propose tolerating only the cordon's taint: uncordoning is the proper change.
    options = [[tolerate]] if any(key != _UNSCHEDULABLE for key, *_rest in tolerations) else []
    if spec.unschedulable or any(key == _UNSCHEDULABLE for key, *_rest in tolerations):
        name = context.node.name
        options.append([Edit(changes=[Change(ChangeKind.UNCORDON, subject=name)], uncordons=[name])])
    return options


def _for_node_affinity(context: EditContext, detail: NodeAffinityMismatch) -> list[EditOptions]:
    """Drop selector keys that the node lacks, or as little as possible of the required terms."""
    spec, node = context.pod.spec, context.node
    if detail.source == "nodeSelector":
        unmet = [key for key, value in spec.node_selector.items() if node.labels.get(key) != value]
        return [
            [
                dropping(
                    ChangeKind.NODE_SELECTOR,
                    {f"{key}={spec.node_selector[key]}": ["spec", "nodeSelector", key] for key in unmet},
                )
            ]
        ]
    rules = spec.affinity.node_affinity if spec.affinity else None
    if detail.source != "nodeAffinity" or rules is None or rules.required is None:
        return []
    if any(term.match_fields for term in rules.required.node_selector_terms):
        # A term with fields was added by a controller to tie the pod to a node.
        return []
    place: FieldPath = ["spec", "affinity", "nodeAffinity", _REQUIRED]
    whole = dropping(ChangeKind.NODE_AFFINITY, {" or ".join(detail.unmet): place})
    return [[*_relaxed_terms(rules.required.node_selector_terms, node, place), whole]]


def _relaxed_terms(terms: Sequence[NodeSelectorTerm], node: Node, place: FieldPath) -> EditOptions:
    """Each term without the expressions that the node does not match, unless none remains; the fewest changes first."""
    edits = []
    for index, term in enumerate(terms):
        unmet = [
            number
            for number, expression in enumerate(term.match_expressions)
            if not NodeSelectorTerm(match_expressions=[expression]).matches(node.name, node.labels)
        ]
        if 0 < len(unmet) < len(term.match_expressions):
            path: FieldPath = [*place, "nodeSelectorTerms", index, "matchExpressions"]
            # In reverse order, so that the indexes of the others remain valid.
            places = {
                format_requirement(each.key, each.operator, each.values): [*path, number]
                for number, each in reversed([*enumerate(term.match_expressions)])
                if number in unmet
            }
            edits.append(dropping(ChangeKind.NODE_AFFINITY, places))
    return sorted(edits, key=lambda edit: len(edit.changes))


def _for_port(context: EditContext, detail: PortConflict) -> list[EditOptions]:
    """Drop the host port, or remove a pod that uses it."""
    options = [remove_pods(context, detail.holders)]
    if context.pod.spec.host_network:
        return options
    places: dict[str, FieldPath] = {
        f"{port.host_port}/{port.protocol}": ["spec", field, index, "ports", number, "hostPort"]
        for field, containers in (
            ("containers", context.pod.spec.containers),
            ("initContainers", context.pod.spec.init_containers),
        )
        for index, container in enumerate(containers)
        for number, port in enumerate(container.ports)
        if (port.host_port, port.protocol, port.host_ip) == (detail.port, detail.protocol, detail.host_ip)
    }
    return [[dropping(ChangeKind.HOST_PORT, places)], *options] if places else options


def _for_affinity(context: EditContext, detail: AffinityConflict) -> list[EditOptions]:
    """Drop the term that fails, or remove a pod that it conflicts with."""
    if detail.rule == "existingAntiAffinity":
        return [remove_pods(context, detail.holders)]
    affinity = context.pod.spec.affinity
    is_anti = detail.rule != "affinity"
    kind = ChangeKind.POD_ANTI_AFFINITY if is_anti else ChangeKind.POD_AFFINITY
    rules = affinity and (affinity.pod_anti_affinity if is_anti else affinity.pod_affinity)
    terms = rules.required if rules else []
    place: FieldPath = ["spec", "affinity", str(kind), _REQUIRED]
    term_names = [f"{term.label_selector or 'no pod'} in {term.topology_key}" for term in terms]
    options = [dropping(kind, {name: [*place, index]}) for index, name in enumerate(term_names)]
    if len(terms) > 1:
        options.append(dropping(kind, {" and ".join(term_names): place}))
    return [options, remove_pods(context, detail.holders)]


def _for_spread(context: EditContext, detail: SpreadConflict) -> list[EditOptions]:
    """Allow the resulting skew, drop the constraint, or remove a pod that it counts."""
    constraints = context.pod.spec.topology_spread_constraints
    strict = [index for index, each in enumerate(constraints) if each.when_unsatisfiable == "DoNotSchedule"]
    conflicting = [index for index in strict if constraints[index].topology_key == detail.topology_key]
    options: list[EditOptions] = []
    for index in conflicting:
        place: FieldPath = ["spec", "topologySpreadConstraints", index]
        constraint = constraints[index]
        name = f"{constraint.label_selector or 'no pod'} over {constraint.topology_key}"
        if detail.topology_value and detail.skew > constraint.max_skew:
            change = Change(ChangeKind.MAX_SKEW, name, constraint.max_skew, detail.skew)
            wider = Assignment(format_path([*place, "maxSkew"]), detail.skew)
            options.append([Edit(changes=[change], overrides=Overrides(assignments=[wider]))])
        options.append([dropping(ChangeKind.SPREAD, {name: place})])
    selectors = [constraints[index].label_selector for index in conflicting]
    counted = [
        pod.key
        for pod in context.cluster.pods
        if pod.metadata.namespace == context.pod.metadata.namespace
        and pod.spec.node_name == context.node.name
        and any(selector is not None and selector.matches(pod.metadata.labels) for selector in selectors)
    ]
    return [*options, remove_pods(context, counted)]


_REMEDIES: dict[type, Callable[[EditContext, Any], list[EditOptions]]] = {
    InsufficientResources: _for_shortage,
    InsufficientDevices: _for_devices,
    UntoleratedTaint: _for_taint,
    NodeAffinityMismatch: _for_node_affinity,
    PortConflict: _for_port,
    AffinityConflict: _for_affinity,
    SpreadConflict: _for_spread,
    VolumeConflict: lambda context, detail: [remove_pods(context, detail.holders)],
    VolumeLimitExceeded: lambda context, _: [
        remove_pods(context, [pod.key for pod in pods_on(context) if pod.spec.volumes])
    ],
}


_MAX_LOWERINGS = 8
_MAX_FIRST_CHANGES = 8
_EVALUATIONS_PER_STEP = 8
_EXCLUDES_OTHER_NODES = (ChangeKind.CORDON, ChangeKind.PIN)
# More pairs than this do not help a reader.
_MAX_PAIRS = 6

Goal = Callable[[Verdict], bool]


class Situation(msgspec.Struct, frozen=True):
    """A pod in a prepared cluster, and the verdict on it."""

    cluster: ClusterSnapshot
    prepared: Any
    pod: Pod
    verdict: Verdict


class Trial(msgspec.Struct, frozen=True):
    """Edits that did not have the desired result, and their effect."""

    edits: list[Edit]
    situation: Situation
    evaluation: NodeEvaluation
    num_rejections: int


class Search:
    """Tries edits until the goal is reached, and counts verdicts."""

    def __init__(self, scheduler: Scheduler, goal: Goal, *, now: datetime, limit: int, with_steps: bool) -> None:
        self._scheduler, self._goal, self._now, self._limit = scheduler, goal, now, limit
        self._wants_steps = with_steps
        self._costly_steps = 0
        self._tried: set[tuple[str, ...]] = set()
        self._has_lowest_priority = False
        self.verdicts = 0
        self.extender_calls = 0
        self.gave_up = False

    def lowest_priority(self, start: Situation) -> tuple[Edit, Verdict] | None:
        """The lowest priority that reaches the goal on any node, with its verdict.

        Its verdicts count toward the limit only if a higher priority can fail where a lower one succeeds, because then
        all priorities are tried one by one.
        """
        priorities = just_above(_occupying(start.cluster), start.pod)
        if self._scheduler.is_monotonic_in_priority:
            priorities = worth_trying(start.cluster, start.pod, start.verdict)
        found = self._minimum_of(priorities, start)
        self._has_lowest_priority = found is not None
        return found

    def min_priority(self, start: Situation, edits: list[Edit], verdict: Verdict) -> tuple[list[Edit], Verdict]:
        """Lower the priority in edits that reach the goal as far as possible, if they raise it."""
        highest = max(edit.overrides.priority or 0 for edit in edits)
        other_edits = [edit for edit in edits if edit.overrides.priority is None]
        if len(other_edits) == len(edits):
            return edits, verdict
        pod, cluster, prepared = start.pod, start.cluster, start.prepared
        for edit in other_edits:
            pod, cluster = edit_pod(pod, edit), edit_cluster(cluster, edit)
        if cluster is not start.cluster:
            prepared = self._scheduler.prepare(cluster, now=self._now)
        situation = Situation(cluster, prepared, pod, start.verdict)
        lower = [each for each in just_above(_occupying(cluster), pod) if each < highest]
        found = self._minimum_of(lower, situation)
        if found is None:
            return edits, verdict
        return sorted([*other_edits, found[0]], key=lambda edit: edit.weight), found[1]

    def _minimum_of(self, priorities: Sequence[int], start: Situation) -> tuple[Edit, Verdict] | None:
        # Success at one priority does not imply success at all higher ones: a pod that this pod has affinity to, or
        # that it waits for on its nominated node, may be evicted at a higher priority.
        affinity = start.pod.spec.affinity.pod_affinity if start.pod.spec.affinity else None
        needs_other_pods = affinity is not None and bool(affinity.required)
        is_nominated = bool(start.pod.status.nominated_node_name)
        is_monotonic = self._scheduler.is_monotonic_in_priority and not needs_other_pods and not is_nominated

        def decide(priority: int) -> Verdict | None:
            if not is_monotonic:
                if self._costly_steps >= self._limit:
                    self.gave_up = True
                    return None
                self._costly_steps += 1
            verdict = self._decide(start.prepared, edit_pod(start.pod, raised(start.pod, start.cluster, priority)))
            return verdict if self._goal(verdict) else None

        found = first_reaching(priorities, decide, only_grows=is_monotonic)
        return None if found is None else (raised(start.pod, start.cluster, found[0]), found[1])

    def _decide(self, prepared: Any, pod: Pod) -> Verdict:
        self.verdicts += 1
        verdict = self._scheduler.decide(prepared, pod, records_steps=self._wants_steps)
        self.extender_calls += len(verdict.extender_calls)
        return verdict

    def try_singles(self, start: Situation, node: Node, failed: list[Trial]) -> Iterator[tuple[Edit, Verdict]]:
        """Each single change that reaches the goal, with its verdict; failed trials are added to ``failed``."""
        evaluation = self._scheduler.describe_node(start.prepared, start.pod, node.name)
        for options in self._alternatives(start, node, evaluation):
            reached = self._try_options(options, start, node, [], failed)
            if reached is not None:
                yield reached
            if self.gave_up:
                return

    def try_pairs(self, pod: Pod, node: Node, failed: Sequence[Trial]) -> Iterator[tuple[list[Edit], Verdict]]:
        """Pairs of changes that reach the goal, one for each two kinds.

        Starts with the failed single changes that bring the node closest to fitting the pod.
        """
        nearest = sorted(failed, key=lambda trial: (trial.num_rejections, trial.edits[0].weight))
        known: set[frozenset[ChangeKind]] = set()
        for trial in nearest[:_MAX_FIRST_CHANGES]:
            for options in self._alternatives(trial.situation, node, trial.evaluation):
                if {change.kind for change in options[0].changes} & {change.kind for change in trial.edits[0].changes}:
                    continue
                reached = self._try_options(options, trial.situation, node, trial.edits, [])
                if reached is not None:
                    pair = sorted([trial.edits[0], reached[0]], key=lambda edit: edit.weight)
                    kinds = frozenset(change.kind for edit in pair for change in edit.changes)
                    if kinds not in known:
                        known.add(kinds)
                        yield pair, reached[1]
                if self.gave_up or len(known) >= _MAX_PAIRS:
                    return

    def _alternatives(self, situation: Situation, node: Node, evaluation: NodeEvaluation) -> list[EditOptions]:
        """The alternatives to try from here, the one with the smallest first edit first."""
        context = EditContext(
            situation.pod, situation.cluster, next(each for each in situation.cluster.nodes if each.name == node.name)
        )
        verdict = situation.verdict
        may_evict = _may_evict(situation, node.name)
        rejections = rejections_of(evaluation, may_evict=may_evict)
        options = remedies_for(context, rejections)
        if evaluation.nominated_pods:
            options.append(remove_pods(context, evaluation.nominated_pods))
        if (may_evict or evaluation.nominated_pods) and not self._has_lowest_priority:
            options.append(raise_priority(context, evaluation.nominated_pods))
        if evaluation.without_lower and not any(name != node.name for name in verdict.feasible_nodes):
            options.append(allow_preemption(situation.pod))
        if may_evict:
            # Without evictions, the pod may fit on a node that would not be chosen with evictions.
            options += remedies_for(context, rejections_of(evaluation, may_evict=False))
        if not rejections or not rejections_of(evaluation, may_evict=is_preemptor(situation.pod)):
            options += choice_options(context, verdict)
        return sorted((options for options in options if options), key=lambda options: options[0].weight)

    def _try_options(
        self, options: EditOptions, start: Situation, node: Node, before: list[Edit], failed: list[Trial]
    ) -> tuple[Edit, Verdict] | None:
        """The first edit that reaches the goal; requests are lowered further as long as it could help."""
        for first in options:
            edit: Edit | None = first
            for _ in range(_MAX_LOWERINGS):
                if edit is None:
                    break
                trial = self._try(edit, start, node, before)
                if trial is None:
                    break
                verdict = trial.situation.verdict
                if trial.num_rejections == 0 and self._goal(verdict):
                    return edit, verdict
                failed.append(trial)
                candidate = candidate_on(verdict, node.name) if trial.num_rejections == 0 else None
                is_request = all(change.kind == ChangeKind.REQUEST for change in edit.changes)
                edit = lower_further(start.pod, edit, candidate) if candidate and is_request else None
        return None

    def _try(self, edit: Edit, start: Situation, node: Node, before: list[Edit]) -> Trial | None:
        """Apply an edit; a verdict is only computed if the node could take the pod."""
        if self._costly_steps >= self._limit or len(self._tried) >= _EVALUATIONS_PER_STEP * self._limit:
            self.gave_up = True
            return None
        key = (node.name, *sorted(option for each in (*before, edit) for option in each.options(0)))
        if key in self._tried:
            return None
        self._tried.add(key)
        try:
            pod = edit_pod(start.pod, edit)
            cluster = edit_cluster(start.cluster, edit)
        except KpreemptError:
            return None
        prepared = start.prepared
        if edit.is_of_cluster:
            self._costly_steps += 1
            prepared = self._scheduler.prepare(cluster, now=self._now)
        changed = Situation(cluster, prepared, pod, start.verdict)
        evaluation = self._scheduler.describe_node(prepared, pod, node.name)
        # The pod preempts if it fits nowhere, which is the case once its other nodes are excluded.
        excludes_others = any(change.kind in _EXCLUDES_OTHER_NODES for change in edit.changes) and is_preemptor(pod)
        rejections = rejections_of(evaluation, may_evict=excludes_others or _may_evict(changed, node.name))
        if not rejections:
            self._costly_steps += 1
            changed = msgspec.structs.replace(changed, verdict=self._decide(prepared, pod))
        return Trial([*before, edit], changed, evaluation, len(rejections))


def _occupying(cluster: ClusterSnapshot) -> list[Pod]:
    """Pods that occupy capacity, or are nominated."""
    return [
        pod for pod in cluster.pods if not pod.is_terminal and (pod.spec.node_name or pod.status.nominated_node_name)
    ]


def _may_evict(situation: Situation, node_name: str) -> bool:
    """Whether evictions can bring the pod to the node, which requires that it fits nowhere else now."""
    return is_preemptor(situation.pod) and not any(name != node_name for name in situation.verdict.feasible_nodes)


def is_preemptor(pod: Pod) -> bool:
    """Whether the pod's preemption policy allows evictions."""
    return pod.spec.preemption_policy != "Never"


def rejections_of(evaluation: NodeEvaluation, *, may_evict: bool) -> list[Status]:
    """What prevents the pod from running on the node, without lower-priority pods if these may be evicted."""
    if evaluation.pre_filter is not None:
        return [evaluation.pre_filter]
    statuses = evaluation.without_lower if may_evict and evaluation.lower_priority_pods else evaluation.filters
    return [status for status in statuses if not status.is_success]


_HOSTNAME = "kubernetes.io/hostname"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def choice_options(context: EditContext, verdict: Verdict) -> list[EditOptions]:
    """Alternative edits for a node that fits, or is a candidate, in ``verdict``, but is not chosen."""
    node_name = context.node.name
    options: list[EditOptions] = []
    candidate = candidate_on(verdict, node_name)
    if candidate is not None:
        lowered = lower_further(context.pod, None, candidate)
        options += [[lowered] if lowered else [], _allow_more(candidate), remove_pods(context, candidate.victims)]
    if node_name in verdict.scores:
        options.append(drop_preferences(context))
    winners = verdict.nominated_nodes or verdict.lands_on
    if len(winners) == 1 and winners[0] != node_name:
        options.append([Edit(changes=[Change(ChangeKind.CORDON, subject=winners[0])], cordons=winners)])
    # As a last resort, tie the pod to the node, by its host name label, or by its name if it has no such label.
    spec, node = context.pod.spec, context.node
    hostname = node.labels.get(_HOSTNAME)
    rules = spec.affinity.node_affinity if spec.affinity else None
    if hostname is not None and _HOSTNAME not in spec.node_selector:
        place = Assignment(format_path(["spec", "nodeSelector", _HOSTNAME]), hostname)
        options.append([_tied(f"{_HOSTNAME}={hostname}", place)])
    elif hostname is None and (rules is None or rules.required is None):
        field = {"key": METADATA_NAME_FIELD, "operator": "In", "values": [node.name]}
        required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        place = Assignment(format_path(["spec", "affinity", "nodeAffinity", _REQUIRED]), required)
        options.append([_tied(f"{METADATA_NAME_FIELD}={node.name}", place)])
    return [options for options in options if options]


def candidate_on(verdict: Verdict, node_name: str) -> Candidate | None:
    """The dry run's candidate on a node."""
    return next((candidate for candidate in verdict.candidates if candidate.node == node_name), None)


def lower_further(pod: Pod, edit: Edit | None, candidate: Candidate) -> Edit | None:
    """Requests that are low enough for one more victim of ``candidate`` to stay; ``None`` if that is impossible.

    ``candidate`` is the dry run's result for ``pod`` with ``edit``. Between its requests and the returned ones, the
    victims on the node are the same, so lowering requests step by step skips no relevant amount.
    """
    amounts = {
        change.subject: (change.before, change.after)
        for change in (edit.changes if edit else ())
        if change.before is not None and change.after is not None
    }
    shortages = [shortage for step in candidate.steps if (shortage := _shortage(step))]
    if not shortages:
        return None
    for each in min(shortages, key=lambda shortage: max(each.missing_share for each in shortage)):
        before, after = amounts.get(each.resource, (each.requested, each.requested))
        amounts[each.resource] = before, after - each.missing
    return lower_requests(pod, amounts)


def _shortage(step: Reprieve) -> list[Shortfall]:
    """The resources that were short with the pod back on the node, if only requests prevented its return."""
    detail = step.blocked_by.detail if step.blocked_by else None
    if not isinstance(detail, InsufficientResources) or any(each.resource == "pods" for each in detail.shortfalls):
        return []
    return detail.shortfalls


def _allow_more(candidate: Candidate) -> EditOptions:
    """Budgets that allow the eviction of the victims: each one alone, then all violated ones."""
    needed: dict[str, tuple[int, int]] = {}
    for step in candidate.steps:
        for use in step.budgets:
            allowed, least = needed.get(use.budget, (use.allowed, use.remaining))
            needed[use.budget] = max(allowed, use.allowed), min(least, use.remaining)
    violated = {budget: (allowed, allowed - left) for budget, (allowed, left) in needed.items() if left < 0}
    options = [_budgets({budget: amounts}) for budget, amounts in violated.items()]
    return [*options, _budgets(violated)] if len(violated) > 1 else options


def _budgets(allowances: dict[str, tuple[int, int]]) -> Edit:
    return Edit(
        changes=[Change(ChangeKind.BUDGET, budget, before, after) for budget, (before, after) in allowances.items()],
        budgets=[f"{budget}={after}" for budget, (_, after) in allowances.items()],
    )


def _tied(subject: str, assignment: Assignment) -> Edit:
    return Edit(changes=[Change(ChangeKind.PIN, subject=subject)], overrides=Overrides(assignments=[assignment]))
