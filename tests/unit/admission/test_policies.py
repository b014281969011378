"""Tests of ValidatingAdmissionPolicies, with examples like those in the Kubernetes documentation."""

from __future__ import annotations

from typing import Any

import pytest

from kpreempt.admission.defaults import with_defaults
from kpreempt.admission.policies.objects import admitted_pod
from kpreempt.admission.policies.policies import Outcome, review
from kpreempt.admission.policies.requests import Request
from kpreempt.admission.policies.state import PolicyState
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import AnnotatedMeta, ObjectMeta
from kpreempt.model.quantity import quantity
from kpreempt.model.workloads import LimitRange, LimitRangeItem, LimitRangeSpec, Namespace

Document = dict[str, Any]
DEPLOYMENTS = {
    "apiGroups": ["apps"],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["deployments"],
}
PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
FEW = "object.spec.replicas <= 5"
MANY = 7


def registration(kind: str, name: str, **spec: Any) -> Document:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        **({"spec": spec} if "webhooks" not in spec else spec),
    }


def policy(
    *validations: str | Document, rules: Any = (DEPLOYMENTS,), match: Document | None = None, **spec: Any
) -> Document:
    constraints = {"resourceRules": list(rules), **(match or {})}
    checks = [{"expression": each} if isinstance(each, str) else each for each in validations]
    return registration("ValidatingAdmissionPolicy", "x", matchConstraints=constraints, validations=checks, **spec)


def binding(**spec: Any) -> Document:
    return registration(
        "ValidatingAdmissionPolicyBinding", "y", policyName="x", **{"validationActions": ["Deny"], **spec}
    )


def webhook(kind: str, *rules: Document, **more: Any) -> Document:
    hook = {"name": "a.b.c", "rules": list(rules), **more}
    return registration(f"{kind}WebhookConfiguration", "k", webhooks=[hook])


def deployment(replicas: int = MANY, **metadata: Any) -> Document:
    pod = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "example.com/web:1"}]},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": pod}
    own = {"name": "web", "namespace": "shop", **metadata}
    return dict(with_defaults({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": own, "spec": spec}))


def pod(**spec: Any) -> Document:
    containers = [{"name": "web", "image": "example.com/web:1"}]
    document = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"containers": containers, **spec}}
    return dict(with_defaults({"apiVersion": "v1", "kind": "Pod", **document}))


def shop(labels: dict[str, str] | None = None) -> ClusterSnapshot:
    return ClusterSnapshot(namespaces=[Namespace(metadata=AnnotatedMeta(name="shop", labels=labels or {}))])


def reviewed(
    *objects: Document,
    of: Document | None = None,
    old: Document | None = None,
    cluster: ClusterSnapshot | None = None,
    resource: str = "deployments",
) -> Outcome:
    document = deployment() if of is None else of
    return review(Request(document, resource, old), PolicyState(shop() if cluster is None else cluster, objects))


def denied(*objects: Document, **about: Any) -> list[str]:
    """The messages without their common start."""
    outcome = reviewed(*objects, **about)
    assert outcome.unevaluated == []
    start = "ValidatingAdmissionPolicy 'x' with binding 'y' denied request: "
    assert all(each.startswith(start) for each in outcome.denials)
    return [each.removeprefix(start) for each in outcome.denials]


def unevaluated(*objects: Document, **about: Any) -> list[str]:
    """Why policies are not evaluated."""
    outcome = reviewed(*objects, **about)
    assert outcome.denials == []
    effects = [each.effect for each in outcome.unevaluated]
    assert all(each.endswith(", and may reject") for each in effects)
    return [each.removeprefix("is not evaluated (").removesuffix("), and may reject") for each in effects]


def test_a_policy_denies_what_its_expression_rejects() -> None:
    assert denied(policy(FEW), binding()) == [f"failed expression: {FEW}"]
    assert denied(policy(FEW), binding(), of=deployment(3)) == []


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"message": " too many "}, "too many"),
        ({"messageExpression": "'at most 5, not ' + string(object.spec.replicas)"}, "at most 5, not 7"),
        ({"messageExpression": "'a\\nb'", "message": "own"}, "own"),
        ({"messageExpression": "object.spec.nothing", "message": "own"}, "own"),
        ({"messageExpression": "'  '"}, f"failed expression: {FEW}"),
        ({"messageExpression": "request.userInfo.username", "message": "own"}, "own"),
    ],
)
def test_the_message_of_a_denial(texts: Document, message: str) -> None:
    assert denied(policy({"expression": FEW, **texts}), binding()) == [message]


