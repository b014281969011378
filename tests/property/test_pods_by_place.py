"""Groups updated from those of another list equal groups built from scratch."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from kpreempt.model.pod import Pod
from kpreempt.schedulers.interface import PodChanges
from kpreempt.schedulers.kube.framework import cluster_state
from kpreempt.schedulers.kube.framework.cluster_state import (
    NOWHERE,
    NominatedTo,
    Position,
    add_by_position,
    moved,
    regrouped,
)
from tests.factories import make_pod

drawn_pods = st.lists(
    st.builds(make_pod, st.sampled_from(["x", "y", "z"]), node=st.sampled_from(["a", "b", ""])),
    max_size=12,
)


def place_of(pod: Pod) -> Position:
    """A place for every name, so that equal pods are in one place and others share it."""
    return pod.spec.node_name or (NominatedTo("n") if pod.metadata.name == "x" else NOWHERE)


def grouped(pods: list[Pod]) -> dict[Position, list[Pod]]:
    groups: dict[Position, list[Pod]] = {"a": [], "b": []}
    add_by_position(groups, pods, place_of)
    return groups


def without_empty(groups: dict[Position, list[Pod]]) -> dict[Position, list[Pod]]:
    return {place: pods for place, pods in groups.items() if pods}


@given(st.data(), drawn_pods, st.sampled_from([1, 2, 512]))
def test_groups_of_a_list_that_was_edited(data: st.DataObject, pods: list[Pod], stretch: int) -> None:
    start, end = sorted(data.draw(st.integers(0, len(pods))) for _ in range(2))
    now = [*pods[:start], *data.draw(drawn_pods), *pods[end:]]
    before = grouped(pods)
    kept = {place: list(group) for place, group in before.items()}
    with patch.object(cluster_state, "_STRETCH", stretch):
        after = before | regrouped(before, pods, now, place_of)
    assert without_empty(after) == without_empty(grouped(now))
    # The previous groups are not changed, and unchanged lists are shared.
    assert before == kept
    assert all(
        after[place] is group for place, group in before.items() if [*map(id, after[place])] == [*map(id, group)]
    )
    # And it can be updated again.
    assert without_empty(after | regrouped(after, now, pods, place_of)) == without_empty(before)


@given(st.data(), drawn_pods, st.sampled_from([1, 2, 512]), st.sampled_from([1, 32]))
def test_groups_of_a_list_in_which_some_are_gone_moved_or_new(
    data: st.DataObject, pods: list[Pod], stretch: int, near: int
) -> None:
    staying = [pod for pod in pods if data.draw(st.booleans())]
    now = data.draw(st.permutations([*staying, *data.draw(drawn_pods)])) if data.draw(st.booleans()) else staying
    with patch.object(cluster_state, "_STRETCH", stretch), patch.object(cluster_state, "_NEAR", near):
        after = grouped(pods) | regrouped(grouped(pods), pods, now, place_of)
    again = without_empty(grouped(now))
    assert {place: [*map(id, group)] for place, group in without_empty(after).items()} == {
        place: [*map(id, group)] for place, group in again.items()
    }


@given(st.data(), st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), unique=True), st.booleans())
def test_groups_of_pods_of_which_the_changes_are_known(data: st.DataObject, names: list[str], goes_last: bool) -> None:
    nodes = st.sampled_from(["a", "b", ""])
    pods = {name: make_pod(name, node=data.draw(nodes)) for name in names}
    before, old = grouped(list(pods.values())), dict(pods)
    for name in data.draw(st.lists(st.sampled_from(["a", "b", "c", "d", "x", "y"]), unique=True)):
        there = pods.get(name)
        if there is not None and (goes_last or data.draw(st.booleans())):
            del pods[name]
        if there is None or data.draw(st.booleans()):
            pods[name] = make_pod(name, node=data.draw(nodes))
    changes = [(old.get(name), pods.get(name)) for name in {**old, **pods}]
    rank = {pod.key: index for index, pod in enumerate(pods.values())}
    after = before | moved(before, PodChanges(changes, rank), place_of)
    assert without_empty(after) == without_empty(grouped(list(pods.values())))
    assert before == grouped(list(old.values()))
