"""The server as an assistant meets it, by the SDK's own client; and answers cut to a size."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client, StdioServerParameters

from kpreempt import Cluster
from kpreempt.mcp.server import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    MIN_CHARACTERS,
    PARSE_ERROR,
    TOOLS,
    answer_text,
    cut,
    error_of,
)

DEMO = Path(__file__).parents[3] / "fixtures" / "demo"
MESSAGE = "0/3 nodes are available: 2 Insufficient cpu, 1 node(s) were unschedulable."
API = (DEMO / "api.yaml").read_text(encoding="utf-8")
NOW = datetime(2026, 11, 21, 3, 12, tzinfo=UTC)
SERVER = StdioServerParameters(
    command=sys.executable,
    args=["-m", "kpreempt", "mcp", "--snapshot", str(DEMO / "cluster.yaml"), "--now", NOW.isoformat()],
    env=dict(os.environ),
)


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster.load(DEMO / "cluster.yaml", now=NOW)


def answer(cluster: Cluster, tool: str, **arguments: Any) -> dict[str, Any]:
    text, is_error = answer_text(tool, arguments, lambda: cluster)
    assert not is_error, text
    return json.loads(text)  # type: ignore[no-any-return]


def test_a_client_lists_the_tools_and_is_answered(cluster: Cluster) -> None:
    async def ask() -> tuple[Any, Any, Any]:
        async with Client(SERVER, read_timeout_seconds=120) as client:
            listed = await client.list_tools()
            explained = await client.call_tool("explain", {"manifest": API, "max_chars": 1_000_000})
            wrong = await client.call_tool("explain", {"pod": "shop/nobody"})
            return listed, explained, wrong

    listed, explained, wrong = anyio.run(ask)
    assert {each.name for each in listed.tools} == set(TOOLS)
    assert all(each.annotations.read_only_hint for each in listed.tools)
    assert all(each.input_schema["additionalProperties"] is False for each in listed.tools)
    found = json.loads(explained.content[0].text)
    assert found["answer"] == cluster.explain(DEMO / "api.yaml").to_dict()
    assert "not instructions" in found["note"]
    assert "cut" not in found
    assert wrong.is_error
    assert wrong.content[0].text.startswith('pod "nobody" in namespace "shop" not found')


def test_events_are_explained_without_a_cluster() -> None:
    def unreachable() -> Cluster:
        raise AssertionError("the cluster is not read")

    text, is_error = answer_text("explain_event", {"text": MESSAGE}, unreachable)
    assert not is_error
    assert "2 Insufficient cpu" in text
    assert answer_text("explain_event", {"text": "hello"}, unreachable) == (
        "text: contains no event, and no message of a scheduler (a FailedScheduling message, or the output of kubectl"
        " describe pod or kubectl get events)",
        True,
    )


@pytest.mark.parametrize(
    ("tool", "arguments", "kind"),
    [
        pytest.param("cluster", {}, None, id="cluster"),
        pytest.param("explain", {"pod": "shop/web-6d8f9b7c54-nk6q5"}, "Verdict", id="explain"),
        pytest.param("explain_event", {"text": MESSAGE}, "ExplainedEvents", id="explain_event"),
        pytest.param("pending", {}, "PendingPods", id="pending"),
        pytest.param("budgets", {"namespace": "shop"}, "BudgetAudit", id="budgets"),
        pytest.param("at_risk", {"limit": 2}, "PodsAtRisk", id="at_risk"),
        pytest.param("who_evicted", {"pod": "shop/web-6d8f9b7c54-nk6q5"}, "EvictionsOfPod", id="who_evicted"),
        pytest.param("who_evicted", {}, "EvictedPods", id="who_evicted in all namespaces"),
        pytest.param("check", {"manifest": API, "rules": {"max-victims": 0}}, "Check", id="check"),
        pytest.param("check", {"manifest": API, "applied_by": "helm"}, "Check", id="check of a release of Helm"),
        pytest.param("drain", {"nodes": ["node-a"], "ignore_daemonsets": True, "force": True}, "Drain", id="drain"),
        pytest.param("compare", {"algorithms": ["auto", "kube-1.29"], "manifest": API}, "Comparison", id="compare"),
    ],
)
def test_each_tool_answers_within_its_size(cluster: Cluster, tool: str, arguments: Any, kind: str | None) -> None:
    assert answer(cluster, tool, **arguments)["answer"].get("kind") == kind
    text, is_error = answer_text(tool, {**arguments, "max_chars": MIN_CHARACTERS}, lambda: cluster)
    assert not is_error
    assert len(text) <= MIN_CHARACTERS
    whole = answer(cluster, tool, max_chars=1_000_000, **arguments)["answer"]
    found = json.loads(text)
    assert ("cut" in found) == (found["answer"] != whole)


def test_what_a_check_ignores_is_reported_within_the_size(cluster: Cluster) -> None:
    ignored = [
        {"apiVersion": "security.istio.io/v1", "kind": f"Policy{number}", "metadata": {"name": "a"}}
        for number in range(200)
    ]
    manifest = "\n---\n".join(map(json.dumps, [yaml.safe_load(API), *ignored]))
    assert answer(cluster, "check", manifest=API).get("warnings") is None
    reported = answer(cluster, "check", manifest=manifest, max_chars=1_000_000)["warnings"]
    assert reported
    for size in (MIN_CHARACTERS, 2 * MIN_CHARACTERS, 5 * MIN_CHARACTERS):
        text, _ = answer_text("check", {"manifest": manifest, "max_chars": size}, lambda: cluster)
        assert len(text) <= size
        assert json.loads(text).get("warnings") == reported or "warnings" in str(json.loads(text)["cut"])


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        pytest.param("shell", {}, "unknown tool", id="no tool"),
        pytest.param("explain", {}, "a pod or a manifest", id="nothing"),
        pytest.param("explain", {"pod": "a", "manifest": API}, "cannot be used together", id="both"),
        pytest.param("explain", {"snapshot": "/etc/passwd"}, "unknown field", id="a file"),
        pytest.param("explain", {"manifest": "x" * ((1 << 20) + 1)}, "length", id="a huge manifest"),
        pytest.param("explain", {"manifest": "[" * 100_000}, "nested", id="depths"),
        pytest.param("explain", {"manifest": "\x1b[31m: {"}, "manifest", id="no YAML"),
        pytest.param("explain", {"pod": "\u202ea"}, "not found", id="a hidden name"),
        pytest.param("explain_event", {}, "text", id="no event"),
        pytest.param("explain_event", {"text": MESSAGE, "event": "/etc/passwd"}, "unknown field", id="an event's file"),
        pytest.param("explain_event", {"text": "\ud800"}, "no event", id="half a character"),
        pytest.param("pending", {"max_chars": 1}, "max_chars", id="too small"),
        pytest.param("check", {}, "no manifests", id="no manifests"),
        pytest.param("check", {"manifest": API, "applied_by": "x"}, "unknown tool", id="no tool"),
        pytest.param("check", {"manifest": API, "rules": {"config": "x"}}, "unknown rule", id="no rule"),
        pytest.param("drain", {"nodes": ["--kubeconfig=x"]}, "not found", id="an option for a node"),
        pytest.param("drain", {"nodes": 5}, "Expected", id="no list"),
    ],
)
def test_what_is_wrong_is_one_message(cluster: Cluster, tool: str, arguments: Any, words: str) -> None:
    text, is_error = answer_text(tool, arguments, lambda: cluster)
    assert is_error
    assert words in text
    assert text.isprintable()
    assert len(text) <= 1000


def test_hidden_characters_of_the_cluster_are_shown_as_what_they_are() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"pods": "9"}}}
    metadata = {"name": "p", "namespace": "s", "labels": {"a": "b"}}
    spec = {"schedulerName": "x\u202e\u200b\x1b[2J", "containers": [{"name": "c", "image": "i"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    text, _ = answer_text("explain", {"pod": "s/p"}, lambda: Cluster.of([node, pod], now=NOW))
    assert "x" in text
    assert not {"\u202e", "\u200b", "\x1b"} & set(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(st.text(max_size=8), inner, max_size=60),
    max_leaves=200,
)


@given(st.dictionaries(st.text(max_size=8), JSON, max_size=20), st.integers(800, 5_000))
def test_a_cut_document_says_so_and_a_whole_one_is_as_it_was(document: dict[str, Any], size: int) -> None:
    found, missing = cut(document, size)
    assert (found == document) == (not missing)
    assert cut(document, size) == (found, missing)
    whole = len(json.dumps(document, ensure_ascii=False))
    assert bool(missing) == (whole > size)


def test_without_a_caller_the_command_says_so_in_one_line() -> None:
    command = [*(SERVER.command, *SERVER.args)]
    ran = subprocess.run(["sh", "-c", 'exec "$@" <&-', "sh", *command], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "must be started by an MCP client" in ran.stderr
    assert ran.stderr.count("\n") <= 2


INITIALIZE = {
    **{"jsonrpc": "2.0", "id": 0, "method": "initialize"},
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
PING = b'{"jsonrpc":"2.0","id":6,"method":"ping","params":{"a":%s}}'
# Lines with the id and the code of the error that answers each.
WRONG_LINES = [
    pytest.param(b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, INVALID_REQUEST, id="id null"),
    pytest.param(b'{"jsonrpc":"2.0","id":{},"method":"ping"}', None, INVALID_REQUEST, id="an object as id"),
    pytest.param(b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', None, INVALID_REQUEST, id="a list as id"),
    pytest.param(b'{"jsonrpc":"2.0","id":true,"method":"ping"}', None, INVALID_REQUEST, id="true as id"),
    pytest.param(b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', None, INVALID_REQUEST, id="a fraction as id"),
    pytest.param(b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', None, INVALID_REQUEST, id="a batch"),
    pytest.param(b"[]", None, INVALID_REQUEST, id="an empty batch"),
    pytest.param(b'{"jsonrpc":"1.0","id":5,"method":"ping"}', 5, INVALID_REQUEST, id="version 1.0"),
    pytest.param(b'{"id":"a","method":"ping"}', "a", INVALID_REQUEST, id="no version"),
    pytest.param(b'{"jsonrpc":2.0,"id":5,"method":"ping"}', 5, INVALID_REQUEST, id="a number as version"),
    pytest.param(PING % (b"[" * 100_000 + b"]" * 100_000), None, PARSE_ERROR, id="depth 100,000"),
    pytest.param(PING % rb'"\ud800"', None, PARSE_ERROR, id="a lone surrogate"),
    pytest.param(b'{"jsonrpc":"2.0","id":8,"method":"\xff"}', None, PARSE_ERROR, id="no UTF-8"),
    pytest.param(b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % (b"9" * 5_000), None, PARSE_ERROR, id="a long number"),
    pytest.param(b"GET / HTTP/1.1", None, PARSE_ERROR, id="no JSON"),
    pytest.param(b'{"jsonrpc":"2.0","id":1,', None, PARSE_ERROR, id="half of a request"),
    pytest.param(b"null", None, INVALID_REQUEST, id="null"),
    pytest.param(b'"ping"', None, INVALID_REQUEST, id="a string"),
    pytest.param(b"{}", None, INVALID_REQUEST, id="an empty object"),
    pytest.param(b'{"jsonrpc":"2.0","id":9}', 9, INVALID_REQUEST, id="no method"),
    pytest.param(b'{"jsonrpc":"2.0","id":10,"method":5}', 10, INVALID_REQUEST, id="a number as method"),
    pytest.param(b'{"jsonrpc":"2.0","id":11,"method":"ping","params":[1]}', 11, INVALID_PARAMS, id="a list as params"),
    pytest.param(b'{"jsonrpc":"2.0","id":12,"result":5}', 12, INVALID_REQUEST, id="a bad response"),
    pytest.param(b"x" * 20_000_000, None, INVALID_REQUEST, id="a line of 20 MB"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "id_", "code"), WRONG_LINES)
def test_a_line_that_is_wrong_is_refused(line: bytes, id_: int | str | None, code: int) -> None:
    rejection = error_of(line)
    assert rejection is not None
    assert (rejection.id, rejection.code) == (id_, code)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(json.dumps(INITIALIZE).encode(), id="a request"),
        pytest.param(b'{"jsonrpc":"2.0","id":"x","method":"tools/call","params":null}', id="no params"),
        pytest.param(b'{"jsonrpc":"2.0","method":"notifications/initialized"}', id="a notification"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"result":{}}', id="a response"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}', id="an error"),
    ],
)
def test_a_message_is_not_refused(line: bytes) -> None:
    assert error_of(line) is None


def test_the_server_answers_every_wrong_line_and_goes_on() -> None:
    lines = [json.dumps(INITIALIZE).encode(), b'{"jsonrpc":"2.0","method":"notifications/initialized"}']
    unanswered = {"jsonrpc": "2.0", "id": "unknown", "method": "tools/call", "params": {"name": 5}}
    lines += [*(each.values[0] for each in WRONG_LINES), json.dumps(unanswered).encode(), b""]  # type: ignore[misc]
    lines += [b'{"jsonrpc":"2.0","id":99,"method":"ping"}']
    command = [SERVER.command, *SERVER.args]
    run = subprocess.run(command, input=b"\n".join(lines) + b"\n", capture_output=True, check=False, timeout=120)
    replies = [json.loads(line) for line in run.stdout.splitlines()]
    errors = sorted((str(each["id"]), each["error"]["code"]) for each in replies if "error" in each)
    expected = [(str(each.values[1]), each.values[2]) for each in WRONG_LINES]
    assert errors == sorted([*expected, ("unknown", INVALID_PARAMS)])
    assert {"jsonrpc": "2.0", "id": 99, "result": {}} in replies
    assert run.returncode == 0
