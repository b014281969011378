"""The state of controllers, read from workloads as plain data, and the prototypes of the pods they create.

Also the run times of pods of a change that end: those of Jobs and hooks. A Job does not specify how long it runs. Its
deadline is an upper bound, and is assumed for all rounds of its pods together; without a deadline, pods run for the
time set by the option, or for a guessed time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from kpreempt.admission import PodRejectedError, admit, admit_claim
from kpreempt.admission.plugin_state import PluginState
from kpreempt.admission.pod_plugins import assumptions_of_pod, rejection_of_pod
from kpreempt.admission.priority import known_classes
from kpreempt.analysis.algorithms import api_server_rules, controller_rules
from kpreempt.analysis.check.rollout.records import Plan
from kpreempt.analysis.document_reader import Document, DocumentReader
from kpreempt.analysis.pod_inputs import Decode
from kpreempt.analysis.simulation.client import RunTime
from kpreempt.analysis.simulation.cluster import OwnerKey
from kpreempt.analysis.simulation.controllers import Maker
from kpreempt.analysis.workload_pods import PodTemplate, pods_of, stateful_claims
from kpreempt.controllers.actions import ControllerRules
from kpreempt.controllers.deployment import DeploymentState
from kpreempt.controllers.job import FailureRule, JobState
from kpreempt.controllers.replacement import replacement_of
from kpreempt.errors import NotFoundError
from kpreempt.model.cluster import ClusterSnapshot, KindState, cannot_simulate, state_of
from kpreempt.model.meta import Time, replace_in
from kpreempt.model.pod import Container, Pod
from kpreempt.model.workloads import TEMPLATE_HASH_LABEL
from kpreempt.schedulers.interface import Settings
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.unread import absent, unreadable

REJECTED_PODS = "its pods are rejected: "
_JOB_CONTROLLER = "kubernetes.io/job-controller"
_FAILURE_ACTIONS = ("FailJob", "FailIndex", "Ignore", "Count")


def part(document: Document | None, *path: str) -> Any:
    """The value at a path of a document, or ``None``."""
    value: Any = document
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def number(document: Document | None, *path: str, default: int = 0) -> int:
    """The integer at a path."""
    value = part(document, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def text(document: Document | None, *path: str) -> str:
    """The string at a path."""
    value = part(document, *path)
    return value if isinstance(value, str) else ""


def time(document: Document | None, *path: str) -> datetime | None:
    """The time at a path."""
    try:
        return msgspec.convert(part(document, *path), Time | None)
    except msgspec.ValidationError:
        return None


def deployment_state(document: Document) -> DeploymentState:
    """The state of a Deployment with the API's defaults."""
    spec = document["spec"]
    rolling = part(spec, "strategy", "rollingUpdate")
    is_recreate = text(spec, "strategy", "type") == "Recreate"
    return DeploymentState(
        replicas=number(spec, "replicas", default=1),
        strategy="Recreate" if is_recreate else "RollingUpdate",
        max_surge=amount(rolling, "maxSurge", "25%"),
        max_unavailable=amount(rolling, "maxUnavailable", "25%"),
        paused=part(spec, "paused") is True,
    )


def job_state(after: Document, before: Document | None, rules: ControllerRules) -> JobState:
    """The state of a Job with the API's defaults, and its past according to its status."""
    spec, status = after["spec"], part(before, "status")
    completions = part(spec, "completions")
    ending = _ending(status)
    deadline, failure_rules = part(spec, "activeDeadlineSeconds"), part(spec, "podFailurePolicy", "rules")
    return JobState(
        parallelism=number(spec, "parallelism", default=1),
        completions=completions if isinstance(completions, int) else None,
        is_indexed=text(spec, "completionMode") == "Indexed",
        is_suspended=part(spec, "suspend") is True,
        backoff_limit=number(spec, "backoffLimit", default=6),
        active_deadline_seconds=deadline if isinstance(deadline, int) else None,
        replaces_failed_only=text(spec, "podReplacementPolicy") == "Failed",
        failure_rules=tuple(_failure_rule(rule) for rule in failure_rules if text(rule, "action") in _FAILURE_ACTIONS)
        if isinstance(failure_rules, list)
        else None,
        start_time=time(status, "startTime"),
        succeeded=number(status, "succeeded"),
        failed=number(status, "failed"),
        completed_indexes=_intervals(text(status, "completedIndexes")),
        ending="Complete" if ending == "Complete" else "Failed" if ending == "Failed" else "",
        has_ended=bool(ending),
        rules=rules,
    )


