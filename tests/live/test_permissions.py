"""What each command answers with the permissions that users have: the table in ``docs/permissions.md``.

``KPREEMPT_REWRITE=1`` writes the table; read its diff.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from kpreempt.model.kinds import KINDS
from kpreempt.snapshot.live.listing import api_versions_of, path_of
from tests.golden.permissions import CLUSTER, NAMESPACE
from tests.live import cluster
from tests.live.patience import until
from tests.live.plane import ControlPlane, Object, RefusedError, program
from tests.live.rights import ROLES, bind, role_without, shipped_role
from tests.parity.reference import CHECKOUT
from tests.program import run_kpreempt

pytestmark = pytest.mark.live

DOCUMENT = CHECKOUT / "docs" / "permissions.md"
_BEGIN, _END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"
_AGGREGATION = "clusterrole-aggregation-controller"
_PENDING = "web-7d9c5b-hw6rx"
# The users, with the words for their permissions.
USERS = {
    "admin": "The shipped ClusterRole",
    "viewer": "`view` in the cluster",
    "dev": "`edit` in one namespace",
    "no-poddisruptionbudgets": "The shipped ClusterRole without PodDisruptionBudgets",
    "no-events": "The shipped ClusterRole without events",
    "no-priorityclasses": "The shipped ClusterRole without priority classes",
}
# The manifest has a priority class.
_MANIFEST = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "urgent", "namespace": NAMESPACE},
    "spec": {
        "priorityClassName": "high",
        "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "2"}}}],
    },
}
_CHANGE = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web", "namespace": NAMESPACE},
    "spec": {"minAvailable": 0, "selector": {"matchLabels": {"app": "web"}}},
}
COMMANDS = (
    f"explain {_PENDING}",
    "explain deploy/web",
    "explain -f pod.yaml --exit-code",
    "pending",
    f"pending -n {NAMESPACE}",
    "queue",
    f"who-evicted worker-0 -n {NAMESPACE}",
    f"who-evicted -n {NAMESPACE}",
    "budgets",
    f"budgets -n {NAMESPACE} --fail-on error",
    "at-risk",
    "check -f change.yaml",
    "drain node-1",
    "compare -f pod.yaml --algorithms kube-1.35,kube-1.36",
    "plugins",
    "snapshot --to cluster.json",
    "record --to recording --for 1s",
    "verify --for 1s",
)
_WATCH = re.compile(r"^https://SERVER\S+ .*(User \"\S+\") cannot watch resource.*$")
_MISSING = re.compile(r"Missing permission: [^()]*\(cluster-wide\)\.")
_WITHOUT_NOW = ("plugins", "snapshot", "record", "verify")
_AGES = re.compile(r"\b\d+(?:\.\d+)?(?:ms|[smhd])(?:\d+[smh])?\b")
_TIMES = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
_CHANGES = re.compile(r"\b\d+ changes?\b(?:: \w+ \d+(?:, \w+ \d+)*)?")
_SIZES = re.compile(r"\b\d[\d,.]* (?:[kKM]i?B|bytes)\b")


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A control plane with the example cluster, and a user for each row of ``USERS``."""
    # The built-in ClusterRoles are aggregated by a controller.
    with ControlPlane(program(), [f"-controller-manager-arg=--controllers={_AGGREGATION}"]) as running:
        fill(running, yaml.safe_load(CLUSTER.read_text(encoding="utf-8"))["items"])
        running.request("POST", ROLES, shipped_role())
        bind(running, "kpreempt", "admin")
        bind(running, "view", "viewer")
        bind(running, "edit", "dev", namespace=NAMESPACE)
        for plural in ("poddisruptionbudgets", "events", "priorityclasses"):
            running.request("POST", ROLES, role_without(plural))
            bind(running, f"no-{plural}", f"no-{plural}")
        for role in ("view", "edit"):
            until(lambda role=role: bool(running.request("GET", f"{ROLES}/{role}").get("rules")), f"ClusterRole {role}")
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{_PENDING}"
        until(lambda: bool(running.request("GET", path)["status"].get("conditions")), "the scheduler's rejection")
        yield running


