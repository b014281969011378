"""Answering ``kpreempt check``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from kpreempt.analysis.check.rollout.cluster_documents import (
    compared_kinds,
    wanted_by,
    wanted_objects,
)
from kpreempt.analysis.check.rollout.records import ManifestDocument
from kpreempt.analysis.check.since import FormerCheck, read_former, since
from kpreempt.cli.answering import Run, write_baseline
from kpreempt.cli.clusters import load_cluster, single_use_of_stdin, usual_namespace
from kpreempt.cli.manifests import manifest_objects
from kpreempt.cli.terminal import EXIT_GATE, complain
from kpreempt.cli.workers import Spread
from kpreempt.errors import UsageError
from kpreempt.files import name_of, read_file
from kpreempt.library.check import Change, applier_of, check, job_seconds_of, only_in_base
from kpreempt.library.gate.settings import gate_settings
from kpreempt.library.manifests import as_change
from kpreempt.library.reading import with_objects
from kpreempt.library.schedulers import AskedScheduler
from kpreempt.report.answers import CHECK_FORMATS
from kpreempt.scheduler_table import VOLCANO
from kpreempt.snapshot import decode_object, object_decoder

if TYPE_CHECKING:
    from kpreempt.cli.check import CheckRequest
    from kpreempt.snapshot.archives import Intake
    from kpreempt.snapshot.live.connection import Connection


def run_check(request: CheckRequest) -> int:
    """Answer the request, and return the exit code."""
    _refuse_contradictions(request)
    run = Run(request, CHECK_FORMATS)
    stopwatch, now = run.stopwatch, run.now()
    gate = gate_settings(request.gate, now)
    former = _former(request)
    job_seconds = gate.job_seconds if request.job_duration is None else job_seconds_of(request.job_duration)
    applied_by = gate.applied_by if request.applied_by is None else applier_of(request.applied_by)
    live = run.connect()
    asked = _scheduler(request, run, live)
    namespace = request.namespace or usual_namespace(live)
    # The manifests are read first: they are small, and most mistakes are in them.
    # Manifests that render to nothing delete all that the base has.
    documents = read_change(request.files, request.intake, may_be_empty=request.prune)
    base = read_change(request.base, request.intake)
    pruned = only_in_base(base, documents, namespace, applied_by) if request.prune else []
    loaded = load_cluster(
        request.snapshots,
        live=live,
        skip_bad_objects=request.skip_bad_objects,
        assume_none=request.assume_none,
        phases=stopwatch,
        keeps=wanted_by([*documents, *base], namespace, request.deletions, pruned),
        compared=compared_kinds([*documents, *base], namespace, request.deletions, pruned),
        wanted=asked.wanted,
        intake=request.intake,
        at=request.at,
    )
    loaded = with_objects(loaded, live, wanted_objects([*documents, *base], namespace))
    answer = check(
        run.ground(loaded, asked, now),
        Change(
            documents=documents,
            base=base,
            deletions=request.deletions,
            prunes=request.prune,
            namespace=namespace,
            autoscaled_at_most=request.autoscaled == "max",
            job_seconds=job_seconds,
            creates_namespaces=request.create_namespace,
            applied_by=applied_by,
            seed=request.seed,
            runs=request.runs,
            worst_of=request.max_plays if request.worst_case else 0,
            is_live=live is not None,
        ),
        gate,
        object_decoder(asked.wanted),
        tell=complain,
        spread=Spread(stopwatch, request.jobs),
    )
    if former is not None:
        answer = msgspec.structs.replace(answer, since=since(former, answer))
    write_baseline(gate, answer.findings)
    run.write_once(answer, answer.at)
    return 0 if answer.passed else EXIT_GATE


def _former(request: CheckRequest) -> FormerCheck | None:
    """The answer to compare with. Raises ``InputError``."""
    path = request.compare_with
    return read_former(read_file(path), path) if path else None


def read_change(paths: Sequence[str], intake: Intake, *, may_be_empty: bool = False) -> list[ManifestDocument]:
    """All objects of files and folders, and for ``-`` of standard input, in their order; lists are taken apart.

    Raises ``InputError`` for what cannot be read, and if a path has no objects, unless it ``may_be_empty``.
    """
    found = (manifest_objects(path, intake, may_be_empty=may_be_empty) for path in paths)
    return as_change(each for objects in found for each in objects)


def _refuse_contradictions(request: CheckRequest) -> None:
    """Raise ``UsageError`` where the options contradict each other or leave out what is needed."""
    if not request.files and not request.deletions:
        raise UsageError("no change is given", hint="-f FILE, -f DIRECTORY/, or helm template … | kpreempt check -f -")
    if request.prune and not request.base:
        raise UsageError("--prune deletes what only the base has, and none is given", hint="--base DIRECTORY")
    if request.autoscaled not in ("current", "max"):
        raise UsageError("--autoscaled is current or max")
    request.refuse_contradictions()
    if request.namespace and name_of(request.namespace) != request.namespace:
        raise UsageError("the namespace of -n is not UTF-8")
    single_use_of_stdin({"-f": request.files, "--base": request.base, "--snapshot": request.snapshots})


def _scheduler(request: CheckRequest, run: Run, live: Connection | None) -> AskedScheduler:
    if request.algorithm != VOLCANO:
        return run.read_scheduler()
    from kpreempt.analysis.volcano.pods import VolcanoOfPods
    from kpreempt.cli.volcano_configuration import read_volcano_configuration

    if request.feature_gates or request.policy_config:
        raise UsageError(f"{VOLCANO} has neither feature gates nor a Policy file")
    if any(request.extensions):
        raise UsageError(f"{VOLCANO} has neither plugins of one's own here nor extenders")
    volcano = VolcanoOfPods(read_volcano_configuration(request.scheduler_config, None, live), decode_object)
    return AskedScheduler(VOLCANO, lambda _: volcano)
