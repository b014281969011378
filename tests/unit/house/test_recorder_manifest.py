"""``deploy/recorder.yaml``: its rights are those that recording uses, and its pod is restricted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from kpreempt.cli.app import make_app
from kpreempt.snapshot.archives import parse_size
from kpreempt.snapshot.kinds import RECORDED, plural_of

ROOT = Path(__file__).resolve().parents[3]
Document = dict[str, Any]


@pytest.fixture(scope="module")
def documents() -> dict[str, Document]:
    text = (ROOT / "deploy" / "recorder.yaml").read_text(encoding="utf-8")
    return {each["kind"]: each for each in yaml.safe_load_all(text)}


def test_the_recorder_may_list_and_watch_what_it_records_and_nothing_else(documents: dict[str, Document]) -> None:
    rules = documents["ClusterRole"]["rules"]
    granted = sorted((each["apiGroups"][0], name) for each in rules[:-1] for name in each["resources"])
    assert granted == sorted(
        (kind.groups[0], plural_of(kind)) for kind in RECORDED.values() if kind.name != "ConfigMap"
    )
    assert {tuple(each["verbs"]) for each in rules[:-1]} == {("list", "watch")}
    assert rules[-1] == {"nonResourceURLs": ["/version"], "verbs": ["get"]}


def test_of_leases_it_reads_the_schedulers_alone(documents: dict[str, Document]) -> None:
    assert documents["Role"]["metadata"]["namespace"] == "kube-system"
    assert documents["Role"]["rules"] == [
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": ["kube-scheduler"],
            "verbs": ["list", "watch"],
        }
    ]


@pytest.mark.parametrize("kind", ["ClusterRoleBinding", "RoleBinding"])
def test_the_rights_are_the_recorders(documents: dict[str, Document], kind: str) -> None:
    binding, account = documents[kind], documents["ServiceAccount"]["metadata"]
    role = documents[binding["roleRef"]["kind"]]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["metadata"].get("namespace") == role["metadata"].get("namespace")
    assert binding["subjects"] == [{"kind": "ServiceAccount", **account}]


def test_the_pod_has_no_root_and_writes_to_its_volume_alone(documents: dict[str, Document]) -> None:
    spec = documents["Deployment"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert spec["serviceAccountName"] == documents["ServiceAccount"]["metadata"]["name"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    (mount,), (volume,) = container["volumeMounts"], spec["volumes"]
    assert (mount["name"], mount.get("readOnly", False)) == (volume["name"], False)
    assert volume["persistentVolumeClaim"]["claimName"] == documents["PersistentVolumeClaim"]["metadata"]["name"]


def test_it_records_into_the_volume_and_leaves_room_there(documents: dict[str, Document]) -> None:
    (container,) = documents["Deployment"]["spec"]["template"]["spec"]["containers"]
    command, *options = container["args"]
    requested = get_command(make_app()).commands[command].make_context(command, options).params  # type: ignore[attr-defined]
    assert requested["to"] == container["volumeMounts"][0]["mountPath"]
    storage = documents["PersistentVolumeClaim"]["spec"]["resources"]["requests"]["storage"]
    assert parse_size(requested["max_size"], "--max-size") < parse_size(storage, "storage")
