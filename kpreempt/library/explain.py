"""Where pods land: which pods a request selects, and the verdict on each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from kpreempt.admission.records import PodRejectedError, UnknownClassError, UnreadClassError
from kpreempt.analysis.algorithms import api_server_rules
from kpreempt.analysis.explain.pods import ExplainInput, explain_pod, explain_pods
from kpreempt.analysis.explain.rejections import in_its_namespace, is_policy, rejected_verdict, rejection_of_manifest
from kpreempt.analysis.pod_inputs import ExplainInputs, input_in_cluster, inputs_of, pod_in_cluster
from kpreempt.analysis.what_if import Assignment, Overrides, split_assignment
from kpreempt.analysis.workload_pods import PodTemplate, kind_of
from kpreempt.library.requests import Decide, Explain, WhoEvicted
from kpreempt.library.schedulers import Answered, Context
from kpreempt.model.cluster import cannot_simulate, is_partial, lacks_all_nodes
from kpreempt.model.meta import ObjectName, slashed
from kpreempt.report.document import document_of
from kpreempt.schedulers.kube.versions import minor_of_server, minor_version_of
from kpreempt.snapshot.decode import object_decoder
from kpreempt.snapshot.documents import parse_yaml_value
from kpreempt.snapshot.manifest import line_of_field
from kpreempt.verdict import Assumption, AssumptionKind, Outcome, Verdict
from kpreempt.verdict.unread import require

if TYPE_CHECKING:
    from kpreempt.analysis.algorithms import AnalysisContext
    from kpreempt.analysis.explain.pods import SimulateRest
    from kpreempt.analysis.workload.in_cluster import WorkloadInput


_Named = TypeVar("_Named", Explain, WhoEvicted)


class PodName(NamedTuple):
    """The name of a pod in the cluster."""

    namespace: str
    name: str


def parse_target(first: str, second: str, namespace: str) -> PodName | ObjectName:
    """Parse ``NAME``, ``KIND/NAME``, ``NS/NAME`` or ``KIND NAME``; ``namespace`` applies if it has none.

    Raises ``UsageError`` for a kind without pods.
    """
    text = slashed(first, second)
    kind, slash, name = text.rpartition("/")
    if not slash or kind_of(kind) == "Pod":
        return PodName(namespace, text)
    if not kind_of(kind):
        return PodName(kind, name)
    from kpreempt.analysis.workload.in_cluster import workload_name

    return workload_name(kind_of(kind), namespace, name)


def parse_pod_name(request: Explain | WhoEvicted, namespace: str) -> PodName | ObjectName | None:
    """Return what a request names in the cluster, if anything; ``namespace`` applies if it has none."""
    own = namespace if request.namespace is None else request.namespace
    return parse_target(request.pod, request.name or "", own) if request.pod else None


def located(context: Context, request: _Named) -> _Named:
    """Return the request with the namespace of the pod or workload that it names; empty if that does not exist.

    Raises ``UsageError`` for a kind without pods and two namespaces, and ``NotFoundError`` if several could be meant.
    """
    if not request.pod:
        return request
    from kpreempt.analysis.targets import namespace_of

    text = slashed(request.pod, request.name)
    loaded = context.loaded
    found = namespace_of(loaded.cluster, loaded.documents, text, request.namespace, context.namespace)
    return request.having(namespace=found)


def overrides_of(request: Explain) -> Overrides:
    """Return the changes that a request makes to each pod. Raises ``UsageError``."""
    settings = [split_assignment(text) for text in request.settings]
    return Overrides(
        priority=request.priority,
        priority_class=request.priority_class,
        preemption_policy=request.preemption_policy,
        assignments=tuple(Assignment(path, parse_yaml_value(value)) for path, value in settings),
    )


def explain(context: Context, request: Explain) -> Answered:
    """Explain each requested pod. Raises ``KpreemptError`` for an invalid request."""
    cluster, scheduler = context.loaded.cluster, context.configured.scheduler
    request = located(context, request)
    with context.phases.phase("admission"):
        accepted, rejected, unevaluated = _sorted_out(context, request)
        if rejected and not accepted:
            return Answered(document_of([*rejected.values()]), cluster)
        try:
            situation, workloads = _situation(context, request.having(templates=accepted) if rejected else request)
        except (PodRejectedError, UnknownClassError) as error:
            if (verdict := _rejected_workload(context, request, error.reason)) is not None:
                return Answered(document_of([verdict]), cluster)
            of_pods = _rejected_pods(context, request)
            if not of_pods:
                raise
            rejected |= of_pods
            accepted = [each for index, each in enumerate(request.templates) if index not in rejected]
            if not accepted:
                return Answered(document_of([*rejected.values()]), cluster)
            situation, workloads = _situation(context, request.having(templates=accepted))
    analysis = context.of(situation.cluster)
    analysis = analysis._replace(assumptions=[*analysis.assumptions, *unevaluated])
    if lacks_all_nodes(cluster):
        verdicts = _without_nodes(context, request, situation, workloads, analysis)
        for index, verdict in rejected.items():
            verdicts.insert(index, verdict)
        return Answered(document_of(verdicts), situation.cluster)
    simulate_rest: SimulateRest | None = None
    if request.capacity or any(workloads):
        from kpreempt.analysis.workload.answer import going_on

        simulate_rest = going_on(
            situation,
            workloads,
            scheduler,
            with_capacity=request.capacity,
            now=analysis.time,
            phases=context.phases,
        )
    verdicts = explain_pods(
        analysis,
        situation.inputs,
        node_name=(request.node or "").removeprefix("node/"),
        proposes=True,
        simulates_on=request.aftermath,
        records_steps=request.records_steps,
        simulate_rest=simulate_rest,
        whole=cluster,
    )
    if isinstance(parse_pod_name(request, context.namespace), PodName):
        if not overrides_of(request):
            verdicts = _with_reasons(context, analysis, situation, verdicts)
        # Without all nodes, what becomes of the queue is unknown.
        if not request.node and not is_partial(cluster):
            verdicts = _with_turns(context, situation, verdicts)
    elif any(workloads):
        from kpreempt.analysis.pending.existing import with_past_preemptions

        whole = context.of(cluster)
        verdicts = [with_past_preemptions(verdict, whole) for verdict in verdicts]
    elif any(each.found is None and each.pod.spec.node_name for each in situation.inputs):
        verdicts = _with_blocked_starts(analysis, situation, verdicts)
    if any(each.outcome.stays_pending or each.workload or each.in_turn for each in verdicts):
        from kpreempt.library.autoscaling import with_reports

        verdicts = with_reports(context, situation.cluster, verdicts, situation.inputs, workloads)
    for index, verdict in rejected.items():
        verdicts.insert(index, verdict)
    return Answered(document_of(verdicts), situation.cluster)


def _without_nodes(
    context: Context,
    request: Explain,
    situation: ExplainInputs,
    workloads: Sequence[WorkloadInput | None],
    analysis: AnalysisContext,
) -> list[Verdict]:
    """Return what is known about each pod, or workload, without nodes. Raises ``InputError`` if they are needed."""
    from kpreempt.analysis.explain.known import with_known_facts

    if request.node or request.aftermath or request.capacity:
        require(situation.cluster, "Node")
    whole = context.of(context.loaded.cluster)
    verdicts = [
        with_known_facts(verdict, each, workload, whole)
        for verdict, each, workload in zip(
            explain_pods(analysis, situation.inputs, records_steps=False),
            situation.inputs,
            workloads or [None] * len(situation.inputs),
            strict=True,
        )
    ]
    if isinstance(parse_pod_name(request, context.namespace), PodName):
        verdicts = _with_reasons(context, whole, situation, verdicts)
    if any(each.known is not None and each.known.message for each in verdicts):
        from kpreempt.library.autoscaling import with_reports

        return with_reports(context, context.loaded.cluster, verdicts, situation.inputs, workloads)
    return verdicts


def _with_reasons(
    context: Context, analysis: AnalysisContext, situation: ExplainInputs, verdicts: Sequence[Verdict]
) -> list[Verdict]:
    """Add why the existing pods are still pending."""
    from kpreempt.analysis.pending.existing import with_reasons
    from kpreempt.analysis.pending.states import max_backoff_of

    max_backoff = max_backoff_of(context.configured.configuration)
    return [
        with_reasons(verdict, each.found, analysis, max_backoff) if each.found is not None else verdict
        for each, verdict in zip(situation.inputs, verdicts, strict=False)
    ]


def _with_blocked_starts(
    analysis: AnalysisContext, situation: ExplainInputs, verdicts: Sequence[Verdict]
) -> list[Verdict]:
    """Add what keeps new pods from starting on the nodes that their manifests name."""
    from kpreempt.analysis.pending.existing import with_blocked_start

    return [
        with_blocked_start(verdict, each.pod, analysis) if each.pod.spec.node_name else verdict
        for each, verdict in zip(situation.inputs, verdicts, strict=False)
    ]


def _with_turns(context: Context, situation: ExplainInputs, verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Add what becomes of the existing pending pods when the whole queue is served."""
    from kpreempt.analysis.explain.pods import is_waiting, with_pod

    found = []
    for each, verdict in zip(situation.inputs, verdicts, strict=False):
        if not is_waiting(each):
            found.append(verdict)
            continue
        from kpreempt.analysis.queue.serving import turn_of
        from kpreempt.library.draws import DRAWS

        whole = context.of(with_pod(context.loaded.cluster, each))
        with context.phases.phase("queue"):
            turn, assumptions = turn_of(whole, each.pod, verdict, DRAWS)
        both = list(dict.fromkeys([*verdict.assumptions, *assumptions]))
        found.append(msgspec.structs.replace(verdict, in_turn=turn, assumptions=both))
    return found


