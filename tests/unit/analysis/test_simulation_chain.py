"""Which pods were evicted for which, if pods keep their names."""

from __future__ import annotations

from kpreempt.analysis.simulation.result import Chain
from kpreempt.model.meta import ObjectMeta
from kpreempt.model.pod import Pod


def pod(name: str) -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace="shop"))


def reported(chain: Chain) -> list[tuple[str, str, int, str, str]]:
    return [(each.pod, each.cause, each.depth, each.replacement, each.lands_on) for each in chain.displaced()]


def test_a_pod_that_goes_for_the_replacement_of_its_own_victim_ends_a_line_and_no_circle() -> None:
    chain = Chain()
    chain.evicted(pod("web"), "shop/db-0", [])
    chain.replaced("shop/web", "shop/web-new")
    chain.bound("shop/db-0", "n1")
    chain.evicted(pod("db-0"), "shop/web-new", [])
    chain.replaced("shop/db-0", "shop/db-0")
    chain.bound("shop/web-new", "n1")
    assert reported(chain) == [
        ("shop/web", "shop/db-0", 1, "shop/web-new", "n1"),
        ("shop/db-0", "shop/web-new", 2, "shop/db-0", ""),
    ]


def test_a_pod_that_a_controller_makes_again_begins_a_line_of_its_own() -> None:
    chain = Chain()
    chain.evicted(pod("db-0"), "shop/api", [])
    chain.replaced("shop/db-0", "shop/db-0")
    chain.bound("shop/db-0", "n2")
    # Its template is another one now.
    chain.created("shop/db-0")
    chain.evicted(pod("web"), "shop/db-0", [])
    assert reported(chain) == [("shop/db-0", "shop/api", 1, "shop/db-0", "n2"), ("shop/web", "shop/db-0", 1, "", "")]
