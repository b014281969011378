"""Reads the OpenAPI documents of an API server."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kpreempt.snapshot.live.api import Api
from kpreempt.snapshot.live.connection import connect
from kpreempt.snapshot.live.flags import ConnectionFlags
from kpreempt.snapshot.live.schemas import openapi_documents
from tests.fake_api import Answer, FakeApi, ReceivedRequest, good, refused

INDEX = {
    "paths": {
        "api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=1"},
        "apis/apps/v1": {"serverRelativeURL": "/openapi/v3/apis/apps/v1?hash=2"},
        "apis/elsewhere/v1": {"serverRelativeURL": "https://example.com/openapi/v3/x"},
        "apis/secret/v1": {"serverRelativeURL": "/api/v1/secrets"},
    }
}


def documents(answering: Callable[[ReceivedRequest], Answer], *wanted: str) -> tuple[dict[str, object], list[str]]:
    """What is read, and the paths of all requests."""
    requested: list[str] = []

    def answer(request: ReceivedRequest) -> Answer:
        requested.append(request.path)
        return answering(request)

    with FakeApi(answer) as fake:
        found = openapi_documents(Api(connect(ConnectionFlags(server=fake.url), {}), sleep=lambda _: None), wanted)
    return dict(found), requested


def test_the_documents_of_the_wanted_groups_alone_are_read() -> None:
    def answering(requested: ReceivedRequest) -> Answer:
        return good(INDEX if requested.path == "/openapi/v3" else {"path": requested.path})

    found, requested = documents(answering, "apps/v1", "v1", "apps/v1", "gone/v1", "elsewhere/v1", "secret/v1")
    assert found == {"apps/v1": {"path": "/openapi/v3/apis/apps/v1"}, "v1": {"path": "/openapi/v3/api/v1"}}
    assert requested == ["/openapi/v3", "/openapi/v3/apis/apps/v1", "/openapi/v3/api/v1"]


@pytest.mark.parametrize(
    "answering",
    [
        pytest.param(lambda _: refused(403, "no"), id="no permission"),
        pytest.param(lambda _: good([]), id="no index"),
        pytest.param(
            lambda requested: good(INDEX) if requested.path == "/openapi/v3" else refused(404, "no"), id="no document"
        ),
        pytest.param(
            lambda requested: good(INDEX) if requested.path == "/openapi/v3" else good([]), id="another document"
        ),
    ],
)
def test_without_documents_there_is_no_error(answering: Callable[[ReceivedRequest], Answer]) -> None:
    assert documents(answering, "apps/v1")[0] == {}
