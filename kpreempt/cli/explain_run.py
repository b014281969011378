"""Answering ``kpreempt explain``: options to records, the rooms wired together, verdicts to outputs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import datetime

import msgspec

from kpreempt.analysis.algorithms import ALGORITHMS, DEFAULT_ALGORITHM, QUEUE_ALGORITHMS, VOLCANO
from kpreempt.analysis.cluster_overrides import changed
from kpreempt.analysis.explain import explain_pods
from kpreempt.analysis.field_paths import Assignment, split_assignment
from kpreempt.analysis.questions import Asked, Decode, question_in_cluster, questions_of
from kpreempt.analysis.subject import PodTemplate, in_namespace, pod_from_flags, pod_in_cluster
from kpreempt.analysis.what_if import Overrides
from kpreempt.cli.clock import time_of_answer
from kpreempt.cli.clusters import live_connection, load_cluster, single_use_of_stdin, usual_namespace
from kpreempt.cli.extensions import Extensions
from kpreempt.cli.manifests import picked, read_subjects, tell_ignored
from kpreempt.cli.output import WHOLE_FORMATS, Output, parse_outputs, whole_file, write_stdout
from kpreempt.cli.profile import Stopwatch, check_profile_path
from kpreempt.cli.schedulers import read_scheduler
from kpreempt.cli.strictness import is_unfounded, strict_exit_code
from kpreempt.cli.terminal import terminal_width, wants_colour
from kpreempt.errors import UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import DEFAULT_NAMESPACE
from kpreempt.model.quantity import quantity
from kpreempt.report import FORMATS, RenderOptions, render
from kpreempt.snapshot import object_decoder, parse_yaml_value
from kpreempt.snapshot.live.flags import ConnectionFlags
from kpreempt.verdict import Outcome, Verdict

_EXIT_CODES = {
    Outcome.LANDS: 0,
    Outcome.PREEMPTS: 10,
    Outcome.PREEMPTS_VIOLATING_BUDGETS: 11,
    Outcome.NEVER_LANDS: 12,
    Outcome.NOT_SCHEDULED: 12,
    Outcome.UNCERTAIN: 13,
}


class ExplainRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the options of ``kpreempt explain`` ask for."""

    pod: str | None
    files: list[str]
    select: list[str]
    snapshots: list[str]
    connection: ConnectionFlags
    namespace: str | None
    cpu: str | None
    memory: str | None
    resources: list[str]
    priority: int | None
    priority_class: str | None
    preemption_policy: str | None
    settings: list[str]
    without: list[str]
    additions: list[str]
    cordons: list[str]
    uncordons: list[str]
    budgets: list[str]
    node: str
    aftermath: bool = False
    outputs: list[str]
    verbose: bool
    algorithm: str | None = None
    actions: str | None = None
    runs: int = 0
    seed: int = 0
    scheduler_config: str | None
    policy_config: str | None = None
    extensions: Extensions = Extensions()
    feature_gates: list[str]
    colour: str
    exit_code: bool
    strict: bool
    skip_bad_objects: bool
    now: str | None
    profile_json: str | None


def run_explain(request: ExplainRequest) -> int:
    """Answer the request, write the answer to its outputs, and return the exit code."""
    if request.algorithm == VOLCANO:
        return _submit_to_volcano(request)
    _refuse_options("is for --algorithm volcano-1.8", {"--actions": request.actions, "--runs": request.runs})
    stopwatch = Stopwatch()
    outputs = parse_outputs(request.outputs, FORMATS)
    check_profile_path(request.profile_json, outputs)
    colour = wants_colour(request.colour, sys.stdout)
    now = time_of_answer(request.now)
    _check(request)
    if request.aftermath:
        _check_queue(request.algorithm or DEFAULT_ALGORITHM)
    overrides = _overrides(request)
    scheduler = read_scheduler(
        request.scheduler_config,
        request.feature_gates,
        request.algorithm,
        request.policy_config,
        request.extensions,
    ).scheduler
    overrides = msgspec.structs.replace(overrides, any_annotation=scheduler.wanted.pod_annotations)
    live = live_connection(request.snapshots, request.connection)
    namespace = usual_namespace(live)
    # The manifest is read first: it is small, and most mistakes are in it.
    templates = _templates(request, namespace)
    loaded = load_cluster(
        request.snapshots,
        request.additions,
        live=live,
        skip_bad_objects=request.skip_bad_objects,
        phases=stopwatch,
        wanted=scheduler.wanted,
    )
    request = msgspec.structs.replace(request, namespace=request.namespace or namespace)
    with stopwatch.phase("admission"):
        decode = object_decoder(scheduler.wanted)
        asked = _asked(request, _overridden(loaded.cluster, request), templates, overrides, decode)
    verdicts = explain_pods(
        asked.cluster,
        asked.questions,
        scheduler,
        now=now,
        at=_time_of_ages(request, asked, now) or asked.cluster.taken_at,
        assumptions=loaded.assumptions,
        node_name=request.node.removeprefix("node/"),
        proposes=True,
        plays_on=request.aftermath,
        records_steps=request.verbose or any(output.format in WHOLE_FORMATS for output in outputs),
        phases=stopwatch,
    )
    options = RenderOptions(
        width=terminal_width(),
        verbose=request.verbose,
        now=_time_of_ages(request, asked, now),
        as_list=len(verdicts) > 1,
    )
    with stopwatch.phase("report"):
        _write(verdicts, outputs, options, colour=colour)
    if request.profile_json:
        stopwatch.write(request.profile_json)
    return _exit_code(verdicts, request)


