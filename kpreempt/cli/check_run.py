"""Answering ``kpreempt check``."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kpreempt.analysis.algorithms import VOLCANO, Scheduler
from kpreempt.analysis.check import CheckQuestion, check_rollout
from kpreempt.analysis.gate import Waiver, waivers_of_object
from kpreempt.analysis.play.scheduling import Choose
from kpreempt.analysis.rollout.live import LiveDocuments, wanted_by, wants_cron_jobs
from kpreempt.analysis.rollout.plan import plan_change
from kpreempt.analysis.rollout.records import ManifestDocument, Plan
from kpreempt.cli.answering import AnswerRequest, understand_outputs
from kpreempt.cli.change_files import read_change
from kpreempt.cli.clusters import LoadedCluster, live_connection, load_cluster, single_use_of_stdin, usual_namespace
from kpreempt.cli.gate_settings import GateFlags, gate_settings
from kpreempt.cli.process import EXIT_GATE, complain
from kpreempt.cli.profile import Stopwatch
from kpreempt.cli.schedulers import read_scheduler
from kpreempt.cli.workers import Spread
from kpreempt.errors import UsageError
from kpreempt.report.answers import CHECK_FORMATS
from kpreempt.snapshot import decode_object, name_of

if TYPE_CHECKING:
    from kpreempt.snapshot.live.connection import Connection


class CheckRequest(AnswerRequest, frozen=True, kw_only=True):
    """What the options of ``kpreempt check`` ask for."""

    files: list[str]
    base: list[str]
    prune: bool
    deletions: list[str]
    seed: int
    runs: int
    worst_case: bool
    max_plays: int
    jobs: int | None
    gate: GateFlags


def run_check(request: CheckRequest) -> int:
    """Answer the request, and return the exit code."""
    stopwatch = Stopwatch()
    _refuse_contradictions(request)
    asked = understand_outputs(request, CHECK_FORMATS)
    now = asked.now()
    gate = gate_settings(request.gate, now)
    live = live_connection(request.snapshots, request.connection)
    scheduler = _scheduler(request, live)
    namespace = request.namespace or usual_namespace(live)
    # The manifests are read first: they are small, and most mistakes are in them.
    documents = read_change(request.files)
    base = read_change(request.base)
    deletions = [*request.deletions, *(_only_in(base, documents, namespace) if request.prune else ())]
    with_cron_jobs = wants_cron_jobs([*documents, *base], namespace, deletions)
    loaded = load_cluster(
        request.snapshots,
        live=live,
        skip_bad_objects=request.skip_bad_objects,
        phases=stopwatch,
        keeps=wanted_by([*documents, *base], namespace, deletions),
        with_cron_jobs=with_cron_jobs,
    )
    with stopwatch.phase("admission"):
        plan = _plan(loaded, documents, namespace, deletions)
        base_plan = _plan(loaded, base, namespace, ()) if base else None
    for note in plan.notes:
        complain(note)
    answer = check_rollout(
        CheckQuestion(
            cluster=loaded.cluster,
            plan=plan,
            base=base_plan,
            rules=gate.rules,
            excuses=gate.excuses(_waivers_of(plan, documents, namespace)),
            seed=request.seed,
            runs=request.runs,
            worst_of=request.max_plays if request.worst_case else 0,
            assumptions=loaded.assumptions,
            is_live=live is not None,
        ),
        scheduler,
        decode_object,
        now=now,
        at=asked.time_of(loaded.cluster, now),
        chances=_chances,
        spread=Spread(stopwatch, request.jobs),
        phases=stopwatch,
    )
    gate.save_baseline(answer.findings)
    asked.write_once(answer, answer.at, stopwatch)
    return 0 if answer.passed else EXIT_GATE


def _refuse_contradictions(request: CheckRequest) -> None:
    """Raise ``UsageError`` where the options contradict each other or leave out what is needed."""
    if not request.files and not request.deletions:
        raise UsageError("no change is given", hint="-f FILE, -f DIRECTORY/, or helm template … | kpreempt check -f -")
    if request.prune and not request.base:
        raise UsageError("--prune deletes what only the base has, and none is given", hint="--base DIRECTORY")
    if request.worst_case and request.runs > 1:
        raise UsageError("--worst-case looks at all choices, and --runs draws some of them: one of both")
    if request.namespace and name_of(request.namespace) != request.namespace:
        raise UsageError("the namespace of -n is not UTF-8")
    single_use_of_stdin({"-f": request.files, "--base": request.base, "--snapshot": request.snapshots})


def _scheduler(request: CheckRequest, live: Connection | None) -> Scheduler:
    if request.algorithm != VOLCANO:
        return read_scheduler(
            request.scheduler_config, request.feature_gates, request.algorithm, request.policy_config
        ).scheduler
    from kpreempt.analysis.volcano_pods import VolcanoOfPods
    from kpreempt.cli.volcano_configuration import read_volcano_configuration

    if request.feature_gates or request.policy_config:
        raise UsageError(f"{VOLCANO} has neither feature gates nor a Policy file")
    return VolcanoOfPods(read_volcano_configuration(request.scheduler_config, None, live), decode_object)


def _plan(
    loaded: LoadedCluster, documents: Sequence[ManifestDocument], namespace: str, deletions: Sequence[str]
) -> Plan:
    """What the documents do to the cluster."""
    live = LiveDocuments(loaded.documents)
    return plan_change(loaded.cluster, documents, live, decode_object, namespace=namespace, deleted=deletions)


def _waivers_of(plan: Plan, documents: Sequence[ManifestDocument], namespace: str) -> list[Waiver]:
    """What the annotations of the change's objects waive. Raises ``InputError``."""
    known = {change.object for change in plan.changes}
    found = []
    for each in documents:
        metadata = each.document.get("metadata")
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        if not isinstance(metadata, dict) or not isinstance(annotations, dict):
            continue
        names = [
            f"{each.document.get('kind')} {metadata.get('namespace') or namespace}/{metadata.get('name')}",
            f"{each.document.get('kind')} {metadata.get('name')}",
        ]
        name = next((name for name in names if name in known), "")
        texts = {key: text for key, text in annotations.items() if isinstance(key, str) and isinstance(text, str)}
        if name:
            found += waivers_of_object(name, texts, source=each.source, line=each.line)
    return found


def _only_in(base: Sequence[ManifestDocument], documents: Sequence[ManifestDocument], namespace: str) -> list[str]:
    """``KIND/NAMESPACE/NAME`` of the objects that the base has and the manifests have no more."""

    def names(of: Sequence[ManifestDocument]) -> dict[str, None]:
        found: dict[str, None] = {}
        for each in of:
            metadata = each.document.get("metadata")
            metadata = metadata if isinstance(metadata, dict) else {}
            where = metadata.get("namespace") or namespace
            found[f"{each.document.get('kind')}/{where}/{metadata.get('name')}"] = None
        return found

    there = names(documents)
    return [name for name in names(base) if name not in there]


def _chances(seed: int) -> Choose:
    """Draws nodes, each as likely as the others."""
    return random.Random(seed).choice  # noqa: S311 - which node it is is no secret