def unmodeled_of_job(subject: str, job: Document, rules: ControllerRules) -> list[Assumption]:
    """Fields of a Job that its controller uses and that are not modeled, except those that the API server drops."""
    spec = job["spec"]
    found = []
    if rules.job_managed_by and text(spec, "managedBy") not in ("", _JOB_CONTROLLER):
        found.append(("managedBy", "another controller creates its pods; assumed to behave like the Job controller"))
    if rules.job_success_policy and part(spec, "successPolicy") is not None:
        found.append(("successPolicy", "not modeled; assumed to run until all its pods have succeeded"))
    if part(spec, "backoffLimitPerIndex") is not None:
        found.append(("backoffLimitPerIndex", "not modeled; failures of all indexes are counted together"))
    return [Assumption(subject, f"spec.{field}", message) for field, message in found]


def amount(rolling: Document | None, key: str, default: int | str) -> int | str:
    """An amount of a strategy: a number of pods or a percentage."""
    value = part(rolling, key)
    return value if isinstance(value, (int, str)) and not isinstance(value, bool) else default


def _ending(status: Document | None) -> str:
    conditions = part(status, "conditions")
    for condition in conditions if isinstance(conditions, list) else []:
        if part(condition, "status") == "True" and part(condition, "type") in ("Complete", "Failed"):
            return str(condition["type"])
    return ""


def _failure_rule(rule: Document) -> FailureRule:
    codes, conditions = part(rule, "onExitCodes"), part(rule, "onPodConditions")
    values = part(codes, "values")
    return FailureRule(
        action=rule["action"],
        conditions=tuple(
            (text(each, "type"), text(each, "status") or "True")
            for each in (conditions if isinstance(conditions, list) else [])
        ),
        exit_code_operator="" if codes is None else "NotIn" if text(codes, "operator") == "NotIn" else "In",
        exit_codes=tuple(each for each in (values if isinstance(values, list) else []) if isinstance(each, int)),
        container=text(codes, "containerName"),
    )


def _intervals(indexes: str) -> tuple[tuple[int, int], ...]:
    """Parse ``1,3-5`` into intervals; unreadable parts are skipped."""
    found = []
    for each in indexes.split(",")[:10_000]:
        first, _, last = each.partition("-")
        if first.isascii() and first.isdecimal() and len(each) < 24 and (last or first).isdecimal():
            found.append((int(first), int(last or first)))
    return tuple(found)


