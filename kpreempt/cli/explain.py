"""``kpreempt explain``: where pods land, which pods they evict, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpreempt.analysis.algorithms import AUTO
from kpreempt.analysis.explain.rejections import POLICIES
from kpreempt.analysis.pod_inputs import in_namespace, kinds_not_needed
from kpreempt.analysis.workload_pods import PodTemplate
from kpreempt.cli.clusters import default_namespace, reading_in
from kpreempt.cli.manifests import check_pod, picked, pod_of_amounts, read_subjects, warn_of_ignored
from kpreempt.cli.output import COMPLETE_FORMATS
from kpreempt.cli.runner import CommandRun
from kpreempt.cli.terminal import EXIT_GATE, EXIT_UNCERTAIN
from kpreempt.errors import UsageError
from kpreempt.library.explain import PodName, overrides_of, parse_pod_name
from kpreempt.library.handlers import answer
from kpreempt.model.extra_fields import NO_EXTRAS
from kpreempt.scheduler_table import ALGORITHMS, QUEUE_ALGORITHMS
from kpreempt.snapshot.collect import Needs
from kpreempt.verdict import Outcome, Verdict, VerdictList

if TYPE_CHECKING:
    from kpreempt.cli.requests import ExplainRequest
    from kpreempt.verdict.workload import Totals

_EXIT_CODES = {
    Outcome.LANDS: 0,
    Outcome.PREEMPTS: 10,
    Outcome.PREEMPTS_VIOLATING_BUDGETS: 11,
    Outcome.UNSCHEDULABLE: 12,
    Outcome.WAITS_FOR_VICTIMS: 12,
    Outcome.NOT_SCHEDULED: 12,
    Outcome.UNCERTAIN: EXIT_UNCERTAIN,
    Outcome.REJECTED: EXIT_GATE,
}


def explain(request: ExplainRequest) -> int:
    """Answer the request, write the answer to its outputs, and return the exit code."""
    if request.event is not None:
        from kpreempt.cli.events import explain_event

        return explain_event(request)
    run = CommandRun(request)
    now = run.now()
    check_pod(request)
    if request.aftermath:
        _check_queue(request.algorithm or AUTO)
    overrides_of(request)
    factory = run.read_scheduler()
    live = run.connect()
    namespace = default_namespace(live)
    # Read the manifest first: it is small, and most mistakes are in it.
    request = request.having(
        templates=_templates(request, request.namespace or namespace),
        records_steps=request.shows_all or any(output.format in COMPLETE_FORMATS for output in run.outputs),
    )
    name = parse_pod_name(request, namespace)
    about = [name.namespace] if name is not None else [each.namespace for each in request.templates]
    live = reading_in(live, about)
    workload = None if isinstance(name, PodName) else name
    # Out-of-tree plugins and extenders may look at anything, ``--set`` may add any field to a pod, and pods that
    # replace the victims may have any volumes.
    may_need_all = request.settings or request.aftermath or request.scheduler_config or any(request.extensions)
    loaded = run.load(
        live,
        Needs(
            extra_fields=factory.extra_fields,
            keep_document=workload.may_be if workload is not None else _is_policy if request.files else None,
            compare_kinds=[workload.kind] if workload is not None and workload.kind == "CronJob" else [],
            # They say why pods were not created or are still pending, and order those that are pending.
            with_events=bool(request.pod),
        ),
        skip_kinds=() if may_need_all or factory.extra_fields != NO_EXTRAS else kinds_not_needed(request.templates),
    )
    context = run.context(loaded, factory, now, live)
    if request.aftermath:
        _check_queue(context.configured.scheduler.algorithm)
    record, cluster = answer(context, request)
    verdicts = record.items if isinstance(record, VerdictList) else [record]
    occupancy = None
    if any(output.format == "html" for output in run.outputs):
        # The headroom section shows how full the nodes are.
        from kpreempt.analysis.explain.pods import occupancy_of

        with run.stopwatch.phase("report"):
            occupancy = occupancy_of(cluster, verdicts)
    run.write_once(record, context.ages, occupancy)
    assumptions = {assumption for verdict in verdicts for assumption in verdict.assumptions}
    code = run.exit_code_by_outcome(assumptions, map(_outcome_code, verdicts))
    # A rejected manifest fails, whatever happens to the other pods.
    is_rejected = any(each.outcome is Outcome.REJECTED and each.workload is None for each in verdicts)
    return EXIT_GATE if is_rejected else code


def _is_policy(kind: str, _: object) -> bool:
    return kind in POLICIES


def _check_queue(algorithm: str) -> None:
    """Raise ``UsageError`` if ``--aftermath`` cannot be simulated because the scheduler's queue is not modeled."""
    if algorithm in ALGORITHMS and algorithm not in QUEUE_ALGORITHMS:
        known = ", ".join(QUEUE_ALGORITHMS)
        raise UsageError(f"--aftermath needs a scheduler whose queue is modeled; {algorithm}'s is not", hint=known)


def _templates(request: ExplainRequest, namespace: str) -> list[PodTemplate]:
    """Return the pods of the manifests or of --cpu and --memory; empty if the pod is given by name.

    Pods without a namespace get ``namespace``. ``-n`` overrides the namespace of all of them.
    """
    if request.pod:
        return []
    if not request.files:
        return picked([in_namespace(pod_of_amounts(request), namespace)], (), request.namespace)
    subjects = read_subjects(request.files, namespace, request.input_limits, keeps_rejected=True)
    if not request.select:
        warn_of_ignored(subjects.notes, verbose=request.verbose > 0)
    return picked(subjects.templates, request.select, request.namespace)


def _outcome_code(verdict: Verdict) -> int:
    """Return the exit code of the worst outcome; an uncertain one counts if another order of volumes could cause it.

    Considers all requested pods and every choice the scheduler could make between equal candidates.
    """
    if verdict.workload is not None:
        codes = [_totals_code(each) for each in (verdict.workload.totals, *verdict.workload.others)]
        if any(each.missing for each in verdict.workload.missing_pods):
            codes.append(_EXIT_CODES[Outcome.NOT_SCHEDULED])
        return max(codes)
    choices = verdict.volume_choices
    if choices is not None and (
        not choices.complete or any(each.outcome != verdict.outcome for each in choices.outcomes)
    ):
        return _EXIT_CODES[Outcome.UNCERTAIN]
    return _EXIT_CODES[verdict.worst_outcome]


def _totals_code(totals: Totals) -> int:
    """Return the exit code of the worst outcome among the replicas."""
    worst = (
        (totals.uncertain, Outcome.UNCERTAIN),
        (totals.pending or totals.rejected or totals.not_created, Outcome.UNSCHEDULABLE),
        (totals.violations, Outcome.PREEMPTS_VIOLATING_BUDGETS),
        (totals.preempts, Outcome.PREEMPTS),
    )
    return _EXIT_CODES[next((outcome for number, outcome in worst if number), Outcome.LANDS)]
