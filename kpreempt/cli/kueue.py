"""Kueue's answers: what becomes of Workloads that wait for quota, which are at risk, and who preempted them.

A question is put to the cluster with Kueue's objects, and to the manager's configuration: a file, the ConfigMap that
holds it, or the default of 0.19.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec

from kpreempt.analysis.algorithms import scheduler_for
from kpreempt.analysis.kueue.explaining import compare_configurations as compared_configurations
from kpreempt.analysis.kueue.explaining import explain_workloads as explained_workloads
from kpreempt.analysis.kueue.explaining import with_workloads
from kpreempt.analysis.kueue.manifest import workload_documents
from kpreempt.analysis.kueue.objects import (
    KUEUE_WANTED,
    assumed_of,
    assumed_of_chance,
    assumed_of_default,
    assumed_of_made,
    decode_queueing,
    kueue_objects,
    with_objects,
)
from kpreempt.analysis.kueue.readings import pending_workloads as pending_in_queues
from kpreempt.analysis.kueue.readings import who_preempted_workload as preemptions_of
from kpreempt.analysis.kueue.readings import workloads_at_risk as risks_of
from kpreempt.analysis.pod_selection import parse_selector
from kpreempt.cli.clusters import usual_namespace
from kpreempt.cli.manifests import accepted_objects, check_pod
from kpreempt.cli.requests import AnswerRequest, PendingRequest
from kpreempt.cli.runner import Run, check_selection, is_unfounded
from kpreempt.cli.scenarios import Scenario, situation_of, unread_of
from kpreempt.cli.scheduler_configs import read_own_config
from kpreempt.cli.terminal import EXIT_GATE, EXIT_UNCERTAIN
from kpreempt.errors import InputError, UsageError
from kpreempt.library.reading import LoadedCluster
from kpreempt.library.schedulers import AskedScheduler
from kpreempt.model.kueue import QUEUE_LABEL, Workload
from kpreempt.model.meta import DEFAULT_NAMESPACE, Time
from kpreempt.phases import Phases
from kpreempt.scheduler_table import KUEUE
from kpreempt.schedulers.kueue import KueueConfiguration, KueueObjects, run_cycles
from kpreempt.schedulers.kueue.objects import DEFAULT_STRATEGIES, FairSharingConfiguration
from kpreempt.snapshot.collect import NOTHING_MORE, Needs
from kpreempt.snapshot.decode import decode_document
from kpreempt.snapshot.documents import parse_document
from kpreempt.verdict import Assumption
from kpreempt.verdict.kueue import KueueAnswer, KueueAnswers

if TYPE_CHECKING:
    from kpreempt.cli.requests import AtRiskRequest, CompareRequest, ExplainRequest, WhoPreemptedRequest
    from kpreempt.snapshot.archives import Intake


class KueueContext(NamedTuple):
    """A cluster with what Kueue reads of it, and what is assumed of both. ``namespace`` is the usual one."""

    objects: KueueObjects
    config: KueueConfiguration
    assumptions: list[Assumption]
    now: datetime
    namespace: str


def read_context(run: Run, needs: Needs = NOTHING_MORE, *, reads_configuration: bool = True) -> KueueContext:
    """Read what a request asks about. Raises ``InputError`` and ``UsageError``."""
    request = run.request
    if "," in (request.connection.context or ""):
        raise UsageError(f"--context with several names says nothing to {KUEUE}, which decides on whole Workloads")
    now = run.now()
    live = run.connect()
    config, said, path = KueueConfiguration(), list[Assumption](), request.scheduler_config
    if reads_configuration and path is None:
        said = [assumed_of_default("--scheduler-config was not given")]
    elif reads_configuration and path is not None:
        config, said = kueue_configuration_in(read_own_config(path, live, _USUAL_NAMESPACE), path)
    namespace = request.namespace or usual_namespace(live) or DEFAULT_NAMESPACE
    loaded = run.load(live, msgspec.structs.replace(needs, wanted=needs.wanted | KUEUE_WANTED))
    with run.stopwatch.phase("decode"):
        objects = kueue_objects(loaded.cluster, decode_document)
    return KueueContext(objects, config, [*loaded.assumptions, *said], run.time_of(loaded.cluster, now), namespace)


def select_workloads(request: AnswerRequest) -> Callable[[Workload], bool]:
    """Whether the question is about a Workload, by ``-n``, ``-A`` and ``-l``. Raises ``UsageError``."""
    check_selection(request)
    selector = parse_selector(request.selector or "")

    def is_asked(workload: Workload) -> bool:
        metadata = workload.metadata
        return request.namespace in (None, "", metadata.namespace) and selector.matches(metadata.labels)

    return is_asked


_KEY = "controller_manager_config.yaml"
_USUAL_NAMESPACE = "kueue-system"


def kueue_configuration_in(
    document: Mapping[str, Any] | None, source: str
) -> tuple[KueueConfiguration, list[Assumption]]:
    """The configuration that a document is, or that holds it as a ConfigMap. Raises ``InputError``."""
    document = document or {}
    if document.get("kind") == "ConfigMap":
        text = _section(document, "data", source).get(_KEY)
        if not isinstance(text, str):
            raise InputError(f"the ConfigMap has no {_KEY}", source=source, path="data")
        document = parse_document(text, f"{source}: {_KEY}") or {}
    if document.get("kind") != "Configuration":
        raise InputError("is no Configuration of Kueue's manager", source=source)
    resources = _section(document, "resources", source)
    waiting = _section(document, "waitForPodsReady", source)
    gates = _section(document, "featureGates", source)
    if not all(isinstance(each, bool) for each in gates.values()):
        raise InputError("expected true or false", source=source, path="featureGates")
    assumptions = [
        Assumption("KueueConfiguration", field, "this is not modelled")
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
    # v1beta1 has a switch.
    if document.get("fairSharing") is not None and section.get("enable") is not False:
        strategies = tuple(_texts(section, "preemptionStrategies", source))
        if unknown := [each for each in strategies if each not in DEFAULT_STRATEGIES]:
            raise InputError(
                f"there is no strategy {unknown[0]!r}", source=source, path="fairSharing.preemptionStrategies"
            )
        fair_sharing = FairSharingConfiguration(strategies)
    configuration = KueueConfiguration(
        fair_sharing=fair_sharing,
        feature_gates=gates,
        quota_check_strategy=str(resources.get("quotaCheckStrategy") or ""),
        requeuing_timestamp=str(_section(waiting, "requeuingStrategy", source).get("timestamp") or "Eviction"),
        exclude_resource_prefixes=tuple(_texts(resources, "excludeResourcePrefixes", source)),
    )
    return configuration, assumptions


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
        raise InputError("expected a list of texts", source=source, path=key)
    return found


_KINDS = ("workload", "workloads", "wl")
_UNSCHEDULABLE = 12
_PREEMPTS = 10


def explain_workloads(request: ExplainRequest) -> int:
    """Answer what becomes of the Workloads of a request, and return the exit code."""
    check_pod(request)
    run = Run(request, "KueueAnswer")
    asked = AskedScheduler(None, scheduler_for)
    context = read_context(run, Needs(wanted=asked.wanted))
    objects, config, now = context.objects, context.config, context.now
    named = f"{request.pod}/{request.name}" if request.name else request.pod or ""
    workloads = workloads_in(request.files, named, request.intake, context)
    configured = asked.on(objects.cluster)
    with run.stopwatch.phase("session"):
        answers = explained_workloads(workloads, objects, config, configured.scheduler, now=now)
    more = [*context.assumptions, *configured.assumptions]
    answers = [msgspec.structs.replace(each, assumptions=[*each.assumptions, *more]) for each in answers]
    run.write_once(answers[0] if len(answers) == 1 else KueueAnswers(items=answers), now)
    assumptions = {assumption for each in answers for assumption in each.assumptions}
    return run.exit_code_by_outcome(assumptions, map(_exit_code, answers))


def workloads_in(files: Sequence[str], named: str, intake: Intake, context: KueueContext) -> list[tuple[Workload, str]]:
    """The Workload of that name, or those of manifests, each with what it was made from.

    Raises ``InputError`` and ``UsageError``.
    """
    if named:
        return [(workload_named(named, context), "")]
    found = []
    for path in files:
        objects = [(each.document, each.source) for each in accepted_objects(path, intake)]
        for document, kind, source in workload_documents(objects, context.namespace, context.objects.cluster):
            found.append((decode_document("Workload", Workload, document, source=source), f"{kind} in {source}"))
    if not found:
        source = ", ".join(files)
        if not source:
            raise UsageError(
                "a manifest (-f) or the name of a Workload is missing", hint="-f job.yaml, or workload/NAME"
            )
        raise InputError(f"no Workload, and nothing with the label {QUEUE_LABEL}", source=source)
    return found


def workload_named(named: str, context: KueueContext) -> Workload:
    """The Workload ``[workload/]NAME``. Raises ``InputError``."""
    kind, _, name = named.rpartition("/")
    if kind.lower() in ("", *_KINDS):
        for each in context.objects.workloads:
            if each.metadata.name == name and each.metadata.namespace == context.namespace:
                return each
    raise InputError(f"there is no Workload {name} in namespace {context.namespace}", source="the cluster")


def _exit_code(answer: KueueAnswer) -> int:
    if not answer.alone.admitted_in or any(each.placed < each.tried for each in answer.landing):
        return _UNSCHEDULABLE
    differs = answer.alone.outcome is not answer.together.outcome
    if differs or answer.alone.other_outcomes or answer.together.other_outcomes:
        return EXIT_UNCERTAIN
    if answer.alone.waits_for_checks or any(each.tried < each.pods for each in answer.landing):
        return EXIT_UNCERTAIN
    return _PREEMPTS if answer.alone.targets else 0


def pending_workloads(request: PendingRequest) -> int:
    """Answer the request, and return the exit code."""
    is_asked = select_workloads(request)
    run = Run(request, "PendingWorkloads")
    context = read_context(run)
    with run.stopwatch.phase("session"):
        answer = pending_in_queues(
            context.objects, context.config, now=context.now, is_asked=is_asked, assumptions=context.assumptions
        )
    run.write_once(answer, context.now)
    return run.exit_code(answer.assumptions)


def workloads_at_risk(request: AtRiskRequest) -> int:
    """Answer the request, and return the exit code."""
    is_asked = select_workloads(request)
    run = Run(request, "WorkloadsAtRisk")
    context = read_context(run)
    everywhere = request.namespace or request.all_namespaces
    with run.stopwatch.phase("session"):
        answer = risks_of(
            context.objects,
            context.config,
            now=context.now,
            is_asked=lambda each: is_asked(each) and bool(everywhere or each.metadata.namespace == context.namespace),
            limit=request.limit,
            assumptions=context.assumptions,
        )
    run.write_once(answer, context.now)
    return run.exit_code(answer.assumptions)


def who_preempted_workload(request: WhoPreemptedRequest) -> int:
    """Answer the request, and return the exit code."""
    run = Run(request, "PreemptionsOfWorkload")
    context = read_context(run, Needs(with_events=True), reads_configuration=False)
    run.write_once(preemptions_of(workload_named(request.pod, context), context.objects), context.now)
    return 0


_ALL_WORKLOADS = "all"


class KueueScenario(Scenario, frozen=True, rename="camel"):
    """A line of ``batch``: so many ``cycles`` at most, with ``all`` Workloads that wait, or with one, by its key.

    ``config`` is what of the manager's configuration decides; ``now`` is when the first cycle begins.
    """

    now: Time | None = None
    cycles: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1
    workload: str = _ALL_WORKLOADS
    config: KueueConfiguration = KueueConfiguration()  # type: ignore[assignment] # a text for others


SCENARIO = KueueScenario


class CyclesVerdict(msgspec.Struct, frozen=True, rename="camel"):
    """What Kueue's scheduler does on the cluster of a line, with what was assumed."""

    cycles: list[Any]
    outcomes: int
    other_outcomes: list[Any]
    assumptions: list[Assumption]


