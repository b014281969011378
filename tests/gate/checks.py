"""Checks of the sets of ``fixtures/gate``, each in the cluster in which it is installed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from kpreempt.cli import process
from tests.gate.changes import HARMLESS, Harmful, changed
from tests.gate.sets import CLUSTERS, NAMESPACES, SETS, Object, files_of

# By version, the dump and the version of its kubelets: one cluster was upgraded since.
_DUMPS = {"1.33": ("1.33", "v1.33.13"), "1.34": ("1.33", "v1.34.4"), "1.36": ("1.36", "v1.36.3")}
VERSIONS = tuple(_DUMPS)
_SINCE = "2026-11-21T08:00:00Z"


def cluster_of(version: str, folder: Path) -> Path:
    """The dump of one version, decompressed into ``folder``."""
    recorded, kubelets = _DUMPS[version]
    text = gzip.decompress((CLUSTERS / f"kube-{recorded}.json.gz").read_bytes()).decode()
    path = folder / f"{version}.json"
    path.write_text(text.replace(f'"{_DUMPS[recorded][1]}"', f'"{kubelets}"'), encoding="utf-8")
    return path


def with_pending_pods(cluster: Path) -> Path:
    """The dump with a pod that fits nowhere, and one that evicts others; both are there without any change."""
    document = json.loads(cluster.read_text(encoding="utf-8"))
    for name, cpu, priority in (("giant", "64", 0), ("urgent", "3", 2_000_000_000)):
        document["items"].append(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default", "uid": name, "creationTimestamp": _SINCE},
                "spec": {
                    "priority": priority,
                    "containers": [{"name": "main", "image": "main:1", "resources": {"requests": {"cpu": cpu}}}],
                },
                "status": {"phase": "Pending"},
            }
        )
    path = cluster.with_name(f"pending-{cluster.name}")
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def check(cluster: Path, set_name: str, folder: Path, options: Sequence[str] = ()) -> tuple[int, Object]:
    """The exit code and the result of a check of the folder."""
    answer = folder.parent / "answer.json"
    namespace = NAMESPACES.get(set_name, "default")
    words = ["-f", str(folder), "--snapshot", str(cluster), "-n", namespace, "-o", f"json={answer}", *options]
    code = process.run(["check", *words])
    assert code in (0, 1)
    return code, json.loads(answer.read_text(encoding="utf-8"))


def write(folder: Path, set_name: str, documents: list[Object] | None = None) -> Path:
    """Write the set's files unchanged, or one file of these documents."""
    folder = folder / "change"
    texts = files_of(set_name) if documents is None else {"change.yaml": yaml.safe_dump_all(documents)}
    for path, text in texts.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


def check_harmful(cluster: Path, harmful: Harmful, folder: Path) -> tuple[int, Object]:
    """The exit code and the result of checking a harmful change; its files are in ``folder``."""
    change = write(folder, harmful.set_name, changed(harmful.set_name, harmful.change))
    base = ["--base", str(write(folder / "base", harmful.set_name)), "--prune"] if harmful.prunes else []
    return check(cluster, harmful.set_name, change, [*base, *harmful.options])


def broken(answer: Object) -> list[str]:
    """The rules that have findings."""
    return sorted({each["rule"] for each in answer["findings"]})


def red_ones(cluster: Path, folder: Path) -> Iterator[tuple[str, str, list[str]]]:
    """The harmless changes that do not pass: set, change and violated rules; their files are in ``folder``."""
    for set_name in SETS:
        for name, change in HARMLESS.items():
            documents = None if name == "unchanged" else changed(set_name, change)
            code, answer = check(cluster, set_name, write(folder / set_name / name, set_name, documents))
            if code:
                yield set_name, name, broken(answer)