@pytest.mark.parametrize(
    ("match", "is_denied"),
    [
        ({}, True),
        ({"namespaceSelector": {"matchLabels": {"environment": "test"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"environment": "production"}}}, False),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}}, True),
        ({"objectSelector": {"matchLabels": {"tier": "web"}}}, True),
        ({"objectSelector": {"matchLabels": {"tier": "db"}}}, False),
        ({"objectSelector": {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}}, True),
        ({"excludeResourceRules": [{**DEPLOYMENTS, "resourceNames": ["web"]}]}, False),
        ({"excludeResourceRules": [{**DEPLOYMENTS, "resourceNames": ["other"]}]}, True),
        ({"resourceRules": []}, True),
        ({"resourceRules": [{**DEPLOYMENTS, "operations": ["DELETE"]}]}, False),
        ({"resourceRules": [{**DEPLOYMENTS, "operations": ["*"]}]}, True),
        ({"resourceRules": [{**DEPLOYMENTS, "apiGroups": [""]}]}, False),
        ({"resourceRules": [{**DEPLOYMENTS, "apiVersions": ["v1beta1"]}]}, False),
        ({"resourceRules": [{**DEPLOYMENTS, "resources": ["deployments/scale"]}]}, False),
        ({"resourceRules": [{**DEPLOYMENTS, "resources": ["*/*"]}]}, True),
        ({"resourceRules": [{**DEPLOYMENTS, "scope": "Cluster"}]}, False),
        ({"resourceRules": [{**DEPLOYMENTS, "scope": "Namespaced"}]}, True),
    ],
)
@pytest.mark.parametrize("is_of_binding", [False, True])
def test_what_a_policy_and_its_binding_apply_to(match: Document, *, is_denied: bool, is_of_binding: bool) -> None:
    if is_of_binding:
        objects = policy(FEW), binding(matchResources={"resourceRules": [DEPLOYMENTS], **match})
    else:
        objects = policy(FEW, match=match), binding()
    of = deployment(labels={"tier": "web"})
    assert bool(denied(*objects, of=of, cluster=shop({"environment": "test"}))) == is_denied


def test_an_update_matches_with_the_labels_of_the_old_object() -> None:
    match = {"objectSelector": {"matchLabels": {"tier": "web"}}}
    objects = policy("request.operation != 'UPDATE' || oldObject.spec.replicas == 3", match=match), binding()
    assert denied(*objects, old=deployment(2, labels={"tier": "web"}))
    assert denied(*objects, old=deployment(3, labels={"tier": "web"})) == []
    assert denied(*objects, old=deployment(2)) == []


IN_TEST = {"namespaceSelector": {"matchLabels": {"environment": "test"}}}


def test_unknown_labels_of_a_namespace_leave_a_denial_open() -> None:
    nowhere = ClusterSnapshot()
    outcome = reviewed(policy(FEW, match=IN_TEST), binding(), cluster=nowhere)
    assert [each.effect for each in outcome.unevaluated] == [f"may apply, and then rejects (failed expression: {FEW})"]
    assert outcome.denials == []
    assert denied(policy(FEW, match=IN_TEST), binding(), cluster=nowhere, of=deployment(3)) == []
    other = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}
    assert denied(policy(FEW, match=other), binding(), cluster=nowhere) == []


LIMIT = {"apiVersion": "rules.example.com/v1", "kind": "ReplicaLimit", "maxReplicas": 5}
LIMITED = {"paramKind": {"apiVersion": "rules.example.com/v1", "kind": "ReplicaLimit"}}
BY_PARAMS = "object.spec.replicas <= params.maxReplicas"


def limit(name: str = "limit", maximum: int = 5, namespace: str = "shop", **labels: str) -> Document:
    return {**LIMIT, "maxReplicas": maximum, "metadata": {"name": name, "namespace": namespace, "labels": labels}}


def by_params(reference: Document, *params: Document, **about: Any) -> list[str]:
    cluster = ClusterSnapshot(namespaces=shop().namespaces, listed=("ReplicaLimit",))
    return denied(policy(BY_PARAMS, **LIMITED), binding(paramRef=reference), *params, **{"cluster": cluster, **about})


FAILED = f"failed expression: {BY_PARAMS}"
NOT_FOUND = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"