def answer_scenario(
    scenario: KueueScenario, source: str, base: LoadedCluster | None, now: datetime, phases: Phases
) -> CyclesVerdict:
    """The cycles of Kueue's scheduler on the cluster of a line. Raises ``InputError``."""
    with phases.phase("decode"):
        situation = situation_of(scenario, source, base, KUEUE_WANTED)
    with phases.phase("session"):
        objects = kueue_objects(situation.cluster, decode_document, source=source)
        only = () if scenario.workload == _ALL_WORKLOADS else (scenario.workload,)
        found = run_cycles(objects, scenario.config, now=scenario.now or now, cycles=scenario.cycles, only=only)
    assumptions = [
        *situation.assumptions,
        *unread_of(KUEUE_WANTED, base),
        *assumed_of(objects, scenario.config),
        *assumed_of_chance(found),
    ]
    return CyclesVerdict(found.cycles, 1 + len(found.others), found.others, assumptions)


Made = tuple[KueueObjects, KueueConfiguration]


def compare_configurations(request: CompareRequest) -> int:
    """Answer the request, and return the exit code."""
    paths = _paths(request.algorithms or "")
    run = Run(request, "KueueComparison")
    context = read_context(run, reads_configuration=False)
    asked = []
    if request.files or request.pod:
        asked = workloads_in(request.files, request.pod or "", request.intake, context)
        context = context._replace(objects=with_workloads([each for each, _ in asked], context.objects, context.now))
    compared: dict[str, Made] = {}
    assumptions = [*context.assumptions, *(said for each in asked for said in assumed_of_made(*each))]
    for path in paths:
        made, said = _made(path, context, request)
        compared[f"{KUEUE}@{PurePath(path).name}" if path else KUEUE] = made
        assumptions += said
    if len(compared) < len(paths):
        raise UsageError(f"--algorithms {request.algorithms}: two files have the same name")
    keys = {each.key for each, _ in asked}

    def is_asked(workload: Workload) -> bool:
        if keys:
            return workload.key in keys
        return not request.namespace or workload.metadata.namespace == request.namespace

    with run.stopwatch.phase("session"):
        answer = compared_configurations(compared, now=context.now, is_asked=is_asked, assumptions=assumptions)
    run.write_once(answer, context.now)
    if request.fail_on_difference and (answer.differing or is_unfounded(answer.assumptions, "--fail-on-difference")):
        return EXIT_GATE
    return run.exit_code(answer.assumptions)


