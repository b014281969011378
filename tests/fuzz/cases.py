"""Random command lines with files to read: every command, on complete clusters that were mutated."""

from __future__ import annotations

import copy
import gzip
import io
import json
import tarfile
import tempfile
from collections.abc import Callable
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import typer
import yaml
import zstandard

from kpreempt.cli.app import make_app
from kpreempt.mcp.server import error_of
from kpreempt.report.answers import ANSWER_FORMATS, CHECK_FORMATS, PAGE_FORMATS, VERDICT_FORMATS
from tests.damaged_recordings import CHANGE, READERS, damaged, recorded
from tests.fuzz.mutations import NASTY, mangled, mutated, stretched

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
NOW = "2026-11-21T12:00:00Z"
# Clusters with a change for them; the last ones have pending pods in the change.
_CLUSTERS = (
    ("demo/cluster.yaml", "demo/api.yaml"),
    ("check/outage/cluster.yaml", "check/outage/rollout.yaml"),
    ("check/release/cluster.yaml", "check/release/release.yaml"),
    ("on-call/cluster.yaml", "demo/api.yaml"),
    ("autoscaling/cluster-autoscaler.yaml", "demo/api.yaml"),
    ("autoscaling/karpenter.yaml", "demo/api.yaml"),
    ("budgets/cluster.yaml", "check/outage/rollout.yaml"),
    ("workloads/cluster.yaml", "compare/api.yaml"),
    ("compare/cluster.yaml", "compare/api.yaml"),
    ("volcano/shared-cluster.yaml", "volcano/job-rush.yaml"),
    ("volcano/evicted-in-vain.yaml", "volcano/job-huge.yaml"),
    ("versions/dra-extended-resource.yaml", "demo/api.yaml"),
    ("versions/dynamic-resource-allocation.yaml", "demo/api.yaml"),
    ("versions/volume-limit-scaling.yaml", "demo/api.yaml"),
    ("versions/storage-capacity-scoring.yaml", "demo/api.yaml"),
    ("versions/counts-spread-by-constraint.yaml", "demo/api.yaml"),
)
_CLUSTERS_OF_KUEUE = ("kueue/busy.yaml", "kueue/cluster.yaml")
_JOBS_OF_KUEUE = tuple(f"kueue/{name}.yaml" for name in ("train", "wide", "large", "gang"))
# Recorded scenarios, of which a few lines are used.
_SCENARIOS = (
    *(f"conformance/kube-1.36/{name}.jsonl.gz" for name in ("affinity", "mixed", "spread", "volumes", "config")),
    *("conformance/dra/scenarios.jsonl.gz", "conformance/volcano-1.8/generated.jsonl.gz"),
    *("conformance/legacy/kube-1.8.jsonl.gz", "conformance/legacy/kube-1.18.jsonl.gz"),
    *(f"conformance/kueue-0.19/{name}.jsonl.gz" for name in ("edge", "fair", "gates", "quiesce", "tas-mixed")),
)
_FIRST_LINES = 200
# What changes name.
_CLASS = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 1000,
}
_TIMED_SCHEDULER = {
    **{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"},
    **{"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 10, "parallelism": 16, "percentageOfNodesToScore": 50},
    "leaderElection": {"leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s"},
    "extenders": [{"urlPrefix": "http://127.0.0.1:1", "filterVerb": "filter", "weight": 1, "httpTimeout": "5s"}],
    "profiles": [
        {
            "pluginConfig": [
                {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 600}},
                {"name": "DynamicResources", "args": {"filterTimeout": "10s", "bindingTimeout": "600s"}},
                {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 1}},
            ]
        }
    ],
}
_GATE = {
    "check": {
        "max-victims": 3,
        "applied-by": "helm",
        "max-broken-dependencies": "off",
        "severity": {"lost-pods": "warn"},
        "override": [{"namespace": "shop", "max-victims": 1}],
        "waive": [{"rule": "max-pending", "subject": "Deployment dev/*", "reason": "x", "expires": "2026-12-31"}],
        "rule": [{"name": "few", "expression": "size(result.findings) < 9", "message": "too many"}],
    }
}
_BASELINE = {
    "apiVersion": "kpreempt.io/v1alpha1",
    "kind": "CheckBaseline",
    "accepted": [
        {
            "rule": "max-broken-dependencies",
            "subject": "Service metrics/ingester",
            "change": "Deployment shop/checkout",
            "amount": 1,
            "reason": "",
            "expires": "2026-12-31",
            "fingerprint": "d2abe1333264a2debe55198d94fb1be2",
        }
    ],
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
    """Arguments to run in a folder with these files; ``objects`` are those of a live cluster, ``None`` without one.

    ``answers`` are replacement bodies by part of the path. ``replies`` is the number of lines to write if each line
    read must be answered.
    """

    words: list[str]
    files: dict[str, bytes]
    stdin: bytes = b""
    objects: list[dict[str, Any]] | None = None
    answers: dict[str, bytes] = {}
    replies: int | None = None


def case_of(seed: int, number: int) -> Case:
    """The case of that number: the same for equal seeds."""
    random = Random(f"{seed} {number}")
    kind = random.choice([*_COMMANDS, *_KINDS])
    return _KINDS[kind](random) if kind in _KINDS else _of_command(kind, random)


def _of_command(command: str, random: Random) -> Case:
    words, forms = _COMMANDS[command]
    words = [command, *words]
    if command == "batch":
        return Case([*words, "--now", NOW], {}, _lines(random))
    if command in _OF_RECORDINGS:
        return _of_recording(command, words, forms, random)
    cluster_path, change_path = random.choice(_CLUSTERS)
    if command == "volcano" and "volcano" not in cluster_path:
        cluster_path = "volcano/shared-cluster.yaml"
    is_kueue = command in _OF_KUEUE and random.random() < 0.2
    if is_kueue:
        cluster_path, change_path = random.choice(_CLUSTERS_OF_KUEUE), random.choice(_JOBS_OF_KUEUE)
        words += ["--algorithm", "kueue-0.19"]
    files: dict[str, bytes] = {}
    cluster = _documents(cluster_path)
    has_class = any(each.get("metadata", {}).get("name") == "high" for each in _items(cluster))
    cluster = cluster if has_class else [*cluster, _CLASS]
    if command == "who-evicted":
        metadata = random.choice([each for each in cluster if each.get("kind") in ("Pod", "Event")] or [_CLASS])[
            "metadata"
        ]
        words += [metadata["name"], "-n", metadata.get("namespace", "shop")]
    if "change.yaml" in words:
        change = _documents(change_path)
        files["change.yaml"] = mangled(_yaml(mutated(change, random) if random.random() < 0.5 else change), random)
    cluster = mutated(cluster, random) if random.random() < 0.8 else cluster
    if command == "rules":
        words += _gate(files, random)
        return Case([*words, *_written(forms, random)], files)
    objects, answers = _read_from(cluster, words, files, random)
    if command == "drain":
        words += _nodes(cluster, random)
    words += _gate(files, random) if command in ("check", "drain") else []
    words += _scheduler(command, files, random) if not is_kueue else []
    words += ["--skip-bad-objects"] if random.random() < 0.3 else []
    if command in ("explain", "pending") and random.random() < 0.4:
        files["node.yaml"] = mangled(_yaml(mutated([NODE, _NODE_POOL], random)), random)
        words += random.choice((["--add-node", "./node.yaml"], ["--snapshot", "node.yaml", "--add-pool", "p=2"]))
        words += random.choice(([], ["--add-node", "node-a=3"], ["--remove-node", "node-a"]))
    if forms:
        words += _written(forms, random)
    if command not in ("plugins", "snapshot"):
        words += ["--now", NOW]
    return Case(words, files, b"", objects, answers)


def _read_from(
    cluster: list[Any], words: list[str], files: dict[str, bytes], random: Random
) -> tuple[list[dict[str, Any]] | None, dict[str, bytes]]:
    """Read the cluster from a file or from a server; return the server's objects, and its replacement answers."""
    if random.random() >= 0.2:
        name, content = _packed(cluster, random)
        files[name] = mangled(content, random)
        words += ["--snapshot", name]
        return None, {}
    objects = cluster if isinstance(cluster, list) else []
    answers = _answers(objects, random)
    kubeconfig = mutated(_kubeconfig(), random, 1) if random.random() < 0.4 else _kubeconfig()
    files["kubeconfig"] = mangled(_encoded(kubeconfig), random)
    words += ["--kubeconfig", "kubeconfig", "--request-timeout", "3s"]
    return objects, answers


def _of_recording(command: str, words: list[str], forms: tuple[str, ...], random: Random) -> Case:
    """A command on a recording with changed bytes, or with bytes missing at its end."""
    content = _RECORDING.read_bytes()
    if random.random() < 0.5:
        content = content[: random.randrange(len(content))]
    files = {f"past/{_RECORDING.name}": mangled(content, random)}
    if command == "history":
        words += [random.choice(("api", "encode-1", "node/node-a", "pdb/none"))]
    words += ["-n", "shop", "--snapshot", "past"] if command == "history" else ["past"]
    return Case([*words, *_written(forms, random)], files)


def _damaged_recording(random: Random) -> Case:
    """A command on a recording with valid checksums and some lines that kpreempt did not write."""
    files = {
        name: damaged(content, random) if random.random() < 0.7 else content
        for name, content in _whole_recording().items()
    }
    if random.random() < 0.1:
        files[random.choice(("past/20261321T030000000000Z.kprec", "past/00000000T000000000000Z.kprec"))] = b""
    words = [*random.choice(READERS)]
    words += ["--now", NOW] if words[0] not in ("history", "verify", "record", "snapshot") else []
    return Case(words, {**files, "change.yaml": _encoded(CHANGE)})


@cache
def _whole_recording() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        return {f"past/{path.name}": path.read_bytes() for path in recorded(Path(folder) / "past").glob("*.kprec")}


def _extreme_numbers(random: Random) -> Case:
    """A command with a configuration, a cluster and a change whose numbers are at the limits of their types."""
    path, change_path = random.choice(_CLUSTERS)
    cluster, change = _items(_documents(path)), _documents(change_path)
    cluster = stretched(cluster, random) if random.random() < 0.6 else cluster
    change = stretched(change, random) if random.random() < 0.5 else change
    scheduler = stretched(_TIMED_SCHEDULER, random) if random.random() < 0.5 else _TIMED_SCHEDULER
    files = {"cluster.yaml": _yaml(cluster), "change.yaml": _yaml(change), "scheduler.yaml": _yaml([scheduler])}
    command = random.choice(("queue", "pending", "explain", "check", "at-risk", "plugins", "drain", "budgets"))
    words, forms = _COMMANDS[command]
    words = [
        command,
        *words,
        *(_nodes(cluster, random) if command == "drain" else ["--scheduler-config", "scheduler.yaml"]),
    ]
    words += ["--aftermath"] if command == "explain" and random.random() < 0.5 else []
    words += ["--snapshot", "cluster.yaml", "--now", NOW] if command != "plugins" else []
    return Case([*words, *_written(forms, random)], files)


def _bomb(random: Random) -> Case:
    """A small file that decompresses to much more, or a text whose values take many times its size."""
    text = random.choice(_DENSE) * random.choice((1_000, 400_000, 4_000_000, 12_000_000))
    content = random.choice((b"", _LIST, b"kind: List\nitems:\n", b'{"items":[')) + text + random.choice((b"", b"1]}"))
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        content = random.choice(_PACKERS)(content)
    option = random.choice(
        (["pending", "-A", "--snapshot"], ["explain", "-f"], ["budgets", "-A", "--snapshot"], ["check", "-f"])
    )
    rest = ["--snapshot", "cluster.yaml"] if "-f" in option else []
    return Case([*option, "bomb", *rest], {"bomb": content, "cluster.yaml": _yaml([NODE])})


def _in_tar(content: bytes) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        part = tarfile.TarInfo("a.json")
        part.size = len(content)
        archive.addfile(part, io.BytesIO(content))
    return stream.getvalue()


def _pasted(random: Random) -> Case:
    """Pasted events, of which pieces are lost, repeated or replaced."""
    content = random.choice(sorted((FIXTURES / "events").glob("*"))).read_bytes()
    for _ in range(random.randrange(12)):
        start = random.randrange(len(content) + 1)
        end = min(len(content), start + random.randrange(40))
        middle = random.choice((b"", content[start:end] * 3, *_PIECES))
        content = content[:start] + middle + content[end:]
    words = ["explain", "--event", "pasted.txt", "--now", NOW, *random.choice(([], ["-v"], ["--brief"]))]
    return Case([*words, *_written(PAGE_FORMATS, random)], {"pasted.txt": mangled(content, random)})


def _long_option(random: Random) -> Case:
    """A command line with one value, in any option of any command, that is very long or not a valid number."""
    name, words = random.choice(list(RUNNABLE.items()))
    command = make_app(name)
    parameters = [
        each for each in typer.main.get_command(command).commands[name].params if not getattr(each, "is_flag", False)
    ]  # type: ignore[attr-defined]
    named = [each.opts[-1] for each in parameters if each.opts[-1] not in UNATTENDED]
    value = random.choice(
        (
            *(piece * 10_000 for piece in ("x", "9", "[", "\u202e")),
            "a=" + "b" * 10_000,
            "x/" * 5_000,
            "9" * 30,
            "-1",
            "inf",
            "nan",
            "1e308",
            "9999999h",
            "9999-12-31T23:59:59Z",
            "0001-01-01T00:00:00Z",
            "",
        )
    )
    option = random.choice([*named, "--no-such-option"])
    return Case(
        [name, *words, f"{option}={value}" if option.startswith("-") else value], {"cluster.yaml": _yaml([NODE])}
    )


def _protocol(random: Random) -> Case:
    """Lines for ``kpreempt mcp``; each request and each line that is not a message must be answered."""
    lines = [_encoded({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": _CLIENT})]
    for number in range(1, 12):
        method = random.choice(("ping", "tools/list", "tools/call", "x"))
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": {}}
        if random.random() < 0.7:
            request[random.choice(list(request))] = copy.deepcopy(random.choice(NASTY))
        line = _encoded(request)
        if random.random() < 0.4:
            line = random.choice((mangled(line, random), b"[%s]" % line, line[: random.randrange(len(line))]))
        lines.append(line.replace(b"\n", b" "))
    lines.append(b'{"jsonrpc":"2.0","id":"last","method":"ping"}')
    # A notification, which is a valid message without an id, has no answer.
    answered = [each for each in lines if each.strip() and (b'"id"' in each or error_of(each) is not None)]
    words = ["mcp", "--snapshot", "cluster.yaml"]
    return Case(words, {"cluster.yaml": _yaml([NODE])}, b"\n".join(lines) + b"\n", replies=len(answered))


_KINDS: dict[str, Callable[[Random], Case]] = {
    "damaged recording": _damaged_recording,
    "extreme numbers": _extreme_numbers,
    "bomb": _bomb,
    "long option": _long_option,
    "pasted": _pasted,
    "protocol": _protocol,
}
_PIECES = (
    *(b"\n", b"  ", b"(x", b". ", b", 3 ", b"{", b"}", b'"', b" ...", b"\x1b[0m"),
    *(b"0/", b" nodes are available: ", b"preemption: ", b"Name:  ", b"Events:\n", b"pod/", b"1m ", b"Warning "),
)
_LIST = b'{"apiVersion":"v1","kind":"List","items":['
_DENSE = (
    b" ",
    b"[],",
    b"{},",
    b"1,",
    b'"",',
    b'"abc",',
    b'{"a":1},',
    b"- []\n",
    b"---\n",
    b"{}\n",
    b"\n",
    b"[",
    b'{"a":',
)
_PACKERS: tuple[Callable[[bytes], bytes], ...] = (
    *(lambda each: gzip.compress(each, 1, mtime=0), gzip.compress, zstandard.compress, zstandard.compress, _in_tar),
)
_CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "fuzz", "version": "1"}}
# The required arguments of each command; none uses a network or waits.
RUNNABLE: dict[str, list[str]] = {
    "explain": ["-f", "cluster.yaml", "--snapshot", "cluster.yaml"],
    **{name: ["-A", "--snapshot", "cluster.yaml"] for name in ("pending", "at-risk", "budgets")},
    "queue": ["--snapshot", "cluster.yaml"],
    "who-evicted": ["a", "--snapshot", "cluster.yaml"],
    "check": ["-f", "cluster.yaml", "--snapshot", "cluster.yaml"],
    "drain": ["fresh", "--snapshot", "cluster.yaml"],
    "compare": ["--algorithms", "kube-1.18,kube-1.36", "--snapshot", "cluster.yaml"],
    "volcano": ["--snapshot", "cluster.yaml"],
    "snapshot": ["--snapshot", "cluster.yaml"],
    "record": ["--info", "past"],
    "history": ["a", "--snapshot", "past"],
    **{name: [] for name in ("rules", "plugins", "algorithms", "batch", "completion", "verify", "help")},
}
# Options that start a server, run a program or wait.
UNATTENDED = ("--kubeconfig", "--context", "--contexts", "--server", "--kustomize", "--interval", "--help")


def _items(documents: list[Any]) -> list[dict[str, Any]]:
    """All objects, including those in lists."""
    listed = [item for each in documents if isinstance(each, dict) for item in each.get("items") or [each]]
    return [each for each in listed if isinstance(each, dict)]


def _nodes(cluster: list[Any], random: Random) -> list[str]:
    """Arguments that select nodes to drain, and how."""
    nodes = [each for each in _items(cluster) if each.get("kind") == "Node"]
    metadata = [each["metadata"] for each in nodes if isinstance(each.get("metadata"), dict)]
    names = [str(each.get("name") or "none") for each in metadata] or ["node-a"]
    chosen = random.sample(names, min(len(names), 2))
    if random.random() < 0.1:
        return ["--remove", *chosen]
    how = random.choice(([], ["--one-by-one"], ["--surge", "1"], ["--max-unavailable", "2"], ["--disable-eviction"]))
    return ["--ignore-daemonsets", "--force", "--delete-emptydir-data", *how, *chosen]


def _written(forms: tuple[str, ...], random: Random) -> list[str]:
    return ["-o", random.choice(forms)]


def _gate(files: dict[str, bytes], random: Random) -> list[str]:
    """Arguments for rules: their file, and for half of the cases a baseline or a previous run."""
    files["kpreempt.toml"] = mangled(_toml(mutated(_GATE, random) if random.random() < 0.7 else _GATE), random)
    if "change.yaml" not in files:
        return ["--config", "kpreempt.toml"]
    match random.randrange(4):
        case 0:
            files["baseline.json"] = mangled(_encoded(mutated(_BASELINE, random)), random)
            return ["--baseline", "baseline.json"]
        case 1:
            former = json.loads((FIXTURES / "golden-check/outage.json").read_bytes())
            files["former.json"] = mangled(_encoded(mutated(former, random)), random)
            return ["--compare-with", "former.json"]
        case 2:
            return ["--worst-case", "--max-runs", "20"]
    return []


def _scheduler(command: str, files: dict[str, bytes], random: Random) -> list[str]:
    """Arguments for the scheduler, for some of the commands that accept them."""
    if random.random() < 0.6:
        return []
    if command == "volcano":
        files["scheduler.yaml"] = mangled((FIXTURES / "volcano/busy-training.conf").read_bytes(), random)
        return ["--scheduler-config", "scheduler.yaml"]
    if command in ("explain", "check") and random.random() < 0.4:
        return ["--algorithm", random.choice(("kube-1.8", "kube-1.13", "kube-1.18", "kube-1.29", "kube-1.34"))]
    if command in ("explain", "pending", "check", "at-risk", "budgets", "queue", "plugins"):
        files["scheduler.yaml"] = mangled(
            _yaml([mutated(_SCHEDULER, random, 1) if random.random() < 0.6 else _SCHEDULER]), random
        )
        return ["--scheduler-config", "scheduler.yaml"]
    return []


NODE = {
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
    "who-evicted": ([], ANSWER_FORMATS),
    "compare": (["-f", "change.yaml", "--algorithms", "kube-1.18,kube-1.36"], ANSWER_FORMATS),
    "volcano": ([], ANSWER_FORMATS),
    "plugins": ([], ("text", "json", "yaml", "name")),
    "rules": ([], ("text", "json", "yaml", "name")),
    "snapshot": (["--redact", "--to", "-"], ()),
    "batch": (["-"], ()),
    "drain": ([], CHECK_FORMATS),
    "history": ([], ANSWER_FORMATS),
    "verify": ([], ("text", "json", "openmetrics")),
}
_OF_RECORDINGS = ("history", "verify")
_OF_KUEUE = ("explain", "pending", "at-risk")
_RECORDING = next((FIXTURES / "recording").glob("*.kprec"))


def _documents(path: str) -> list[Any]:
    return [each for each in yaml.safe_load_all((FIXTURES / path).read_text(encoding="utf-8")) if each]


@cache
def _recorded(path: str) -> list[bytes]:
    with gzip.open(FIXTURES / path) as stream:
        return list(islice(stream, _FIRST_LINES))


def _encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def _yaml(documents: Any) -> bytes:
    if not isinstance(documents, list):
        documents = [documents]
    return b"---\n".join(_encoded(each) + b"\n" for each in documents)


def _packed(cluster: Any, random: Random) -> tuple[str, bytes]:
    """The cluster in one of the supported file formats."""
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


def _lines(random: Random) -> bytes:
    """Recorded scenarios, one with a hostile name, and mutated ones."""
    recorded = [json.loads(random.choice(_recorded(random.choice(_SCENARIOS)))) for _ in range(3)]
    lines = [{**recorded[0], "name": "\u202e##[x]"}, *(mutated(each, random) for each in recorded * 2)]
    return b"\n".join(mangled(_encoded(each), random) for each in lines)


def _answers(objects: list[Any], random: Random) -> dict[str, bytes]:
    """Invalid server responses: to its version, or to one of the lists, by the end of the path."""
    if random.random() < 0.5:
        return {}
    version = {"major": "1", "minor": "36+", "gitVersion": "v1.36.3-eks-1"}
    whole = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": objects[:5]}
    paths = {"/version": version, "/pods": whole, "/nodes": whole, "/events": whole, "/poddisruptionbudgets": whole}
    path = random.choice(list(paths))
    return {path: mangled(_encoded(mutated(paths[path], random)), random)}


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
    """The table as TOML, with inline tables; values that TOML lacks are omitted."""
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
