"""Law: pods decoded with shared parts equal those that msgspec decodes one by one."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpreempt.model.frozen import NO_ITEMS
from kpreempt.model.pod import NO_STATE, ContainerState, ContainerStatus, Pod, PodAnnotations, PodCondition, Volume
from kpreempt.snapshot import decode
from kpreempt.snapshot.decode import PodDecoder, decoder_of
from tests.strategies import Object, running_pods

# Amounts in other notations, fields that nothing reads, and values that are invalid or optional.
AMOUNTS = st.sampled_from(["1", "1000m", "1e3m", 1, 1.0, "0.5", "two", True, None])
ODD_VALUES = st.sampled_from([None, {}, [], "", "x", 0, [{}], {"x": "y"}, [None]])
VOLUMES = st.sampled_from([{"name": "a", "projected": {}}, {"name": "b", "emptyDir": {}}, {"name": "c"}])
CONDITIONS = st.sampled_from(
    [
        *[{"type": "Ready", "status": status, "reason": "R"} for status in ("True", "False")],
        {
            "type": "PodScheduled",
            "status": "False",
            "message": "0/1 nodes",
            "lastTransitionTime": "2026-11-02T00:00:00Z",
        },
        {"type": "Initialized", "status": "True"},
    ]
)
STATUSES = st.sampled_from(
    [
        {"name": "a"},
        {"name": "a", "restartCount": 1},
        {"name": "a", "allocatedResources": {"cpu": "1000m"}},
        {"name": "a", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "message": "m"}}},
        {"name": "a", "restartCount": 2, "lastState": {"terminated": {"exitCode": 1}}, "state": {"running": {}}},
        {"name": "a", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}},
    ]
)
PLACES = st.sampled_from(
    [
        *[("metadata", name) for name in ("name", "labels", "ownerReferences", "annotations", "finalizers", "unread")],
        *[("spec", name) for name in ("containers", "initContainers", "nodeName", "nodeSelector", "affinity")],
        *[("spec", name) for name in ("tolerations", "volumes", "overhead", "priority", "restartPolicy", "unread")],
        *[("status", name) for name in ("phase", "conditions", "containerStatuses", "unread")],
        *[(name,) for name in ("metadata", "spec", "status", "unread")],
    ]
)


@st.composite
def replicas(draw: st.DrawFn) -> list[Object]:
    """Pods, some of them repeated with individual changes."""
    pods = [draw(running_pods(index, "n0", rich=True)) for index in range(2)]
    return [_changed(draw, each) for each in draw(st.lists(st.sampled_from(pods), min_size=1, max_size=6))]


def _changed(draw: st.DrawFn, pod: Object) -> Object:
    pod = json.loads(json.dumps(pod))
    match draw(st.integers(0, 4)):
        case 0:
            pod["spec"]["nodeName"] = draw(st.sampled_from(["n0", "n1"]))
        case 1:
            requests = {name: draw(AMOUNTS) for name in draw(st.permutations(["cpu", "memory"]))}
            for container in pod["spec"].get("containers", []):
                container["resources"] = {"requests": requests}
        case 2:
            pod["spec"]["volumes"] = draw(st.lists(VOLUMES, max_size=2))
            pod["status"]["conditions"] = draw(st.lists(CONDITIONS, max_size=3))
            pod["status"]["containerStatuses"] = draw(st.lists(STATUSES, max_size=2))
        case 3:
            *above, name = draw(PLACES)
            within = pod
            for each in above:
                within = within.setdefault(each, {})
            within[name] = draw(ODD_VALUES)
    return pod


@given(pods=replicas(), indent=st.sampled_from([None, 2]))
def test_parts_that_are_known_by_their_texts_are_what_the_texts_say(pods: list[Object], indent: int | None) -> None:
    decoder = PodDecoder()
    for pod in pods:
        text = json.dumps(pod, indent=indent).encode()
        assert _read(decoder.decode, text) == _read(lambda text: _trimmed(decoder_of(Pod).decode(text)), text)


@given(pods=replicas())
def test_pods_are_equal_however_they_are_read(pods: list[Object]) -> None:
    decoder = PodDecoder()
    for pod in pods:
        text = json.dumps(pod).encode()
        if _read(decoder.decode, text) is not None:
            assert _read(lambda text: decoder.shared(decoder_of(Pod).decode(text)), text) == _read(decoder.decode, text)


def test_pods_are_the_same_after_shared_texts_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "_MAX_PARTS", 2)
    decoder = PodDecoder()
    for number in [*range(5), *range(5)]:
        text = json.dumps({"metadata": {"labels": {"number": str(number)}}, "spec": {"priority": number}}).encode()
        assert decoder.decode(text) == decoder_of(Pod).decode(text)


def _read(decode: Callable[[bytes], Pod], text: bytes) -> bytes | None:
    """The pod as text, or ``None`` if it is invalid."""
    try:
        return msgspec.json.encode(decode(text), enc_hook=str)
    except msgspec.ValidationError:
        return None


def _trimmed(pod: Pod) -> Pod:
    """The pod without fields that nothing reads."""
    changed, status = msgspec.structs.replace, pod.status
    volumes = [each for each in pod.spec.volumes if each != Volume(name=each.name)]
    annotations = None if pod.metadata.annotations == PodAnnotations() else pod.metadata.annotations
    return Pod(
        changed(pod.metadata, annotations=annotations),
        changed(pod.spec, volumes=volumes or (NO_ITEMS if pod.spec.volumes else pod.spec.volumes)),
        changed(
            status,
            conditions=list(filter(_is_read, status.conditions)) if status.conditions else status.conditions,
            container_statuses=_telling(status.container_statuses, status.phase),
            init_container_statuses=_telling(status.init_container_statuses, status.phase),
        ),
    )


def _is_read(condition: PodCondition) -> bool:
    return condition.type in ("Ready", "DisruptionTarget", "PodResizePending", "PodResizeInProgress", "PodScheduled")


def _telling(statuses: list[ContainerStatus], phase: str) -> list[ContainerStatus]:
    if phase == "Pending":
        return statuses
    telling = [
        msgspec.structs.replace(each, state=_failed(each.state), last_state=_failed(each.last_state))
        for each in statuses
        if each.restart_count
        or each.resources is not None
        or each.allocated_resources
        or _failed(each.state) != NO_STATE
    ]
    return telling or (NO_ITEMS if statuses else statuses)


def _failed(state: ContainerState) -> ContainerState:
    ended = state.terminated
    if ended is None or not (ended.exit_code or ended.reason == "OOMKilled"):
        return NO_STATE
    return ContainerState(terminated=msgspec.structs.replace(ended, message="", started_at=None))