def _submit_to_volcano(request: ExplainRequest) -> int:
    """Answer the request as a question about a job that is submitted to Volcano."""
    from kpreempt.cli.volcano_run import SubmitRequest, run_submission

    _check(request)
    _refuse_options(
        "says nothing to volcano-1.8, which plays whole jobs; change the manifest instead",
        {
            "--priority": request.priority,
            "--priority-class": request.priority_class,
            "--preemption-policy": request.preemption_policy,
            "--set": request.settings,
            "--budget": request.budgets,
            "--node": request.node,
            "--aftermath": request.aftermath or None,
            "--policy-config": request.policy_config,
            "--feature-gates": request.feature_gates,
            "--plugin": list(request.extensions.plugins),
            "--call-extenders": request.extensions.calls_extenders or None,
        },
    )
    named = request.pod or request.files
    return run_submission(
        SubmitRequest(
            snapshots=request.snapshots,
            connection=request.connection,
            namespace=request.namespace,
            scheduler_config=request.scheduler_config,
            feature_gates=[],
            outputs=request.outputs,
            colour=request.colour,
            skip_bad_objects=request.skip_bad_objects,
            now=request.now,
            profile_json=request.profile_json,
            verbose=request.verbose,
            actions=request.actions,
            runs=request.runs,
            seed=request.seed,
            additions=request.additions,
            without=request.without,
            strict=request.strict,
            pod=request.pod,
            files=request.files,
            select=request.select,
            amounts=None if named else _pod_of_amounts(request),
            cordons=request.cordons,
            uncordons=request.uncordons,
            exit_code=request.exit_code,
        )
    )


def _refuse_options(why: str, options: Mapping[str, object]) -> None:
    """Raise ``UsageError`` for the first of these options that was given."""
    for name, value in options.items():
        if value not in (None, [], "", 0) or (name == "--priority" and value == 0):
            raise UsageError(f"{name} {why}")


def _asked(
    request: ExplainRequest,
    cluster: ClusterSnapshot,
    templates: list[PodTemplate],
    overrides: Overrides,
    decode: Decode,
) -> Asked:
    """The questions about the pod that was named, or about those of the manifests."""
    if not request.pod:
        return questions_of(cluster, templates, overrides, decode)
    found = pod_in_cluster(cluster, request.pod, request.namespace or DEFAULT_NAMESPACE)
    return question_in_cluster(found, overrides, decode)


def _check(request: ExplainRequest) -> None:
    """Raise ``UsageError`` where the options contradict each other or leave out what is needed."""
    amounts = {"--cpu": request.cpu, "--memory": request.memory, "--resource": request.resources}
    ways = {
        "-f": request.files,
        "by name": request.pod,
        next((name for name, value in amounts.items() if value), "--cpu"): any(amounts.values()),
    }
    given = [way if way.startswith("by") else f"by {way}" for way, value in ways.items() if value]
    if not given:
        raise UsageError("no pod is given", hint="-f FILE, or pod/NAME -n NAMESPACE, or --cpu 2 --memory 4Gi")
    if len(given) > 1:
        raise UsageError(f"the pod is given twice: {given[0]} and {given[1]}")
    if request.select and not request.files:
        raise UsageError("--select picks from a manifest, and none is given", hint="-f FILE")
    single_use_of_stdin({"-f": request.files, "--snapshot": request.snapshots, "--with": request.additions})


