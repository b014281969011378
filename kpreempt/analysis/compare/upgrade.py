"""Compares pods between the cluster's version and a newer one, and determines which changes of the version matter.

The schedulers of both versions run with the same settings. They are compared by all possible outcomes of a pod, as
chance and the order of equals leave them open: two verdicts certainly differ if they share no outcome, and certainly
agree if they have the same outcomes. The changes that make a difference are the fewest with which the older version
decides like the newer one.

Workloads are compared by their next pod, as the controller would create it: from the template if the complete document
is available, otherwise from the newest pod. Pods of StatefulSets and DaemonSets replace existing ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from kpreempt.admission import admit
from kpreempt.analysis.algorithms import Scheduler, api_server_rules, controller_rules, equivalence_key_for
from kpreempt.analysis.compare.differences import PREEMPTS, assumptions_of, decision_of, differences_between, outcome_of
from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.explain.pods import ExplainInput
from kpreempt.analysis.pod_inputs import Decode, ExplainInputs, inputs_of
from kpreempt.analysis.what_if import Overrides
from kpreempt.analysis.workload_pods import PodTemplate, pods_of
from kpreempt.controllers.replacement import is_replaced, replacement_of
from kpreempt.errors import KpreemptError, UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.scheduler_table import PREFIX, RELEASES
from kpreempt.schedulers.interface import Settings
from kpreempt.schedulers.kube.configuration import scheduler_from_configuration
from kpreempt.schedulers.kube.history import Concern, DescribedChange, changes_between, partly
from kpreempt.schedulers.kube.versions import number_of, version_of
from kpreempt.verdict import Assumption, Outcome, Verdict
from kpreempt.verdict.compare import (
    Certainty,
    UpgradeComparison,
    UpgradedPod,
    UpgradeEffect,
    UpgradeGroup,
    VersionChange,
)

if TYPE_CHECKING:
    from kpreempt.schedulers.extender_protocol import Connect
    from kpreempt.schedulers.kube.configuration import FoundPlugin
    from kpreempt.schedulers.kube.scheduler import KubeScheduler


def compare_upgrade(
    batch: Iterable[ExplainInputs],
    versions: Versions,
    *,
    now: datetime,
    assumptions: Iterable[Assumption] = (),
    phases: Phases = NO_PHASES,
) -> UpgradeComparison:
    """What the newer of two versions changes for pods, in the order of the input.

    Pods that are equivalent in both versions are decided once. ``now`` stands in for missing start times. Raises the
    errors of the schedulers.
    """
    comparison = _Comparison(versions, now, phases)
    items = [item for each in batch for item in comparison.items(each)]
    causing = {name for item in items for name in item.causes}
    count = {certainty: sum(item.certainty is certainty for item in items) for certainty in Certainty}
    return UpgradeComparison(
        base=versions.base.algorithm,
        target=versions.target.algorithm,
        compared=comparison.num_compared,
        differing=count[Certainty.CERTAIN],
        possibly_differing=count[Certainty.POSSIBLE],
        undecided=count[Certainty.UNKNOWN],
        changes=[
            VersionChange(name=change.name, sentence=change.sentence, source=change.source)
            for change in versions.changes
            if change.name in causing
        ],
        groups=_groups(items),
        items=items,
        unmodeled=[change.name for change in versions.changes if change.concern is Concern.UNMODELED],
        assumptions=list(dict.fromkeys([*assumptions, *comparison.own, *assumptions_of(comparison.verdicts)])),
    )


class _Comparison:
    def __init__(self, versions: Versions, now: datetime, phases: Phases) -> None:
        self._versions, self._now, self._phases = versions, now, phases
        self._schedulers = (versions.base, versions.target)
        # The last cluster prepared by each scheduler; the next preparation reuses unchanged parts.
        self._prepared: list[Any] = [None, None]
        # Assumptions of the input, and verdicts by version, for assumptions that only one version makes.
        self.own: list[Assumption] = []
        self.verdicts: dict[str, list[Verdict]] = {versions.base.algorithm: [], versions.target.algorithm: []}
        self.num_compared = 0

    def items(self, batch: ExplainInputs) -> list[UpgradedPod]:
        """The pods for which the versions differ, or may differ."""
        self.num_compared += len(batch.inputs)
        kinds: dict[tuple[bytes, bytes], list[ExplainInput]] = {}
        for explain_input in batch.inputs:
            self.own += explain_input.assumptions
            stored = (stored_by(each, explain_input, batch.cluster) for each in self._schedulers)
            base, target = (equivalence_key_for(self._versions.base, pod) for pod in stored)
            kinds.setdefault((base, target), []).append(explain_input)
        if not kinds:
            return []
        for index, scheduler in enumerate(self._schedulers):
            with self._phases.phase("prepare"):
                self._prepared[index] = scheduler.prepare(batch.cluster, now=self._now, before=self._prepared[index])
        pairs: dict[tuple[bytes, bytes], list[Verdict]] = {key: [] for key in kinds}
        for key, same in kinds.items():
            for scheduler, prepared in zip(self._schedulers, self._prepared, strict=True):
                pod = stored_by(scheduler, same[0], batch.cluster)
                verdict = scheduler.decide(prepared, pod, records_steps=False, phases=self._phases)
                pairs[key].append(verdict)
                self.verdicts[scheduler.algorithm].append(verdict)
        possible = {key: (outcomes_of(base), outcomes_of(target)) for key, (base, target) in pairs.items()}
        certainties = {key: base.difference_to(target) for key, (base, target) in possible.items()}
        pending = {
            key: Pending(kinds[key][0], *possible[key])
            for key, certainty in certainties.items()
            if certainty in (Certainty.CERTAIN, Certainty.POSSIBLE)
        }
        search = CauseSearch(self._versions, batch.cluster, self._now, self._phases)
        causes = search.find(pending) if pending else {}
        found: dict[int, UpgradedPod] = {}
        for key, same in kinds.items():
            certainty = certainties[key]
            if certainty is not None:
                cause_names = [change.name for change in causes.get(key, ())]
                found |= {id(each): _item(each, pairs[key][0], pairs[key][1], certainty, cause_names) for each in same}
        return [found[id(each)] for each in batch.inputs if id(each) in found]


def _item(
    explain_input: ExplainInput, base: Verdict, target: Verdict, certainty: Certainty, causes: list[str]
) -> UpgradedPod:
    both = {base.algorithm: base, target.algorithm: target}
    return UpgradedPod(
        pod=explain_input.pod.key,
        origin=explain_input.origin,
        priority=explain_input.pod.priority,
        effect=UpgradeEffect.UNKNOWN if certainty is Certainty.UNKNOWN else effect_of(base, target),
        certainty=certainty,
        base=decision_of(base.algorithm, base, both, []),
        target=decision_of(target.algorithm, target, both, differences_between(base, target)),
        causes=causes,
    )


def _groups(items: Iterable[UpgradedPod]) -> list[UpgradeGroup]:
    """Group pods by cause, the largest group first; groups without a known cause come last."""
    members: dict[tuple[str, ...], list[str]] = {}
    for item in items:
        if item.certainty is not Certainty.UNKNOWN:
            members.setdefault(tuple(item.causes), []).append(item.pod)
    ordered = sorted(members.items(), key=lambda each: (not each[0], -len(each[1])))
    return [UpgradeGroup(causes=list(causes), pods=pods) for causes, pods in ordered]


_OPTION = "--upgrade-to"


def parse_version(text: str) -> str:
    """Parse ``1.35``, ``v1.35.4`` or ``kube-1.35``. Raises ``UsageError`` if the version is not modeled."""
    version = version_of(f"{PREFIX}{text.strip().removeprefix(PREFIX).removeprefix('v')}")
    if version is None:
        raise UsageError(f"{_OPTION}: unsupported version {text!r}", hint=", ".join(RELEASES))
    return version


def versions_between(
    base: str,
    target: str,
    configuration: Mapping[str, Any] | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    plugins: Sequence[FoundPlugin] = (),
    connect: Connect | None = None,
) -> Versions:
    """The version of the algorithm ``base`` and the version ``target``, with the changes between them.

    Raises ``UsageError`` if the target is not newer, or lacks a feature gate, and ``ConfigurationError`` if one of the
    versions rejects the configuration.
    """
    algorithm, base = base, version_of(base) or ""
    if not base:
        raise UsageError(f"{_OPTION}: {algorithm} has no known newer version", hint="--algorithms")
    if number_of(target) <= number_of(base):
        hint = f"--algorithm {PREFIX}{list(RELEASES)[-2]}, if that is the current version"
        raise UsageError(f"{_OPTION} {target}: not newer than {base}", hint=hint)

    def made(version: str) -> KubeScheduler:
        return scheduler_from_configuration(configuration, feature_gates, plugins, connect, version)

    older, newer = made(base), made(target)

    def with_changes(changes: Sequence[DescribedChange]) -> KubeScheduler:
        facts = partly(older.behavior, newer.behavior, changes)
        return scheduler_from_configuration(configuration, None, plugins, connect, facts=facts)

    changes = changes_between(older.behavior, newer.behavior)
    return Versions(base=older, target=newer, changes=changes, with_changes=with_changes)


# The kinds of workloads that are compared unless something else controls them.
_KINDS = frozenset(("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job", "CronJob"))
_IN_PLACE = frozenset(("StatefulSet", "DaemonSet"))
_NEW = "new"
_FINISHED = frozenset(("Complete", "Failed"))
# Kind, namespace and name.
_Workload = tuple[str, str, str]


def keeps_workloads(kind: str, record: Any) -> bool:
    """Whether the document of an object is needed, because it is a workload without a controller."""
    return kind in _KINDS and controller_of(record.metadata) is None


def next_pods(
    cluster: ClusterSnapshot,
    documents: Iterable[Document],
    decode: Decode,
    *,
    now: datetime,
    settings: Settings,
    is_selected: Callable[[str], bool] = lambda _: True,
) -> tuple[list[ExplainInputs], list[Assumption]]:
    """The next pod of each workload in the namespaces selected by ``is_selected``, and the resulting assumptions.

    ``settings`` are those of a scheduler of the cluster's version. ``documents`` are those selected by
    ``keeps_workloads``. A workload without a known template or pod is reported as an assumption. Raises the errors of
    ``inputs_of``.
    """
    templates, known = _templates(documents)
    templates = [each for each in templates if is_selected(each.namespace)]
    together = [each for each in templates if each.kind not in _IN_PLACE]
    # The controlled pods by their topmost owner: a Deployment rather than its ReplicaSet.
    above: dict[_Workload, _Workload] = {}
    for kind, records in (("ReplicaSet", cluster.replica_sets), ("Job", cluster.jobs)):
        for record in records:
            owner = controller_of(record.metadata)
            if owner is not None:
                namespace = record.metadata.namespace
                above[kind, namespace, record.metadata.name] = (owner.kind, namespace, owner.name)
    owned: dict[_Workload, list[Pod]] = {}
    for pod in cluster.pods:
        owner = controller_of(pod.metadata)
        if owner is not None and owner.kind != "Node":
            own = (owner.kind, pod.metadata.namespace, owner.name)
            owned.setdefault(above.get(own, own), []).append(pod)
    found = [_inputs_for(cluster, together, decode, settings)] if together else []
    for template in templates:
        if template.kind in _IN_PLACE:
            replaced_pods = owned.get((template.kind, template.namespace, template.name), [])
            remaining = cluster if template.kind == "StatefulSet" else _without(cluster, replaced_pods)
            answer = _inputs_for(remaining, [template], decode, settings)
            # Its namesake must be deleted before the pod is created, so it is not an assumption.
            inputs = [
                msgspec.structs.replace(
                    explain_input,
                    assumptions=[each for each in explain_input.assumptions if each.field != "metadata.name"],
                )
                for explain_input in answer.inputs
            ]
            found.append(ExplainInputs(answer.cluster, inputs))
    others = {each: pods for each, pods in owned.items() if each not in known and is_selected(each[1])}
    replaced = {each: pods for each, pods in others.items() if is_replaced(pods[0])}
    found += [_replacement(cluster, workload, pods, now, settings) for workload, pods in replaced.items()]
    return found, list(_unknown_workloads(cluster, known, others, is_selected))


def _templates(documents: Iterable[Document]) -> tuple[list[PodTemplate], set[_Workload]]:
    """The templates of workloads, and the workloads; finished Jobs create no pods, but count as known."""
    found: list[PodTemplate] = []
    known: set[_Workload] = set()
    for document in documents:
        holder = document.get("spec") or {}
        holder = (holder.get("jobTemplate") or {}).get("spec") or {} if document["kind"] == "CronJob" else holder
        if not (holder.get("template") or {}).get("spec"):
            continue
        metadata = document["metadata"]
        known.add((document["kind"], metadata.get("namespace") or "", metadata["name"]))
        conditions = (document.get("status") or {}).get("conditions") or []
        has_ended = any(each.get("type") in _FINISHED and each.get("status") == "True" for each in conditions)
        if document["kind"] != "Job" or not has_ended:
            found += pods_of(document)
    return found, known


def _inputs_for(
    cluster: ClusterSnapshot, templates: Sequence[PodTemplate], decode: Decode, settings: Settings
) -> ExplainInputs:
    return inputs_of(cluster, templates, Overrides(), decode, api_server_rules(settings))


def _replacement(
    cluster: ClusterSnapshot, workload: _Workload, pods: Sequence[Pod], now: datetime, settings: Settings
) -> ExplainInputs:
    """The replacement of the workload's newest pod, or of each pod of a DaemonSet."""
    kind, namespace, name = workload
    newest = max(
        pods,
        key=lambda pod: (
            created.timestamp() if (created := pod.metadata.creation_timestamp) is not None else 0.0,
            pod.metadata.name,
        ),
    )
    replaced_pods = list(pods) if kind == "DaemonSet" else [newest]
    rules = controller_rules(settings)
    replacements = [replacement_of(pod, suffix=_NEW, uid="", now=now, rules=rules) for pod in replaced_pods]
    remaining = _without(cluster, replaced_pods) if kind in _IN_PLACE else cluster
    inputs = []
    for pod in replacements:
        if pod is not None:
            admission = admit(pod, remaining, api_server_rules(settings))
            origin = f"{kind} {namespace}/{name}"
            inputs.append(
                ExplainInput(pod=admission.pod, manifest=pod, origin=origin, assumptions=admission.assumptions)
            )
    return ExplainInputs(remaining, inputs)


