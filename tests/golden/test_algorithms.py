"""The fixtures of ``docs/algorithms.md``: each version's expected result, written by hand, and that all are shown."""

from __future__ import annotations

import pytest

from tests.algorithm_answers import SHOWN, TABLE, answers_on, fixture_names
from tests.generated import ALGORITHMS as DOCUMENT

NO_NODE, IN_VAIN = "stays pending, tries no node", "stays pending, tries node-a"
LANDS, LOW = "lands on node-a", "node-a: evicts low"
FREE, PAIR = "node-b: evicts free", "node-a: evicts web-1 and web-2"
EITHER = "node-a: evicts started-earlier or node-b: evicts started-later"
FIRST, HIGHEST = "node-a: evicts low and high", "node-b: evicts middle"
CLEARS = f"{LOW}, clears the nomination of waiting"
# In the order 1.8, 1.13, 1.18, 1.36.
EXPECTED = {
    "all-four-differ": (
        "node-a: evicts barred",
        "node-b: evicts pair-1 and pair-2",
        "node-c: evicts free",
        "node-d: evicts leaving",
    ),
    "budgets-respected": ("node-a: evicts protected", FREE, FREE, FREE),
    "budgets-counted": (PAIR, PAIR, FREE, FREE),
    "budgets-know-disrupted-pods": ("node-a: evicts web-1", FREE, FREE, "node-a: evicts web-1"),
    "cordoned-node": (NO_NODE, LANDS, LANDS, LANDS),
    "first-victim-or-highest": (HIGHEST, FIRST, FIRST, HIGHEST),
    "full-and-tainted": (NO_NODE, IN_VAIN, IN_VAIN, NO_NODE),
    "host-ports": ("node-a: evicts dns-udp", LANDS, LANDS, LANDS),
    "importance-by-start-time": (
        "node-a: evicts started-earlier",
        "node-a: evicts started-earlier",
        "node-a: evicts started-later",
        "node-a: evicts started-later",
    ),
    "init-containers": (LANDS, LANDS, LOW, LOW),
    "latest-start": (EITHER, EITHER, "node-b: evicts started-later", "node-b: evicts started-later"),
    "node-conditions": (IN_VAIN, LANDS, LANDS, LANDS),
    "nodes-ruled-out": (NO_NODE, NO_NODE, IN_VAIN, NO_NODE),
    "nominated-pods-keep-room": (LANDS, IN_VAIN, IN_VAIN, IN_VAIN),
    "nominations-cleared": (LOW, CLEARS, CLEARS, CLEARS),
    "own-affinity-not-met": (IN_VAIN, NO_NODE, NO_NODE, NO_NODE),
    "own-nomination": (IN_VAIN, IN_VAIN, IN_VAIN, f"{IN_VAIN}, loses its nomination"),
    "own-nomination-without-hope": (NO_NODE, *[f"{NO_NODE}, loses its nomination"] * 3),
    "pod-affinity-terms": (LANDS, NO_NODE, NO_NODE, NO_NODE),
    "preemption-policy-never": (LOW, LOW, LOW, "cannot preempt"),
    "waits-for-its-victims": (*["cannot preempt"] * 3, "node-a: evicts leaving and low"),
}


@pytest.mark.parametrize(("fixture", "answers"), EXPECTED.items(), ids=EXPECTED)
def test_versions_answer_differently(fixture: str, answers: tuple[str, ...]) -> None:
    assert len(answers) == len(SHOWN)
    assert len(set(answers)) > 1
    assert tuple(answers_on(fixture)) == answers


def test_all_four_differ_if_documented() -> None:
    assert len(set(EXPECTED["all-four-differ"])) == len(SHOWN)


def test_every_fixture_has_its_table_and_every_table_its_fixture() -> None:
    shown = [match["fixture"] for match in TABLE.finditer(DOCUMENT.read_text(encoding="utf-8"))]
    assert sorted(shown) == fixture_names() == sorted(EXPECTED)
