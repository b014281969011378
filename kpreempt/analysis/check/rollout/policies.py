"""What admission policies and webhooks do with a change: its objects, and the pods that its workloads create.

The pods are reviewed at the end, when all policies of the change apply. ReplicaSets and Jobs that controllers create
are not reviewed.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

from kpreempt.admission.defaults import with_defaults
from kpreempt.admission.policies.objects import admitted_pod
from kpreempt.admission.policies.policies import Outcome, review
from kpreempt.admission.policies.requests import Request
from kpreempt.admission.policies.state import PolicyState
from kpreempt.admission.validation.problems import Problem, Problems
from kpreempt.analysis.check.rollout.cluster_documents import LiveDocuments
from kpreempt.analysis.check.rollout.kinds import is_known, is_pod_owner, makes_no_pods, plural_of
from kpreempt.analysis.check.rollout.records import Plan, PlannedWorkload
from kpreempt.analysis.document_reader import Document, describe
from kpreempt.analysis.naming import some_of
from kpreempt.analysis.workload_pods import PodTemplate, pods_of
from kpreempt.errors import InputError
from kpreempt.model.cluster import ClusterSnapshot, KindState, state_of
from kpreempt.model.documents import group_of, mapping_in
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.check import ChangeKind

Decoded = Callable[[Document], Mapping[str, Any]]
_ORDINAL_NAMES = "StatefulSet"
_MUTATING = "Mutating"


class ChangePolicies:
    """Reviews the objects of a change; ``warnings`` are in the API server's words.

    ``definitions`` are the known CustomResourceDefinitions. ``decoded`` returns an object as the API server reads it.
    """

    def __init__(
        self, cluster: ClusterSnapshot, live: LiveDocuments, definitions: Iterable[Document], decoded: Decoded
    ) -> None:
        self.warnings: dict[str, None] = {}
        self._cluster = cluster
        self._state = PolicyState(cluster, live.documents)
        self._names = [mapping_in(each, "spec", "names") for each in definitions]
        self._decoded = decoded
        # The objects that a policy or webhook applies to, by its name, its possible effect, and the kind of assumption.
        self._unevaluated: dict[tuple[str, str, AssumptionKind], list[str]] = {}

    def problems(self, new: Document, old: Document | None) -> Problems:
        """Yield why policies reject a new object, or its update from ``old``; both are complete."""
        if self._state.is_empty or new == old:
            return
        is_new_pod = new.get("kind") == "Pod" and old is None and not group_of(new)
        name = describe(new)
        is_unread = old is None and not self._is_read(new)
        # An object of a kind without pods is probably unchanged if the input lacks its kind.
        is_minor = is_unread and makes_no_pods(group_of(new), str(new.get("kind")))
        kind = AssumptionKind.INFORMATIONAL if is_minor else AssumptionKind.UNMODELED
        outcome = self._reviewed(self._admitted(new) if is_new_pod else new, old, name, kind)
        if is_unread:
            for each in outcome.denials:
                effect = f"rejected unless it exists and is unchanged, which is unknown: {each}"
                self._note(name, effect, name, AssumptionKind.UNMODELED)
        else:
            yield from (Problem((), each) for each in outcome.denials)

    def accept(self, document: Document) -> None:
        """Apply an accepted object, so that it decides on later ones."""
        self._state.accept(document)

    def rejected_pods(self, plan: Plan) -> dict[str, str]:
        """Return the workloads of a plan that create pods that policies reject, each with the reason."""
        if self._state.is_empty:
            return {}
        rejected: dict[str, str] = {}
        for workload in filter(_creates_pods, plan.workloads):
            assert workload.after is not None
            try:
                templates = pods_of(workload.after)
            except InputError:
                continue
            name = workload.change.object
            for template in templates:
                if denials := self.denials_of_pod(template, f"pods of {name}"):
                    rejected[name] = denials[0]
        return rejected

    def denials_of_pod(self, template: PodTemplate, name: str) -> list[str]:
        """Return why policies reject a new pod of a template; ``name`` is that of the pod in assumptions."""
        pod = with_defaults(self._decoded(template.document))
        is_generated = template.kind not in ("Pod", _ORDINAL_NAMES)
        return list(self._reviewed(self._admitted(pod, is_generated=is_generated), None, name).denials)

    def assumptions(self, accepted: Container[str] = ()) -> list[Assumption]:
        """What is not evaluated, of what has been reviewed so far.

        What only rejects objects does not matter to those that the API server itself ``accepted``.
        """
        return [
            Assumption(subject, "", effect if relevant == [subject] else f"{effect}: {some_of(relevant)}", kind)
            for (subject, effect, kind), names in self._unevaluated.items()
            if (
                relevant := [
                    each for each in dict.fromkeys(names) if each not in accepted or subject.startswith(_MUTATING)
                ]
            )
        ]

    @property
    def subjects(self) -> set[str]:
        """The policies and webhooks that are not evaluated and apply to what has been reviewed so far."""
        return {subject for subject, _, _ in self._unevaluated}

    def _reviewed(
        self,
        document: Document,
        old: Document | None,
        name: str,
        kind: AssumptionKind = AssumptionKind.UNMODELED,
    ) -> Outcome:
        outcome = review(Request(document, self._resource(document), old), self._state)
        for each in outcome.unevaluated:
            self._note(each.subject or name, each.effect, name, kind)
        self.warnings.update(dict.fromkeys(f"{name}: {each}" for each in outcome.warnings))
        return outcome

    def _note(self, subject: str, effect: str, name: str, kind: AssumptionKind) -> None:
        self._unevaluated.setdefault((subject, effect, kind), []).append(name)

    def _resource(self, document: Document) -> str:
        kind = str(document.get("kind"))
        found = (each.get("plural") for each in self._names if each.get("kind") == kind)
        return str(next(filter(None, found), plural_of(kind)))

    def _admitted(self, pod: Mapping[str, Any], *, is_generated: bool = False) -> Document:
        namespace = mapping_in(pod, "metadata").get("namespace")
        ranges = [each for each in self._cluster.limit_ranges if each.metadata.namespace == namespace]
        return admitted_pod(pod, ranges, is_generated=is_generated)

    def _is_read(self, document: Document) -> bool:
        """Whether an object that is not in the input does not exist; a missing workload counts as new everywhere."""
        kind = str(document.get("kind"))
        if is_pod_owner(document):
            return state_of(self._cluster, kind) is not KindState.UNREADABLE
        if is_known(document):
            return kind not in self._cluster.unread
        return self._state.is_complete(group_of(document), kind)


def _creates_pods(workload: PlannedWorkload) -> bool:
    """Whether a workload gets new pods."""
    change = workload.change
    if workload.after is None:
        return False
    grows = (change.replicas or 0) > (change.replicas_before or 0)
    return change.kind in (ChangeKind.CREATED, ChangeKind.ROLLED) or (change.kind is ChangeKind.SCALED and grows)
