"""What a change does to a cluster, for commands and for programs alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from kpreempt.analysis.check.gate import Waiver, waivers_of_object, with_custom_rules
from kpreempt.analysis.check.report import CheckQuestion, check_rollout
from kpreempt.analysis.check.rollout.cluster_documents import LiveDocuments
from kpreempt.analysis.check.rollout.deletions import Deletion, only_in, parse_deletion
from kpreempt.analysis.check.rollout.hooks import Applier
from kpreempt.analysis.check.rollout.plan import plan_change
from kpreempt.analysis.check.rollout.records import ManifestDocument, Plan
from kpreempt.analysis.check.rollout.shape import ApplyOptions, Prepared, position
from kpreempt.analysis.document_reader import describe
from kpreempt.analysis.pending.verdicts import Spread, one_by_one
from kpreempt.analysis.questions import Decode
from kpreempt.errors import InputError, UsageError
from kpreempt.gate_rules import RuleId
from kpreempt.library.chances import context_of
from kpreempt.library.gate.config import job_seconds_in
from kpreempt.library.gate.settings import GateSettings
from kpreempt.library.reading import assuming_none
from kpreempt.library.rejections import rejection_of
from kpreempt.library.schedulers import Ground
from kpreempt.model.meta import DEFAULT_NAMESPACE
from kpreempt.report.check.summary import summary
from kpreempt.verdict import Assumption
from kpreempt.verdict import check as verdict
from kpreempt.verdict.check import ChangeKind, Check
from kpreempt.verdict.unread import require


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked: manifests, those that were there before (``base``), and what goes.

    With ``prunes`` objects that only ``base`` has are deleted.
    Objects that say no namespace are in ``namespace``. ``job_seconds`` is how long pods of Jobs run, 0 for ever.
    ``applied_by`` is the tool whose hooks and waves count, ``None`` if nothing says it: then none do.
    ``runs``, ``seed`` and ``worst_of`` are as in ``CheckQuestion``.
    """

    documents: Sequence[ManifestDocument]
    base: Sequence[ManifestDocument] = ()
    deletions: Sequence[str] = ()
    prunes: bool = False
    namespace: str = DEFAULT_NAMESPACE
    autoscaled_at_most: bool = False
    job_seconds: int | None = None
    creates_namespaces: bool = False
    applied_by: Applier | None = None
    seed: int = 0
    runs: int | None = None
    worst_of: int = 0
    is_live: bool = False


def check(
    ground: Ground,
    change: Change,
    gate: GateSettings,
    decode: Decode,
    *,
    tell: Callable[[str], None],
    spread: Spread = one_by_one,
) -> Check:
    """The answer; ``tell`` is told what of the manifests is ignored.

    Raises ``InputError`` and ``NotFoundError`` for what the API server would refuse.
    """
    ground = ground._replace(loaded=assuming_none(ground.loaded, gate.assume_none))
    require(ground.loaded.cluster, "Node")
    loaded, cluster = ground.loaded, ground.loaded.cluster
    options = ApplyOptions(
        namespace=change.namespace,
        prunes=change.prunes,
        autoscaled_at_most=change.autoscaled_at_most,
        job_seconds=change.job_seconds,
        creates_namespaces=change.creates_namespaces,
        applied_by=change.applied_by,
    )
    with ground.phases.phase("admission"):
        live_documents = LiveDocuments(loaded.documents)
        given, base = options.prepared(change.documents), options.prepared(change.base)
        accepted, rejected, rejections = _sorted_out(change, cluster.version, options)
        manifests = options.prepared(accepted) if rejections else given
        lost = _only_in(base, given)

        def planned(manifests: Prepared, options: ApplyOptions) -> Plan:
            return plan_change(
                cluster,
                manifests,
                live_documents,
                decode,
                options,
                deleted=change.deletions if manifests is not base else (),
                only_in_base=lost if manifests is not base else (),
            )

        plan = planned(manifests, options)
        base_plan = planned(base, options) if change.base else None
        most_plan = None
        try:
            most_plan = (
                planned(manifests, msgspec.structs.replace(options, autoscaled_at_most=True))
                if plan.autoscalers
                else None
            )
        except InputError as error:
            # More pods than are simulated.
            message = f"its most replicas are not simulated: {error.problem}"
            unknown = [Assumption(name, "spec.maxReplicas", message) for name, _ in plan.autoscalers]
            plan = msgspec.structs.replace(plan, assumptions=[*plan.assumptions, *unknown])
    plan = msgspec.structs.replace(plan, changes=[*plan.changes, *rejected], rejections=rejections)
    for note in plan.notes:
        tell(note)
    waivers = _waivers_of(plan, given.documents, are_ignored=gate.ignores_annotations)
    excuses = gate.excuses([*waivers, *_waivers_of_deletions(change)])
    answer = check_rollout(
        CheckQuestion(
            cluster=cluster,
            plan=plan,
            base=base_plan,
            at_most=most_plan,
            rules=gate.rules,
            excuses=excuses,
            seed=change.seed,
            runs=change.runs,
            worst_of=change.worst_of,
            assumptions=ground.assumptions,
            is_live=change.is_live,
            apis={describe(each.document): str(each.document["apiVersion"]) for each in given.documents},
        ),
        decode,
        context_of(ground, spread),
    )
    answer = with_custom_rules(answer, gate.custom, gate.rules, excuses)
    return msgspec.structs.replace(answer, gate=gate.told(excuses), summary=summary(answer))


