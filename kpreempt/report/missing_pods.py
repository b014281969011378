"""Workloads with fewer pods than they want, in words: which step fails, what helps, and what controllers wait for."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import datetime

from kpreempt.model.creation_failures import parse_failure
from kpreempt.model.event import CreationStep
from kpreempt.report.amounts import ago, agree, count, format_duration
from kpreempt.report.blocks import Block, Code, Listing, Phrase, Section, Sentence, Span, Words, strong
from kpreempt.report.evidence import join_names
from kpreempt.report.quoting import shortened
from kpreempt.verdict.workload import AwaitedPod, FailedCreation, MissingPods, MissingReason

_WORKLOADS_SHOWN = 8
_KINDS_SHOWN = 3
_LONGEST_REASON = 160
_DETAILS_LINES = 8
# The API server cuts the messages of events at 1,024 characters.
_LONGEST_MESSAGE = 2_000
# How far apart the tries of controllers are at most: 1000 s (client-go's rate limiter), and for Jobs a minute.
_LONGEST_RETRY = "17 minutes"
_LONGEST_JOB_RETRY = "a minute"
_STEPS = {
    CreationStep.SERVICE_ACCOUNT: "ServiceAccount admission",
    CreationStep.POD_SECURITY: "Pod Security admission",
    CreationStep.SECURITY_CONTEXT: "security context admission",
    CreationStep.QUOTA: "ResourceQuota admission",
    CreationStep.LIMIT_RANGE: "LimitRanger admission",
    CreationStep.PRIORITY_CLASS: "Priority admission",
    CreationStep.RUNTIME_CLASS: "RuntimeClass admission",
    CreationStep.WEBHOOK: "an admission webhook",
    CreationStep.WEBHOOK_CALL: "the call of an admission webhook",
    CreationStep.POLICY: "a ValidatingAdmissionPolicy",
    CreationStep.NAMESPACE: "the namespace",
    CreationStep.VALIDATION: "validation",
    CreationStep.AUTHORIZATION: "authorization",
}


def summarize(items: Sequence[MissingPods]) -> str:
    """Sentences on the workloads that have not created their pods; empty if there are none."""
    by_reason: dict[MissingReason, list[MissingPods]] = {}
    for each in items:
        if each.desired:
            by_reason.setdefault(each.reason, []).append(each)
    sentences = [_sentence(reason, by_reason.get(reason, [])) for reason in MissingReason]
    if unknown := [each.controller for each in items if not each.desired]:
        subject = unknown[0] if len(unknown) == 1 else f"{len(unknown):,} controllers"
        those = "it is" if len(unknown) == 1 else "they are"
        sentences.append(
            f"Events report that {subject} could not create pods; whether pods are missing is unknown, because {those}"
            " not in the input."
        )
    return " ".join(filter(None, sentences))


def _sentence(reason: MissingReason, items: Sequence[MissingPods]) -> str:
    if not items or reason not in _CLAUSES:
        return ""
    missing = sum(each.missing for each in items)
    workloads = len({each.workload for each in items})
    kinds = {each.workload.partition(" ")[0] for each in items}
    kind = kinds.pop() if len(kinds) == 1 else "workload"
    subject = items[0].workload if workloads == 1 else count(workloads, kind)
    controllers = "its controller" if workloads == 1 else "their controllers"
    lacks = f"{subject} {agree(workloads, 'lacks')} {count(missing, 'pod')}"
    return f"{lacks} {_CLAUSES[reason].replace('CONTROLLERS', controllers)}."


# What follows the number of missing pods.
_CLAUSES = {
    MissingReason.FAILED_CREATE: "that CONTROLLERS could not create",
    MissingReason.NAMESPACE_TERMINATING: "because the namespace is being deleted",
    MissingReason.SUSPENDED: "while suspended",
    MissingReason.PAUSED: "because of a paused rollout",
    MissingReason.WAITS_FOR_POD: "to be created once an earlier pod is ready",
    MissingReason.BACKING_OFF: "whose creation is delayed after failures",
    MissingReason.NOT_OBSERVED: "because CONTROLLERS did not process the latest change",
}


def missing_section(items: Sequence[MissingPods], unread: Sequence[str], at: datetime | None, priority: int) -> Section:
    """``NOT CREATED``: each workload that lacks pods, and why; or the kinds without which that is unknown."""
    lines: list[list[Words]] = [[in_a_line(each, at)] for each in items]
    unknown = ""
    if unread and not items:
        kinds = join_names([f"{kind}s" for kind in unread], limit=_KINDS_SHOWN)
        unknown = f"unknown for {kinds}, which are not in the input"
    return Section(
        "NOT CREATED",
        Span(unknown, "dim") if unknown else "",
        [Listing(lines, noun="workload", shown=_WORKLOADS_SHOWN)],
        heading="Pods that were not created",
        priority=priority if lines else priority // 2,
        is_inline=True,
    )


def in_a_line(item: MissingPods, at: datetime | None) -> Phrase:
    """A workload with the number of its missing pods, and why they are missing."""
    kind, _, name = item.workload.partition(" ")
    lacks = f" ({kind}) lacks {item.missing:,} of {item.desired:,}: " if item.desired else f" ({kind}): "
    return (strong(name), lacks, *_why(item, at))


def _why(item: MissingPods, at: datetime | None) -> Phrase:
    """Why its controller has not created the pods, in a clause."""
    match item.reason:
        case MissingReason.FAILED_CREATE if item.failure is not None:
            return (Span(_reason_of(item.failure), "bad"), _attempts(item.failure, at))
        case MissingReason.FAILED_CREATE:
            return (Span("the controller could not create them", "bad"),)
        case MissingReason.NAMESPACE_TERMINATING:
            return ("its namespace is being deleted",)
        case MissingReason.SUSPENDED:
            by = f"; {item.manager} resumes it" if item.manager else ""
            return (f"suspended (spec.suspend){by}",)
        case MissingReason.PAUSED:
            return ("its rollout is paused (spec.paused)",)
        case MissingReason.WAITS_FOR_POD if item.waits_for is not None:
            return ("waits for ", strong(item.waits_for.pod), f", which {_state_of(item.waits_for)}")
        case MissingReason.BACKING_OFF:
            return (f"{_failures(item)}; {_next_pod(item)}",)
        case MissingReason.NOT_OBSERVED:
            return ("its controller has not processed the latest change",)
    return (item.message or str(item.reason),)


def _reason_of(failure: FailedCreation) -> str:
    """Why the API server rejects the object, in its words, without the name of the object."""
    brief = parse_failure(failure.message).brief
    if failure.step is CreationStep.SERVICE_ACCOUNT and failure.object:
        brief = brief[brief.find("serviceaccount ") :]
    return shortened(" ".join(brief.split()), _LONGEST_REASON) or "the reason is not in the input"


def _attempts(failure: FailedCreation, at: datetime | None) -> str:
    """How often it failed, and when last."""
    last = failure.last_attempt
    when = ago(last, at).strip()
    if failure.attempts:
        return f" ({count(failure.attempts, 'failed attempt')}{f', the last {when}' if when else ''})"
    return f" (first reported {ago(failure.since, at).strip()})" if failure.since is not None else ""


def _state_of(pod: AwaitedPod) -> str:
    if pod.terminating:
        return "is terminating"
    if pod.phase in ("Succeeded", "Failed"):
        return f"has {'succeeded' if pod.phase == 'Succeeded' else 'failed'}, and is replaced first"
    return f"is on {pod.node} but not ready" if pod.node else "has no node yet"


def _failures(item: MissingPods) -> str:
    return f"{count(item.failed, 'pod')} {agree(item.failed, 'has')} failed"


def _next_pod(item: MissingPods) -> str:
    return f"the next pod is created at most {format_duration(item.longest_delay_seconds)} after the last failure"


def lead_of(item: MissingPods, at: datetime | None) -> Phrase:
    """The first sentence about one workload, which says why it lacks pods."""
    name, kind = item.workload.partition(" ")[2], item.workload.partition(" ")[0]
    how_many = "all" if item.missing == item.desired else f"{item.missing:,} of"
    lacks = f" lacks {how_many} {count(item.desired, 'pod')}"
    if item.missing == item.desired == 1:
        lacks = " lacks its only pod"
    subject: Phrase = (strong(name),)
    controller = item.controller if item.controller != item.workload else f"the {kind} controller"
    match item.reason:
        case MissingReason.FAILED_CREATE if item.failure is not None:
            failure = item.failure
            what = "a claim" if failure.claim else "them"
            if item.controller == item.workload and kind == "Deployment":
                what = "the ReplicaSet"
            reason = Span(_reason_of(failure), "bad")
            return (
                *subject,
                lacks,
                f": {_short(controller)} cannot create {what}: ",
                reason,
                _attempts(failure, at),
                ".",
            )
        case MissingReason.SUSPENDED:
            by = f" {item.manager} resumes it." if item.manager else ""
            return (*subject, Span(" is suspended", "warn"), f" (spec.suspend) and creates no pods.{by}")
        case MissingReason.PAUSED:
            words = " is paused (spec.paused): changes of its template create no pods."
            return ("The rollout of ", *subject, Span(words, "warn"))
        case MissingReason.FAILED:
            return (*subject, Span(" has failed", "bad"), f" and creates no more pods: {item.message.rstrip('.')}.")
        case MissingReason.COMPLETE:
            return (*subject, " is complete and creates no more pods.")
        case MissingReason.WAITS_FOR_POD if item.waits_for is not None:
            blocking = item.waits_for
            return (
                *subject,
                f"{lacks}, which are created one by one once ",
                strong(blocking.pod),
                " is ready; it ",
                Span(_state_of(blocking), "warn"),
                ".",
            )
        case MissingReason.BACKING_OFF:
            return (*subject, lacks, ": ", Span(_failures(item), "warn"), f", and {_next_pod(item)}.")
    return (*subject, lacks, ": ", *_why(item, at), ".")


def _short(controller: str) -> str:
    """``ReplicaSet web-7f9c``, without the namespace."""
    kind, _, name = controller.partition(" ")
    return f"{kind} {name.rpartition('/')[2]}" if "/" in name else controller


def details_section(items: Sequence[MissingPods], priority: int) -> Section:
    """``NOT CREATED``: the API server's messages, verbatim, the step that fails, and what helps for certain."""
    blocks: list[Block] = []
    for item in items:
        failure = item.failure
        if failure is not None:
            blocks.append(Sentence(_step(item, failure)))
            blocks += [Code(shortened(failure.message, _LONGEST_MESSAGE))] if failure.message else []
        text, command = _help(item)
        blocks.append(Sentence(text))
        blocks += [Code(command, is_command=True)] if command else []
    is_resumed = all(each.reason in (MissingReason.SUSPENDED, MissingReason.PAUSED) for each in items)
    return Section(
        "RESUME" if is_resumed else "NOT CREATED",
        blocks=blocks,
        heading="Why pods were not created",
        is_inline=True,
        priority=priority,
        min_lines=_DETAILS_LINES,
    )


