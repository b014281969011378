"""Answering ``kpreempt explain``: options to records, and the rooms wired together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kpreempt.analysis.cluster_version import AUTO
from kpreempt.analysis.field_paths import Assignment, split_assignment
from kpreempt.analysis.subject import PodTemplate, in_namespace, kinds_not_needed, pod_from_flags
from kpreempt.analysis.what_if import Overrides
from kpreempt.analysis.workload_pods import kind_of
from kpreempt.cli.answering import Run, is_unfounded
from kpreempt.cli.clusters import single_use_of_stdin, usual_namespace
from kpreempt.cli.manifests import picked, read_subjects, tell_ignored
from kpreempt.cli.output import WHOLE_FORMATS
from kpreempt.errors import UsageError
from kpreempt.library.explain import PodName, PodsQuestion, explain, named
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import DEFAULT_NAMESPACE
from kpreempt.model.quantity import quantity
from kpreempt.model.wanted import NOTHING_WANTED
from kpreempt.report import FORMATS
from kpreempt.report.document import document_of
from kpreempt.scheduler_table import ALGORITHMS, KUEUE, QUEUE_ALGORITHMS, VOLCANO
from kpreempt.snapshot import parse_yaml_value
from kpreempt.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from kpreempt.analysis.workload.in_cluster import WorkloadName
    from kpreempt.cli.explain import ExplainRequest
    from kpreempt.library.schedulers import AskedScheduler
    from kpreempt.verdict.story import Occupancy
    from kpreempt.verdict.workload import Totals

_EXIT_CODES = {
    Outcome.LANDS: 0,
    Outcome.PREEMPTS: 10,
    Outcome.PREEMPTS_VIOLATING_BUDGETS: 11,
    Outcome.NEVER_LANDS: 12,
    Outcome.NOT_SCHEDULED: 12,
    Outcome.UNCERTAIN: 13,
}


def run_explain(request: ExplainRequest) -> int:
    """Answer the request, write the answer to its outputs, and return the exit code."""
    if request.algorithm == VOLCANO:
        return _submit_to_volcano(request)
    if request.algorithm == KUEUE:
        return _queue_in_kueue(request)
    _refuse_options("is for --algorithm volcano-1.8", {"--actions": request.actions, "--runs": request.runs})
    run = Run(request, FORMATS)
    now = run.now()
    _check(request)
    if request.aftermath:
        _check_queue(request.algorithm or AUTO)
    overrides = _overrides(request)
    asked = run.read_scheduler()
    live = run.connect()
    usual = usual_namespace(live)
    # The manifest is read first: it is small, and most mistakes are in it.
    templates = _templates(request, usual)
    question = PodsQuestion(
        templates=templates,
        name=_named(request, request.namespace or usual or DEFAULT_NAMESPACE),
        namespace=request.namespace or usual,
        overrides=overrides,
        replicas=request.replicas,
        capacity=request.capacity,
        aftermath=request.aftermath,
        node_name=request.node or "",
        removed=request.without,
        cordons=request.cordons,
        uncordons=request.uncordons,
        budgets=request.budgets,
        records_steps=request.shows_all or any(output.format in WHOLE_FORMATS for output in run.outputs),
    )
    workload = question.workload
    loaded = run.load(
        live,
        asked.wanted,
        additions=request.additions,
        with_events=False,
        keeps=workload.is_of if workload is not None else None,
        compared=[workload.kind] if workload is not None and workload.kind == "CronJob" else [],
        unneeded=_unneeded(request, templates, asked),
    )
    ground = run.ground(loaded, asked, now)
    if request.aftermath:
        _check_queue(ground.configured.scheduler.algorithm)
    verdicts, cluster = explain(ground, question)
    run.write_once(document_of(verdicts), ground.ages, _occupancy(cluster, verdicts, run))
    return _exit_code(verdicts, request, run)


def _unneeded(request: ExplainRequest, templates: Sequence[PodTemplate], asked: AskedScheduler) -> frozenset[str]:
    """The kinds of a live cluster that cannot matter to the pods of manifests or of amounts.

    What plugins of one's own and extenders look at is not known, ``--set`` may give a pod anything, and those that come
    in victims' places may have any volumes.
    """
    is_open = request.settings or request.aftermath or request.scheduler_config or any(request.extensions)
    is_open = is_open or asked.wanted != NOTHING_WANTED
    return frozenset() if is_open else kinds_not_needed(templates)


def _named(request: ExplainRequest, namespace: str) -> PodName | WorkloadName | None:
    """What of the cluster is named. Raises ``UsageError`` where two namespaces are given."""
    if not request.pod:
        return None
    found = named(request.pod, request.name or "", namespace)
    if request.namespace and request.namespace != found.namespace:
        raise UsageError(f"the namespace is given twice: {found.namespace} and -n {request.namespace}")
    return found


def _occupancy(cluster: ClusterSnapshot, verdicts: list[Verdict], run: Run) -> Occupancy | None:
    """How full the nodes are, where they are drawn."""
    if not any(output.format == "html" for output in run.outputs):
        return None
    from kpreempt.analysis.explain.occupancy import occupancy_of

    with run.stopwatch.phase("report"):
        return occupancy_of(cluster, verdicts)


def _queue_in_kueue(request: ExplainRequest) -> int:
    """Answer the request as a question about a Workload that is put to Kueue."""
    from kpreempt.cli.explain_kueue import run_queueing

    _check(request)
    _refuse_options(
        "says nothing to kueue-0.19, which decides on whole Workloads; change the manifest instead",
        {
            "--cpu": request.cpu,
            "--memory": request.memory,
            "--resource": request.resources,
            "--select": request.select,
            "--priority": request.priority,
            "--priority-class": request.priority_class,
            "--preemption-policy": request.preemption_policy,
            "--set": request.settings,
            "--budget": request.budgets,
            "--node": request.node,
            "--replicas": request.replicas,
            "--capacity": request.capacity or None,
            "--aftermath": request.aftermath or None,
            "--brief": request.brief or None,
            "--policy-config": request.policy_config,
            "--feature-gates": request.feature_gates,
            "--actions": request.actions,
            "--runs": request.runs,
            "--plugin": list(request.extensions.plugins),
            "--call-extenders": request.extensions.calls_extenders or None,
        },
    )
    return run_queueing(request)


def _submit_to_volcano(request: ExplainRequest) -> int:
    """Answer the request as a question about a job that is submitted to Volcano."""
    from kpreempt.cli.explain_volcano import run_submission

    _check(request)
    _refuse_options(
        "says nothing to volcano-1.8, which decides on whole jobs; change the manifest instead",
        {
            "--priority": request.priority,
            "--priority-class": request.priority_class,
            "--preemption-policy": request.preemption_policy,
            "--set": request.settings,
            "--budget": request.budgets,
            "--node": request.node,
            "--replicas": request.replicas,
            "--capacity": request.capacity or None,
            "--aftermath": request.aftermath or None,
            "--brief": request.brief or None,
            "--policy-config": request.policy_config,
            "--feature-gates": request.feature_gates,
            "--plugin": list(request.extensions.plugins),
            "--call-extenders": request.extensions.calls_extenders or None,
        },
    )
    return run_submission(request, None if request.pod or request.files else _pod_of_amounts(request))


def _refuse_options(why: str, options: Mapping[str, object]) -> None:
    """Raise ``UsageError`` for the first of these options that was given."""
    for name, value in options.items():
        if value not in (None, [], "", 0) or (name == "--priority" and value == 0):
            raise UsageError(f"{name} {why}")


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
    if request.name and not kind_of(request.pod or ""):
        raise UsageError(
            f'"{request.pod}" is not a kind of workload', hint=f"pod {request.name}, deploy {request.name}"
        )
    if request.select and not request.files:
        raise UsageError("--select picks from a manifest, and none is given", hint="-f FILE")
    if request.brief and request.verbose:
        raise UsageError("--brief and -v contradict each other")
    single_use_of_stdin(
        {
            "-f": request.files,
            "--snapshot": request.snapshots,
            "--with": request.additions,
            "--add-node": request.node_changes.files,
        }
    )


def _check_queue(algorithm: str) -> None:
    """Raise ``UsageError`` where what follows cannot be simulated, as its queue is not modelled."""
    if algorithm in ALGORITHMS and algorithm not in QUEUE_ALGORITHMS:
        known = ", ".join(QUEUE_ALGORITHMS)
        raise UsageError(
            f"--aftermath simulates a scheduler's queue, and that of {algorithm} is not modelled", hint=known
        )


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
    subjects = read_subjects(request.files, namespace, request.intake)
    if not request.select:
        tell_ignored(subjects.notes, verbose=request.verbose > 0)
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


def _exit_code(verdicts: list[Verdict], request: ExplainRequest, run: Run) -> int:
    assumptions = {assumption for verdict in verdicts for assumption in verdict.assumptions}
    outcome = max(map(_outcome_code, verdicts), default=0) if request.exit_code else 0
    if request.exit_code and is_unfounded(assumptions, "--exit-code"):
        outcome = _EXIT_CODES[Outcome.UNCERTAIN]
    return run.exit_code(assumptions, outcome)


def _outcome_code(verdict: Verdict) -> int:
    """The code of the worst outcome; that of an uncertain one where another order of volumes may have another.

    Of all pods that are asked about, and of whatever the scheduler's choices between equals came to.
    """
    if verdict.workload is not None:
        return max(_totals_code(each) for each in (verdict.workload.totals, *verdict.workload.others))
    choices = verdict.volume_choices
    if choices is not None and (
        not choices.complete or any(each.outcome != verdict.outcome for each in choices.outcomes)
    ):
        return _EXIT_CODES[Outcome.UNCERTAIN]
    return _EXIT_CODES[verdict.worst_outcome]


def _totals_code(totals: Totals) -> int:
    """The code of the worst outcome among replicas."""
    worst = (
        (totals.uncertain, Outcome.UNCERTAIN),
        (totals.pending or totals.refused, Outcome.NEVER_LANDS),
        (totals.violations, Outcome.PREEMPTS_VIOLATING_BUDGETS),
        (totals.preempts, Outcome.PREEMPTS),
    )
    return _EXIT_CODES[next((outcome for number, outcome in worst if number), Outcome.LANDS)]
