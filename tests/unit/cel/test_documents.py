"""Rules about documents."""

from __future__ import annotations

from typing import Any

import pytest

from kpreempt.cel import CompileError, EvaluationError
from kpreempt.cel.documents import compile_rule

POD: dict[str, Any] = {
    "metadata": {"name": "web-1", "labels": {"app": "web"}},
    "spec": {"priority": 100, "containers": [{"name": "a", "image": "r/a:1"}, {"name": "b"}], "nodeName": None},
}


@pytest.mark.parametrize(
    "expression",
    [
        'pod.metadata.labels.app == "web"',
        "pod.spec.priority > 99.5 && pod.spec.priority <= 100",
        'pod.spec.containers.exists(c, has(c.image) && c.image.startsWith("r/"))',
        'pod.spec.containers.map(c, c.name) == ["a", "b"]',
        "pod.spec.nodeName == null && !has(pod.spec.nope)",
        'pod.metadata.?annotations["x"].orValue("none") == "none"',
        "limit == 3 && pod.spec.containers.size() < limit",
        "other == null",
    ],
)
def test_holds(expression: str) -> None:
    assert compile_rule(expression, ["pod", "limit", "other"]).evaluate({"pod": POD, "limit": 3})


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("pod.spec.nope == 1", "no such key: nope"),
        ("pod.spec.priority == 100 && pod.metadata.name > 1", "no such overload"),
        (
            "pod.metadata.name",
            "CEL result of type string could not be converted to bool: "
            "unsupported native conversion from string to 'bool'",
        ),
    ],
)
def test_fails(expression: str, message: str) -> None:
    with pytest.raises(EvaluationError) as failed:
        compile_rule(expression, ["pod"]).evaluate({"pod": POD})
    assert str(failed.value) == message


def test_names_what_is_no_variable() -> None:
    with pytest.raises(CompileError) as refused:
        compile_rule("pods.size() > 0", ["pod"])
    assert str(refused.value) == (
        "compilation failed: ERROR: <input>:1:1: undeclared reference to 'pods' (in container '')\n"
        " | pods.size() > 0\n | ^"
    )


def test_a_document_that_nests_without_end_is_an_error() -> None:
    document: list[Any] = []
    for _ in range(100_000):
        document = [document]
    with pytest.raises(EvaluationError, match="nested"):
        compile_rule("pod == 1", ["pod"]).evaluate({"pod": document})
