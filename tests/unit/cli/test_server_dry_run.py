"""``check --server-dry-run``: what the API server is sent, what its decisions mean, and that nothing else is sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kpreempt import Cluster, Gate, UsageError
from kpreempt.snapshot.live.api import Api, Reply
from kpreempt.snapshot.live.failures import ClusterError
from tests.fake_api import Answer, FakeApi, FakeCluster, ReceivedRequest, good, refused
from tests.unit.cli.conftest import Kpreempt, Run

NOW = ("--now", "2026-11-21T03:12:00Z")
DRY_RUN = {"dryRun": "All", "fieldManager": "kubectl-client-side-apply", "fieldValidation": "Strict"}
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
RESOURCES = {
    "v1": {"Namespace": "namespaces", "ConfigMap": "configmaps", "Secret": "secrets", "Pod": "pods"},
    "apps/v1": {"Deployment": "deployments"},
    "apiextensions.k8s.io/v1": {"CustomResourceDefinition": "customresourcedefinitions"},
    "example.com/v1": {"Thing": "things"},
}
CLUSTER_WIDE = ("Namespace", "CustomResourceDefinition")


def openapi(api_version: str, *, supports_dry_run: bool = True) -> dict[str, Any]:
    """The OpenAPI document of a group and version; ``example.com`` has custom resources."""
    group, _, version = api_version.rpartition("/")
    paths: dict[str, Any] = {}
    for kind, resource in RESOURCES[api_version].items():
        place = "" if kind in CLUSTER_WIDE else "namespaces/{namespace}/"
        path = f"/{'apis' if group else 'api'}/{api_version}/{place}{resource}"
        operation = {
            "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
            "parameters": [{"name": "dryRun", "in": "query"}] if supports_dry_run else [],
        }
        types = ["merge"] if group == "example.com" else ["merge", "strategic-merge"]
        content = {f"application/{each}-patch+json": {} for each in types}
        paths[path] = {"post": operation}
        paths[f"{path}/{{name}}"] = {"patch": {**operation, "requestBody": {"content": content}}}
    return {"paths": paths}


class Server:
    """A server with some objects, by path, that decides about dry runs as ``decide`` says: by default, it accepts."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.decide: Callable[[ReceivedRequest], Answer | None] = lambda _: None
        self.decided: list[ReceivedRequest] = []
        self.unsupported: set[str] = set()

    def __call__(self, request: ReceivedRequest) -> Answer | None:
        if request.path == "/openapi/v3":
            return good({"paths": {self._key(each): {"serverRelativeURL": self._url(each)} for each in RESOURCES}})
        for each in RESOURCES:
            if request.path == self._url(each):
                return good(openapi(each, supports_dry_run=each not in self.unsupported))
        if request.method == "GET":
            return good(self.objects[request.path]) if request.path in self.objects else None
        self.decided.append(request)
        answer = self.decide(request)
        return answer or good({**self.objects.get(request.path, {}), **request.content, **self._kind(request.path)})

    @staticmethod
    def _key(api_version: str) -> str:
        return f"{'apis' if '/' in api_version else 'api'}/{api_version}"

    def _url(self, api_version: str) -> str:
        return f"/openapi/v3/{self._key(api_version)}"

    @staticmethod
    def _kind(path: str) -> dict[str, Any]:
        words = path.split("/")
        kinds = {resource: kind for kinds in RESOURCES.values() for kind, resource in kinds.items()}
        return {"kind": next(kinds[each] for each in reversed(words) if each in kinds), "metadata": {}}


@pytest.fixture
def api(cluster: FakeCluster) -> Server:
    cluster.special = api = Server()
    return api


Check = Callable[..., Run]


