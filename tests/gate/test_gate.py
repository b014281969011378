"""The gate on everyday changes, unconfigured: harmless ones pass, and harmful ones don't.

The clusters of ``fixtures/gate`` are dumps of genuine control planes (``tests.gate.record``).
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import yaml

from kpreempt.cli import process
from tests.gate.changes import HARMFUL, HARMLESS, Harmful, changed
from tests.gate.sets import CLUSTERS, NAMESPACES, SETS, Object, files_of

VERSIONS = ("1.33", "1.36")
# Of all harmless changes, in percent.
GOAL = 98


@pytest.fixture(scope="module", params=VERSIONS)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dump of one version, unpacked."""
    path = tmp_path_factory.mktemp("cluster") / "cluster.json"
    path.write_bytes(gzip.decompress((CLUSTERS / f"kube-{request.param}.json.gz").read_bytes()))
    return path


def check(cluster: Path, set_name: str, folder: Path) -> tuple[int, Object]:
    """The exit code and the answer of a check of the folder."""
    answer = folder.parent / "answer.json"
    namespace = NAMESPACES.get(set_name, "default")
    words = ["-f", str(folder), "--snapshot", str(cluster), "-n", namespace, "-o", f"json={answer}"]
    code = process.run(["check", *words])
    assert code in (0, 1)
    return code, json.loads(answer.read_text(encoding="utf-8"))


def write(folder: Path, set_name: str, documents: list[Object] | None = None) -> Path:
    """The set's files as they are, or one file of these documents."""
    folder = folder / "change"
    texts = files_of(set_name) if documents is None else {"change.yaml": yaml.safe_dump_all(documents)}
    for path, text in texts.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


def broken(answer: Object) -> list[str]:
    """The rules that have findings."""
    return sorted({each["rule"] for each in answer["findings"]})


def test_harmless_changes_pass(cluster: Path, tmp_path: Path) -> None:
    red = []
    for set_name in SETS:
        for name, change in HARMLESS.items():
            folder = tmp_path / set_name / name
            documents = None if name == "unchanged" else changed(set_name, change)
            code, answer = check(cluster, set_name, write(folder, set_name, documents))
            if code:
                red.append((set_name, name, broken(answer)))
    share = 100 - 100 * len(red) / (len(SETS) * len(HARMLESS))
    assert share >= GOAL, (share, red)


@pytest.mark.parametrize("harmful", HARMFUL, ids=lambda each: each.name.replace(" ", "-"))
def test_harmful_changes_fail_by_their_rule(cluster: Path, harmful: Harmful, tmp_path: Path) -> None:
    folder = write(tmp_path, harmful.set_name, changed(harmful.set_name, harmful.change))
    code, answer = check(cluster, harmful.set_name, folder)
    assert code == 1
    assert harmful.rule in broken(answer)
