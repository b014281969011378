"""Command lines with files to read, drawn by chance: every command, on whole clusters that were mutated."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import yaml

from kpreempt.report.answers import ANSWER_FORMATS, CHECK_FORMATS, VERDICT_FORMATS
from tests.fuzz.mutations import mangled, mutated

ROOT = Path(__file__).parents[2]
NOW = "2026-11-21T12:00:00Z"
_CLUSTERS = (
    ("fixtures/demo/cluster.yaml", "fixtures/demo/api.yaml"),
    ("fixtures/check/outage/cluster.yaml", "fixtures/check/outage/rollout.yaml"),
    ("fixtures/check/release/cluster.yaml", "fixtures/check/release/release.yaml"),
)
_GATE = {
    "check": {
        "max-victims": 3,
        "max-stranded": "off",
        "severity": {"lost-pods": "warn"},
        "override": [{"namespace": "shop", "max-victims": 1}],
        "waive": [{"rule": "max-pending", "subject": "Deployment dev/*", "reason": "x", "expires": "2026-12-31"}],
        "rule": [{"name": "few", "expression": "size(result.findings) < 9", "message": "too many"}],
    }
}
_SCHEDULER = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "plugins": {"score": {"disabled": [{"name": "ImageLocality"}]}},
            "pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": {}}}],
        }
    ],
}


class Case(NamedTuple):
    """Words to run in a folder with these files; ``objects`` are what a live cluster answers, ``None`` without one."""

    words: list[str]
    files: dict[str, bytes]
    stdin: bytes = b""
    objects: list[dict[str, Any]] | None = None


def case_of(seed: int, number: int) -> Case:
    """The case of that number: the same for equal seeds."""
    random = Random(f"{seed} {number}")
    cluster_path, change_path = random.choice(_CLUSTERS)
    cluster, change = _documents(cluster_path), _documents(change_path)
    cluster = mutated(cluster, random) if random.random() < 0.7 else cluster
    change = mutated(change, random) if random.random() < 0.5 else change
    name, content = _packed(cluster, random)
    files = {name: mangled(content, random), "change.yaml": mangled(_yaml(change), random)}
    command = random.choice(list(_COMMANDS))
    words, forms = _COMMANDS[command]
    words = [command, *words]
    if command == "batch":
        return Case([*words, "--now", NOW], files, _lines(cluster, change, random))
    objects = None
    if random.random() < 0.2 and "-f" not in words:
        objects = cluster if isinstance(cluster, list) else []
        files["kubeconfig"] = mangled(json.dumps(mutated(_kubeconfig(), random, 1)).encode(), random)
        words += ["--kubeconfig", "kubeconfig", "--request-timeout", "3s"]
    else:
        words += ["--snapshot", name]
    if command == "check":
        files["kpreempt.toml"] = mangled(_toml(mutated(_GATE, random) if random.random() < 0.5 else _GATE), random)
    if command in ("explain", "pending", "check") and random.random() < 0.3:
        files["scheduler.yaml"] = mangled(_yaml([mutated(_SCHEDULER, random)]), random)
        words += ["--scheduler-config", "scheduler.yaml"]
    if command in ("explain", "pending") and random.random() < 0.4:
        files["node.yaml"] = mangled(_yaml(mutated([_NODE, _NODE_POOL], random)), random)
        words += random.choice((["--add-node", "./node.yaml"], ["--snapshot", "node.yaml", "--add-pool", "p=2"]))
        words += random.choice(([], ["--add-node", "node-a=3"], ["--remove-node", "node-a"]))
    if forms:
        words += ["-o", random.choice(forms), "--now", NOW]
    return Case(words, files, b"", objects)


_NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "fresh", "labels": {"kubernetes.io/hostname": "fresh", "karpenter.sh/nodepool": "p"}},
    "status": {"allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"}},
}
_NODE_POOL = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "p"},
    "spec": {
        "template": {
            "spec": {
                "requirements": [
                    {"key": "karpenter.k8s.aws/instance-cpu", "operator": "In", "values": ["16"]},
                    {"key": "karpenter.k8s.aws/instance-memory", "operator": "In", "values": ["65536"]},
                ]
            }
        },
        "limits": {"cpu": "100"},
    },
}
_COMMANDS: dict[str, tuple[list[str], tuple[str, ...]]] = {
    "explain": (["-f", "change.yaml"], VERDICT_FORMATS),
    "check": (["-f", "change.yaml"], CHECK_FORMATS),
    "pending": (["-A"], (*ANSWER_FORMATS, "wide", "html")),
    "at-risk": (["-A"], ANSWER_FORMATS),
    "budgets": (["-A"], (*ANSWER_FORMATS, "sarif", "junit")),
    "queue": ([], ANSWER_FORMATS),
    "who-preempted": (["shop/api"], ANSWER_FORMATS),
    "snapshot": (["--redact", "--to", "-"], ()),
    "batch": (["-"], ()),
}


def _documents(path: str) -> list[Any]:
    return [each for each in yaml.safe_load_all((ROOT / path).read_text(encoding="utf-8")) if each]


def _encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def _yaml(documents: Any) -> bytes:
    if not isinstance(documents, list):
        documents = [documents]
    return b"---\n".join(_encoded(each) + b"\n" for each in documents)


def _packed(cluster: Any, random: Random) -> tuple[str, bytes]:
    """The cluster as one of the files that are read."""
    whole = _encoded({"apiVersion": "v1", "kind": "List", "items": cluster})
    match random.randrange(5):
        case 0:
            return "cluster.yaml", _yaml(cluster)
        case 1:
            return "cluster.json.gz", gzip.compress(mangled(whole, random), mtime=0)
        case 2:
            stream = io.BytesIO()
            with tarfile.open(fileobj=stream, mode="w:gz") as archive:
                for number, name in enumerate(random.choice((("a.json",), ("a/b.json", "../c.json"), ("/x.json",)))):
                    part, text = tarfile.TarInfo(name), mangled(whole, random) if number else whole
                    part.size = len(text)
                    archive.addfile(part, io.BytesIO(text))
            return "cluster.tar.gz", stream.getvalue()
        case 3:
            return "cluster.jsonl", b"\n".join(map(_encoded, cluster if isinstance(cluster, list) else [cluster]))
    return "cluster.json", whole


def _lines(cluster: Any, change: Any, random: Random) -> bytes:
    documents = change if isinstance(change, list) else [change]
    template = next((each for each in documents if isinstance(each, dict) and each.get("spec")), {})
    line = {"name": "\u202e##[x]", "objects": cluster, "pod": {"metadata": {"name": "p"}, "spec": template.get("spec")}}
    pod = {"metadata": {"name": "p", "namespace": "d"}, "spec": {"containers": [{"name": "c"}], "priority": 9}}
    lines = [line, mutated(line, random), {**line, "pod": pod}, mutated({**line, "pod": pod}, random)]
    return b"\n".join(mangled(_encoded(each), random) for each in lines)


def _kubeconfig() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "SERVER"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }


def _toml(value: Any) -> bytes:
    """The table as TOML, in which tables are written inline; what TOML has not is left out."""
    if not isinstance(value, dict):
        return repr(value).encode(errors="replace")
    return b"".join(
        f"{json.dumps(str(key))} = {_inline(each)}\n".encode(errors="replace") for key, each in value.items()
    )


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(key))} = {_inline(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps("" if value is None else value)