def _sorted_out(
    context: Context, request: Explain
) -> tuple[Sequence[PodTemplate], dict[int, Verdict], Sequence[Assumption]]:
    """Return the templates whose objects the API server accepts, and the verdicts on the others by index.

    The assumptions are about policies that may reject the accepted ones.
    """
    minor = minor_of_server(context.loaded.cluster.version)
    assumed = minor_version_of(context.configured.scheduler.algorithm)
    denied, unevaluated = _denials(context, request.templates, minor)
    reasons = [
        rejection_of_manifest(each, minor, assumed, line_of_field) or denied.get(index, "")
        for index, each in enumerate(request.templates)
    ]
    rejected = {
        index: _rejected_verdict(context, request.templates[index], reason)
        for index, reason in enumerate(reasons)
        if reason
    }
    accepted = [each for index, each in enumerate(request.templates) if index not in rejected]
    return accepted, rejected, unevaluated


def _denials(
    context: Context, templates: Sequence[PodTemplate], minor: int | None
) -> tuple[dict[int, str], list[Assumption]]:
    """Return why ValidatingAdmissionPolicies in the input reject the objects or pods of templates, by index.

    The assumptions are about policies that cannot be evaluated.
    """
    documents = [each for each in context.loaded.documents if is_policy(each)]
    if not documents:
        return {}, []
    from kpreempt.admission.defaults import with_defaults
    from kpreempt.admission.schema import decoded
    from kpreempt.analysis.check.rollout.cluster_documents import LiveDocuments
    from kpreempt.analysis.check.rollout.policies import ChangePolicies

    cluster, live = context.loaded.cluster, LiveDocuments(documents)
    policies = ChangePolicies(cluster, live, (), lambda document: decoded(document, minor)[0])
    found: dict[int, str] = {}
    for index, template in enumerate(templates):
        if template.manifest is None or template.rejection:
            continue
        document = with_defaults(decoded(in_its_namespace(template.manifest, template.namespace), minor)[0])
        denials = [each.message for each in policies.problems(document, None)]
        denials = denials or policies.denials_of_pod(template, template.origin or f"Pod {template.name}")
        if denials:
            position = f"{template.source}:{template.line}: " if template.line else ""
            found[index] = f"{position}{denials[0]}"
    open_ones = [msgspec.structs.replace(each, kind=AssumptionKind.INFORMATIONAL) for each in policies.assumptions()]
    return found, open_ones