def _without(cluster: ClusterSnapshot, removed: Sequence[Pod]) -> ClusterSnapshot:
    names = {id(pod) for pod in removed}
    return msgspec.structs.replace(cluster, pods=[pod for pod in cluster.pods if id(pod) not in names])


def _unknown_workloads(
    cluster: ClusterSnapshot,
    known: set[_Workload],
    others: dict[_Workload, list[Pod]],
    is_selected: Callable[[str], bool],
) -> Iterator[Assumption]:
    """Workloads whose next pod is unknown."""
    records = (
        ("Deployment", cluster.deployments),
        ("StatefulSet", cluster.stateful_sets),
        ("DaemonSet", cluster.daemon_sets),
        ("ReplicaSet", cluster.replica_sets),
        ("ReplicationController", cluster.replication_controllers),
    )
    for kind, of_kind in records:
        for record in of_kind:
            each = (kind, record.metadata.namespace, record.metadata.name)
            if controller_of(record.metadata) is None and is_selected(each[1]) and each not in known | others.keys():
                message = "the input has neither its template nor any of its pods, so it is not compared"
                yield Assumption(f"{kind} {each[1]}/{each[2]}", "spec.template", message)
    for (kind, namespace, name), pods in others.items():
        if not is_replaced(pods[0]):
            message = "its controller's next pod is unknown, so it is not compared"
            yield Assumption(f"{kind} {namespace}/{name}", "spec", message)


