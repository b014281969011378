"""What changes for pods when the cluster runs another version, and which of the version's changes causes it.

The schedulers of both versions run under the same settings. They are compared by all possible outcomes of a pod, what
chance and the order of equals leave open: two verdicts surely differ if they have none in common, and surely agree if
they have the same ones. From that follows which changes of a version make a difference: the fewest with which the older
version decides as the newer one.

Workloads are compared by their next pod, as the controller would make it: from the template if the whole document is
there, otherwise from the newest pod. Pods of StatefulSets and DaemonSets replace others that are gone by then.
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
from kpreempt.analysis.explain.pods import Question
from kpreempt.analysis.questions import Asked, Decode, questions_of
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
    asked: Iterable[Asked],
    versions: Versions,
    *,
    now: datetime,
    assumptions: Iterable[Assumption] = (),
    phases: Phases = NO_PHASES,
) -> UpgradeComparison:
    """What the newer of two versions changes for pods, in the order in which they are asked about.

    Pods that neither version tells apart are decided once. ``now`` stands for missing start times. Raises what the
    schedulers raise.
    """
    comparison = _Comparison(versions, now, phases)
    items = [item for each in asked for item in comparison.items(each)]
    causing = {name for item in items for name in item.causes}
    count = {certainty: sum(item.certainty is certainty for item in items) for certainty in Certainty}
    return UpgradeComparison(
        base=versions.base.algorithm,
        target=versions.target.algorithm,
        compared=comparison.asked,
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
        unmodeled=[change.name for change in versions.changes if change.concern is Concern.NOT_MODELLED],
        assumptions=list(dict.fromkeys([*assumptions, *comparison.own, *assumptions_of(comparison.said)])),
    )


class _Comparison:
    def __init__(self, versions: Versions, now: datetime, phases: Phases) -> None:
        self._versions, self._now, self._phases = versions, now, phases
        self._schedulers = (versions.base, versions.target)
        # The cluster that each prepared last, of which the next may use what is the same.
        self._prepared: list[Any] = [None, None]
        # What is assumed: of the questions, and by the verdicts, told by version where only one makes it.
        self.own: list[Assumption] = []
        self.said: dict[str, list[Verdict]] = {versions.base.algorithm: [], versions.target.algorithm: []}
        self.asked = 0

    def items(self, asked: Asked) -> list[UpgradedPod]:
        """The pods for which the versions differ, or may."""
        self.asked += len(asked.questions)
        kinds: dict[tuple[bytes, bytes], list[Question]] = {}
        for question in asked.questions:
            self.own += question.assumptions
            stored = (stored_by(each, question, asked.cluster) for each in self._schedulers)
            base, target = (equivalence_key_for(self._versions.base, pod) for pod in stored)
            kinds.setdefault((base, target), []).append(question)
        if not kinds:
            return []
        for place, scheduler in enumerate(self._schedulers):
            with self._phases.phase("prepare"):
                self._prepared[place] = scheduler.prepare(asked.cluster, now=self._now, before=self._prepared[place])
        pairs: dict[tuple[bytes, bytes], list[Verdict]] = {key: [] for key in kinds}
        for key, same in kinds.items():
            for scheduler, prepared in zip(self._schedulers, self._prepared, strict=True):
                pod = stored_by(scheduler, same[0], asked.cluster)
                verdict = scheduler.decide(prepared, pod, records_steps=False, phases=self._phases)
                pairs[key].append(verdict)
                self.said[scheduler.algorithm].append(verdict)
        possible = {key: (outcomes_of(base), outcomes_of(target)) for key, (base, target) in pairs.items()}
        certainties = {key: base.difference_to(target) for key, (base, target) in possible.items()}
        pending = {
            key: Pending(kinds[key][0], *possible[key])
            for key, certainty in certainties.items()
            if certainty in (Certainty.CERTAIN, Certainty.POSSIBLE)
        }
        search = CauseSearch(self._versions, asked.cluster, self._now, self._phases)
        causes = search.find(pending) if pending else {}
        found: dict[int, UpgradedPod] = {}
        for key, same in kinds.items():
            certainty = certainties[key]
            if certainty is not None:
                named = [change.name for change in causes.get(key, ())]
                found |= {id(each): _item(each, pairs[key][0], pairs[key][1], certainty, named) for each in same}
        return [found[id(each)] for each in asked.questions if id(each) in found]


def _item(question: Question, base: Verdict, target: Verdict, certainty: Certainty, causes: list[str]) -> UpgradedPod:
    both = {base.algorithm: base, target.algorithm: target}
    return UpgradedPod(
        pod=question.pod.key,
        origin=question.origin,
        priority=question.pod.priority,
        effect=UpgradeEffect.UNKNOWN if certainty is Certainty.UNKNOWN else effect_of(base, target),
        certainty=certainty,
        base=decision_of(base.algorithm, base, both, []),
        target=decision_of(target.algorithm, target, both, differences_between(base, target)),
        causes=causes,
    )


def _groups(items: Iterable[UpgradedPod]) -> list[UpgradeGroup]:
    """By cause, the one of the most pods first; those of which nothing is told come last."""
    members: dict[tuple[str, ...], list[str]] = {}
    for item in items:
        if item.certainty is not Certainty.UNKNOWN:
            members.setdefault(tuple(item.causes), []).append(item.pod)
    ordered = sorted(members.items(), key=lambda each: (not each[0], -len(each[1])))
    return [UpgradeGroup(causes=list(causes), pods=pods) for causes, pods in ordered]


_OPTION = "--upgrade-to"


def parse_version(text: str) -> str:
    """The version in ``1.35``, ``v1.35.4`` or ``kube-1.35``. Raises ``UsageError`` for one that is not modelled."""
    version = version_of(f"{PREFIX}{text.strip().removeprefix(PREFIX).removeprefix('v')}")
    if version is None:
        raise UsageError(f"{_OPTION}: there is no version {text!r} here", hint=", ".join(RELEASES))
    return version


def versions_between(
    base: str,
    target: str,
    configuration: Mapping[str, Any] | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    plugins: Sequence[FoundPlugin] = (),
    connect: Connect | None = None,
) -> Versions:
    """The version of the algorithm ``base`` and the version ``target``, with what changed between them.

    Raises ``UsageError`` where the target is not the newer one, or has no such gate, and ``ConfigurationError`` where
    one of them refuses the configuration.
    """
    algorithm, base = base, version_of(base) or ""
    if not base:
        raise UsageError(f"{_OPTION}: what comes after {algorithm} is not known here", hint="--algorithms")
    if number_of(target) <= number_of(base):
        hint = f"--algorithm {PREFIX}{list(RELEASES)[-2]}, where that is not the version to start from"
        raise UsageError(f"{_OPTION} {target}: that is not newer than {base}", hint=hint)

    def made(version: str) -> KubeScheduler:
        return scheduler_from_configuration(configuration, feature_gates, plugins, connect, version)

    older, newer = made(base), made(target)

    def with_changes(changes: Sequence[DescribedChange]) -> KubeScheduler:
        facts = partly(older.behavior, newer.behavior, changes)
        return scheduler_from_configuration(configuration, None, plugins, connect, facts=facts)

    changes = changes_between(older.behavior, newer.behavior)
    return Versions(base=older, target=newer, changes=changes, with_changes=with_changes)


# Kinds that are asked about unless something else controls them.
_KINDS = frozenset(("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job", "CronJob"))
_IN_PLACE = frozenset(("StatefulSet", "DaemonSet"))
_NEW = "new"
_FINISHED = frozenset(("Complete", "Failed"))
# Kind, namespace and name.
_Workload = tuple[str, str, str]


def keeps_workloads(kind: str, record: Any) -> bool:
    """Whether the document of an object is needed: a workload that nothing else controls."""
    return kind in _KINDS and controller_of(record.metadata) is None


def next_pods(
    cluster: ClusterSnapshot,
    documents: Iterable[Document],
    decode: Decode,
    *,
    now: datetime,
    settings: Settings,
    is_selected: Callable[[str], bool] = lambda _: True,
) -> tuple[list[Asked], list[Assumption]]:
    """The next pod of each workload in a namespace that ``is_selected`` about, and what is assumed of workloads.

    ``settings`` are those of a scheduler of the cluster's version.
    ``documents`` are those that ``keeps_workloads`` kept. A workload of which neither a template nor a pod is known is
    told as an assumption. Raises what ``questions_of`` raises.
    """
    templates, known = _templates(documents)
    templates = [each for each in templates if is_selected(each.namespace)]
    together = [each for each in templates if each.kind not in _IN_PLACE]
    # The pods that something controls, by what stands above it: a Deployment rather than its ReplicaSet.
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
    asked = [_asked(cluster, together, decode, settings)] if together else []
    for template in templates:
        if template.kind in _IN_PLACE:
            gone = owned.get((template.kind, template.namespace, template.name), [])
            rest = cluster if template.kind == "StatefulSet" else _without(cluster, gone)
            one = _asked(rest, [template], decode, settings)
            # That its namesake is gone is what it takes for the pod to be made.
            questions = [
                msgspec.structs.replace(
                    question, assumptions=[each for each in question.assumptions if each.field != "metadata.name"]
                )
                for question in one.questions
            ]
            asked.append(Asked(one.cluster, questions))
    others = {each: pods for each, pods in owned.items() if each not in known and is_selected(each[1])}
    replaced = {each: pods for each, pods in others.items() if is_replaced(pods[0])}
    asked += [_replacement(cluster, workload, pods, now, settings) for workload, pods in replaced.items()]
    return asked, list(_untold(cluster, known, others, is_selected))


def _templates(documents: Iterable[Document]) -> tuple[list[PodTemplate], set[_Workload]]:
    """The templates of workloads, and these; finished Jobs make no pods, and are known all the same."""
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


def _asked(cluster: ClusterSnapshot, templates: Sequence[PodTemplate], decode: Decode, settings: Settings) -> Asked:
    return questions_of(cluster, templates, Overrides(), decode, api_server_rules(settings))


def _replacement(
    cluster: ClusterSnapshot, workload: _Workload, pods: Sequence[Pod], now: datetime, settings: Settings
) -> Asked:
    """What takes the place of the workload's newest pod, or for a DaemonSet of each."""
    kind, namespace, name = workload
    newest = max(
        pods,
        key=lambda pod: (
            created.timestamp() if (created := pod.metadata.creation_timestamp) is not None else 0.0,
            pod.metadata.name,
        ),
    )
    gone = list(pods) if kind == "DaemonSet" else [newest]
    rules = controller_rules(settings)
    made = [replacement_of(pod, suffix=_NEW, uid="", now=now, rules=rules) for pod in gone]
    rest = _without(cluster, gone) if kind in _IN_PLACE else cluster
    questions = []
    for pod in made:
        if pod is not None:
            admission = admit(pod, rest, api_server_rules(settings))
            origin = f"{kind} {namespace}/{name}"
            questions.append(
                Question(pod=admission.pod, manifest=pod, origin=origin, assumptions=admission.assumptions)
            )
    return Asked(rest, questions)


