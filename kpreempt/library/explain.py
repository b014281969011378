"""The question of ``kpreempt explain``, put to a cluster: which pods are meant, and the verdict on each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from kpreempt.analysis.explain.pods import explain_pods
from kpreempt.analysis.questions import Asked, question_in_cluster, questions_of
from kpreempt.analysis.subject import PodTemplate, pod_in_cluster
from kpreempt.analysis.version_rules import api_server_rules
from kpreempt.analysis.what_if import Overrides
from kpreempt.analysis.workload_pods import kind_of
from kpreempt.library.schedulers import Ground
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.snapshot import object_decoder
from kpreempt.verdict import Verdict
from kpreempt.verdict.unread import require

if TYPE_CHECKING:
    from kpreempt.analysis.explain.pods import GoesOn
    from kpreempt.analysis.workload.in_cluster import WorkloadName
    from kpreempt.analysis.workload.pods import WorkloadQuestion


class PodName(NamedTuple):
    """What names a pod of the cluster."""

    namespace: str
    name: str


class PodsQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """Which pods are asked about: those of ``templates``, or one pod or workload of the cluster by its ``name``.

    ``namespace`` is for names without one. ``removed``, ``cordons``, ``uncordons`` and ``budgets`` change the cluster
    before, as ``analysis.explain.overrides`` has them. ``replicas`` asks about so many pods of a template, ``capacity``
    how many more fit, ``aftermath`` what happens then. A ``node_name`` asks for its story.
    """

    templates: Sequence[PodTemplate] = ()
    name: PodName | WorkloadName | None = None
    namespace: str = ""
    overrides: Overrides = Overrides()
    replicas: int | None = None
    capacity: bool = False
    aftermath: bool = False
    node_name: str = ""
    removed: Sequence[str] = ()
    cordons: Sequence[str] = ()
    uncordons: Sequence[str] = ()
    budgets: Sequence[str] = ()
    records_steps: bool = True

    @property
    def workload(self) -> WorkloadName | None:
        """The workload of the cluster that is named, if it is one and no pod."""
        return None if isinstance(self.name, PodName) else self.name

    @property
    def is_about_workloads(self) -> bool:
        """Whether all pods of a template are asked about, and not only its first; a node's story is about one pod."""
        if self.replicas is not None:
            return True
        return not self.node_name and any(each.replicas > 1 or each.kind == "DaemonSet" for each in self.templates)


def named(first: str, second: str, namespace: str) -> PodName | WorkloadName:
    """What ``NAME``, ``KIND/NAME``, ``NS/NAME`` or ``KIND NAME`` names, in ``namespace`` where it says none.

    Raises ``UsageError`` for a kind that makes no pods.
    """
    text = "/".join(filter(None, (first, second)))
    kind, slash, name = text.rpartition("/")
    if not slash or kind_of(kind) == "Pod":
        return PodName(namespace, text)
    if not kind_of(kind):
        return PodName(kind, name)
    from kpreempt.analysis.workload.in_cluster import workload_name

    return workload_name(kind_of(kind), namespace, name)


class Explained(NamedTuple):
    """The verdicts, and the cluster that they are about."""

    verdicts: list[Verdict]
    cluster: ClusterSnapshot


def explain(ground: Ground, question: PodsQuestion) -> Explained:
    """The verdict on each pod that is asked about. Raises ``KpreemptError`` where the question makes no sense."""
    require(ground.loaded.cluster, "Node")
    scheduler = ground.configured.scheduler
    with ground.phases.phase("admission"):
        situation, workloads = _situation(ground, question)
    verdicts = explain_pods(
        situation.cluster,
        situation.questions,
        scheduler,
        now=ground.now,
        at=ground.ages or situation.cluster.taken_at,
        assumptions=ground.assumptions,
        node_name=question.node_name.removeprefix("node/"),
        proposes=True,
        simulates_on=question.aftermath,
        records_steps=question.records_steps,
        goes_on=_goes_on(situation, workloads, ground, with_capacity=question.capacity),
        phases=ground.phases,
    )
    return Explained(verdicts, situation.cluster)


def _situation(ground: Ground, question: PodsQuestion) -> tuple[Asked, Sequence[WorkloadQuestion | None]]:
    """The pods as the API server would have them, in the cluster that is asked about."""
    cluster = _overridden(ground.loaded.cluster, question)
    scheduler = ground.configured.scheduler
    overrides = msgspec.structs.replace(question.overrides, any_annotation=scheduler.wanted.pod_annotations)
    decode, rules = object_decoder(scheduler.wanted), api_server_rules(scheduler.settings)
    if question.workload is not None:
        from kpreempt.analysis.workload.in_cluster import questions_in_cluster

        return questions_in_cluster(
            cluster, question.workload, ground.loaded.documents, overrides, decode, rules, question.replicas
        )
    if question.name is not None:
        found = pod_in_cluster(cluster, question.name.name, question.name.namespace)
        situation = question_in_cluster(found, overrides, decode)
        if question.replicas is None and not question.capacity:
            return situation, []
        from kpreempt.analysis.workload.pods import more_of

        return more_of(found, cluster, situation, question.replicas)
    if question.is_about_workloads:
        from kpreempt.analysis.workload.pods import workload_questions

        return workload_questions(cluster, question.templates, overrides, decode, rules, question.replicas)
    return questions_of(cluster, question.templates, overrides, decode, rules), []


def _overridden(cluster: ClusterSnapshot, question: PodsQuestion) -> ClusterSnapshot:
    if not (question.removed or question.cordons or question.uncordons or question.budgets):
        return cluster
    from kpreempt.analysis.explain.overrides import changed

    return changed(
        cluster,
        question.namespace,
        removed=question.removed,
        cordons=question.cordons,
        uncordons=question.uncordons,
        budgets=question.budgets,
    )


def _goes_on(
    situation: Asked, workloads: Sequence[WorkloadQuestion | None], ground: Ground, *, with_capacity: bool
) -> GoesOn | None:
    """What adds to a verdict what becomes of all pods of the workload, and how many more fit."""
    if not with_capacity and not any(workloads):
        return None
    from kpreempt.analysis.workload.answer import going_on

    at = ground.ages or situation.cluster.taken_at or ground.now
    scheduler = ground.configured.scheduler
    return going_on(situation, workloads, scheduler, with_capacity=with_capacity, now=at, phases=ground.phases)
