"""The order of a node's pods as a scheduler's cache has it, held against the cache's own steps."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpreempt.snapshot.recording.changes import Order
from kpreempt.snapshot.recording.orders import CachedPod, NodeOrders


class Cache:
    """What ``cacheImpl`` does to the pods of one node, assumed pods included."""

    def __init__(self) -> None:
        self.pods: list[str] = []

    def add(self, key: str) -> None:
        self.pods.append(key)

    def remove(self, key: str) -> None:
        at = self.pods.index(key)
        self.pods[at] = self.pods[-1]
        del self.pods[-1]

    def update(self, key: str) -> None:
        self.remove(key)
        self.add(key)


def on_node(key: str) -> CachedPod:
    return CachedPod(key, f"uid-{key}", "n1")


def waiting(key: str, *, failed: bool = False, rejection: str = "", gated: bool = False) -> CachedPod:
    return CachedPod(key, f"uid-{key}", "", is_waiting=True, has_failed=failed, rejection=rejection, is_gated=gated)


def order(orders: NodeOrders) -> tuple[list[str], set[str]]:
    known = dict(orders.known())
    return (list(known["n1"].places), set(known["n1"].unplaced)) if known else ([], set())


def test_pods_that_come_and_go_leave_their_place_to_the_last_one() -> None:
    orders = NodeOrders()
    for key in "abcd":
        orders.change(waiting(key))
        orders.change(on_node(key))
    orders.delete("b")
    orders.change(on_node("a"))
    assert order(orders) == (["c", "d", "a"], set())


def test_pods_from_before_have_no_known_place_and_spoil_that_of_who_fills_their_gap() -> None:
    orders = NodeOrders()
    orders.add_existing(on_node("x"))
    orders.add_existing(on_node("y"))
    for key in "ab":
        orders.change(waiting(key))
        orders.change(on_node(key))
    assert order(orders) == (["", "", "a", "b"], {"x", "y"})
    orders.delete("x")
    assert order(orders) == (["", "", "a"], {"y", "b"})


def test_what_happens_while_a_pod_may_be_assumed_leaves_only_what_is_sure() -> None:
    orders = NodeOrders()
    for key in "abc":
        orders.change(waiting(key))
        orders.change(on_node(key))
    orders.change(waiting("d"))
    orders.change(on_node("b"))
    orders.change(on_node("d"))
    # Assumed before the update of b the others stand as a, b, c; after it as a, c, b.
    assert order(orders) == (["a", "", "", "d"], {"b", "c"})


@pytest.mark.parametrize(
    ("before", "after", "known"),
    [
        (waiting("p"), waiting("p"), False),
        (waiting("p", rejection="no node"), waiting("p", rejection="no node"), False),
        (waiting("p", rejection="no node"), waiting("p"), False),
        (waiting("p"), waiting("p", rejection="no node"), True),
        (waiting("p", gated=True), waiting("p"), True),
    ],
)
def test_only_its_scheduler_tells_that_a_pod_was_not_assumed_before_it_changed(
    before: CachedPod, after: CachedPod, known: bool
) -> None:
    orders = NodeOrders()
    for key in "qr":
        orders.change(waiting(key))
        orders.change(on_node(key))
    orders.change(before)
    orders.change(on_node("q"))
    orders.change(after)
    orders.change(on_node("p"))
    # Where it was assumed before q was updated, the two others are as they were.
    assert order(orders) == ((["r", "q", "p"], set()) if known else (["", "", "p"], {"q", "r"}))


@pytest.mark.parametrize("gone", ["failed", "deleted"])
def test_a_pod_that_may_have_been_assumed_before_a_base_leaves_nothing_sure(gone: str) -> None:
    orders = NodeOrders({"n1": Order(["a", "b"], [])})
    for each in (on_node("a"), on_node("b"), waiting("z")):
        orders.add_existing(each)
    # The cache may have had them as z, a, b.
    if gone == "failed":
        orders.change(waiting("z", failed=True))
    else:
        orders.delete("z")
    assert order(orders) == ([], set())


@pytest.mark.parametrize("gone", ["failed", "deleted"])
def test_a_pod_that_may_have_been_assumed_in_vain_leaves_nothing_sure(gone: str) -> None:
    orders = NodeOrders()
    orders.change(waiting("z"))
    for key in "ab":
        orders.change(waiting(key))
        orders.change(on_node(key))
    if gone == "failed":
        orders.change(waiting("z", failed=True))
    else:
        orders.delete("z")
    assert order(orders) == ([], set())


def test_a_pod_that_comes_back_to_its_node_leaves_nothing_sure() -> None:
    """No API server moves a pod; what a recording says may do so all the same."""
    orders = NodeOrders()
    orders.change(waiting("a", gated=True))
    for key in "cba":
        orders.change(on_node(key))
    orders.change(on_node("b")._replace(node="n2"))
    orders.change(waiting("a", gated=True))
    orders.change(on_node("a"))
    assert "n1" not in dict(orders.known())


def test_nothing_is_sure_once_another_scheduler_goes_on() -> None:
    orders = NodeOrders()
    for key in "ab":
        orders.change(waiting(key))
        orders.change(on_node(key))
    orders.forget()
    orders.change(waiting("c"))
    orders.change(on_node("c"))
    assert order(orders) == (["", "", "c"], {"a", "b"})


@settings(deadline=None, max_examples=400)
@given(st.data())
def test_places_that_are_known_are_those_of_the_cache(data: st.DataObject) -> None:
    """Whatever happens in whichever order, with pods from before, assumed, forgotten and gone."""
    cache, orders = Cache(), NodeOrders()
    before = data.draw(st.permutations([f"old-{each}" for each in range(data.draw(st.integers(0, 3)))]))
    for key in before:
        cache.add(key)
    for key in sorted(before):
        orders.add_existing(on_node(key))
    pending: list[str] = []
    assumed: list[str] = []
    bound = list(before)
    for step in range(data.draw(st.integers(1, 20))):
        what = data.draw(st.sampled_from(["create", "assume", "bind", "update", "delete", "fail", "delete waiting"]))
        if what == "create":
            pending.append(f"pod-{step}")
            orders.change(waiting(pending[-1]))
        elif what == "assume" and pending:
            assumed.append(pending.pop(data.draw(st.integers(0, len(pending) - 1))))
            cache.add(assumed[-1])
        elif what == "bind" and assumed:
            key = assumed.pop(data.draw(st.integers(0, len(assumed) - 1)))
            cache.update(key)
            orders.change(on_node(key))
            bound.append(key)
        elif what in ("fail", "delete waiting") and assumed:
            key = assumed.pop()
            cache.remove(key)
            if what == "fail":
                orders.change(waiting(key, failed=True))
                pending.append(key)
            else:
                orders.delete(key)
        elif what in ("update", "delete") and bound:
            key = data.draw(st.sampled_from(bound))
            if what == "update":
                cache.update(key)
                orders.change(on_node(key))
            else:
                bound.remove(key)
                cache.remove(key)
                orders.delete(key)
    # Pods that are still assumed are not known yet: when they end, the order of the rest stays the same.
    for key in assumed:
        orders.change(on_node(key))
        cache.update(key)
    places, unplaced = order(orders)
    if places:
        assert len(places) == len(cache.pods)
        assert all(not mine or mine == its for mine, its in zip(places, cache.pods, strict=True))
        assert unplaced | {each for each in places if each} == set(cache.pods)
