"""Why a controller could not create a pod, in the words of its event or condition.

The texts are those of ``k8s.io/kubernetes`` v1.36.3: the controllers' (``pkg/controller/controller_utils.go``,
``statefulset/stateful_pod_control.go``, ``deployment/sync.go``) around those of the API server
(``plugin/pkg/admission``, and in ``staging/src/k8s.io``: ``apiserver/pkg/admission/plugin``,
``pod-security-admission``), and OpenShift's for security context constraints.
"""

from __future__ import annotations

import re

import msgspec

from kpreempt.model.event import CreationStep

# What controllers and the event recorder put before the API server's message.
_COMBINED = "(combined from similar events): "
_OF_CONTROLLERS = re.compile(
    r"Error creating(?: job)?: |(?i:create) (?:Pod (?P<pod>\S+) in|Claim (?P<claim>\S+) (?:for )?Pod (?P<owner>\S+) in)"
    r" StatefulSet \S+ failed error: (?:failed to create PVC \S+: )?|Failed to create new replica set \"[^\"]*\": "
)
# What the API server puts before the reason.
_OBJECT = re.compile(
    r"Internal error occurred: |[a-z]+(?:\.[a-z0-9.]+)? (?:\"[^\"]*\" )?is forbidden: "
    r"|Pod(?:\.[a-z0-9.]+)? \"[^\"]*\" is invalid: "
)
_NAME = r"[\w.:-]{1,253}"


# Each step's text, with the name of the object that it is about, if any.
_STEPS: tuple[tuple[CreationStep, re.Pattern[str]], ...] = tuple(
    (step, re.compile(pattern))
    for step, pattern in (
        (CreationStep.SERVICE_ACCOUNT, rf"error looking up service account {_NAME}/(?P<name>{_NAME}): serviceaccount"),
        (CreationStep.SERVICE_ACCOUNT, r"error looking up service account |no service account specified for pod "),
        (CreationStep.POD_SECURITY, r"violates PodSecurity \"(?P<name>[a-z]+:(?:latest|v1\.\d+))\""),
        (CreationStep.SECURITY_CONTEXT, r"unable to validate against any (?:security context constraint|pod security)"),
        (CreationStep.QUOTA, rf"(?:exceeded|failed) quota: (?P<name>{_NAME})[,:]"),
        (CreationStep.QUOTA, r"(?:status unknown for quota: |insufficient quota to )"),
        (CreationStep.LIMIT_RANGE, r"(?:minimum|maximum) \S+ usage per \S+ is |\S+ max limit to request ratio per "),
        (CreationStep.PRIORITY_CLASS, rf"no PriorityClass with name (?P<name>{_NAME}) was found"),
        (CreationStep.RUNTIME_CLASS, rf"pod rejected: RuntimeClass \"(?P<name>{_NAME})\" not found"),
        (CreationStep.RUNTIME_CLASS, r"pod rejected: Pod(?:'s)? Overhead |conflict: runtimeClass\."),
        (CreationStep.WEBHOOK_CALL, rf"failed calling webhook \"(?P<name>{_NAME})\""),
        (CreationStep.WEBHOOK, rf"admission webhook \"(?P<name>{_NAME})\" denied the request"),
        (CreationStep.POLICY, rf"ValidatingAdmissionPolicy '(?P<name>{_NAME})' with binding "),
        (CreationStep.NAMESPACE, rf"unable to create new content in namespace (?P<name>{_NAME}) because it is being"),
        (CreationStep.NAMESPACE, rf"namespaces \"(?P<name>{_NAME})\" not found"),
        (CreationStep.AUTHORIZATION, r"User \"[^\"]*\" cannot (?:create|set|get) "),
    )
)


class CreationFailure(msgspec.Struct, frozen=True):
    """A failed try to create an object.

    ``name`` is that of the object in the way: the missing account or class, the quota, the webhook or policy, the level
    of Pod Security; empty if the text names none. ``message`` is the API server's, verbatim, and ``brief`` the part
    that says why. ``pod`` is the pod to be created, if the controller names it, and ``claim`` its claim, if that
    failed.
    """

    step: CreationStep
    message: str
    brief: str
    name: str = ""
    pod: str = ""
    claim: str = ""


def parse_failure(text: str) -> CreationFailure:
    """Parse the text of an event or condition; one in another form is kept as it is."""
    text = text.strip().removeprefix(_COMBINED)
    match = _OF_CONTROLLERS.match(text)
    pod = (match["pod"] or match["owner"] or "") if match else ""
    claim = (match["claim"] or "") if match else ""
    message = text[match.end() :] if match else text
    named = _OBJECT.match(message)
    brief = message[named.end() :] if named else message
    for step, pattern in _STEPS:
        found = pattern.search(brief)
        if found is not None:
            return CreationFailure(step, message, brief, found.groupdict().get("name") or "", pod, claim)
    is_invalid = named is not None and named[0].endswith("is invalid: ")
    return CreationFailure(
        CreationStep.VALIDATION if is_invalid else CreationStep.OTHER, message, brief, pod=pod, claim=claim
    )


_QUOTATION = re.compile(r"\"[^\"]*\"")
# Steps whose texts quote only names.
_FREE = (CreationStep.VALIDATION, CreationStep.OTHER)


def without_quotations(text: str) -> str:
    """Return the text for a dump: without quotations that may be values of the object, such as environments."""
    failure = parse_failure(text)
    if failure.step not in _FREE:
        return text
    hidden = _QUOTATION.sub('"..."', failure.brief)
    return f"{text.removesuffix(failure.brief)}{hidden}"