def _without(cluster: ClusterSnapshot, gone: Sequence[Pod]) -> ClusterSnapshot:
    names = {id(pod) for pod in gone}
    return msgspec.structs.replace(cluster, pods=[pod for pod in cluster.pods if id(pod) not in names])


def _untold(
    cluster: ClusterSnapshot,
    known: set[_Workload],
    others: dict[_Workload, list[Pod]],
    is_selected: Callable[[str], bool],
) -> Iterator[Assumption]:
    """Workloads of which the next pod is not known."""
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
                message = "the cluster as it was read has neither its template nor a pod of it: it is not asked about"
                yield Assumption(f"{kind} {each[1]}/{each[2]}", "spec.template", message)
    for (kind, namespace, name), pods in others.items():
        if not is_replaced(pods[0]):
            message = "what its controller makes next is not known: it is not asked about"
            yield Assumption(f"{kind} {namespace}/{name}", "spec", message)


class PossibleOutcome(msgspec.Struct, frozen=True):
    """One thing that may become of a pod: where it ends, and who goes.

    ``choices`` are equal pods of which so many go. Without a ``node`` it waits.
    """

    outcome: str
    node: str = ""
    victims: frozenset[str] = frozenset()
    choices: frozenset[tuple[int, frozenset[str]]] = frozenset()

    def may_be(self, other: PossibleOutcome) -> bool:
        """Whether both may come to the same."""
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
    """All that may become of a pod; there may be others where they are not ``complete``.

    Where a search may end before it has seen all nodes that fit, ``ranking`` has these, the best first: with the same
    one it comes to the same node whichever it has seen.
    """

    possible: frozenset[PossibleOutcome]
    complete: bool = True
    is_known: bool = True
    ranking: tuple[frozenset[str], ...] = ()

    def same_as(self, other: PossibleOutcomes) -> bool:
        """Whether the same may become of the pod."""
        return (self.possible, self.is_known, self.ranking) == (other.possible, other.is_known, other.ranking)

    def difference_to(self, other: PossibleOutcomes) -> Certainty | None:
        """How sure it is that the pod fares otherwise; ``None`` where it fares the same."""
        if not self.is_known or not other.is_known:
            return Certainty.UNKNOWN
        if self.same_as(other):
            return None
        if self._kinds.isdisjoint(other._kinds):
            return Certainty.CERTAIN
        apart = not any(one.may_be(another) for one in self.possible for another in other.possible)
        return Certainty.CERTAIN if apart and self.complete and other.complete else Certainty.POSSIBLE

    @property
    def _kinds(self) -> frozenset[str]:
        """What may become of it whichever nodes a search comes to; unlike these, nodes may go untold."""
        return frozenset(each.outcome for each in self.possible)


