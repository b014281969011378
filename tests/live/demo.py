"""The demo cluster of ``fixtures/demo`` on a control plane whose scheduler ignores its pods."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.live.cluster import RESOURCES
from tests.live.plane import ControlPlane, Object, program

DEMO = Path(__file__).parents[2] / "fixtures" / "demo"
NAMESPACE, POD = "shop", "api-6f7c9d8b5-x2x4p"
# No scheduler has this name, so pending pods stay pending while they are explained.
SCHEDULER_CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: nobodys-scheduler
"""
# Objects that the API server creates itself.
_OWN_NAMES = ("default", "kube-system", "kube-public", "kube-node-lease")
_SYSTEM_CLASS = "system-"


@contextmanager
def running(folder: Path, arguments: Sequence[str] = ()) -> Iterator[ControlPlane]:
    """A control plane with the demo cluster and a pod that stays pending; ``folder`` is for its configuration.

    The test is skipped if there is no control plane.
    """
    config = folder / "scheduler.yaml"
    config.write_text(SCHEDULER_CONFIG, encoding="utf-8")
    with ControlPlane(program(), [f"-scheduler-config={config}", *arguments]) as plane:
        fill(plane)
        yield plane


def fill(plane: ControlPlane) -> None:
    """Create the demo cluster's objects with their statuses, and one pending pod of ``api.yaml``."""
    objects = yaml.safe_load((DEMO / "cluster.yaml").read_text(encoding="utf-8"))["items"]
    for kind in RESOURCES:
        for document in objects:
            if document["kind"] == kind and not _is_there(document):
                _create(plane, document)
    _create(plane, pending_pod())


def pending_pod() -> Object:
    """The example's pod, as its controller would create it."""
    template = yaml.safe_load((DEMO / "api.yaml").read_text(encoding="utf-8"))["spec"]["template"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**template["metadata"], "name": POD, "namespace": NAMESPACE},
        "spec": template["spec"],
        "status": {"phase": "Pending"},
    }


def _is_there(document: Object) -> bool:
    name = document["metadata"]["name"]
    return (document["kind"] == "Namespace" and name in _OWN_NAMES) or name.startswith(_SYSTEM_CLASS)


def _create(plane: ControlPlane, document: Object) -> None:
    document = copy.deepcopy(document)
    metadata: dict[str, Any] = document["metadata"]
    for field in ("uid", "resourceVersion", "creationTimestamp", "generation"):
        metadata.pop(field, None)
    status = document.pop("status", None)
    path = RESOURCES[document["kind"]]
    if "namespace" in metadata:
        group, _, plural = path.rpartition("/")
        path = f"{group}/namespaces/{metadata['namespace']}/{plural}"
    plane.request("POST", path, document)
    if status and document["kind"] in ("Node", "Pod", "PodDisruptionBudget"):
        plane.request("PATCH", f"{path}/{metadata['name']}/status", {"status": status})
