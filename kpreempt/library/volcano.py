"""Volcano's answers: a full session of its scheduler, and what happens to jobs that are submitted to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from kpreempt.analysis.algorithms import api_server_of
from kpreempt.analysis.pod_inputs import input_in_cluster, inputs_of, named_pod
from kpreempt.analysis.volcano.jobs import MAX_PODS
from kpreempt.analysis.volcano.remedies import Problem, find_remedies, is_bound
from kpreempt.analysis.volcano.sessions import Submission, Volcano, VolcanoManifest, answer_session, submit
from kpreempt.analysis.volcano.sessions import explain_submission as explain
from kpreempt.analysis.what_if import Overrides
from kpreempt.analysis.workload_pods import PodTemplate
from kpreempt.errors import InputError
from kpreempt.library.schedulers import Answered, Context
from kpreempt.library.time_limits import SECONDS_OF_SEARCH, time_limit
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.schedulers.volcano import run_session
from kpreempt.snapshot.decode import decode_object
from kpreempt.verdict.unread import require
from kpreempt.verdict.volcano import GangAnswer, GangAnswers

if TYPE_CHECKING:
    from kpreempt.library.requests import ExplainJobs, VolcanoScenario, VolcanoSession


def session(context: Context, request: VolcanoSession) -> Answered:
    """Run a full session. Raises ``InputError`` if the input has no nodes."""
    loaded = context.loaded
    require(loaded.cluster, "Node", "session")
    with context.phases.phase("session"):
        found = answer_session(loaded.cluster, request.volcano, loaded.assumptions)
    return Answered(found, loaded.cluster)


def scenario(context: Context, request: VolcanoScenario) -> Answered:
    """Run a session on exactly these objects."""
    cluster = context.loaded.cluster
    if request.admitted is not None:
        cluster = msgspec.structs.replace(cluster, pods=[*cluster.pods, request.admitted])
    with context.phases.phase("session"):
        found = run_session(cluster, request.configuration, now=context.now)
    assumptions = [*found.assumptions, *context.loaded.assumptions]
    return Answered(msgspec.structs.replace(found, assumptions=assumptions), cluster)


def explain_jobs(context: Context, request: ExplainJobs) -> Answered:
    """Explain what happens to each submitted job. Raises ``InputError``, also if the input has no nodes."""
    require(context.loaded.cluster, "Node")
    with context.phases.phase("admission"):
        submission = _submission(context, request)
    with context.phases.phase("session"):
        answers = explain(submission, request.volcano, decode_object, context.loaded.assumptions)
        # Remedies are only searched for a single job, because several compete for the same resources.
        if len(answers) == 1 and not is_bound(answers[0]):
            answers = [_with_remedies(answers[0], context, request)]
    return Answered(answers[0] if len(answers) == 1 else GangAnswers(items=answers), submission.cluster)


def _with_remedies(answer: GangAnswer, context: Context, request: ExplainJobs) -> GangAnswer:
    def submit_again(cluster: ClusterSnapshot, manifest: VolcanoManifest, volcano: Volcano) -> GangAnswer:
        loaded = msgspec.structs.replace(context.loaded, cluster=cluster)
        changed = request.having(manifest=manifest, volcano=volcano)
        return explain(_submission(context._replace(loaded=loaded), changed), volcano, decode_object)[0]

    quiet = msgspec.structs.replace(request.volcano, with_scores=False)
    problem = Problem(
        before=answer,
        cluster=context.loaded.cluster,
        manifest=request.manifest,
        volcano=quiet,
        submit=submit_again,
        has_time=time_limit(SECONDS_OF_SEARCH),
    )
    remedies, search = find_remedies(problem)
    return msgspec.structs.replace(answer, remedies=remedies, search=search)


def _submission(context: Context, request: ExplainJobs) -> Submission:
    cluster, manifest, now = context.loaded.cluster, request.manifest, request.volcano.now
    if request.pod:
        requested = input_in_cluster(
            named_pod(cluster, request.pod, request.namespace, context.namespace), Overrides(), decode_object
        )
        pods = [(explain_input.pod, "") for explain_input in requested.inputs]
        return submit(requested.cluster, now=now, decode=decode_object, pods=pods)
    if sum(template.replicas for template in manifest.templates) > MAX_PODS:
        raise InputError(f"more than {MAX_PODS} pods", source=manifest.source)
    # Replace the cluster's queues of the same names.
    names = {queue.metadata.name for queue in manifest.queues}
    other_queues = [queue for queue in cluster.queues if queue.metadata.name not in names]
    cluster = msgspec.structs.replace(cluster, queues=[*other_queues, *manifest.queues])
    replicas = [copy for template in manifest.templates for copy in _replicas(template)]
    requested = inputs_of(cluster, replicas, Overrides(), decode_object, api_server_of(cluster))
    pods = [(explain_input.pod, explain_input.origin) for explain_input in requested.inputs]
    assumptions = [assumption for explain_input in requested.inputs for assumption in explain_input.assumptions]
    submission = submit(
        requested.cluster, now=now, decode=decode_object, jobs=manifest.jobs, groups=manifest.groups, pods=pods
    )
    return msgspec.structs.replace(submission, assumptions=[*submission.assumptions, *assumptions])


def _replicas(template: PodTemplate) -> list[PodTemplate]:
    """Number the template once for each pod that its object creates."""
    if template.replicas <= 1:
        return [template]
    metadata = template.document["metadata"]
    # A StatefulSet's first pod is already numbered.
    name = metadata["name"].removesuffix("-0")
    return [
        msgspec.structs.replace(
            template, document={**template.document, "metadata": {**metadata, "name": f"{name}-{index}"}}
        )
        for index in range(template.replicas)
    ]