def _rejected_pods(context: Context, request: Explain) -> dict[int, Verdict]:
    """Return the verdicts on the manifests whose pods the API server rejects, by index."""
    found: dict[int, Verdict] = {}
    for index, template in enumerate(request.templates):
        if template.manifest is None:
            continue
        try:
            _situation(context, request.having(templates=[template]))
        except (PodRejectedError, UnknownClassError) as error:
            if not (isinstance(error, UnknownClassError) and request.priority_class):
                position = f"{template.source}:{template.line}: " if template.line else ""
                found[index] = _rejected_verdict(context, template, f"{position}{error.reason}")
    return found


def _rejected_workload(context: Context, request: Explain, reason: str) -> Verdict | None:
    """Return the verdict on a workload in the cluster whose pods are rejected as they are; otherwise ``None``."""
    name = parse_pod_name(request, context.namespace)
    if name is None or isinstance(name, PodName) or overrides_of(request):
        return None
    from kpreempt.analysis.workload.answer import rejected_workload

    return rejected_workload(context.of(context.loaded.cluster), name, reason, request.replicas)


def _rejected_verdict(context: Context, template: PodTemplate, reason: str) -> Verdict:
    return rejected_verdict(template, reason, context.of(context.loaded.cluster))


def decide(context: Context, request: Decide) -> Answered:
    """Return the verdict on a single pod that is already admitted."""
    cluster = context.loaded.cluster
    verdict = explain_pod(
        cluster,
        ExplainInput(pod=request.admitted),
        context.configured.scheduler,
        request.prepared,
        now=context.now,
        assumptions=context.assumptions,
        phases=context.phases,
    )
    if cannot_simulate(cluster) and verdict.outcome is Outcome.UNCERTAIN:
        # The message is about nodes that are not known.
        verdict = msgspec.structs.replace(verdict, message="")
    return Answered(verdict, cluster)


