# ruff: noqa: E501 - tables of specs read better in rows
"""What is rejected of Jobs and CronJobs."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import yaml

from kpreempt.admission.defaults import with_defaults
from kpreempt.admission.validation import Server, problems_of

TEMPLATE: dict[str, Any] = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}}
UID = "00000000-0000-0000-0000-000000000001"


def job(spec: str = "{}", metadata: str = "{name: a}") -> dict[str, Any]:
    """A new Job with these fields of its spec."""
    document = {"apiVersion": "batch/v1", "kind": "Job", "metadata": yaml.safe_load(metadata)}
    return with_defaults({**document, "spec": {"template": deepcopy(TEMPLATE), **yaml.safe_load(spec)}})


def in_cluster(document: dict[str, Any], **status: Any) -> dict[str, Any]:
    """The Job as the API server stores it."""
    result = deepcopy(document)
    labels = {"controller-uid": UID, "job-name": "a"}
    labels |= {f"batch.kubernetes.io/{key}": value for key, value in labels.items()}
    result["metadata"]["uid"] = UID
    result["spec"]["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": UID}}
    result["spec"]["template"].setdefault("metadata", {})["labels"] = labels
    return {**result, "status": status}


def cron_job(spec: str = "{}", job_spec: str = "{}", name: str = "a") -> dict[str, Any]:
    """A CronJob with these fields of its spec and of its Job's spec."""
    template = {"spec": {"template": deepcopy(TEMPLATE), **yaml.safe_load(job_spec)}}
    document = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}}
    return with_defaults({**document, "spec": {"schedule": "@daily", "jobTemplate": template, **yaml.safe_load(spec)}})


def found(document: dict[str, Any], old: dict[str, Any] | None = None, minor: int = 36) -> list[str]:
    return [str(each) for each in problems_of(document, old, Server(minor))]


