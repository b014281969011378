"""Volumes of one size, which the real scheduler takes in Go map order: its results must be among the reported ones.

Each scenario is run several times, with its volumes in another order each time.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st

from kpreempt.analysis.algorithms import scheduler_for
from kpreempt.analysis.explain.pods import ExplainInput, explain_pod
from kpreempt.cli.scenarios import decode_scenario, situation_of
from kpreempt.report.document import encode_json
from tests.conformance.cases import NOW
from tests.parity.kept import write
from tests.parity.reference import CHECKOUT, Answer, Genuine, Scenario
from tests.parity.search import Ask, Search, search_among
from tests.strategies import ZONE, Object

FOLDER = CHECKOUT / "fixtures" / "parity-volume-orders"
TIMES = 12
_WAITS = {"volumeBindingMode": "WaitForFirstConsumer"}
_STORAGE = {"apiVersion": "storage.k8s.io/v1"}


def reported(scenario: Scenario) -> Answer:
    """The verdict on a scenario from a dump, without the scheduler's internal order."""
    read = decode_scenario(json.dumps(scenario).encode(), "scenario", 1)
    scheduler = scheduler_for(feature_gates=read.feature_gates)
    situation = situation_of(read, "scenario", None)
    cluster = msgspec.structs.replace(situation.cluster, has_scheduler_order=False)
    prepared = scheduler.prepare(cluster, now=NOW, is_queued=False)
    verdict = explain_pod(cluster, ExplainInput(pod=situation.pod_to_schedule), scheduler, prepared, now=NOW)
    return {"verdict": json.loads(encode_json(verdict))}


def repeated(ask: Ask, times: int, scenario: Scenario) -> Answer:
    """The real scheduler's results with the volumes in several orders, each different one once."""
    shuffle = random.Random(json.dumps(scenario, sort_keys=True))
    answers: list[Answer] = []
    for _ in range(times):
        others = [each for each in scenario["objects"] if each["kind"] != "PersistentVolume"]
        volumes = [each for each in scenario["objects"] if each["kind"] == "PersistentVolume"]
        shuffle.shuffle(volumes)
        answer = ask({**scenario, "objects": [*others, *volumes]})
        if answer not in answers:
            answers.append(answer)
    return {"answers": answers}


def reported_outcomes(verdict: dict[str, Any]) -> list[Object]:
    """The possible outcomes of the pod: the verdict's own first."""
    own = {
        "nodes": verdict.get("nominatedNodes") or verdict.get("landsOn") or [],
        "victims": {node: [each["pod"] for each in of_node] for node, of_node in verdict.get("victims", {}).items()},
        "message": verdict.get("message", ""),
    }
    others = verdict.get("volumeChoices", {}).get("outcomes", [])
    return [_outcome(**own), *(_outcome(**{**each, "outcome": None}) for each in others)]


def real_outcome(answer: Answer) -> Object:
    """The pod's outcome."""
    if "error" in answer:
        return _outcome([], {}, answer["error"]["message"])
    verdict = answer["verdict"]
    nominated = verdict.get("nominatedNodes") or []
    victims = {each["node"]: each["victims"] for each in verdict.get("candidates", []) if each["node"] in nominated}
    return _outcome(nominated or verdict.get("chosenNodes") or [], victims, verdict.get("message", ""))


def _outcome(
    nodes: Iterable[str] = (), victims: dict[str, list[str]] | None = None, message: str = "", outcome: object = None
) -> Object:
    of_nodes = {node: sorted(pods) for node, pods in sorted((victims or {}).items())}
    return {"nodes": sorted(nodes), "victims": of_nodes, "message": message}


def untold(real: Answer, ours: Answer) -> list[str]:
    """The real scheduler's results that were not reported, one line each."""
    verdict = ours["verdict"]
    if not verdict.get("volumeChoices", {}).get("complete", True):
        return []
    outcomes = reported_outcomes(verdict)
    lines = [f"not told: {outcome}" for answer in real["answers"] if (outcome := real_outcome(answer)) not in outcomes]
    return lines + [line for answer in real["answers"] for line in _untold_nodes(answer, verdict)]


def _untold_nodes(answer: Answer, verdict: dict[str, Any]) -> list[str]:
    """Nodes with another result in the real scheduler, though no order is reported to matter there."""
    fits = {each["node"]: each["fits"] for each in verdict.get("volumeChoices", {}).get("nodes", [])}
    lines = []
    for node, status in answer.get("verdict", {}).get("filter", {}).items():
        ours = verdict["filter"][node]
        if node not in fits and status.get("reasons", []) != ours.get("reasons", []):
            lines.append(f"{node}: want {status.get('reasons')}, got {ours.get('reasons')} in every order")
        is_rejected = status.get("plugin") == "VolumeBinding"
        if (fits.get(node) == "EveryOrder" and is_rejected) or (
            fits.get(node) == "NoOrder" and status["code"] == "Success"
        ):
            lines.append(f"{node}: {fits[node]}, and the status is {status}")
    return lines


