from __future__ import annotations

import pytest

from kpreempt.analysis.pod_selection import PodSelection, parse_selector
from kpreempt.errors import UsageError
from tests.factories import make_pod


@pytest.mark.parametrize(
    ("selector", "is_selected"),
    [
        pytest.param("", True, id="no selector takes all"),
        pytest.param("app=web", True, id="equal"),
        pytest.param("app==api", False, id="not equal"),
        pytest.param("app!=api", True, id="unequal"),
        pytest.param("tier!=db", True, id="unequal also where the label is missing"),
        pytest.param("app in (api, web)", True, id="in a set"),
        pytest.param("app notin (api,web),version", False, id="not in a set"),
        pytest.param("version", True, id="has the label"),
        pytest.param("!tier , version=1", True, id="lacks one and has another"),
        pytest.param("app=web,version=2", False, id="all parts must hold"),
        pytest.param("version=", False, id="an empty value is one"),
    ],
)
def test_selectors_are_those_of_kubectl(selector: str, is_selected: bool) -> None:
    pod = make_pod("web-1", labels={"app": "web", "version": "1"})
    assert PodSelection("", parse_selector(selector)).has(pod) is is_selected


def test_a_namespace_takes_its_pods_only() -> None:
    assert PodSelection("shop").has(make_pod("a", namespace="shop"))
    assert not PodSelection("shop").has(make_pod("a", namespace="data"))


@pytest.mark.parametrize("text", ["=web", "app=we b", "app in web", "a b", "app=web,,x", "app>3", "!", "app=-"])
def test_what_is_no_selector_is_wrong_usage(text: str) -> None:
    with pytest.raises(UsageError, match="is not a label selector"):
        parse_selector(text)