class Prototypes:
    """Creates typed, admitted pods from documents, and adds claims to the cluster if needed.

    ``rejected`` maps workloads to the reason why the API server rejects their pods; ``new_claims`` are the added
    claims.
    """

    def __init__(
        self,
        cluster: ClusterSnapshot,
        decode: Decode,
        now: datetime,
        settings: Settings,
        accounts: Sequence[Document] = (),
    ) -> None:
        """``accounts`` are all ServiceAccounts, if they are known."""
        self.cluster = cluster
        self._plugins = PluginState(cluster, accounts)
        self._api_server, self._rules = api_server_rules(settings), controller_rules(settings)
        self.assumptions: dict[Assumption, None] = {}
        self.new_claims: list[str] = []
        self.rejected: dict[str, str] = {}
        self._decode = decode
        self._now = now

    def of_document(self, document: Document, source: str, line: int) -> Pod:
        """The pod of a workload's document. Raises the errors of decoding and admission."""
        (template,) = pods_of(document, source=source, line=line)
        return self.of_template(template)

    def of_template(self, template: PodTemplate) -> Pod:
        """The pod as the API server would store it; if it is rejected, without the offending fields, and noted.

        Raises ``NotFoundError`` for a class if classes could not be read, unless nothing is scheduled anyway.
        """
        pod: Any = self._decode("Pod", template.document, source=template.source, line=template.line)
        name = pod.spec.priority_class_name
        is_unreadable = state_of(self.cluster, "PriorityClass") is KindState.UNREADABLE and not cannot_simulate(
            self.cluster
        )
        origin = template.origin or f"Pod {pod.key}"
        self._check_plugins(template, origin)
        if name and name not in known_classes(self.cluster) and not is_unreadable:
            if "PriorityClass" not in self.cluster.unread:
                self.rejected[origin] = f"{REJECTED_PODS}no PriorityClass with name {name} was found"
            pod = self._without_class(pod)
        try:
            admission = admit(pod, self.cluster, self._api_server)
        except PodRejectedError as error:
            self.rejected[origin] = f"{REJECTED_PODS}{error.reason}"
            bare = msgspec.structs.replace(pod.spec, runtime_class_name="", overhead={})
            within = msgspec.structs.replace(self.cluster, limit_ranges=[])
            admission = admit(msgspec.structs.replace(pod, spec=bare), within, self._api_server)
        except NotFoundError as error:
            # The pod does not exist yet, so point to its workload's manifest.
            position = f"{template.source}:{template.line}: " if template.source else ""
            owner = f"{template.origin}: " if template.origin else ""
            raise NotFoundError(f"{position}{owner}{error.message}", hint=error.hint) from None
        # Missing namespaces are a finding about the change itself.
        others = (each for each in admission.assumptions if each.field != "metadata.namespace")
        self.assumptions.update(dict.fromkeys(others))
        return admission.pod

    def _check_plugins(self, template: PodTemplate, origin: str) -> None:
        minor = self._api_server.minor
        if reason := rejection_of_pod(template.document, self._plugins, minor):
            self.rejected[origin] = f"{REJECTED_PODS}{reason}"
        self.assumptions.update(dict.fromkeys(assumptions_of_pod(template.document, origin, self._plugins, minor)))

    def _without_class(self, pod: Pod) -> Pod:
        """The pod without its class, with the priority it specifies, or 0."""
        name, priority = pod.spec.priority_class_name, pod.spec.priority or 0
        if unread := self.cluster.unread.get("PriorityClass"):
            is_absent = unread.state is KindState.ABSENT
            consequence = f'"{name}" is simulated with priority {priority}'
            assumption = (
                absent("PriorityClass", unread, consequence) if is_absent else unreadable("PriorityClass", unread)
            )
            self.assumptions[assumption] = None
        return replace_in(pod, "spec", priority_class_name="", priority=priority)

    def of_pod(self, pod: Pod) -> Pod:
        """A new pod from the same template as ``pod``, which must have an owner that creates pods."""
        made = replacement_of(pod, suffix="0", uid="", now=self._now, rules=self._rules)
        return made if made is not None else pod

    def maker(self, pod: Pod, stem: str) -> Maker:
        """A maker of pods like this one; its caller sets the creation time."""
        return Maker(replace_in(pod, "metadata", creation_timestamp=None), stem)

    def add_claims(
        self, document: Document, name: str, namespace: str, ordinals: Iterable[int], reader: DocumentReader
    ) -> None:
        """Add the claims of a StatefulSet's pods that the cluster lacks."""
        spec = reader.mapping(document, "spec")
        labels = reader.mapping(reader.mapping(spec, "selector", "spec"), "matchLabels", "spec.selector")
        known = {claim.key for claim in self.cluster.persistent_volume_claims}
        new = []
        for ordinal in ordinals:
            claims, _ = stateful_claims(spec, f"{name}-{ordinal}", namespace, labels, reader)
            for claim in claims:
                record: Any = self._decode("PersistentVolumeClaim", claim, source=reader.source, line=reader.line)
                if record.key not in known:
                    new.append(admit_claim(record, self.cluster))
        if new:
            self.new_claims += (claim.key for claim in new)
            existing = self.cluster.persistent_volume_claims
            self.cluster = msgspec.structs.replace(self.cluster, persistent_volume_claims=[*existing, *new])


