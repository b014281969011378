"""The screens of users who may read only a part of a cluster: ``fixtures/golden-screens/permissions``.

Live ones are of a test API server with their permissions, on ``fixtures/permissions``; a dump is of one namespace.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import yaml

from kpreempt.cli import process
from tests.fake_api import VIEW, FakeApi, FakeCluster, Rights, objects_by_kind
from tests.golden.answers import FIXTURES
from tests.golden.cases import NOW
from tests.golden.screens import terminal

ROOT = FIXTURES / "golden-screens" / "permissions"
CLUSTER = FIXTURES / "permissions" / "cluster.yaml"
NAMESPACE = "shop"
_POD = ["web-7d9c5b-hw6rx", "-n", NAMESPACE]
_COMMANDS = {
    "explain": ["explain", *_POD],
    "explain-running": ["explain", "web-7d9c5b-4xq7f", "-n", NAMESPACE],
    "explain-workload": ["explain", "deploy/web", "-n", NAMESPACE],
    "pending": ["pending", "-n", NAMESPACE],
    "budgets": ["budgets", "-n", NAMESPACE],
    "who-evicted": ["who-evicted", "worker-0", "-n", NAMESPACE],
    "at-risk": ["at-risk", "-n", NAMESPACE],
}
# The built-in ClusterRoles: ``edit`` in the namespace, and ``view`` in the cluster.
ROLES: dict[str, Callable[[], Rights]] = {
    "edit": lambda: Rights(namespace=NAMESPACE, there=VIEW - {"namespaces"}),
    "view": lambda: Rights(VIEW),
}
_DUMP = "dump"
ANSWERS = {f"{command}-{role}-80x24.txt": (command, role) for command in _COMMANDS for role in (*ROLES, _DUMP)}


def answer(name: str, folder: Path) -> str:
    """The screen of a terminal with 80 columns and 24 lines."""
    command, role = ANSWERS[name]
    arguments = [*_COMMANDS[command], "--now", NOW]
    with terminal(80, 24) as shown:
        if role == _DUMP:
            dump = folder / "shop.yaml"
            dump.write_text(yaml.safe_dump(namespaced_dump()), encoding="utf-8")
            code = process.run([*arguments, "--snapshot", str(dump)])
        else:
            with FakeApi(cluster_for(role)) as api:
                code = process.run([*arguments, "--server", api.url])
    if code:
        raise RuntimeError(f"golden screen {name}: kpreempt ended with {code}")
    return shown.getvalue()


def cluster_for(role: str) -> FakeCluster:
    """The example cluster, of which the role may read a part."""
    return FakeCluster(objects_by_kind(_objects()), special=ROLES[role]())


def namespaced_dump() -> dict[str, object]:
    """What ``kubectl get pods,events,... -n NAMESPACE -o yaml`` prints."""
    items = [each for each in _objects() if each["metadata"].get("namespace") == NAMESPACE]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _objects() -> list[dict[str, object]]:
    items: list[dict[str, object]] = yaml.safe_load(CLUSTER.read_text(encoding="utf-8"))["items"]
    return items