def count_outcomes(real: Answer) -> list[str]:
    """How a real result is counted: whether the order mattered."""
    outcomes = {json.dumps(real_outcome(each)) for each in real["answers"]}
    return [f"{len(outcomes)} {'outcome' if len(outcomes) == 1 else 'outcomes'}"]


def volume_order_search(path: Path, examples: int, start: int) -> Search:
    """Draw scenarios until the real scheduler has a result that is not reported."""
    with Genuine(path) as real:
        return search_among(
            equal_volumes(),
            partial(repeated, real.answer, TIMES),
            reported,
            untold,
            count_outcomes,
            examples=examples,
            start=start,
        )


def keep(scenario: Scenario, real: Answer, version: str, folder: Path = FOLDER) -> Path:
    """Write the scenario, named after its content, with all results of the scheduler of that version."""
    return write(scenario, real, f"kube-scheduler {version}", folder)


@st.composite
def _volumes(draw: st.DrawFn, index: int) -> Object:
    spec: Object = {
        "capacity": {"storage": draw(st.sampled_from(["1Gi", "1Gi", "1Gi", "1Gi", "2Gi"]))},
        "accessModes": draw(st.sampled_from([["ReadWriteOnce"], ["ReadWriteOnce", "ReadWriteMany"]])),
        "storageClassName": draw(st.sampled_from([*["local"] * 7, "made"])),
        "local": {"path": "/m"},
    }
    zone = draw(st.sampled_from(["", "", "", "z0", "z1"]))
    if zone:
        expression = {"key": ZONE, "operator": "In", "values": [zone]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    kept_for = draw(st.integers(0, 20))
    if kept_for < 3:
        spec["claimRef"] = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": f"c{kept_for}"}
    labels = {"tier": draw(st.sampled_from(["gold", "silver"]))}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"v{index}", "labels": labels},
        "spec": spec,
        "status": {"phase": "Available"},
    }


@st.composite
def _claims(draw: st.DrawFn, index: int) -> Object:
    mode = "ReadWriteMany" if index and draw(st.integers(0, 2)) else "ReadWriteOnce"
    spec: Object = {
        "accessModes": [mode],
        "resources": {"requests": {"storage": draw(st.sampled_from(["1Gi", "1Gi", "1Gi", "1Gi", "2Gi"]))}},
        "storageClassName": draw(st.sampled_from([*["local"] * 7, "made"])),
    }
    if draw(st.integers(0, 5)) == 5:
        spec["selector"] = {"matchLabels": {"tier": "gold"}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"c{index}", "namespace": "default", "uid": f"uid-c{index}"},
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def _pod(name: str, cpu: str, **spec: object) -> Object:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"schedulerName": "default-scheduler", "containers": containers, **spec},
        "status": {"phase": "Running" if "nodeName" in spec else "Pending"},
    }


@st.composite
def equal_volumes(draw: st.DrawFn) -> Scenario:
    """Few nodes, some of them full, and a pod whose claims match the same volumes of few sizes."""
    topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": ["z0"]}]}]
    classes: list[Object] = [
        {"metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner"},
        {"metadata": {"name": "made"}, "provisioner": "csi.example.com", "allowedTopologies": topologies},
    ]
    objects: list[Object] = [{**_STORAGE, "kind": "StorageClass", **_WAITS, **each} for each in classes]
    for name in ("n0", "n1", "n2"):
        allocatable = {"cpu": "2", "memory": "8Gi", "pods": "110"}
        labels = {ZONE: draw(st.sampled_from(["z0", "z1"])), "kubernetes.io/hostname": name}
        metadata = {"name": name, "labels": labels}
        objects.append(
            {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": allocatable}}
        )
        if draw(st.booleans()):
            priority = draw(st.sampled_from([-5, -4, 5]))
            objects.append(_pod(f"on-{name}", "2", nodeName=name, priority=priority))
    objects += [draw(_volumes(index)) for index in range(draw(st.integers(2, 6)))]
    num_claims = draw(st.integers(2, 4))
    objects += [draw(_claims(index)) for index in range(num_claims)]
    volumes = [
        {"name": f"x{index}", "persistentVolumeClaim": {"claimName": f"c{index}"}} for index in range(num_claims)
    ]
    scenario: Scenario = {"name": "s", "objects": objects, "pod": _pod("incoming", "1", priority=0, volumes=volumes)}
    if draw(st.booleans()):
        scenario["featureGates"] = {"StorageCapacityScoring": True}
    return scenario