INDEXED = "completionMode: Indexed, completions: 4"
RULE = f"{{{INDEXED}, podFailurePolicy: {{rules: [%s]}}}}"
RULES = "spec.podFailurePolicy.rules[0]"
SUCCESS = f"{{{INDEXED}, successPolicy: {{rules: [%s]}}}}"
SUCCEEDED = "spec.successPolicy.rules[0]"
MANY = "{completionMode: Indexed, completions: 100001, backoffLimitPerIndex: 1, %s}"
OF_MANY = "must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index"
REJECTED: list[tuple[str, list[str]]] = [
    ("parallelism: -1", ["spec.parallelism: Invalid value: -1: must be greater than or equal to 0"]),
    ("ttlSecondsAfterFinished: -1", ["spec.ttlSecondsAfterFinished: Invalid value: -1: must be greater than or equal to 0"]),
    ("completionMode: Index", ['spec.completionMode: Unsupported value: "Index": supported values: "Indexed", "NonIndexed"']),
    ("{completionMode: Indexed, parallelism: 1}", ["spec.completions: Required value: when completion mode is Indexed"]),
    (f"{{{INDEXED}, parallelism: 100001}}", ["spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 when completion mode is Indexed"]),
    (f"{{{INDEXED}, maxFailedIndexes: 5}}", ["spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified", "spec.maxFailedIndexes: Invalid value: 5: must be less than or equal to completions"]),
    ("backoffLimitPerIndex: 1", ["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"]),
    (MANY % "parallelism: 1", ["spec.maxFailedIndexes: Required value: must be specified when completions is above 100000"]),
    (MANY % "parallelism: 10001, maxFailedIndexes: 10001", [f"spec.{field}: Invalid value: 10001: {OF_MANY}" for field in ("parallelism", "maxFailedIndexes")]),
    (MANY % "maxFailedIndexes: 100001", ["spec.maxFailedIndexes: Invalid value: 100001: must be less than or equal to 100000", f"spec.maxFailedIndexes: Invalid value: 100001: {OF_MANY}"]),
    ("managedBy: ''", ["spec.managedBy: Required value"]),
    ("managedBy: a", ['spec.managedBy: Invalid value: "a": must be a domain-prefixed path (such as "acme.io/foo")']),
    (f"managedBy: a/{'b' * 62}", ["spec.managedBy: Too long: may not be more than 63 bytes"]),
    ("podReplacementPolicy: Never", ['spec.podReplacementPolicy: Unsupported value: "Never": supported values: "Failed", "TerminatingOrFailed"']),
    ("{podFailurePolicy: {}, podReplacementPolicy: TerminatingOrFailed}", ['spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": supported values: "Failed"']),
    (RULE % ",".join(["{action: Ignore, onPodConditions: [{type: A}]}"] * 21), ["spec.podFailurePolicy.rules: Too many: 21: must have at most 20 items"]),
    (RULE % "{onPodConditions: [{type: A}]}", [f'{RULES}.action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]']),
    (RULE % "{action: FailIndex, onPodConditions: [{type: A}]}", [f'{RULES}.action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set']),
    (RULE % "{action: Count}", [f'{RULES}: Invalid value: {{"action": "Count"}}: specifying one of OnExitCodes and OnPodConditions is required']),
    (RULE % "{action: Count, onPodConditions: [{type: A, status: 'Yes'}]}", [f'{RULES}.onPodConditions[0].status: Unsupported value: "Yes": supported values: "False", "True", "Unknown"']),
    (RULE % "{action: Count, onExitCodes: {operator: In, containerName: b, values: [2, 1, 0, 2]}}", [
        f'{RULES}.onExitCodes.containerName: Invalid value: "b": must be one of the container or initContainer names in the pod template',
        f"{RULES}.onExitCodes.values[2]: Invalid value: 0: must not be 0 for the In operator",
        f"{RULES}.onExitCodes.values[3]: Duplicate value: 2",
        f"{RULES}.onExitCodes.values: Invalid value: [2, 1, 0, 2]: must be ordered",
    ]),
    (RULE % "{action: Count, onExitCodes: {operator: Is}}", [f'{RULES}.onExitCodes.operator: Unsupported value: "Is": supported values: "In", "NotIn"', f"{RULES}.onExitCodes.values: Invalid value: []: at least one value is required"]),
    ("successPolicy: {rules: [{succeededCount: 1}]}", ['spec.successPolicy: Invalid value: {"rules": [{"succeededCount": 1}]}: requires indexed completion mode']),
    (SUCCESS % "", ["spec.successPolicy.rules: Required value: at least one rules must be specified when the successPolicy is specified"]),
    (SUCCESS % "{}", [f"{SUCCEEDED}: Required value: at least one of succeededCount or succeededIndexes must be specified"]),
    (SUCCESS % "{succeededCount: 5}", [f"{SUCCEEDED}.succeededCount: Invalid value: 5: must be less than or equal to 4 (the number of specified completions)"]),
    (SUCCESS % "{succeededIndexes: '0,2-3', succeededCount: 4}", [f"{SUCCEEDED}.succeededCount: Invalid value: 4: must be less than or equal to 3 (the number of indexes in the specified succeededIndexes field)"]),
    *((SUCCESS % f"{{succeededIndexes: '{text}'}}", [f'{SUCCEEDED}.succeededIndexes: Invalid value: "{text}": error parsing succeededIndexes: {problem}']) for text, problem in {
        "x": 'cannot convert string to integer for index: "x"',
        "4": 'too large index: "4"',
        "2-2": "non-increasing order, previous: 2, current: 2",
        "1,1": "non-increasing order, previous: 1, current: 1",
        "1-2-3": "the fragment \"1-2-3\" violates the requirement that an index interval can have at most two parts separated by '-'",
    }.items()),
    ("template: {spec: {containers: [{name: a, image: a}]}}", ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"']),
    ("{podFailurePolicy: {}, template: {spec: {restartPolicy: OnFailure, containers: [{name: a, image: a}]}}}", ['spec.template.spec.restartPolicy: Invalid value: "OnFailure": only "Never" is supported when podFailurePolicy is specified']),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "expected"), REJECTED)
def test_invalid_specs_are_rejected_in_jobs_and_cron_jobs(spec: str, expected: list[str]) -> None:
    assert found(job(spec)) == expected
    # A CronJob's Job has fewer defaults, but these fields are in the table.
    if "completionMode: Index}" not in spec:
        of_template = [each.replace("spec.", "spec.jobTemplate.spec.", 1) for each in expected]
        assert found(cron_job(job_spec=spec)) == of_template