@pytest.mark.parametrize(
    ("reference", "params", "messages"),
    [
        ({"name": "limit"}, [limit()], [FAILED]),
        ({"name": "limit"}, [limit(maximum=9)], []),
        ({"name": "limit", "namespace": "rules"}, [limit(maximum=9), limit(namespace="rules")], [FAILED]),
        ({"name": "limit", "parameterNotFoundAction": "Deny"}, [limit("other")], [NOT_FOUND]),
        ({"name": "limit", "parameterNotFoundAction": "Allow"}, [limit("other")], []),
        ({"name": "limit", "parameterNotFoundAction": "Deny"}, [], [NOT_FOUND]),
        ({"selector": {"matchLabels": {"env": "test"}}}, [limit(env="test"), limit("all", 9, env="test")], [FAILED]),
        ({"selector": {}}, [limit(), limit("low", 2)], [FAILED, FAILED]),
        ({"selector": {"matchLabels": {"env": "x"}}, "parameterNotFoundAction": "Deny"}, [limit()], [NOT_FOUND]),
    ],
)
def test_parameters(reference: Document, params: list[Document], messages: list[str]) -> None:
    assert by_params(reference, *params) == messages


def test_cluster_scoped_parameters() -> None:
    own = {**LIMIT, "metadata": {"name": "limit"}}
    assert by_params({"name": "limit"}, own) == [FAILED]
    (message,) = by_params({"name": "limit", "namespace": "shop"}, own)
    assert message.endswith("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")


def test_parameters_that_were_not_read() -> None:
    objects = policy(BY_PARAMS, **LIMITED), binding(paramRef={"name": "limit"})
    assert unevaluated(*objects) == ["its parameters (ReplicaLimit) were not read"]
    assert denied(*objects, limit()) == [FAILED], "the one that is needed is known"
    selecting = binding(paramRef={"selector": {}})
    assert unevaluated(objects[0], selecting, limit()) == ["its parameters (ReplicaLimit) were not read"]
    other = {**limit(), "apiVersion": "rules.example.com/v2"}
    assert unevaluated(*objects, other) == [
        "its parameters (ReplicaLimit) are in another version than rules.example.com/v1"
    ]


def test_a_policy_without_parameters_in_its_binding_gets_null() -> None:
    assert denied(policy("params == null", **LIMITED), binding()) == []


@pytest.mark.parametrize(
    ("conditions", "failure_policy", "messages"),
    [
        (["true"], "Fail", [f"failed expression: {FEW}"]),
        (["true", "false"], "Fail", []),
        (
            ["object.spec.nothing == 1"],
            "Fail",
            ["expression 'object.spec.nothing == 1' resulted in error: no such key: nothing"],
        ),
        (["object.spec.nothing == 1"], "Ignore", []),
        (["object.spec.nothing == 1", "false"], "Fail", []),
        (["!(request.userInfo.username == 'me')", "false"], "Fail", []),
        (["namespaceObject == null"], "Fail", [f"failed expression: {FEW}"]),
        (["request.kind.kind == 'Deployment' && request.name == 'web'"], "Fail", [f"failed expression: {FEW}"]),
        (["request.resource.resource == 'pods'"], "Fail", []),
    ],
)
def test_match_conditions(conditions: list[str], failure_policy: str, messages: list[str]) -> None:
    listed = [{"name": f"c{index}", "expression": each} for index, each in enumerate(conditions)]
    assert denied(policy(FEW, matchConditions=listed, failurePolicy=failure_policy), binding()) == messages


@pytest.mark.parametrize(("failure_policy", "count"), [("Fail", 1), ("Ignore", 0), (None, 1)])
def test_an_error_of_an_expression_is_a_failure(failure_policy: str | None, count: int) -> None:
    spec = {"failurePolicy": failure_policy} if failure_policy else {}
    found = denied(policy("object.spec.nothing > 1", **spec), binding())
    assert found == ["expression 'object.spec.nothing > 1' resulted in error: no such key: nothing"] * count


def test_an_error_counts_for_nothing_if_defaults_may_be_missing() -> None:
    ingress = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i", "namespace": "shop"}}
    rule = {**DEPLOYMENTS, "apiGroups": ["networking.k8s.io"], "resources": ["ingresses"]}
    about: Any = {"of": ingress, "resource": "ingresses"}
    objects = policy("object.spec.nothing == 1", rules=[rule]), binding()
    assert unevaluated(*objects, **about) == [
        "expression 'object.spec.nothing == 1' resulted in error: no such key: nothing"
    ]