@pytest.fixture
def check(kpreempt: Kpreempt, server: FakeApi, api: Server, tmp_path: Path) -> Check:
    """Checks documents with ``--server-dry-run``."""

    def run(*documents: dict[str, Any], options: tuple[str, ...] = ()) -> Run:
        path = tmp_path / "change.yaml"
        path.write_text("---\n".join(yaml.safe_dump(each, sort_keys=False) for each in documents))
        live = ("--server", server.url, "--server-dry-run", *NOW, "-o", "json")
        return kpreempt("check", "-f", str(path), *live, *options)

    return run


def config_map(name: str = "settings", namespace: str = "shop", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


def pod(name: str = "new", namespace: str = "shop", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "web:1", "resources": {"requests": {"cpu": "10m"}}}]
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fresh"}}
CONFIG_MAP_PATH = "/api/v1/namespaces/shop/configmaps"


def findings(run: Run, rule: str = "apply-rejected") -> list[tuple[str, int, str]]:
    found = json.loads(run.stdout)["findings"]
    return [(each["subject"], each.get("line", 0), each["detail"]) for each in found if each["rule"] == rule]


def assumptions(run: Run) -> list[tuple[str, str, str]]:
    """The assumptions of the dry run: subject, kind and message."""
    found = json.loads(run.stdout).get("assumptions", [])
    return [
        (each["subject"], each["kind"], each["message"].removeprefix("not decided by the dry run: "))
        for each in found
        if each["field"] == "dryRun"
    ]


def test_a_new_object_is_created_as_kubectl_does(check: Check, api: Server) -> None:
    run = check({**config_map(level="1"), "immutable": None})
    assert (run.returncode, findings(run), assumptions(run)) == (0, [], [])
    (request,) = api.decided
    assert (request.method, request.path, request.query) == ("POST", CONFIG_MAP_PATH, DRY_RUN)
    applied = request.content["metadata"].pop("annotations")
    assert request.content == config_map(level="1")
    expected = {**config_map(level="1"), "immutable": None}
    expected["metadata"]["annotations"] = {}
    assert (list(applied), json.loads(applied[LAST_APPLIED])) == ([LAST_APPLIED], expected)


def test_an_existing_object_is_patched_with_the_difference(check: Check, api: Server) -> None:
    last = config_map(kept="1", changed="1", removed="1")
    live = config_map(kept="1", changed="1", removed="1", other="1")
    live["metadata"] |= {"uid": "1", "resourceVersion": "7", "annotations": {LAST_APPLIED: json.dumps(last)}}
    api.objects[f"{CONFIG_MAP_PATH}/settings"] = live
    assert check(config_map(kept="1", changed="2", added="2")).returncode == 0
    (request,) = api.decided
    assert (request.method, request.path, request.query) == ("PATCH", f"{CONFIG_MAP_PATH}/settings", DRY_RUN)
    assert request.headers["content-type"] == ["application/merge-patch+json"]
    assert request.content["data"] == {"changed": "2", "added": "2", "removed": None}
    assert list(request.content["metadata"]) == ["annotations"]


def test_nothing_is_sent_for_an_object_that_stays_as_it_is(check: Check, api: Server) -> None:
    assert check(config_map(level="1")).returncode == 0
    api.objects[f"{CONFIG_MAP_PATH}/settings"] = api.decided.pop().content
    assert check(config_map(level="1")).returncode == 0
    assert api.decided == []