LABELED = "{%s, template: {metadata: {labels: {%s}}, spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}"
GENERATED = "`selector` not auto-generated"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (LABELED % ("parallelism: 1", "job-name: b"), ["spec.template.metadata.labels.job-name: Invalid value: \"b\": must be 'a'"]),
        (LABELED % ("selector: {matchLabels: {app: a}}", "app: a"), [f'spec.selector: Invalid value: {{"matchLabels": {{"batch.kubernetes.io/controller-uid": "00000000-0000-0000-0000-000000000000", "app": "a"}}}}: {GENERATED}']),
        ("manualSelector: true", ["spec.selector: Required value"]),
        (LABELED % ("manualSelector: true, selector: {matchLabels: {app: b}}", "app: a"), ['spec.template.metadata.labels: Invalid value: {"app": "a"}: `selector` does not match template `labels`']),
        (LABELED % ("manualSelector: true, selector: {matchLabels: {app: a}}", "app: a"), []),
        (LABELED % ("selector: {matchLabels: {job-name: a}}", "job-name: a"), []),
    ],
)  # fmt: skip
def test_selectors_are_generated_or_manual(spec: str, expected: list[str]) -> None:
    assert found(job(spec)) == expected


@pytest.mark.parametrize(
    ("metadata", "completions", "is_valid"),
    [
        (f"{{name: {'a' * 61}}}", 10, True),
        (f"{{name: {'a' * 61}}}", 11, False),
        ("{name: a.b}", 1, False),
        (f"{{generateName: {'a' * 60}}}", 1, False),
        (f"{{generateName: {'a' * 56}}}", 1, True),
    ],
)
def test_names_of_pods_of_indexed_jobs_are_valid(metadata: str, completions: int, is_valid: bool) -> None:
    document = job(f"{{completionMode: Indexed, completions: {completions}}}", metadata)
    assert (found(document) == []) == is_valid


@pytest.mark.parametrize(
    ("spec", "first"), [("managedBy: a", 32), (SUCCESS % "{}", 31)], ids=["a manager", "a success policy"]
)
def test_fields_of_new_jobs_are_dropped_before_their_gate_is_on(spec: str, first: int) -> None:
    assert [minor for minor in range(29, 39) if found(job(spec), minor=minor)] == [*range(first, 39)]