class PossibleOutcome(msgspec.Struct, frozen=True):
    """One possible outcome of a pod: its node and the victims.

    ``choices`` are sets of equal pods with the number of them that are evicted. Without a ``node`` the pod stays
    pending.
    """

    outcome: str
    node: str = ""
    victims: frozenset[str] = frozenset()
    choices: frozenset[tuple[int, frozenset[str]]] = frozenset()

    def may_be(self, other: PossibleOutcome) -> bool:
        """Whether both could be the same outcome."""
        if (self.outcome, self.node) != (other.outcome, other.node) or self._count != other._count:
            return False
        return self.victims <= other._pods and other.victims <= self._pods

    @property
    def _count(self) -> int:
        return len(self.victims) + sum(count for count, _ in self.choices)

    @property
    def _pods(self) -> frozenset[str]:
        return self.victims.union(*(pods for _, pods in self.choices))


class PossibleOutcomes(msgspec.Struct, frozen=True):
    """All possible outcomes of a pod; if not ``complete``, there may be others.

    If a search may end before it has seen all feasible nodes, ``ranking`` has these nodes, the best first: with the
    same ranking, the same nodes lead to the same choice.
    """

    possible: frozenset[PossibleOutcome]
    complete: bool = True
    is_known: bool = True
    ranking: tuple[frozenset[str], ...] = ()

    def same_as(self, other: PossibleOutcomes) -> bool:
        """Whether the possible outcomes are the same."""
        return (self.possible, self.is_known, self.ranking) == (other.possible, other.is_known, other.ranking)

    def difference_to(self, other: PossibleOutcomes) -> Certainty | None:
        """How certain it is that the outcomes differ; ``None`` if they are the same."""
        if not self.is_known or not other.is_known:
            return Certainty.UNKNOWN
        if self.same_as(other):
            return None
        if self._kinds.isdisjoint(other._kinds):
            return Certainty.CERTAIN
        is_disjoint = not any(one.may_be(another) for one in self.possible for another in other.possible)
        return Certainty.CERTAIN if is_disjoint and self.complete and other.complete else Certainty.POSSIBLE

    @property
    def _kinds(self) -> frozenset[str]:
        """The kinds of outcomes; unlike the nodes that a search visits, they are always complete."""
        return frozenset(each.outcome for each in self.possible)