def outcomes_of(verdict: Verdict) -> PossibleOutcomes:
    """All that may become of the pod by the verdict."""
    told = verdict.alternatives
    complete = verdict.sampling is None and verdict.odds is None and (told is None or (told.exact and not told.omitted))
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
        # What the preemption can end with, however unlikely.
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
    """What becomes otherwise of a pod with the ``target`` than with the ``base``."""
    ours, theirs = outcome_of(base), outcome_of(target)
    if Outcome.UNCERTAIN in (ours, theirs):
        return UpgradeEffect.UNKNOWN
    if theirs is Outcome.PREEMPTS:
        return UpgradeEffect.EVICTS
    if theirs is Outcome.LANDS:
        found = {Outcome.LANDS: UpgradeEffect.LANDS_ELSEWHERE, Outcome.PREEMPTS: UpgradeEffect.EVICTS_NO_PODS}
        return found.get(ours, UpgradeEffect.LANDS_NOW)
    return UpgradeEffect.NO_LONGER_LANDS if ours in (Outcome.LANDS, Outcome.PREEMPTS) else UpgradeEffect.ATTEMPT


_Key = TypeVar("_Key")
# Versions in between that are tried for a cluster before the search for several changes together ends.
_MOST_TRIES = 120
# Pods, of those that differ from each other, for which causes are sought in a cluster.
_MOST_PODS = 300