@pytest.mark.parametrize(
    "expression",
    [
        "variables.few",
        "has(variables.few) && variables.few",
        "variables.names.all(name, name != 'web')",
        "variables.images.all(each, each.startsWith('registry.example.com/'))",
        "!variables.broken",
    ],
)
def test_variables(expression: str) -> None:
    texts = {
        "limit": "5",
        "few": "object.spec.replicas <= variables.limit",
        "names": "object.spec.template.spec.containers.map(each, each.name)",
        "images": "object.spec.template.spec.containers.map(each, each.image)",
        "broken": "object.spec.nothing",
    }
    variables = [{"name": name, "expression": text} for name, text in texts.items()]
    (message,) = denied(policy(expression, variables=variables), binding())
    is_error = "broken" in expression
    assert ('composited variable "broken" fails to evaluate: no such key: nothing' in message) == is_error


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("request.userInfo.username != 'me'", "request.userInfo is unknown"),
        ("authorizer.group('apps').resource('deployments').check('create').allowed()", "authorizer is unknown"),
        ("authorizer.requestResource.check('get').allowed()", "authorizer is unknown"),
        ("object.metadata.uid != ''", "the value of uid is unknown"),
        ("size(object.metadata) < 3", "the value of uid is unknown"),
        ("has(object.status.replicas)", "the value of status is unknown"),
        ("has(request.options.dryRun)", "request.options is unknown"),
        ("namespaceObject.metadata.annotations.owner == 'me'", "the value of annotations is unknown"),
        ("variables.user != 'me'", "request.userInfo is unknown"),
        ("object.spec.nothing == 1 || request.userInfo.username == 'me'", "request.userInfo is unknown"),
        ("object.spec.unknown()", None),
        ("object.spec.replicas", None),
    ],
)
def test_what_is_not_evaluated(expression: str, reason: str | None) -> None:
    variables = [{"name": "user", "expression": "request.userInfo.username"}]
    (found,) = unevaluated(policy(expression, variables=variables), binding())
    assert found == reason if reason else found.startswith("an expression cannot be compiled: ")


@pytest.mark.parametrize(
    "expression",
    [
        "request.userInfo.username == 'me' || object.spec.replicas > 5",
        "object.spec.replicas > 5 || object.metadata.uid == 'a'",
        "object.spec.replicas < 5 ? authorizer.path('/').check('get').allowed() : true",
    ],
)
def test_something_unknown_does_not_count_if_the_rest_decides(expression: str) -> None:
    assert denied(policy(expression), binding()) == []


@pytest.mark.parametrize(
    ("actions", "denials", "warnings"),
    [(["Deny"], 1, 0), (["Warn"], 0, 1), (["Audit"], 0, 0), (["Deny", "Audit"], 1, 0), (["Warn", "Audit"], 0, 1)],
)
def test_validation_actions(actions: list[str], denials: int, warnings: int) -> None:
    outcome = reviewed(policy(FEW), binding(validationActions=actions))
    assert (len(outcome.denials), len(outcome.warnings), outcome.unevaluated) == (denials, warnings, [])
    start = f"Validation failed for ValidatingAdmissionPolicy 'x' with binding 'y': failed expression: {FEW}"
    assert set(outcome.warnings) <= {start}
    unknown = reviewed(policy("request.userInfo.username == 'me'"), binding(validationActions=actions))
    assert len(unknown.unevaluated) == denials


def test_bindings_that_were_not_read() -> None:
    assert unevaluated(policy(FEW)) == ["its bindings were not read"]
    read = ClusterSnapshot(namespaces=shop().namespaces, listed=("ValidatingAdmissionPolicyBinding",))
    assert unevaluated(policy(FEW), cluster=read) == []


def test_the_object_is_as_the_api_server_encodes_it() -> None:
    containers = "object.spec.containers.all(each, {})".format
    for expression in (
        "!has(object.spec.hostNetwork) && !has(object.metadata.labels)",
        containers("has(each.resources) && !has(each.resources.requests)"),
        containers("!has(each.env) && each.imagePullPolicy == 'IfNotPresent'"),
        "object.spec.automountServiceAccountToken == false && !has(object.spec.volumes)",
        "object.spec.overhead.cpu == '1500m' && quantity(object.spec.overhead.cpu).isGreaterThan(quantity('1'))",
    ):
        of = pod(hostNetwork=False, automountServiceAccountToken=False, overhead={"cpu": 1.5})
        of["metadata"]["labels"] = {}
        assert denied(policy(expression, rules=[PODS]), binding(), of=of, resource="pods") == []