def outcomes_of(verdict: Verdict) -> PossibleOutcomes:
    """All possible outcomes of a verdict."""
    alternatives = verdict.alternatives
    complete = (
        verdict.sampling is None
        and verdict.odds is None
        and (alternatives is None or (alternatives.exact and not alternatives.omitted))
    )
    if verdict.volume_choices is not None and verdict.volume_choices.uncertain:
        return PossibleOutcomes(frozenset(), is_known=False)
    if verdict.outcome == Outcome.UNCERTAIN:
        return PossibleOutcomes(frozenset(), is_known=False)
    if verdict.outcome == Outcome.LANDS:
        nodes = verdict.lands_on or verdict.chosen_nodes or verdict.feasible_nodes
        if verdict.sampling is None:
            ranking: tuple[frozenset[str], ...] = ()
        else:
            by_score: dict[int, set[str]] = {}
            for node, score in verdict.scores.items():
                by_score.setdefault(score, set()).add(node)
            ranking = tuple(frozenset(by_score[score]) for score in sorted(by_score, reverse=True))
        return PossibleOutcomes(
            frozenset(PossibleOutcome(Outcome.LANDS, node) for node in nodes), complete, ranking=ranking
        )
    if verdict.outcome in PREEMPTS:
        # What the preemption can result in, however unlikely.
        by_node = {candidate.node: candidate for candidate in verdict.candidates}
        drawn = [node for each in (verdict.odds.outcomes if verdict.odds else []) for node in each.nodes]
        unlikely = [each for node in drawn if node in by_node for each in by_node[node].possible]
        found = set()
        for each in (*verdict.possible_outcomes, *unlikely):
            choices = frozenset((choice.count, frozenset(choice.pods)) for choice in each.choices)
            found.add(PossibleOutcome(Outcome.PREEMPTS, each.node, frozenset(each.victims), choices))
        return PossibleOutcomes(frozenset(found), complete)
    return PossibleOutcomes(frozenset({PossibleOutcome(verdict.outcome)}))