def fill(plane: ControlPlane, documents: list[Object]) -> None:
    """Create the objects with their statuses, except that the scheduler says which pods it rejects."""
    order = ["Namespace", "PriorityClass", "Node", "Deployment", "ReplicaSet", "Pod", "PodDisruptionBudget"]
    uids: dict[str, str] = {}
    for document in sorted(documents, key=lambda each: (*order, *KINDS).index(each["kind"])):
        kind, metadata = document["kind"], document["metadata"]
        status, uid = document.get("status"), metadata.pop("uid", "")
        metadata.pop("creationTimestamp", None)
        for owner in metadata.get("ownerReferences", ()):
            owner["uid"] = uids[owner["uid"]]
        path = path_of(KINDS[kind], api_versions_of(KINDS[kind])[0], metadata.get("namespace", ""))
        try:
            uids[uid] = plane.request("POST", path, cluster.completed(document))["metadata"]["uid"]
        except RefusedError as refused:
            assert " 409 " in str(refused)
        is_pending = kind == "Pod" and "nodeName" not in document["spec"]
        if status and not is_pending:
            plane.request("PATCH", f"{path}/{metadata['name']}/status", {"status": status})


def kubeconfig_in(folder: Path, plane: ControlPlane) -> Path:
    """The kubeconfig of a user whose context has the namespace."""
    config: dict[str, Any] = yaml.safe_load(plane.kubeconfig.read_text(encoding="utf-8"))
    for context in config["contexts"]:
        context["context"]["namespace"] = NAMESPACE
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def row(plane: ControlPlane, folder: Path, user: str, command: str) -> str:
    """The row of a command: its exit code, its first sentence, and the one that names permissions."""
    flags = ["--kubeconfig", str(kubeconfig_in(folder, plane)), "--as", user]
    if command.split(maxsplit=1)[0] not in _WITHOUT_NOW:
        # No pod is in backoff any more.
        flags += ["--now", (datetime.now(UTC) + timedelta(hours=1)).isoformat(timespec="seconds")]
    ended = run_kpreempt([*command.split(), *flags], folder)
    assert ended.returncode != 4, ended.stderr
    first = ended.stdout.partition("\n\n")[0] or ended.stderr.partition("\nhint")[0].removeprefix("error: ")
    words = " ".join(first.split()).replace(plane.server, "https://SERVER").replace("|", "\\|")
    # Which of its watches is denied first is chance.
    words = _WATCH.sub(r"\1 cannot watch pods and nodes", words)
    sentence, *_ = re.split(r"(?<=\.) (?=[A-Z0-9])", words)
    missing = _MISSING.search(words)
    words = sentence if missing is None or missing[0] in sentence else f"{sentence} {missing[0]}"
    for pattern, replacement in ((_TIMES, "TIME"), (_AGES, "AGE"), (_SIZES, "SIZE"), (_CHANGES, "N changes")):
        words = pattern.sub(replacement, words)
    return f"| `{command}` | {ended.returncode} | {words} |"


def table(plane: ControlPlane, folder: Path, user: str) -> str:
    """The section about a user."""
    (folder / "pod.yaml").write_text(yaml.safe_dump(_MANIFEST), encoding="utf-8")
    (folder / "change.yaml").write_text(yaml.safe_dump(_CHANGE), encoding="utf-8")
    rows = [row(plane, folder, user, command) for command in COMMANDS]
    return "\n".join([f"### {USERS[user]}\n", "| command | exit | first lines |", "|---|---|---|", *rows, ""])


def test_the_documented_table_is_what_each_command_answers(plane: ControlPlane, tmp_path: Path) -> None:
    found = []
    for user in USERS:
        folder = tmp_path / user
        folder.mkdir()
        found.append(table(plane, folder, user))
    measured = "\n".join(found)
    before, begin, rest = DOCUMENT.read_text(encoding="utf-8").partition(_BEGIN)
    recorded, end, after = rest.partition(_END)
    if os.environ.get("KPREEMPT_REWRITE"):
        DOCUMENT.write_text(f"{before}{begin}\n{measured}\n{end}{after}", encoding="utf-8")
        recorded = f"\n{measured}\n"
    assert recorded == f"\n{measured}\n"


def test_no_permission_is_claimed_that_the_user_has(plane: ControlPlane, tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(_MANIFEST), encoding="utf-8")
    flags = ["--kubeconfig", str(kubeconfig_in(tmp_path, plane)), "--as", "admin"]
    for command in (f"explain {_PENDING}", "pending", "budgets", "explain -f pod.yaml"):
        assert "issing permission" not in run_kpreempt([*command.split(), *flags], tmp_path).stdout
