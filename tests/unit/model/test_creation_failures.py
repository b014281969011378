# ruff: noqa: E501 - a row of the table is one case
"""Why an object could not be created, from the texts of controllers and the API server (v1.36.3)."""

from __future__ import annotations

import pytest

from kpreempt.model.creation_failures import parse_failure, without_quotations
from kpreempt.model.event import CreationStep

ACCOUNT = (
    'pods "web-5d8f-" is forbidden: error looking up service account shop/deployer: serviceaccount "deployer" not found'
)
FREE = 'Pod "web-0" is invalid: spec.containers[0].env[0].name: Invalid value: "s3cr3t": must be a valid name'


@pytest.mark.parametrize(
    ("text", "step", "name"),
    [
        (ACCOUNT, CreationStep.SERVICE_ACCOUNT, "deployer"),
        ('pods "a" is forbidden: violates PodSecurity "baseline:v1.30": host namespaces', CreationStep.POD_SECURITY, "baseline:v1.30"),
        ('pods "a" is forbidden: exceeded quota: team.a, requested: pods=1, used: pods=2, limited: pods=2', CreationStep.QUOTA, "team.a"),
        ('pods "a" is forbidden: failed quota: team: must specify limits.cpu for: main', CreationStep.QUOTA, "team"),
        ('pods "a" is forbidden: maximum cpu usage per Container is 1, but limit is 2', CreationStep.LIMIT_RANGE, ""),
        ('pods "a" is forbidden: [minimum cpu usage per Pod is 1, but request is 500m, cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000]', CreationStep.LIMIT_RANGE, ""),
        ('pods "a" is forbidden: no PriorityClass with name high was found', CreationStep.PRIORITY_CLASS, "high"),
        ('pods "a" is forbidden: pod rejected: RuntimeClass "gvisor" not found', CreationStep.RUNTIME_CLASS, "gvisor"),
        ('Internal error occurred: failed calling webhook "w.example.com": failed to call webhook: Post "https://w.w.svc:443/?timeout=10s": EOF', CreationStep.WEBHOOK_CALL, "w.example.com"),
        ('admission webhook "w.example.com" denied the request: no limits', CreationStep.WEBHOOK, "w.example.com"),
        ("pods \"a\" is forbidden: ValidatingAdmissionPolicy 'p.example.com' with binding 'b' denied request: no", CreationStep.POLICY, "p.example.com"),
        ('pods "a" is forbidden: unable to create new content in namespace shop because it is being terminated', CreationStep.NAMESPACE, "shop"),
        ('pods "a" is forbidden: unable to validate against any security context constraint: []', CreationStep.SECURITY_CONTEXT, ""),
        ('pods is forbidden: User "system:x" cannot create resource "pods" in API group "" in the namespace "shop"', CreationStep.AUTHORIZATION, ""),
        (FREE, CreationStep.VALIDATION, ""),
        ("etcdserver: request timed out", CreationStep.OTHER, ""),
    ],
    ids=lambda value: value if isinstance(value, CreationStep) else "",
)  # fmt: skip
def test_the_step_that_rejects_a_pod_and_the_object_in_the_way(text: str, step: CreationStep, name: str) -> None:
    found = parse_failure(f"Error creating: {text}")
    assert (found.step, found.name, found.message) == (step, name, text)
    assert parse_failure(text) == found


@pytest.mark.parametrize(
    ("before", "pod", "claim"),
    [
        ("", "", ""),
        ("Error creating: ", "", ""),
        ("(combined from similar events): Error creating: ", "", ""),
        ("create Pod web-0 in StatefulSet web failed error: ", "web-0", ""),
        ("create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: ", "web-0", "data-web-0"),
        ('Failed to create new replica set "web-5d8f": ', "", ""),
        ("Error creating job: ", "", ""),
    ],
)
def test_the_words_of_the_controller_are_not_part_of_the_message(before: str, pod: str, claim: str) -> None:
    found = parse_failure(f"{before}{ACCOUNT}")
    assert (found.message, found.pod, found.claim) == (ACCOUNT, pod, claim)
    assert found.brief == ACCOUNT.partition("forbidden: ")[2]


def test_values_that_an_invalid_object_may_have_are_not_written_to_dumps() -> None:
    assert "s3cr3t" not in without_quotations(f"Error creating: {FREE}")
    assert without_quotations(f"Error creating: {ACCOUNT}") == f"Error creating: {ACCOUNT}"
