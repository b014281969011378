"""What a pull request may write to excuse itself: rules, a baseline, annotations, links, folders."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.ci.places import OUTAGE, git

_LAX = '[check]\nmax-cascade-depth = "off"\nmax-stranded = "off"\n'
_WARNS = '[check.severity]\nmax-cascade-depth = "warn"\nmax-stranded = "warn"\n'
_WAIVES = "".join(
    f'[[check.waive]]\nrule = "{rule}"\nreason = "trust me"\n' for rule in ("max-cascade-depth", "max-stranded")
)
_OVERRIDES = '[[check.override]]\nnamespace = "*"\nmax-cascade-depth = "off"\nmax-stranded = "off"\n'


def _writes(name: str, text: str) -> Callable[[Path], None]:
    def attack(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")

    return attack


def _annotates(folder: Path) -> None:
    path = folder / "manifests" / "rollout.yaml"
    text = path.read_text(encoding="utf-8")
    waived = '"max-cascade-depth,max-stranded"'
    notes = f"metadata:\n  annotations: {{kpreempt.io/waive: {waived}, kpreempt.io/waive-reason: trust me}}\n"
    assert "metadata:\n" in text
    path.write_text(text.replace("metadata:\n", notes, 1), encoding="utf-8")


def _links(folder: Path) -> None:
    (folder / "lax.toml").write_text(_LAX, encoding="utf-8")
    (folder / "kpreempt.toml").symlink_to("lax.toml")


def _links_manifests_away(folder: Path) -> None:
    (folder / "manifests" / "rollout.yaml").unlink()
    (folder / "manifests" / "rollout.yaml").symlink_to("/nonexistent/rollout.yaml")


def _accepts(folder: Path) -> None:
    accepted = [
        {
            "rule": rule,
            "subject": "cluster",
            "amount": 1000,
            "reason": "trust me",
            "expires": "2999-12-31",
            "fingerprint": f"{number:032x}",
        }
        for number, rule in enumerate(("max-cascade-depth", "max-stranded"))
    ]
    document = {"apiVersion": "kpreempt.io/v1alpha1", "kind": "CheckBaseline", "accepted": accepted}
    (folder / "kpreempt-baseline.json").write_text(json.dumps(document), encoding="utf-8")


ATTACKS: Mapping[str, Callable[[Path], None]] = {
    "rules that are off": _writes("kpreempt.toml", _LAX),
    "rules that only warn": _writes("kpreempt.toml", _WARNS),
    "waivers in the rules' file": _writes("kpreempt.toml", _WAIVES),
    "an override for all namespaces": _writes("kpreempt.toml", _OVERRIDES),
    "a rules' file that is a link": _links,
    "rules in a folder that is named like a commit": _writes("HEAD^1/kpreempt.toml", _LAX),
    "rules in a folder that is named like a branch": _writes("refs/remotes/origin/main/kpreempt.toml", _LAX),
    "annotations": _annotates,
    "a baseline": _accepts,
    "a manifest that is a link to nowhere": _links_manifests_away,
}


def attacked(folder: Path, attack: Callable[[Path], None], base: Mapping[str, str] | None = None) -> None:
    """A repository whose HEAD merges a pull request into ``main`` that brings an outage, and ``attack``s the gate.

    ``base`` are further files of ``main``.
    """
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    for name, text in {"README.md": "Manifests.\n", **(base or {})}.items():
        (folder / name).write_text(text, encoding="utf-8")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "base")
    git(folder, "checkout", "--quiet", "-b", "change")
    (folder / "manifests").mkdir()
    shutil.copy(OUTAGE / "rollout.yaml", folder / "manifests" / "rollout.yaml")
    attack(folder)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "change")
    git(folder, "checkout", "--quiet", "main")
    git(folder, "merge", "--quiet", "--no-ff", "--message", "merge", "change")
