"""Answering ``kpreempt compare --upgrade-to``."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from kpreempt.analysis.algorithms import scheduler_for
from kpreempt.analysis.cluster_version import AUTO, algorithm_for, assume_of_gates
from kpreempt.analysis.compare.upgrade import (
    Asked,
    compare_upgrade,
    keeps_workloads,
    next_pods,
    parse_version,
    versions_between,
)
from kpreempt.analysis.explain.pods import Question
from kpreempt.analysis.pending.verdicts import pending_pods
from kpreempt.analysis.questions import question_in_cluster, questions_of
from kpreempt.analysis.subject import PodTemplate, pod_in_cluster
from kpreempt.analysis.version_rules import api_server_rules
from kpreempt.analysis.what_if import Overrides
from kpreempt.cli.answering import Run, is_unfounded
from kpreempt.cli.clusters import single_use_of_stdin, usual_namespace
from kpreempt.cli.manifests import picked, read_subjects
from kpreempt.cli.scheduler_configs import read_scheduler_config
from kpreempt.cli.terminal import EXIT_GATE
from kpreempt.errors import UsageError
from kpreempt.library.reading import LoadedCluster
from kpreempt.scheduler_table import PREFIX
from kpreempt.schedulers.interface import Settings
from kpreempt.schedulers.kube.feature_gates import parse_feature_gates
from kpreempt.snapshot import object_decoder
from kpreempt.verdict import Assumption
from kpreempt.verdict.compare import UpgradeComparison
from kpreempt.verdict.unread import require

if TYPE_CHECKING:
    from kpreempt.cli.compare import CompareRequest

_GATE = "--fail-on-difference"


def run_upgrade(request: CompareRequest) -> int:
    """Answer the request, and return the exit code."""
    target = _check(request)
    run = Run(request)
    answer, now = _answer(request, run, target)
    run.write_once(answer, now)
    if request.fail_on_difference and (not answer.passes or is_unfounded(answer.assumptions, _GATE)):
        return EXIT_GATE
    return run.exit_code(answer.assumptions)


def _check(request: CompareRequest) -> str:
    """The version to upgrade to. Raises ``UsageError`` where the options contradict each other."""
    target = parse_version(request.upgrade_to or "")
    for option, value in (("--algorithms", request.algorithms), ("--batch", request.batch)):
        if value:
            raise UsageError(f"--upgrade-to and {option} exclude each other", hint="--algorithm for the older version")
    if request.pod and (request.files or request.workloads):
        raise UsageError("the pods are given twice: by name, and by -f or --workloads")
    if request.select and not request.files:
        raise UsageError("--select picks from a manifest, and none is given", hint="-f FILE")
    single_use_of_stdin({"-f": request.files, "--snapshot": request.snapshots})
    return target


def _answer(request: CompareRequest, run: Run, target: str) -> tuple[UpgradeComparison, datetime]:
    configuration = read_scheduler_config(request.scheduler_config) if request.scheduler_config else None
    gates = {name: value for text in request.feature_gates for name, value in parse_feature_gates(text).items()}
    extensions = request.extensions
    plugins = extensions.found(configuration) if configuration or extensions.plugins else []
    newer = scheduler_for(f"{PREFIX}{target}", configuration, gates, None, plugins, extensions.connect)
    now = run.now()
    live = run.connect()
    namespace = request.namespace or usual_namespace(live)
    subjects = read_subjects(request.files, namespace, request.intake)
    templates = picked(subjects.templates, request.select, request.namespace)
    keeps = keeps_workloads if request.workloads else None
    # What plugins read is the same in all versions.
    loaded = run.load(live, newer.wanted, keeps=keeps, compared=["CronJob"] if request.workloads else [])
    base, said = algorithm_for(request.algorithm or AUTO, loaded.cluster)
    versions = versions_between(base, target, configuration, gates, plugins, extensions.connect)
    at = run.time_of(loaded.cluster, now)
    with run.stopwatch.phase("admission"):
        asked, untold = _asked(request, loaded, templates, namespace, at, versions.base.settings)
    gates_off = [each for one in (versions.base, versions.target) for each in assume_of_gates(one, loaded.cluster)]
    said = [*said, *gates_off, *loaded.assumptions, *untold]
    return compare_upgrade(asked, versions, now=at, assumptions=said, phases=run.stopwatch), now


def _asked(
    request: CompareRequest,
    loaded: LoadedCluster,
    templates: list[PodTemplate],
    namespace: str,
    at: datetime,
    settings: Settings,
) -> tuple[list[Asked], list[Assumption]]:
    """The pod that is named; or every pending one, and what manifests and workloads add to these."""
    cluster, decode = loaded.cluster, object_decoder(loaded.wanted)
    require(cluster, "Node")
    if request.pod:
        named = question_in_cluster(pod_in_cluster(cluster, request.pod, namespace), Overrides(), decode)
        return [Asked(named.cluster, named.questions)], []

    def is_asked(where: str) -> bool:
        return request.namespace in (None, "", where)

    pending = [Question(pod=pod) for pod in pending_pods(cluster) if is_asked(pod.metadata.namespace)]
    asked = [Asked(cluster, pending)]
    untold: list[Assumption] = []
    if templates:
        found = questions_of(cluster, templates, Overrides(), decode, api_server_rules(settings))
        asked.append(Asked(found.cluster, found.questions))
    if request.workloads:
        more, untold = next_pods(cluster, loaded.documents, decode, now=at, settings=settings, is_asked=is_asked)
        asked += more
    return asked, untold
