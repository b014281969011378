"""Kueue's answers: what happens to Workloads that wait for quota, which are at risk, and what preempted them.

Requests use the cluster with Kueue's objects and the manager's configuration: a file, a ConfigMap, or the default of
0.19.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from kpreempt.analysis.kueue.objects import KUEUE_EXTRAS, KueueSettings, assumed_of_default, decode_queueing
from kpreempt.analysis.pod_selection import parse_selector
from kpreempt.cli.manifests import accepted_objects, check_pod
from kpreempt.cli.requests import AnswerRequest, PendingRequest
from kpreempt.cli.runner import CommandRun, check_selection, is_inconclusive
from kpreempt.cli.scenarios import Scenario, situation_of, unread_of
from kpreempt.cli.scheduler_configs import read_own_config
from kpreempt.cli.terminal import EXIT_GATE, EXIT_UNCERTAIN
from kpreempt.errors import InputError, UsageError
from kpreempt.library import requests
from kpreempt.library.handlers import answer
from kpreempt.library.kueue import CyclesVerdict
from kpreempt.library.reading import LoadedCluster
from kpreempt.library.requests import (
    CompareWorkloads,
    ExplainWorkloads,
    PendingWorkloads,
    WhoEvictedWorkload,
    WorkloadsAtRisk,
)
from kpreempt.library.schedulers import Context, default_scheduler
from kpreempt.model.kueue import Workload
from kpreempt.model.meta import DEFAULT_NAMESPACE, Time, slashed
from kpreempt.phases import Phases
from kpreempt.scheduler_table import KUEUE
from kpreempt.schedulers.kueue import KueueConfiguration
from kpreempt.schedulers.kueue.objects import DEFAULT_STRATEGIES, FairSharingConfiguration
from kpreempt.snapshot.collect import NOTHING_MORE, Needs
from kpreempt.snapshot.decode import decode_document
from kpreempt.snapshot.documents import parse_document
from kpreempt.verdict import Assumption
from kpreempt.verdict.kueue import KueueAnswer, KueueAnswers

if TYPE_CHECKING:
    from kpreempt.cli.requests import AtRiskRequest, CompareRequest, ExplainRequest, WhoEvictedRequest


def _read(
    run: CommandRun, needs: Needs = NOTHING_MORE, *, reads_configuration: bool = True, lands_pods: bool = False
) -> tuple[Context, KueueSettings]:
    """Read the cluster with Kueue's objects and the manager's settings. Raises ``InputError`` and ``UsageError``.

    If the answer ``lands_pods``, the cluster has what the scheduler of pods reads as well.
    """
    request, scheduler = run.request, default_scheduler()
    if "," in (request.connection.context or ""):
        raise UsageError(f"{KUEUE} supports only one --context")
    now = run.now()
    live = run.connect()
    settings, path = KueueSettings(KueueConfiguration(), []), request.scheduler_config
    if reads_configuration and path is None:
        settings = _default_settings("--scheduler-config was not given")
    elif reads_configuration and path is not None:
        settings = kueue_settings_in(read_own_config(path, live, _DEFAULT_NAMESPACE), path)
    extra_fields = KUEUE_EXTRAS | scheduler.extra_fields if lands_pods else KUEUE_EXTRAS
    loaded = run.load(live, msgspec.structs.replace(needs, extra_fields=extra_fields))
    context = run.context(loaded, scheduler, now, live)
    return context._replace(namespace=request.namespace or context.namespace or DEFAULT_NAMESPACE), settings


def _default_settings(why: str) -> KueueSettings:
    return KueueSettings(KueueConfiguration(), [assumed_of_default(why)])


def select_workloads(request: AnswerRequest) -> Callable[[Workload], bool]:
    """Build the filter of Workloads for ``-n``, ``-A`` and ``-l``. Raises ``UsageError``."""
    check_selection(request)
    selector = parse_selector(request.selector or "")

    def is_selected(workload: Workload) -> bool:
        metadata = workload.metadata
        return request.namespace in (None, "", metadata.namespace) and selector.matches(metadata.labels)

    return is_selected


_KEY = "controller_manager_config.yaml"
_DEFAULT_NAMESPACE = "kueue-system"


def kueue_settings_in(document: Mapping[str, Any] | None, source: str) -> KueueSettings:
    """Read the configuration from a document or from a ConfigMap that holds it. Raises ``InputError``."""
    document = document or {}
    if document.get("kind") == "ConfigMap":
        text = _section(document, "data", source).get(_KEY)
        if not isinstance(text, str):
            raise InputError(f"the ConfigMap has no {_KEY}", source=source, path="data")
        document = parse_document(text, f"{source}: {_KEY}") or {}
    if document.get("kind") != "Configuration":
        raise InputError("not a Kueue Configuration", source=source)
    resources = _section(document, "resources", source)
    waiting = _section(document, "waitForPodsReady", source)
    gates = _section(document, "featureGates", source)
    if not all(isinstance(each, bool) for each in gates.values()):
        raise InputError("expected true or false", source=source, path="featureGates")
    assumptions = [
        Assumption("KueueConfiguration", field, "this is not modeled")
        for field, found in (
            ("admissionFairSharing", document.get("admissionFairSharing")),
            ("resources.transformations", resources.get("transformations")),
            ("waitForPodsReady.blockAdmission", waiting.get("blockAdmission")),
            ("resources.deviceClassMappings", resources.get("deviceClassMappings")),
        )
        if found
    ]
    fair_sharing = None
    section = _section(document, "fairSharing", source)
    # v1beta1 has a switch instead.
    if document.get("fairSharing") is not None and section.get("enable") is not False:
        strategies = tuple(_texts(section, "preemptionStrategies", source))
        if unknown := [each for each in strategies if each not in DEFAULT_STRATEGIES]:
            raise InputError(f"unknown strategy {unknown[0]!r}", source=source, path="fairSharing.preemptionStrategies")
        fair_sharing = FairSharingConfiguration(strategies)
    configuration = KueueConfiguration(
        fair_sharing=fair_sharing,
        feature_gates=gates,
        quota_check_strategy=str(resources.get("quotaCheckStrategy") or ""),
        requeuing_timestamp=str(_section(waiting, "requeuingStrategy", source).get("timestamp") or "Eviction"),
        exclude_resource_prefixes=tuple(_texts(resources, "excludeResourcePrefixes", source)),
    )
    return KueueSettings(configuration, assumptions)


def _section(document: Mapping[str, Any], key: str, source: str) -> dict[str, Any]:
    found = document.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise InputError("expected an object", source=source, path=key)
    return found


def _texts(document: Mapping[str, Any], key: str, source: str) -> list[str]:
    found = document.get(key) or []
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise InputError("expected a list of strings", source=source, path=key)
    return found


_UNSCHEDULABLE = 12
_PREEMPTS = 10


def explain_workloads(request: ExplainRequest) -> int:
    """Answer what happens to the request's Workloads and return the exit code."""
    check_pod(request)
    named = f"{request.pod}/{request.name}" if request.name else request.pod or ""
    if not named and not request.files:
        raise UsageError("no Workload given: use a manifest (-f) or a name", hint="-f job.yaml, or workload/NAME")
    run = CommandRun(request, "KueueAnswer")
    context, settings = _read(run, lands_pods=True)
    query = ExplainWorkloads(
        settings=settings,
        workload=named,
        namespace=request.namespace,
        manifests=[accepted_objects(path, request.input_limits) for path in request.files],
    )
    found = answer(context, query).record
    run.write_once(found, context.at)
    answers = found.items if isinstance(found, KueueAnswers) else [found]
    assumptions = {assumption for each in answers for assumption in each.assumptions}
    return run.exit_code_by_outcome(assumptions, map(_exit_code, answers))


