"""What a server does not serve there is none of, and which objects a change names are read one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from kpreempt.model.cluster import Unread
from kpreempt.model.kinds import KINDS
from kpreempt.snapshot.collect import Needs
from kpreempt.snapshot.live.api import Api
from kpreempt.snapshot.live.connection import connect
from kpreempt.snapshot.live.failures import ClusterError
from kpreempt.snapshot.live.flags import ConnectionFlags
from kpreempt.snapshot.live.lists import Objects, read_objects
from tests.fake_api import Answer, FakeApi, FakeCluster, ReceivedRequest, good, refused
from tests.unit.snapshot.live.test_lists import read

CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
Serve = Callable[[ReceivedRequest], Answer | None]


def serving(*versions: str, kinds: tuple[str, ...] = (), broken: bool = False) -> Serve:
    """Discovery of a server with these versions of the group ``resource.k8s.io``, each with resources of the kinds."""
    group = {"name": "resource.k8s.io", "versions": [{"groupVersion": f"resource.k8s.io/{each}"} for each in versions]}

    def answer(requested: ReceivedRequest) -> Answer | None:
        if requested.path == "/apis":
            return good({"kind": "APIGroupList", "groups": [group] if versions else []})
        if requested.path in [f"/apis/resource.k8s.io/{each}" for each in versions]:
            found = [{"name": f"{kind.lower()}s", "kind": kind, "namespaced": True} for kind in kinds]
            status = {"name": "resourceclaims/status", "kind": "ResourceClaim", "namespaced": True}
            return refused(503, "down") if broken else good({"kind": "APIResourceList", "resources": [status, *found]})
        if requested.path == "/apis/resource.k8s.io":
            return good(group) if versions else refused(404, "no such group")
        return None

    return answer


@pytest.mark.parametrize("status", [403, 404])
@pytest.mark.parametrize(
    ("serve", "is_unread"),
    [
        pytest.param(serving(), False, id="the group is not served"),
        pytest.param(serving("v1alpha3", kinds=("DeviceTaintRule",)), False, id="the group has other kinds alone"),
        pytest.param(serving("v1"), False, id="of the kind only what is below it"),
        pytest.param(serving("v2", kinds=("ResourceClaim",)), True, id="the kind is served in another version"),
        pytest.param(serving("v1", broken=True), True, id="the server does not say what it serves"),
        pytest.param(lambda _: None, None, id="no discovery at all"),
    ],
)
def test_a_kind_that_is_not_served_is_none(status: int, serve: Serve, *, is_unread: bool | None) -> None:
    def special(requested: ReceivedRequest) -> Answer | None:
        if requested.path.endswith("/resourceclaims"):
            return refused(status, "no")
        return serve(requested)

    reading, _ = read(FakeCluster({}, special=special))
    # Without discovery a group that is not found has no objects, and a right that is missing stays one.
    expected = status == 403 if is_unread is None else is_unread
    assert list(reading.cluster.unread) == (["ResourceClaim"] if expected else [])


def test_kinds_without_records_are_listed_whole_where_they_are_compared() -> None:
    def special(requested: ReceivedRequest) -> Answer | None:
        return refused(403, "no") if requested.path.endswith("/mutatingwebhookconfigurations") else None

    scaler = {"metadata": {"name": "h", "namespace": "shop"}, "spec": {"maxReplicas": 3}}
    names = ["HorizontalPodAutoscaler", "MutatingWebhookConfiguration"]
    cluster = FakeCluster({"HorizontalPodAutoscaler": [scaler]}, special=special)
    reading, _ = read(cluster, needs=Needs(compare_kinds=names, keep_document=lambda kind, _: kind in names))
    assert set(reading.cluster.listed) == {*KINDS, "HorizontalPodAutoscaler"} - {"Event", "NodeClaim", "ConfigMap"}
    resource = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
    assert reading.cluster.unread == {"MutatingWebhookConfiguration": Unread(403, resource)}
    assert [(each["apiVersion"], each["spec"]) for each in reading.documents] == [("autoscaling/v2", scaler["spec"])]
    assert reading.cluster.skipped == {}


class ExtraFields(NamedTuple):
    api_version: str
    kind: str
    namespace: str
    name: str


GROUP = {"name": "example.com", "versions": [{"groupVersion": "example.com/v1"}]}
RESOURCES = [
    {"name": "widgets", "kind": "Widget", "namespaced": True},
    {"name": "gears", "kind": "Gear", "namespaced": False},
]
W = ExtraFields("example.com/v1", "Widget", "shop", "w")
WIDGET = {"metadata": {"name": "w", "namespace": "shop"}, "spec": {"size": 3}}


def read_from(answers: dict[str, Answer], *extra_fields: ExtraFields) -> tuple[Objects, list[str]]:
    known = {
        "/apis": good({"groups": [GROUP]}),
        "/apis/example.com/v1": good({"resources": RESOURCES}),
        **answers,
    }
    with FakeApi(lambda requested: known.get(requested.path) or refused(404, "not found")) as fake:
        api = Api(connect(ConnectionFlags(server=fake.url), {}), retries=0)
        try:
            return read_objects(api, extra_fields), [each.path for each in fake.requested]
        finally:
            api.close()


OBJECT = "/apis/example.com/v1/namespaces/shop/widgets/w"


@pytest.mark.parametrize(
    ("answers", "extra_fields", "names", "known", "unread"),
    [
        pytest.param({OBJECT: good(WIDGET)}, W, ["w"], ["Widget.example.com"], {}, id="there"),
        pytest.param({}, W, [], ["Widget.example.com"], {}, id="not there"),
        pytest.param(
            {OBJECT: refused(403, "no")},
            *(W, [], [], {"Widget.example.com": Unread(403, "widgets.example.com")}),
            id="not to be read",
        ),
        pytest.param(
            {"/apis/example.com/v1/gears/g": good({"metadata": {"name": "g"}})},
            *(ExtraFields("example.com/v1", "Gear", "shop", "g"), ["g"], ["Gear.example.com"], {}),
            id="of no namespace",
        ),
        pytest.param(
            {},
            ExtraFields("other.com/v1", "Widget", "shop", "w"),
            [],
            ["Widget.other.com"],
            {},
            id="a group not served",
        ),
        pytest.param(
            {}, ExtraFields("example.com/v1", "Bolt", "shop", "b"), [], ["Bolt.example.com"], {}, id="a kind not served"
        ),
        pytest.param(
            {},
            ExtraFields("example.com/v2", "Widget", "shop", "w"),
            [],
            [],
            {"Widget.example.com": Unread(404)},
            id="v2",
        ),
    ],
)
def test_objects_that_a_change_names(
    answers: dict[str, Answer], extra_fields: ExtraFields, names: list[str], known: list[str], unread: dict[str, Unread]
) -> None:
    found, _ = read_from(answers, extra_fields)
    assert [each["metadata"]["name"] for each in found.documents] == names
    assert (found.known, found.unread) == (known, unread)
    assert [(each["apiVersion"], each["kind"]) for each in found.documents] == [extra_fields[:2]] * len(names)


def test_names_cannot_lead_elsewhere() -> None:
    _, requested = read_from({}, ExtraFields("example.com/v1", "Widget", "../x", "a/../../b?c"))
    assert requested[-1] == "/apis/example.com/v1/namespaces/..%2Fx/widgets/a%2F..%2F..%2Fb%3Fc"


@pytest.mark.parametrize(
    "extra_fields",
    [
        ExtraFields("x/../../api/v1/secrets", "Widget", "shop", "w"),
        ExtraFields("../v1", "Widget", "shop", "w"),
        ExtraFields("example.com/v1?a", "Widget", "shop", "w"),
        ExtraFields("", "Widget", "shop", "w"),
        W._replace(name=".."),
        W._replace(namespace=".."),
    ],
)
def test_what_no_server_can_have_is_not_requested(extra_fields: ExtraFields) -> None:
    found, requested = read_from({}, extra_fields)
    assert requested == []
    assert list(found.unread.values()) == [Unread(404)]


def test_a_server_that_fails_is_no_answer() -> None:
    with pytest.raises(ClusterError):
        read_from({OBJECT: refused(500, "broken")}, W)
    broken: Any = good(["no", "object"])
    with pytest.raises(Exception, match="server returned a non-object"):
        read_from({OBJECT: broken}, W)