def _step(item: MissingPods, failure: FailedCreation) -> str:
    step = _STEPS.get(failure.step, "")
    what = f"claim {failure.claim}" if failure.claim else f"pod {failure.pod}" if failure.pod else ""
    about = f" for {what}" if what else ""
    return f"{item.controller}{about}: rejected by {step}:" if step else f"{item.controller}{about}:"


def _help(item: MissingPods) -> tuple[str, str]:
    """What helps for certain, with the command if there is one."""
    namespace, _, name = item.workload.partition(" ")[2].rpartition("/")
    options = f" -n {shlex.quote(namespace)}" if namespace else ""
    match item.reason:
        case MissingReason.SUSPENDED if not item.manager:
            patch = shlex.quote('{"spec":{"suspend":false}}')
            kind = "cj" if item.workload.startswith("CronJob ") else "job"
            return "", f"kubectl patch {kind} {shlex.quote(name)}{options} -p {patch}"
        case MissingReason.PAUSED:
            return "", f"kubectl rollout resume deployment {shlex.quote(name)}{options}"
        case MissingReason.NOT_OBSERVED:
            return "check that kube-controller-manager is running", ""
    failure = item.failure
    if failure is None:
        return "", ""
    longest = _LONGEST_JOB_RETRY if item.controller.startswith("Job ") else _LONGEST_RETRY
    retry = f"the controller then tries again within {longest}"
    target = failure.object.partition(" ")[2].rpartition("/")[2]
    if failure.step is CreationStep.SERVICE_ACCOUNT and target:
        return f"create the ServiceAccount; {retry}:", f"kubectl create serviceaccount {shlex.quote(target)}{options}"
    if failure.step in (CreationStep.PRIORITY_CLASS, CreationStep.RUNTIME_CLASS) and target:
        return f"create {failure.object}, or name another one in the template; {retry}", ""
    if failure.step is CreationStep.POD_SECURITY:
        return "change the template as the message says, or the level that the namespace enforces", ""
    if failure.step is CreationStep.WEBHOOK_CALL:
        return f"the API server must reach the webhook; {retry}", ""
    return "", ""