def _paths(text: str) -> list[str]:
    """The file of each, which may be empty."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    hint = f"{KUEUE},{KUEUE}@FILE"
    if len(parts) < 2:
        raise UsageError("two configurations or more are compared", hint=hint)
    if len(set(parts)) < len(parts):
        raise UsageError(f"--algorithms {text}: one is there twice, and decides the same", hint=hint)
    paths = []
    for part in parts:
        name, at, path = part.partition("@")
        if name != KUEUE or (at and not path):
            raise UsageError(f"--algorithms {text}: {part} is not {KUEUE}@FILE", hint=hint)
        paths.append(path)
    return paths


def _made(path: str, context: KueueContext, request: CompareRequest) -> tuple[Made, list[Assumption]]:
    """The objects and the configuration with what a file has of either."""
    if not path:
        return (context.objects, KueueConfiguration()), [assumed_of_default(f"{KUEUE} names no file")]
    config: KueueConfiguration | None = None
    said: list[Assumption] = []
    changed: list[tuple[str, Any]] = []
    for each in accepted_objects(path, request.intake):
        # The manager's configuration, or a ConfigMap that holds it.
        data = each.document.get("data")
        holds = each.document.get("kind") == "ConfigMap" and isinstance(data, dict) and _KEY in data
        if holds or each.document.get("kind") == "Configuration":
            if config is not None:
                raise InputError("has two configurations", source=path)
            config, said = kueue_configuration_in(each.document, path)
        elif found := decode_queueing(each.document, decode_document, source=each.source):
            changed.append(found)
        else:
            kind = each.document.get("kind")
            raise InputError(f"a {kind} is neither a Configuration nor a queue of Kueue's", source=each.source)
    if config is None:
        config, said = KueueConfiguration(), [assumed_of_default(f"{PurePath(path).name} has no Configuration")]
    return (with_objects(context.objects, changed), config), said