def _exit_code(answer: KueueAnswer) -> int:
    if not answer.alone.admitted_in or any(each.placed < each.tried for each in answer.placement):
        return _UNSCHEDULABLE
    differs = answer.alone.outcome is not answer.together.outcome
    if differs or answer.alone.other_outcomes or answer.together.other_outcomes:
        return EXIT_UNCERTAIN
    if answer.alone.waits_for_checks or any(each.tried < each.pods for each in answer.placement):
        return EXIT_UNCERTAIN
    return _PREEMPTS if answer.alone.targets else 0


def pending_workloads(request: PendingRequest) -> int:
    """Answer the request and return the exit code."""
    is_selected = select_workloads(request)
    run = CommandRun(request, "PendingWorkloads")
    context, settings = _read(run)
    found = answer(context, PendingWorkloads(settings=settings, is_selected=is_selected)).record
    run.write_once(found, context.at)
    return run.exit_code(found.assumptions)


def workloads_at_risk(request: AtRiskRequest) -> int:
    """Answer the request and return the exit code."""
    is_selected = select_workloads(request)
    run = CommandRun(request, "WorkloadsAtRisk")
    context, settings = _read(run)
    query = WorkloadsAtRisk(settings=settings, is_selected=is_selected, limit=request.limit)
    found = answer(context, query).record
    run.write_once(found, context.at)
    return run.exit_code(found.assumptions)


