"""The formats for programs and for tickets."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml

from kpreempt.errors import UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.report import RenderOptions, render
from kpreempt.report.schema import verdict_schema
from kpreempt.verdict import PodSummary, Verdict
from tests.conformance.cases import FIXTURES, cluster_of, pod_of, read_lines
from tests.factories import NOW, decide, make_budget, make_node, make_pod

STARTED = NOW - timedelta(days=12)


def preempting() -> Verdict:
    cluster = ClusterSnapshot(
        nodes=[make_node("node-a", cpu="2")],
        pods=[make_pod("web-1", node="node-a", cpu="1", priority=10, started=STARTED, labels={"app": "web"})],
        pod_disruption_budgets=[make_budget("web", {"app": "web"}, 0)],
    )
    return decide(cluster, make_pod("api", cpu="2", priority=1000))


def landing() -> Verdict:
    return decide(ClusterSnapshot(nodes=[make_node("node-a"), make_node("node-b")]), make_pod("api", cpu="2"))


def stuck() -> Verdict:
    return decide(ClusterSnapshot(nodes=[make_node("node-a", cpu="1")]), make_pod("api", cpu="2"))


def test_names_are_those_of_all_nodes_that_the_pod_can_end_on() -> None:
    assert render([preempting(), stuck(), landing()], "name") == "node/node-a\nnode/node-a\nnode/node-b\n"


def test_wide_has_a_row_for_each_verdict() -> None:
    lines = render([preempting(), landing(), stuck()], "wide").splitlines()
    assert [line.split()[:6] for line in lines[:2]] == [
        ["POD", "PRIORITY", "OUTCOME", "NODE", "VICTIMS", "VIOLATIONS"],
        ["shop/api", "1,000", "PreemptsViolatingBudgets", "node-a", "1", "1"],
    ]
    assert "node-a or node-b" in lines[2]
    assert "0/1 nodes are available: 1 Insufficient cpu." in lines[3]


def test_wide_without_verdicts_is_the_header() -> None:
    assert render([], "wide").split() == ["POD", "PRIORITY", "OUTCOME", "NODE", "VICTIMS", "VIOLATIONS", "REASON"]


def test_json_of_one_verdict_is_that_verdict_and_says_its_version() -> None:
    document = json.loads(render([preempting()], "json"))
    assert (document["apiVersion"], document["kind"]) == ("kpreempt.io/v1alpha1", "Verdict")
    assert document["candidates"][0]["numPDBViolations"] == 1
    assert document["victims"]["node-a"][0]["budgets"] == [{"budget": "shop/web", "allowed": 0, "remaining": -1}]


@pytest.mark.parametrize("format_name", ["json", "yaml"])
@pytest.mark.parametrize(
    ("verdicts", "as_list", "names"),
    [
        pytest.param([landing(), stuck()], False, ["shop/api", "shop/api"], id="several make a list"),
        pytest.param([landing()], True, ["shop/api"], id="one makes a list on request"),
        pytest.param([], False, [], id="none makes an empty list"),
    ],
)
def test_lists_hold_whole_verdicts(format_name: str, verdicts: list[Verdict], as_list: bool, names: list[str]) -> None:
    text = render(verdicts, format_name, options=RenderOptions(as_list=as_list))
    document = yaml.safe_load(text)
    assert (document["apiVersion"], document["kind"]) == ("kpreempt.io/v1alpha1", "VerdictList")
    assert [f"{item['pod']['namespace']}/{item['pod']['name']}" for item in document["items"]] == names
    assert {item["kind"] for item in document["items"]} <= {"Verdict"}


def test_yaml_is_in_block_style_and_says_the_same_as_json() -> None:
    text = render([preempting()], "yaml")
    assert "\nfilter:\n  node-a:\n    code: Unschedulable\n" in text
    documents = [
        msgspec.convert(yaml.safe_load(text), Verdict),
        msgspec.json.decode(render([preempting()], "json"), type=Verdict),
    ]
    assert documents[0] == documents[1]


def test_jsonl_is_one_line_for_each_verdict() -> None:
    lines = render([preempting(), stuck()], "jsonl").splitlines()
    assert [json.loads(line)["outcome"] for line in lines] == ["PreemptsViolatingBudgets", "Unschedulable"]


def test_an_unknown_format_is_a_wrong_request() -> None:
    with pytest.raises(UsageError, match="unknown output format 'html5'"):
        render([], "html5")


def test_markdown_has_the_answer_the_victims_the_event_and_folded_reasons() -> None:
    text = render([preempting()], "markdown", options=RenderOptions(now=NOW))
    assert text.startswith(
        "### `shop/api` **preempts 1 pod, budget violations: 1**\n\n**shop/api** preempts **1 pod** on"
    )
    row = next(line for line in text.splitlines() if "shop/web-1" in line)
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == ["**shop/web-1**", "10", "-", "12d", "**web (0→-1) VIOLATED**"]
    assert "```text\n0/1 nodes are available: 1 Insufficient cpu.\n```" in text
    assert text.index("<details>") < text.index("NodeResourcesFit") < text.index("</details>")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param("a|b", "<code>shop&#47;a&#124;b</code>", id="a bar stays in its cell"),
        pytest.param("a`b", "<code>shop&#47;a&#96;b</code>", id="a backtick stays in its code"),
        pytest.param("<script>", "`shop/<script>`", id="a tag is code"),
        pytest.param("a\nb", "`shop/a\\x0ab`", id="a line break does not end the row"),
    ],
)
def test_in_markdown_no_name_is_markup(name: str, shown: str) -> None:
    verdict = msgspec.structs.replace(stuck(), pod=PodSummary("shop", name))
    assert render([verdict], "markdown").startswith(f"### {shown} **unschedulable**\n")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param("*bold*", "**shop/\\*bold\\***", id="stars"),
        pytest.param("www.example.com", "**shop/www\\.example.com**", id="an address"),
        pytest.param("<img>", "**shop/\\<img\\>**", id="a tag"),
        pytest.param("[x](y)", "**shop/\\[x\\](y)**", id="a link"),
    ],
)
def test_in_markdown_text_no_name_is_markup(name: str, shown: str) -> None:
    verdict = msgspec.structs.replace(stuck(), pod=PodSummary("shop", name))
    assert render([verdict], "markdown").splitlines()[2].startswith(f"{shown} **is unschedulable now**")


def closed(schema: Any) -> Any:
    """The schema with unknown keys forbidden, so that a document that it does not describe is found."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {key: closed(value) for key, value in schema.items()}
    return copy | {"additionalProperties": False} if "properties" in copy and copy.get("type") == "object" else copy


@pytest.mark.parametrize("suite", ["core", "eligibility", "affinity", "volumes", "spread"])
def test_the_schema_describes_the_verdicts_on_recorded_scenarios(suite: str) -> None:
    validator = jsonschema.Draft202012Validator(closed(verdict_schema()))
    scenarios = [each for each in read_lines(FIXTURES / f"{suite}.jsonl.gz") if "error" not in each["expect"]]
    for each in scenarios:
        verdict = decide(cluster_of(each["objects"]), pod_of(each["pod"]))
        validator.validate(json.loads(render([verdict], "json")))


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(verdict_schema())