def effect_of(base: Verdict, target: Verdict) -> UpgradeEffect:
    """How the pod's outcome with ``target`` differs from its outcome with ``base``."""
    base_outcome, target_outcome = outcome_of(base), outcome_of(target)
    if Outcome.UNCERTAIN in (base_outcome, target_outcome):
        return UpgradeEffect.UNKNOWN
    if target_outcome is Outcome.PREEMPTS:
        return UpgradeEffect.EVICTS
    if target_outcome is Outcome.LANDS:
        found = {Outcome.LANDS: UpgradeEffect.LANDS_ELSEWHERE, Outcome.PREEMPTS: UpgradeEffect.EVICTS_NO_PODS}
        return found.get(base_outcome, UpgradeEffect.LANDS_NOW)
    return UpgradeEffect.NO_LONGER_LANDS if base_outcome in (Outcome.LANDS, Outcome.PREEMPTS) else UpgradeEffect.ATTEMPT


_Key = TypeVar("_Key")
# The maximum number of intermediate versions per cluster in the search for combinations of changes.
_MAX_TRIES = 120
# The maximum number of distinct pods per cluster for which causes are searched.
_MAX_PODS = 300


class Versions(msgspec.Struct, frozen=True):
    """The schedulers of a cluster's version and of a newer one, and all changes between them.

    ``with_changes`` creates the older scheduler with some of these changes; it raises if a configuration is rejected.
    """

    base: Scheduler
    target: Scheduler
    changes: Sequence[DescribedChange]
    with_changes: Callable[[Sequence[DescribedChange]], Scheduler]