def _check_queue(algorithm: str) -> None:
    """Raise ``UsageError`` where what follows cannot be played, because the scheduler's own queue is not modelled."""
    if algorithm in ALGORITHMS and algorithm not in QUEUE_ALGORITHMS:
        known = ", ".join(QUEUE_ALGORITHMS)
        raise UsageError(f"--aftermath plays a scheduler's queue, and that of {algorithm} is not modelled", hint=known)


def _overrides(request: ExplainRequest) -> Overrides:
    settings = [split_assignment(text) for text in request.settings]
    return Overrides(
        priority=request.priority,
        priority_class=request.priority_class,
        preemption_policy=request.preemption_policy,
        assignments=[Assignment(path, parse_yaml_value(value)) for path, value in settings],
    )


def _templates(request: ExplainRequest, namespace: str) -> list[PodTemplate]:
    """The pods of the manifests or of the amounts; none where the pod is named.

    Those without a namespace are in ``namespace``; all are in that of ``-n``, if it is given.
    """
    if request.pod:
        return []
    if not request.files:
        return picked([in_namespace(_pod_of_amounts(request), namespace)], (), request.namespace)
    subjects = read_subjects(request.files, namespace)
    if not request.select:
        tell_ignored(subjects.notes, verbose=request.verbose)
    return picked(subjects.templates, request.select, request.namespace)


def _pod_of_amounts(request: ExplainRequest) -> PodTemplate:
    resources = {}
    for text in request.resources:
        name, _, amount = text.partition("=")
        if not name or not amount:
            raise UsageError(f"--resource {text}: NAME=QUANTITY is expected", hint="--resource nvidia.com/gpu=1")
        _check_quantity("--resource", amount, f"--resource {name}=1")
        resources[name] = amount
    cpu, memory = request.cpu or "", request.memory or ""
    if cpu:
        _check_quantity("--cpu", cpu, "--cpu 1500m")
    if memory:
        _check_quantity("--memory", memory, "--memory 4Gi")
    return pod_from_flags(cpu=cpu, memory=memory, resources=resources)


def _check_quantity(option: str, text: str, example: str) -> None:
    try:
        quantity(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}", hint=example) from None


def _overridden(cluster: ClusterSnapshot, request: ExplainRequest) -> ClusterSnapshot:
    return changed(
        cluster,
        request.namespace or "",
        removed=request.without,
        cordons=request.cordons,
        uncordons=request.uncordons,
        budgets=request.budgets,
    )


def _time_of_ages(request: ExplainRequest, asked: Asked, now: datetime) -> datetime | None:
    """What ages of pods count to: ``--now``, else the time of the dump (``None``) where it is known, else the clock."""
    return None if request.now is None and asked.cluster.taken_at is not None else now


def _write(verdicts: list[Verdict], outputs: list[Output], options: RenderOptions, *, colour: bool) -> None:
    """Render each output once, then write the files, then standard output, which alone has colour."""
    with ExitStack() as stack:
        for output in outputs:
            if output.path:
                file = stack.enter_context(whole_file(output.path))
                file.write(render(verdicts, output.format, options=options))
    on_stdout = msgspec.structs.replace(options, colour=colour)
    for output in outputs:
        if not output.path and not write_stdout(render(verdicts, output.format, options=on_stdout)):
            return


def _exit_code(verdicts: list[Verdict], request: ExplainRequest) -> int:
    assumptions = {assumption for verdict in verdicts for assumption in verdict.assumptions}
    outcome = max(map(_outcome_code, verdicts), default=0) if request.exit_code else 0
    if request.exit_code and is_unfounded(assumptions, "--exit-code"):
        outcome = _EXIT_CODES[Outcome.UNCERTAIN]
    return strict_exit_code(assumptions, is_strict=request.strict) or outcome


def _outcome_code(verdict: Verdict) -> int:
    """The code of the worst outcome; that of an uncertain one where another order of volumes may have another."""
    choices = verdict.volume_choices
    if choices is not None and (
        not choices.complete or any(each.outcome != verdict.outcome for each in choices.outcomes)
    ):
        return _EXIT_CODES[Outcome.UNCERTAIN]
    return _EXIT_CODES[verdict.worst_outcome]