def who_evicted_workload(request: WhoEvictedRequest) -> int:
    """Answer the request and return the exit code. Raises ``UsageError`` without a Workload."""
    if not request.pod:
        raise UsageError("who-evicted needs a Workload", hint="kpreempt who-evicted [WORKLOAD/]NAME -n NAMESPACE")
    run = CommandRun(request, "PreemptionsOfWorkload")
    context, _ = _read(run, Needs(with_events=True), reads_configuration=False)
    named = slashed(request.pod, request.name)
    query = WhoEvictedWorkload(workload=named, namespace=request.namespace)
    run.write_once(answer(context, query).record, context.at)
    return 0


_ALL_WORKLOADS = "all"


class KueueScenario(Scenario, frozen=True, rename="camel"):
    """A line of ``batch``: at most ``cycles`` cycles, with ``all`` waiting Workloads or with one, given by its key.

    ``config`` holds the parts of the manager's configuration that affect decisions; ``now`` is when the first cycle
    begins.
    """

    now: Time | None = None
    cycles: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1
    workload: str = _ALL_WORKLOADS
    config: KueueConfiguration = KueueConfiguration()  # type: ignore[assignment] # a text for others


SCENARIO = KueueScenario


def answer_scenario(
    scenario: KueueScenario, source: str, base: LoadedCluster | None, now: datetime, phases: Phases
) -> CyclesVerdict:
    """The cycles of Kueue's scheduler on the cluster of a line. Raises ``InputError``."""
    with phases.phase("decode"):
        situation = situation_of(scenario, source, base, KUEUE_EXTRAS)
    loaded = LoadedCluster(situation.cluster, [*situation.assumptions, *unread_of(KUEUE_EXTRAS, base)])
    request = requests.KueueScenario(
        config=scenario.config,
        cycles=scenario.cycles,
        only=() if scenario.workload == _ALL_WORKLOADS else (scenario.workload,),
        starts=scenario.now or now,
        source=source,
    )
    found: CyclesVerdict = answer(Context(loaded, default_scheduler(), now, phases=phases), request).record
    return found


def compare_configurations(request: CompareRequest) -> int:
    """Answer the request and return the exit code."""
    paths = _paths(request.algorithms or "")
    run = CommandRun(request, "KueueComparison")
    context, _ = _read(run, reads_configuration=False)
    compared = {f"{KUEUE}@{PurePath(path).name}" if path else KUEUE: _settings_of(path, request) for path in paths}
    if len(compared) < len(paths):
        raise UsageError(f"--algorithms {request.algorithms}: two files have the same name")
    query = CompareWorkloads(
        compared=compared,
        workload=request.pod or "",
        namespace=request.namespace,
        manifests=[accepted_objects(path, request.input_limits) for path in request.files],
        is_selected=lambda each: not request.namespace or each.metadata.namespace == request.namespace,
    )
    found = answer(context, query).record
    run.write_once(found, context.at)
    if request.fail_on_difference and (found.differing or is_inconclusive(found.assumptions, "--fail-on-difference")):
        return EXIT_GATE
    return run.exit_code(found.assumptions)


def _paths(text: str) -> list[str]:
    """Return the file of each configuration, which may be empty."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    hint = f"{KUEUE},{KUEUE}@FILE"
    if len(parts) < 2:
        raise UsageError("--algorithms needs two or more configurations", hint=hint)
    if len(set(parts)) < len(parts):
        raise UsageError(f"--algorithms {text}: a configuration is listed twice", hint=hint)
    paths = []
    for part in parts:
        name, at, path = part.partition("@")
        if name != KUEUE or (at and not path):
            raise UsageError(f"--algorithms {text}: expected {KUEUE}@FILE instead of {part}", hint=hint)
        paths.append(path)
    return paths


def _settings_of(path: str, request: CompareRequest) -> KueueSettings:
    """Read the settings in a file: a configuration, queues that replace the cluster's, or both."""
    if not path:
        return _default_settings(f"no file was given for {KUEUE}")
    settings: KueueSettings | None = None
    queues: list[tuple[str, Any]] = []
    for each in accepted_objects(path, request.input_limits):
        # The manager's configuration, or a ConfigMap that holds it.
        data = each.document.get("data")
        holds = each.document.get("kind") == "ConfigMap" and isinstance(data, dict) and _KEY in data
        if holds or each.document.get("kind") == "Configuration":
            if settings is not None:
                raise InputError("contains two configurations", source=path)
            settings = kueue_settings_in(each.document, path)
        elif found := decode_queueing(each.document, decode_document, source=each.source):
            queues.append(found)
        else:
            kind = each.document.get("kind")
            raise InputError(f"expected a Kueue Configuration or queue, not a {kind}", source=each.source)
    settings = settings or _default_settings(f"{PurePath(path).name} has no Configuration")
    return settings._replace(queues=queues)