class Pending(msgspec.Struct, frozen=True):
    """A pod whose outcomes differ, with the outcomes of both versions."""

    explain_input: ExplainInput
    base: PossibleOutcomes
    target: PossibleOutcomes


class CauseSearch:
    """The search in one cluster; each intermediate version is prepared once, for all pods."""

    def __init__(self, versions: Versions, cluster: ClusterSnapshot, now: datetime, phases: Phases = NO_PHASES) -> None:
        self._versions, self._cluster, self._now, self._phases = versions, cluster, now, phases
        deciding = (change for change in versions.changes if change.decides and change.facts)
        # If the facts of one change are part of another's, it is tried first.
        self._changes = sorted(deciding, key=lambda change: len(change.facts))
        self._tries = 0

    def find(self, pods: Mapping[_Key, Pending]) -> dict[_Key, tuple[DescribedChange, ...]]:
        """The fewest changes that explain the difference of each pod; pods without a known cause are left out."""
        remaining = dict(list(pods.items())[:_MAX_PODS])
        found: dict[_Key, tuple[DescribedChange, ...]] = {}
        for change in self._changes:
            self._assign(remaining, found, (change,))
        while remaining:
            key, pending = next(iter(remaining.items()))
            changes = self._minimal_changes(pending)
            if changes is None:
                del remaining[key]
            else:
                self._assign(remaining, found, changes)
                remaining.pop(key, None)
        return found

    def _assign(
        self,
        remaining: dict[_Key, Pending],
        found: dict[_Key, tuple[DescribedChange, ...]],
        changes: tuple[DescribedChange, ...],
    ) -> None:
        """Assign the changes to the pods whose outcomes they explain."""
        between = self._outcomes_with(changes) if remaining else None
        if between is None:
            return
        for key, pending in list(remaining.items()):
            if between(pending.explain_input).same_as(pending.target):
                found[key] = changes
                del remaining[key]

    def _minimal_changes(self, pending: Pending) -> tuple[DescribedChange, ...] | None:
        """A minimal set of changes; ``None`` if all together do not explain it, or too many were tried."""
        required = self._changes
        if not self._are_sufficient(required, pending):
            return None
        for change in list(required):
            fewer = [each for each in required if each is not change]
            if self._tries >= _MAX_TRIES:
                return None
            if fewer and self._are_sufficient(fewer, pending):
                required = fewer
        return tuple(required)

    def _are_sufficient(self, changes: Sequence[DescribedChange], pending: Pending) -> bool:
        between = self._outcomes_with(changes)
        return between is not None and between(pending.explain_input).same_as(pending.target)

    def _outcomes_with(self, changes: Sequence[DescribedChange]) -> Callable[[ExplainInput], PossibleOutcomes] | None:
        """Return a function for the outcomes with these changes alone; ``None`` if they are not possible together."""
        self._tries += 1
        try:
            scheduler = self._versions.with_changes(changes)
        except KpreemptError:
            # A version in between may reject a configuration that both versions accept.
            return None
        prepared: Any = scheduler.prepare(self._cluster, now=self._now)

        def possible(explain_input: ExplainInput) -> PossibleOutcomes:
            pod = stored_by(scheduler, explain_input, self._cluster)
            return outcomes_of(scheduler.decide(prepared, pod, records_steps=False, phases=self._phases))

        return possible


def stored_by(scheduler: Scheduler, explain_input: ExplainInput, cluster: ClusterSnapshot) -> Pod:
    """The pod as the API server of the scheduler's version stores it if it is new, else as it is stored."""
    if explain_input.manifest is None:
        return explain_input.pod
    return admit(explain_input.manifest, cluster, api_server_rules(scheduler.settings)).pod