def test_a_new_pod_is_as_the_default_plugins_change_it() -> None:
    limits = LimitRangeItem(type="Container", default={"cpu": quantity("1")}, default_request={"cpu": quantity("500m")})
    ranges = [LimitRange(metadata=ObjectMeta(namespace="shop"), spec=LimitRangeSpec(limits=[limits]))]
    made = pod()
    made["metadata"]["labels"] = {"app": "web", "pod-template-hash": "new"}
    of = admitted_pod(made, ranges, is_generated=True)
    for expression in (
        "object.spec.serviceAccountName == 'default' && object.spec.tolerations.size() == 2",
        "object.spec.containers[0].resources.limits.cpu == '1'",
        "object.spec.containers[0].resources.requests.cpu == '500m'",
        "object.spec.volumes[0].projected.sources.size() == 3 && object.metadata.labels.app == 'web'",
        "object.spec.containers[0].volumeMounts[0].readOnly == true",
    ):
        assert denied(policy(expression, rules=[PODS]), binding(), of=of, resource="pods") == []
    for expression in (
        "object.metadata.name != ''",
        "request.name != ''",
        "object.metadata.labels['pod-template-hash'] != ''",
    ):
        assert unevaluated(policy(expression, rules=[PODS]), binding(), of=of, resource="pods")


@pytest.mark.parametrize(
    ("tolerations", "count"),
    [
        pytest.param([], 2, id="none"),
        pytest.param([{"operator": "Exists"}], 1, id="of all taints"),
        pytest.param([{"operator": "Exists", "effect": "NoSchedule"}], 3, id="of all taints with another effect"),
        pytest.param([{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}], 2, id="of one taint"),
        pytest.param([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}], 3, id="of another effect"),
    ],
)
def test_a_new_pod_gets_the_default_tolerations_that_it_lacks(tolerations: list[Document], count: int) -> None:
    made = pod()
    made["spec"]["tolerations"] = tolerations
    assert len(admitted_pod(made)["spec"]["tolerations"]) == count


def test_a_new_pod_has_one_account_in_both_fields() -> None:
    made = pod()
    made["spec"]["serviceAccount"] = "web"
    spec = admitted_pod(with_defaults(made))["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("web", "web")


@pytest.mark.parametrize("kind", ["Mutating", "Validating"])
@pytest.mark.parametrize(
    ("hook", "is_called"),
    [
        ({}, True),
        ({"rules": [PODS]}, False),
        ({"rules": []}, False),
        ({"rules": [{**DEPLOYMENTS, "apiGroups": ["*"], "resources": ["*"]}]}, True),
        ({"failurePolicy": "Ignore"}, True),
        (IN_TEST, False),
        ({"objectSelector": {"matchLabels": {"a": "b"}}}, False),
        ({"matchConditions": [{"name": "a", "expression": "object.spec.replicas < 3"}]}, False),
        ({"matchConditions": [{"name": "a", "expression": "request.userInfo.username != 'me'"}]}, True),
    ],
)
def test_webhooks(kind: str, hook: Document, *, is_called: bool) -> None:
    outcome = reviewed(webhook(kind, DEPLOYMENTS, **hook))
    assert [each.subject for each in outcome.unevaluated] == [f"{kind}WebhookConfiguration k"] * is_called


def test_what_may_change_the_object_leaves_denials_open() -> None:
    for each in (
        webhook("Mutating", DEPLOYMENTS),
        registration("MutatingAdmissionPolicy", "k", matchConstraints={"resourceRules": [DEPLOYMENTS]}),
    ):
        outcome = reviewed(each, policy(FEW), binding())
        assert outcome.denials == []
        assert [found.subject for found in outcome.unevaluated] == ["", f"{each['kind']} k"]
    assert reviewed(webhook("Validating", DEPLOYMENTS), policy(FEW), binding()).denials


def test_nothing_applies_to_policies_and_webhooks() -> None:
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    hooks = webhook("Validating", everything), policy("false", rules=[everything]), binding()
    assert reviewed(*hooks, of=binding(), resource="validatingadmissionpolicybindings") == Outcome([], [], [])
    assert len(reviewed(*hooks).denials) == 1


def test_a_namespace_of_the_change_has_its_own_labels() -> None:
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "shop", "labels": {"environment": "test"}},
    }
    expression = "namespaceObject.metadata.labels.environment != 'test' && namespaceObject.metadata.name == 'shop'"
    assert denied(policy(expression, match=IN_TEST), binding(), namespace)
    rule = {**DEPLOYMENTS, "apiGroups": [""], "resources": ["namespaces"]}
    objects = policy("namespaceObject != null", rules=[rule], match=IN_TEST), binding()
    assert denied(*objects, of=namespace, resource="namespaces")