def test_lists_of_custom_resources_are_replaced_those_of_pods_are_merged(check: Check, api: Server) -> None:
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "shop"}}
    injected = [{"name": "main", "image": "web:1"}, {"name": "injected", "image": "proxy:1"}]
    live = {**pod("a"), "spec": {"containers": injected}}
    api.objects["/apis/example.com/v1/namespaces/shop/things/a"] = {**thing, "spec": {"containers": injected}}
    api.objects["/api/v1/namespaces/shop/pods/a"] = live
    check({**thing, "spec": {"containers": [{"name": "main", "image": "web:2"}]}}, {**pod("a")})
    sent = {each.path.split("/")[-2]: each.content["spec"]["containers"] for each in api.decided}
    assert [each["name"] for each in sent["things"]] == ["main"]
    assert [each["name"] for each in sent["pods"]] == ["main", "injected"]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (422, 'ConfigMap "settings" is invalid: data[a b]: Invalid value: "a b": a valid config key must consist of'),
        (400, 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "dta"'),
        (403, 'configmaps "settings" is forbidden: exceeded quota: few, requested: count/configmaps=1, used: 1'),
        (403, 'admission webhook "policy.example.com" denied the request: no owner'),
        (500, 'admission webhook "policy.example.com" denied the request without explanation'),
        (413, "Request entity too large: limit is 3145728"),
    ],
)
def test_a_rejection_is_reported_in_the_words_of_the_server(check: Check, api: Server, status: int, words: str) -> None:
    api.decide = lambda _: refused(status, words)
    run = check(config_map(level="1"))
    assert (run.returncode, assumptions(run)) == (1, [])
    assert findings(run) == [("ConfigMap shop/settings", 1, words)]


def test_a_rejection_is_at_the_line_of_the_field(check: Check, api: Server) -> None:
    words = 'ConfigMap "settings" is invalid: data[a.b/c]: Invalid value'
    details = {"causes": [{"reason": "FieldValueInvalid", "message": "Invalid value", "field": "data[a.b/c]"}]}
    status = {"kind": "Status", "message": words, "code": 422, "details": details}
    api.decide = lambda _: Answer(422, json.dumps(status).encode())
    run = check(config_map(level="1"), config_map("second", **{"first": "1", "a.b/c": "2"}))
    assert sorted((line, detail) for _, line, detail in findings(run)) == [(1, words), (16, words)]


def test_a_rejected_object_is_not_simulated(check: Check, api: Server) -> None:
    api.decide = lambda each: refused(422, "no") if each.path.endswith("/pods") else None
    run = check(pod(), config_map(level="1"))
    changes = {each["object"]: each["kind"] for each in json.loads(run.stdout)["changes"]}
    assert (changes["Pod shop/new"], findings(run)) == ("Rejected", [("Pod shop/new", 1, "no")])
    assert "shop/new" not in json.dumps(json.loads(run.stdout)["simulation"])


def test_the_server_knows_better_than_the_local_rules(check: Check, api: Server) -> None:
    bad = pod(restartPolicy="Sometimes")
    run = check(bad)
    assert (findings(run), len(api.decided)) == ([], 1)
    api.decide = lambda _: refused(500, "Internal error occurred")
    assert "Sometimes" in findings(check(bad))[0][2]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (refused(401, "Unauthorized"), "the API server did not decide (401): Unauthorized"),
        (
            refused(403, 'configmaps is forbidden: User "ci" cannot create resource "configmaps" in API group ""'),
            "the API server did not decide (403): configmaps is forbidden",
        ),
        (
            refused(400, 'admission webhook "a.example.com" does not support dry run'),
            'the API server did not decide (400): admission webhook "a.example.com" does not support dry run',
        ),
        (refused(409, "the object has been modified"), "the API server did not decide (409)"),
        (refused(500, 'failed calling webhook "a.example.com"'), "the API server did not decide (500)"),
        (Answer(200, b"<html>", {"Content-Type": "text/html"}), "returned something other than a ConfigMap"),
        (good({"kind": "Status", "metadata": {}}), "returned something other than a ConfigMap"),
        (Answer(302, b"", {"Location": "https://login"}), "returned something other than a decision (302)"),
        (Answer(403, b"<html>", {"Content-Type": "text/html"}), "returned something other than a decision (403)"),
    ],
)
def test_what_is_not_decided_fails_the_check(check: Check, api: Server, answer: Answer, words: str) -> None:
    api.decide = lambda _: answer
    run = check(config_map(level="1"))
    ((subject, kind, message),) = assumptions(run)
    assert (subject, kind, message[: len(words)]) == ("ConfigMap shop/settings", "Uncertain", words)
    assert (run.returncode, findings(run)) == (1, [])
    assert [each[0] for each in findings(run, "outcome-uncertain")] == ["ConfigMap shop/settings"]