class Versions(msgspec.Struct, frozen=True):
    """The scheduler of a cluster's version and of a newer one, and all that changed between them.

    ``with_changes`` makes the older scheduler with some of these changes; it raises where a configuration is refused.
    """

    base: Scheduler
    target: Scheduler
    changes: Sequence[DescribedChange]
    with_changes: Callable[[Sequence[DescribedChange]], Scheduler]


class Pending(msgspec.Struct, frozen=True):
    """A question about a pod whose fates differ, with those of both versions."""

    question: Question
    base: PossibleOutcomes
    target: PossibleOutcomes


class CauseSearch:
    """The search in one cluster; each version in between is prepared once, for all pods that are asked about."""

    def __init__(self, versions: Versions, cluster: ClusterSnapshot, now: datetime, phases: Phases = NO_PHASES) -> None:
        self._versions, self._cluster, self._now, self._phases = versions, cluster, now, phases
        deciding = (change for change in versions.changes if change.decides and change.facts)
        # Where one sets a part of what another sets, it is tried before.
        self._changes = sorted(deciding, key=lambda change: len(change.facts))
        self._tries = 0

    def find(self, pods: Mapping[_Key, Pending]) -> dict[_Key, tuple[DescribedChange, ...]]:
        """The fewest changes that make the difference for each pod; a pod of which none can be told is left out."""
        left = dict(list(pods.items())[:_MOST_PODS])
        found: dict[_Key, tuple[DescribedChange, ...]] = {}
        for change in self._changes:
            self._settle(left, found, (change,))
        while left:
            key, pending = next(iter(left.items()))
            several = self._reduced(pending)
            if several is None:
                del left[key]
            else:
                self._settle(left, found, several)
                left.pop(key, None)
        return found

    def _settle(
        self,
        left: dict[_Key, Pending],
        found: dict[_Key, tuple[DescribedChange, ...]],
        changes: tuple[DescribedChange, ...],
    ) -> None:
        """Note the changes for those pods that fare with them alone as in the newer version."""
        between = self._between(changes) if left else None
        if between is None:
            return
        for key, pending in list(left.items()):
            if between(pending.question).same_as(pending.target):
                found[key] = changes
                del left[key]

    def _reduced(self, pending: Pending) -> tuple[DescribedChange, ...] | None:
        """Changes of which none can be left out; ``None`` where all together do not do it, or too many were tried."""
        kept = self._changes
        if not self._suffice(kept, pending):
            return None
        for change in list(kept):
            fewer = [each for each in kept if each is not change]
            if self._tries >= _MOST_TRIES:
                return None
            if fewer and self._suffice(fewer, pending):
                kept = fewer
        return tuple(kept)

    def _suffice(self, changes: Sequence[DescribedChange], pending: Pending) -> bool:
        between = self._between(changes)
        return between is not None and between(pending.question).same_as(pending.target)

    def _between(self, changes: Sequence[DescribedChange]) -> Callable[[Question], PossibleOutcomes] | None:
        """What may become of a pod with the older version and these changes; ``None`` where there is no such one."""
        self._tries += 1
        try:
            scheduler = self._versions.with_changes(changes)
        except KpreemptError:
            # A configuration that both versions take may be refused by one in between.
            return None
        prepared: Any = scheduler.prepare(self._cluster, now=self._now)

        def possible(question: Question) -> PossibleOutcomes:
            pod = stored_by(scheduler, question, self._cluster)
            return outcomes_of(scheduler.decide(prepared, pod, records_steps=False, phases=self._phases))

        return possible


def stored_by(scheduler: Scheduler, question: Question, cluster: ClusterSnapshot) -> Pod:
    """The pod as the API server of a scheduler's version stores it, where it is new; else as it is stored already."""
    if question.manifest is None:
        return question.pod
    return admit(question.manifest, cluster, api_server_rules(scheduler.settings)).pod
