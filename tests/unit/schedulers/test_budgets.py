"""Which budgets select a pod, and how many selectors are read to say so."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from kpreempt.model.labels import LabelSelector, SelectorIndex
from kpreempt.schedulers import budgets
from kpreempt.schedulers.budgets import SelectingBudgets
from tests.factories import make_budget, make_pod

WEB = {"app": "web"}


def test_selectors_are_read_only_in_namespaces_of_pods_that_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def noted(selectors: Iterable[LabelSelector]) -> SelectorIndex:
        known = list(selectors)
        read.append(len(known))
        return SelectorIndex(known)

    monkeypatch.setattr(budgets, "SelectorIndex", noted)
    given = [
        make_budget("other", WEB, 1, namespace="bank"),
        make_budget("everything", {}, 1),
        make_budget("web", WEB, 1),
        make_budget("db", {"app": "db"}, 1),
    ]
    selecting = SelectingBudgets(given)
    assert read == []
    assert selecting.selecting(make_pod("web", labels=WEB)) == [given[2]]
    assert selecting.selecting(make_pod("db", labels={"app": "db"})) == [given[3]]
    assert SelectingBudgets(list(given), selecting).selecting(make_pod("web", labels=WEB)) == [given[2]]
    assert read == [2]
    assert selecting.selecting(make_pod("web", namespace="bank", labels=WEB)) == [given[0]]
    assert selecting.selecting(make_pod("web", namespace="none", labels=WEB)) == []