def test_a_server_that_does_not_answer_is_not_sent_more(check: Check, api: Server, cluster: FakeCluster) -> None:
    def special(request: ReceivedRequest) -> Answer | None:
        return refused(401, "Unauthorized") if "/configmaps" in request.path else api(request)

    cluster.special = special
    run = check(*(config_map(f"c{number}") for number in range(50)))
    assert {(kind, "authentication failed" in words) for _, kind, words in assumptions(run)} == {("Uncertain", True)}
    assert (run.returncode, len(assumptions(run)), api.decided) == (1, 50, [])


def test_nothing_is_sent_after_a_request_without_an_answer(
    check: Check, api: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def dry_run(_self: Api, method: str, _path: str, _content: bytes) -> Reply:
        calls.append(method)
        raise ClusterError("no answer within 60s", source="https://server")

    monkeypatch.setattr(Api, "dry_run", dry_run)
    run = check(*(config_map(f"c{number}") for number in range(30)))
    assert {(kind, words) for _, kind, words in assumptions(run)} == {("Uncertain", "no answer within 60s")}
    assert (run.returncode, len(assumptions(run))) == (1, 30)
    # Several are sent at once.
    assert len(calls) <= 6


def test_a_server_that_may_store_the_object_is_sent_nothing(check: Check, api: Server) -> None:
    api.unsupported.add("v1")
    run = check(config_map(level="1"))
    words = "the API server does not show that it supports dry runs of ConfigMap"
    assert assumptions(run) == [("ConfigMap shop/settings", "Uncertain", words)]
    assert (run.returncode, api.decided) == (1, [])


def test_objects_in_a_new_namespace_are_not_decided(check: Check, api: Server) -> None:
    run = check(NAMESPACE, config_map(namespace="fresh"), config_map())
    assert {each.path for each in api.decided} == {"/api/v1/namespaces", CONFIG_MAP_PATH}
    words = "Namespace fresh does not exist yet; the change creates it"
    assert assumptions(run) == [("ConfigMap fresh/settings", "Uncertain", words)]


def test_objects_in_a_namespace_of_the_option_are_not_decided(check: Check, api: Server) -> None:
    api.decide = lambda _: refused(404, 'namespaces "fresh" not found')
    run = check(config_map(namespace="fresh"), options=("--create-namespace",))
    words = "its namespace does not exist yet; --create-namespace creates it"
    assert (assumptions(run), findings(run)) == ([("ConfigMap fresh/settings", "Uncertain", words)], [])
    assert findings(check(config_map(namespace="fresh")))


def test_custom_resources_of_a_new_definition_are_not_decided(check: Check, api: Server) -> None:
    names = {"kind": "Widget", "plural": "widgets"}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]
    spec = {"group": "new.example.com", "names": names, "scope": "Namespaced", "versions": versions}
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
    widget = {"apiVersion": "new.example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "shop"}}
    run = check({**definition, "metadata": {"name": "widgets.new.example.com"}}, widget)
    words = "CustomResourceDefinition widgets.new.example.com does not exist yet; the change creates it"
    assert (assumptions(run), len(api.decided)) == ([("Widget shop/a", "Uncertain", words)], 1)


def test_a_rejection_that_the_change_itself_may_resolve_is_uncertain(check: Check, api: Server) -> None:
    live = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": "a"}}}
    api.objects["/api/v1/namespaces/shop"] = live
    api.decide = lambda each: refused(403, 'pods "new" is forbidden: violates') if each.path.endswith("/pods") else None
    labeled = {**live, "metadata": {"name": "shop", "labels": {"team": "b"}}}
    run = check(labeled, pod())
    words = 'the API server rejects it before the change of Namespace shop: pods "new" is forbidden: violates'
    assert (assumptions(run), findings(run)) == ([("Pod shop/new", "Uncertain", words)], [])
    run = check(live, pod())
    assert (assumptions(run), len(findings(run))) == ([], 1)


def test_warnings_are_notes(check: Check, api: Server) -> None:
    header = '299 - "spec.a: deprecated, \\"b\\" instead", 299 kube "second"'
    accepted = good({"kind": "ConfigMap", "metadata": {}})
    api.decide = lambda _: accepted._replace(headers={**accepted.headers, "Warning": header})
    run = check(config_map(level="1"))
    expected = ['spec.a: deprecated, "b" instead', "second"]
    assert assumptions(run) == [("ConfigMap shop/settings", "Note", f"the API server warns: {e}") for e in expected]
    assert run.returncode == 0


def test_generated_names_are_left_to_the_server(check: Check, api: Server) -> None:
    document = config_map(level="1")
    document["metadata"] = {"generateName": "settings-", "namespace": "shop"}
    assert check(document).returncode == 0
    assert "name" not in api.decided[0].content["metadata"]


def test_the_values_of_secrets_are_sent_but_never_written(check: Check, api: Server, tmp_path: Path) -> None:
    metadata = {"name": "login", "namespace": "shop"}
    data = {"data": {"key": "c3dvcmRmaXNoLTE="}, "stringData": {"plain": "open-sesame-2"}}
    api.decide = lambda _: refused(422, "bad: swordfish-1 or c3dvcmRmaXNoLTE= or open-sesame-2")
    run = check({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, **data})
    assert findings(run)[0][2] == "bad: [redacted] or [redacted] or [redacted]"
    assert api.decided[0].content["stringData"] == {"plain": "open-sesame-2"}
    assert "sesame" not in run.stdout + run.stderr


def test_only_the_change_is_sent_not_its_base(check: Check, api: Server, tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(config_map("old")))
    check(config_map("added"), options=("--base", str(tmp_path / "base.yaml")))
    assert [each.content["metadata"]["name"] for each in api.decided] == ["added"]


def test_a_snapshot_has_no_server(kpreempt: Kpreempt) -> None:
    demo = Path(__file__).parents[3] / "fixtures" / "demo"
    run = kpreempt("check", "-f", str(demo / "api.yaml"), "--snapshot", str(demo / "cluster.yaml"), "--server-dry-run")
    assert (run.returncode, run.complaint) == (2, "--server-dry-run needs a live cluster, not a snapshot\n")


def test_the_library_sends_the_same(server: FakeApi, api: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")
    api.decide = lambda _: refused(422, "no")
    live = Cluster.fetch(server=server.url)
    found = live.check(pod(), gate=Gate(), server_dry_run=True)
    assert [(each.rule, each.detail) for each in found.findings] == [("apply-rejected", "no")]
    assert [each.method for each in api.decided] == ["POST"]
    assert "apply-rejected" not in {each.rule for each in live.check(pod(), gate=Gate()).findings}
    assert len(api.decided) == 1


def test_a_loaded_cluster_has_no_server() -> None:
    with pytest.raises(UsageError, match="needs a live cluster"):
        Cluster.of([]).check(config_map(), server_dry_run=True)


@pytest.mark.parametrize(
    ("configuration", "is_decided"), [("ValidatingWebhookConfiguration", True), ("MutatingWebhookConfiguration", False)]
)
def test_webhooks_that_accept_an_object_are_no_assumption(
    check: Check, api: Server, cluster: FakeCluster, configuration: str, is_decided: bool
) -> None:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"], "scope": "*"}
    hook = {"name": "a.example.com", "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"]}
    cluster.objects = {**cluster.objects, configuration: [{"metadata": {"name": "hooks"}, "webhooks": [hook]}]}
    subject = f"{configuration} hooks"
    accepted = json.loads(check(pod()).stdout)["assumptions"]
    assert (subject in {each["subject"] for each in accepted}) is not is_decided
    api.decide = lambda _: refused(500, "failed")
    undecided = json.loads(check(pod()).stdout)["assumptions"]
    assert subject in {each["subject"] for each in undecided}