def with_injected(prototype: Pod, before: Document | None, pods: Iterable[Pod]) -> tuple[Pod, list[str]]:
    """The pod with the containers that current pods have beyond their template ``before``, and their names.

    A webhook of the cluster injects them, and is assumed to inject them into new pods, too.
    """
    template = part(before, "spec", "template", "spec")
    pod = next((each for each in pods if not each.is_terminal), None)
    if pod is None or not isinstance(template, dict):
        return prototype, []
    names: list[str] = []
    changes: dict[str, list[Container]] = {}
    for field, key in (("containers", "containers"), ("init_containers", "initContainers")):
        own = part(template, key)
        known = {text(each, "name") for each in (own if isinstance(own, list) else [])}
        containers: list[Container] = getattr(prototype.spec, field)
        known |= {each.name for each in containers}
        injected = [each for each in getattr(pod.spec, field) if each.name not in known]
        names += (each.name for each in injected)
        changes[field] = [*containers, *injected]
    if not names:
        return prototype, []
    return replace_in(prototype, "spec", **changes), names


def owned_by_replica_set(pod: Pod, name: str, uid: str, template_hash: str) -> Pod:
    """The pod as one of another ReplicaSet of the same Deployment."""
    owners = [
        msgspec.structs.replace(owner, kind="ReplicaSet", api_version="apps/v1", name=name, uid=uid)
        if owner.controller
        else owner
        for owner in pod.metadata.owner_references
    ]
    labels = {**pod.metadata.labels, TEMPLATE_HASH_LABEL: template_hash} if template_hash else pod.metadata.labels
    return replace_in(pod, "metadata", owner_references=owners, labels=labels)


DEFAULT_SECONDS = 600
# A longer deadline says nothing about how long a Job runs.
MAX_SECONDS = 7 * 24 * 3600
DEADLINE = "spec.activeDeadlineSeconds"


def endings_of(plan: Plan) -> tuple[dict[OwnerKey, RunTime], list[Assumption]]:
    """How long pods run, by their owner, and the resulting assumptions.

    Covers the Jobs of a change that are not suspended, and plain pods that are hooks. The Jobs of CronJobs never end.
    """
    never = plan.job_seconds == 0
    default = plan.job_seconds or DEFAULT_SECONDS
    run_times: dict[OwnerKey, RunTime] = {}
    assumptions = []
    for workload in plan.workloads:
        if workload.kind != "Job" or workload.after is None or workload.change.object.startswith("CronJob "):
            continue
        deadline = part(workload.after, "spec", "activeDeadlineSeconds")
        ends = isinstance(deadline, int) and not isinstance(deadline, bool) and 0 < deadline <= MAX_SECONDS
        if not ends and never:
            continue
        seconds = deadline / _rounds(workload.after) if ends else default
        is_guess = not ends and plan.job_seconds is None
        run_times[workload.namespace, workload.kind, workload.name] = RunTime(seconds, is_guess)
        why = "its deadline" if ends else "--job-duration"
        message = f"each of its pods is assumed to succeed after {_duration(seconds)} ({why})"
        assumptions.append(Assumption(workload.change.object, DEADLINE, message, AssumptionKind.INFORMATIONAL))
    for template in plan.pods:
        name = f"Pod {template.namespace}/{template.name}"
        if name in plan.order.hooks:
            run_times[template.namespace, "Pod", template.name] = RunTime(default)
            message = f"is a hook; assumed to succeed after {_duration(default)} (--job-duration)"
            assumptions.append(Assumption(name, DEADLINE, message, AssumptionKind.INFORMATIONAL))
    return run_times, assumptions


def seconds_in_all(plan: Plan) -> float:
    """The total run time if they all run one after another."""
    run_times, _ = endings_of(plan)
    rounds = {(each.namespace, each.kind, each.name): _rounds(each.after) for each in plan.workloads if each.after}
    return sum(each.seconds * rounds.get(key, 1) for key, each in run_times.items())


def _rounds(job: Document | None) -> int:
    """The number of rounds of parallel pods that a Job needs."""
    if not isinstance(part(job, "spec", "completions"), int):
        return 1
    return max(-(-number(job, "spec", "completions") // max(number(job, "spec", "parallelism", default=1), 1)), 1)


def _duration(seconds: float) -> str:
    """``10m``, ``1h30m``, ``20s``."""
    hours, rest = divmod(max(int(seconds), 1), 3600)
    minutes, rest = divmod(rest, 60)
    return "".join(f"{number}{unit}" for number, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if number)