def changed(old: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {**deepcopy(old), "spec": {**deepcopy(old["spec"]), **fields}}


@pytest.mark.parametrize(
    ("spec", "fields", "path"),
    [
        ("{}", {"completions": 2}, "spec.completions"),
        (f"{{{INDEXED}}}", {"completions": 5, "parallelism": 4}, "spec.completions"),
        (f"{{{INDEXED}}}", {"completions": 5, "parallelism": 5}, None),
        ("{}", {"parallelism": 3, "backoffLimit": 9, "activeDeadlineSeconds": 1, "suspend": True}, None),
        (f"{{{INDEXED}}}", {"completionMode": "NonIndexed"}, "spec.completionMode"),
        (f"{{{INDEXED}, backoffLimitPerIndex: 1}}", {"backoffLimitPerIndex": 2}, "spec.backoffLimitPerIndex"),
        ("{}", {"managedBy": "a/b"}, "spec.managedBy"),
        (SUCCESS % "{succeededCount: 1}", {"successPolicy": {"rules": [{"succeededCount": 2}]}}, "spec.successPolicy"),
        ("{}", {"selector": {}}, "spec.selector"),
    ],
)
def test_fields_that_change(spec: str, fields: dict[str, Any], path: str | None) -> None:
    old = in_cluster(job(spec))
    assert [each.partition(": ")[0] for each in found(changed(old, **fields), old)] == ([path] if path else [])


SCHEDULING = {"nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}]}
RESOURCES = {"containers": [{**TEMPLATE["spec"]["containers"][0], "resources": {"requests": {"cpu": "1"}}}]}
SUSPENDED = [{"type": "Suspended", "status": "True"}]
STARTED = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("is_suspended", "status", "change", "accepted"),
    [
        pytest.param(False, {}, SCHEDULING, [], id="running"),
        pytest.param(True, {}, SCHEDULING, [35, 36], id="never started"),
        pytest.param(True, {"startTime": STARTED}, SCHEDULING, [], id="started"),
        pytest.param(True, {"startTime": STARTED, "conditions": SUSPENDED}, SCHEDULING, [36], id="stopped"),
        pytest.param(True, {"active": 1, "conditions": SUSPENDED}, SCHEDULING, [35], id="still has pods"),
        pytest.param(True, {}, RESOURCES, [36], id="resources"),
        pytest.param(True, {}, {"containers": [{"name": "a", "image": "b"}]}, [], id="an image"),
    ],
)
def test_templates_of_suspended_jobs_change_in_part(
    is_suspended: bool, status: dict[str, Any], change: dict[str, Any], accepted: list[int]
) -> None:
    old = in_cluster(job(f"suspend: {str(is_suspended).lower()}"), **status)
    template = old["spec"]["template"]
    document = with_defaults(changed(old, template={**template, "spec": {**template["spec"], **change}}))
    assert [minor for minor in (35, 36) if not found(document, old, minor)] == accepted


def test_generated_labels_of_jobs_are_validated_on_update_before_1_37() -> None:
    old = in_cluster(job())
    del old["spec"]["template"]["metadata"]["labels"]["job-name"]
    path = "spec.template.metadata.labels.job-name"
    assert found(old, old) == [f"{path}: Required value: must be 'a'"]
    assert found(old, old, 37) == []


def test_jobs_without_generated_parts_are_compared() -> None:
    assert found(job("parallelism: 2"), job("parallelism: 1")) == []


@pytest.mark.parametrize(
    ("spec", "job_spec", "expected"),
    [
        ("schedule: ''", "{}", ["spec.schedule: Required value"]),
        ("schedule: '@reboot'", "{}", ['spec.schedule: Invalid value: "@reboot": unrecognized descriptor: @reboot']),
        ("schedule: 'TZ=UTC @daily'", "{}", ['spec.schedule: Invalid value: "TZ=UTC @daily": cannot use TZ or CRON_TZ in schedule, use timeZone field instead']),
        ("timeZone: Mars/Phobos", "{}", ['spec.timeZone: Invalid value: "Mars/Phobos": unknown time zone Mars/Phobos']),
        ("concurrencyPolicy: Deny", "{}", ['spec.concurrencyPolicy: Unsupported value: "Deny": supported values: "Allow", "Forbid", "Replace"']),
        ("failedJobsHistoryLimit: -1", "{}", ["spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0"]),
        ("{}", "selector: {}", ["spec.jobTemplate.spec.selector: Invalid value: {}: `selector` will be auto-generated"]),
        ("{}", "manualSelector: true", ['spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "false", "nil"']),
        ("timeZone: Europe/Berlin", "{}", []),
    ],
)  # fmt: skip
def test_new_cron_jobs(spec: str, job_spec: str, expected: list[str]) -> None:
    assert found(cron_job(spec, job_spec)) == expected


def test_names_of_cron_jobs_leave_room_for_those_of_jobs() -> None:
    assert found(cron_job(name="a" * 52)) == []
    assert [each[-35:] for each in found(cron_job(name="a" * 53))] == [": must be no more than 52 characters"[-35:]]
    assert found(cron_job(name="a" * 53), cron_job(name="a" * 53)) == []


def test_an_old_time_zone_of_a_cron_job_is_tolerated() -> None:
    unknown, in_schedule = cron_job("timeZone: Mars/Phobos"), cron_job("schedule: 'TZ=UTC @daily'")
    assert found(unknown, unknown) == []
    assert found(in_schedule, in_schedule) == []
    both = cron_job("{schedule: 'TZ=UTC @daily', timeZone: UTC}")
    assert found(both, in_schedule) == [
        'spec.schedule: Invalid value: "TZ=UTC @daily": cannot use both timeZone field and TZ or CRON_TZ in schedule'
    ]


@pytest.mark.parametrize("minor", [37, 38])
def test_jobs_name_both_a_workload_and_its_template_since_1_38(minor: int) -> None:
    document = job(metadata="{name: a, annotations: {scheduling.k8s.io/workload-name: b}}")
    expected = [
        "metadata.annotations[scheduling.k8s.io/group-template-name]: Required value: must be set to a non-empty value "
        "when scheduling.k8s.io/workload-name or scheduling.k8s.io/group-template-name is set"
    ]
    assert found(document, minor=minor) == (expected if minor == 38 else [])
    stored = in_cluster(document)
    assert found(stored, stored, minor) == []