def only_in_base(
    base: Sequence[ManifestDocument],
    documents: Sequence[ManifestDocument],
    namespace: str,
    applied_by: Applier | None = None,
) -> list[Deletion]:
    """The objects that the base has and the manifests lack. Raises ``InputError``."""
    options = ApplyOptions(namespace=namespace, applied_by=applied_by)
    return _only_in(options.prepared(base), options.prepared(documents))


def _only_in(base: Prepared, manifests: Prepared) -> list[Deletion]:
    return only_in((each.document for each in base.documents), (each.document for each in manifests.documents))


def applier_of(text: str, option: str = "--applied-by") -> Applier:
    """The tool that an option names. Raises ``UsageError``."""
    try:
        return Applier(text)
    except ValueError:
        raise UsageError(f"{option} {text[:40]}: unknown tool", hint=", ".join(Applier)) from None


def job_seconds_of(text: str) -> int:
    """How long pods of Jobs run, in seconds, 0 for ever. Raises ``UsageError``."""
    seconds = job_seconds_in(text)
    if seconds is None:
        raise UsageError(f"--job-duration {text}: this is neither a time from 1s to 168h nor never", hint="10m, 2h")
    return seconds


def _sorted_out(
    change: Change, version: str, options: ApplyOptions
) -> tuple[list[ManifestDocument], list[verdict.Change], dict[str, str]]:
    """The documents that the API server of a version accepts, and the objects that it rejects, with the reasons.

    A hook that the rollout leaves out is accepted, since it is not applied. Raises ``InputError``.
    """
    accepted: list[ManifestDocument] = []
    rejected: list[verdict.Change] = []
    rejections: dict[str, str] = {}
    for given in change.documents:
        rejection = rejection_of(given, version)
        applied = options.prepared([given]).documents if rejection else []
        if rejection is None or not applied:
            accepted.append(given)
            continue
        name = describe(applied[0].document)
        where = msgspec.structs.replace(given, line=rejection.line)
        rejected.append(verdict.Change(object=name, kind=ChangeKind.REJECTED, **position(where)))
        rejections[name] = rejection.reason
    return accepted, rejected, rejections


def _waivers_of_deletions(change: Change) -> list[Waiver]:
    """What ``--delete`` takes away by naming it is meant."""
    deletions = [parse_deletion(text, change.namespace) for text in change.deletions]
    rules = {
        "PodDisruptionBudget": RuleId.PDB_WEAKENED,
        "ResourceQuota": RuleId.QUOTA_LOOSENED,
        "LimitRange": RuleId.QUOTA_LOOSENED,
    }
    return [
        Waiver(rule=rules[each.kind], subject=each.described, by="--delete") for each in deletions if each.kind in rules
    ]


def _waivers_of(plan: Plan, given: Sequence[ManifestDocument], *, are_ignored: bool) -> list[Waiver]:
    """What the annotations of the change's objects waive. Raises ``InputError``."""
    known = {change.object for change in plan.changes}
    return [
        waiver
        for each in given
        if (name := describe(each.document)) in known
        for waiver in waivers_of_object(
            name,
            each.document["metadata"].get("annotations") or {},
            source=each.source,
            line=each.line,
            are_ignored=are_ignored,
        )
    ]