def _situation(context: Context, request: Explain) -> tuple[ExplainInputs, Sequence[WorkloadInput | None]]:
    """Build the pods as the API server would store them, in the requested cluster."""
    try:
        return _admitted(context, request)
    except UnreadClassError:
        if not lacks_all_nodes(context.loaded.cluster):
            raise
        # Without nodes, nothing that is reported depends on the priority.
        return _admitted(context, request.having(settings=[*request.settings, "spec.priority=0"]))


def _admitted(context: Context, request: Explain) -> tuple[ExplainInputs, Sequence[WorkloadInput | None]]:
    cluster, scheduler = context.loaded.cluster, context.configured.scheduler
    overrides = msgspec.structs.replace(overrides_of(request), any_annotation=scheduler.extra_fields.pod_annotations)
    decode, rules = object_decoder(scheduler.extra_fields), api_server_rules(scheduler.settings)
    name = parse_pod_name(request, context.namespace)
    if isinstance(name, PodName):
        found = pod_in_cluster(cluster, name.name, name.namespace)
        situation = input_in_cluster(found, overrides, decode)
        if request.replicas is None and not request.capacity:
            return situation, []
        from kpreempt.analysis.workload.in_cluster import more_of

        return more_of(found, cluster, situation, request.replicas)
    if name is not None:
        from kpreempt.analysis.workload.in_cluster import inputs_in_cluster

        documents = context.loaded.documents
        return inputs_in_cluster(cluster, name, documents, overrides, decode, rules, request.replicas)
    # A node report is about one pod.
    has_replicas = any(each.replicas > 1 or each.kind == "DaemonSet" for each in request.templates)
    if request.replicas is not None or (has_replicas and not request.node):
        from kpreempt.analysis.workload.in_cluster import workload_inputs

        return workload_inputs(cluster, request.templates, overrides, decode, rules, request.replicas)
    return inputs_of(cluster, request.templates, overrides, decode, rules), []
