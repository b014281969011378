"""Ways to hide or excuse a change's damage from a pipeline, and the repository they are in."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from kpreempt.gate_rules import OptionType, RuleId
from tests.ci.places import as_list, git
from tests.rollouts import nodes, priority_class, running, workload

Document = dict[str, Any]
Attack = Callable[[Path], None]
MANIFESTS = "manifests"

_LOW = {"priorityClassName": "low"}
_CLASSES = [priority_class("low", 10), priority_class("high", 1000)]
_NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
_STORE = workload("Deployment", "store", replicas=6, pod=_LOW)
_WEB = workload("Deployment", "web", replicas=3, cpu="500m", pod={"priorityClassName": "high"})
_BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "store", "namespace": "shop"},
    "spec": {"minAvailable": 5, "selector": {"matchLabels": {"app": "store"}}},
}
# The files of the target branch, which match the cluster.
BEFORE: Mapping[str, list[Document]] = {
    "base.yaml": [_NAMESPACE, *_CLASSES],
    "budget.yaml": [_BUDGET],
    "store.yaml": [_STORE],
    "web.yaml": [_WEB],
}
# It fits on no node unless two pods of the store are evicted; their budget allows one.
EVIL = workload("Deployment", "evil", cpu="3", replicas=1, pod={"priorityClassName": "high"})


def cluster() -> str:
    """The cluster, as ``kubectl get -o json`` prints it."""
    places = ["n1", "n2", "n3"]
    pods = [*running(_STORE, places * 2, priority=10), *running(_WEB, places, priority=1000)]
    return as_list([*nodes(3, "4"), _NAMESPACE, *_CLASSES, _BUDGET, *pods])


def repository(folder: Path, attack: Attack, *, base: Mapping[str, str] | None = None, is_merged: bool = True) -> Path:
    """A repository with a change that ``attack`` makes to the content of ``main``.

    HEAD merges the change into ``main``, which is its first parent, unless ``is_merged``: then the change is staged,
    and HEAD is ``main``. ``base`` are additional files of ``main``.
    """
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    for name, documents in BEFORE.items():
        _write(folder, name, yaml.safe_dump_all(documents))
    for name, text in (base or {}).items():
        (folder / name).write_text(text, encoding="utf-8")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "base")
    if is_merged:
        git(folder, "checkout", "--quiet", "-b", "change")
    attack(folder)
    git(folder, "add", "--all")
    if is_merged:
        git(folder, "commit", "--quiet", "--allow-empty", "--message", "change")
        git(folder, "checkout", "--quiet", "main")
        git(folder, "merge", "--quiet", "--no-ff", "--message", "merge", "change")
    return folder


def _write(folder: Path, name: str, text: str | bytes) -> None:
    path = folder / MANIFESTS / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)


def _dump(*documents: Document) -> str:
    return yaml.safe_dump_all(documents, sort_keys=False)


def _changed(document: Document, path: str, value: Any) -> Document:
    """A copy with a value at a path such as ``spec.replicas``."""
    found = copy.deepcopy(document)
    place = found
    *parents, last = path.split(".")
    for part in parents:
        place = place.setdefault(part, {})
    place[last] = value
    return found


def _marked(document: Document, **annotations: str) -> Document:
    return _changed(document, "metadata.annotations", annotations)


def _has(text: str | bytes | Document, name: str = "evil.yaml") -> Attack:
    """The change contains a file with this content."""
    content = _dump(text) if isinstance(text, dict) else text
    return lambda folder: _write(folder, name, content)


def _edits(name: str, path: str, value: Any) -> Attack:
    """The change sets a field of the object in a file of the target branch."""
    return _has(_changed(BEFORE[name][0], path, value), name)


def _deletes(name: str) -> Attack:
    return lambda folder: (folder / MANIFESTS / name).unlink()


def _both(*attacks: Attack) -> Attack:
    def attack(folder: Path) -> None:
        for each in attacks:
            each(folder)

    return attack


def _writes(name: str, text: str) -> Attack:
    """The change causes damage, and contains a file next to the manifests to excuse it."""

    def attack(folder: Path) -> None:
        _has(EVIL)(folder)
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    return attack


def _links(folder: Path) -> None:
    _writes("lax.toml", LAX)(folder)
    (folder / "kpreempt.toml").symlink_to("lax.toml")


def _links_to(target: str, name: str = "evil.yaml") -> Attack:
    """A manifest is a link to a file next to the manifests, or to nowhere."""

    def attack(folder: Path) -> None:
        (folder / "outside").mkdir()
        (folder / "outside" / "evil.yaml").write_text(_dump(EVIL), encoding="utf-8")
        (folder / MANIFESTS / name).symlink_to(target)

    return attack


_RULES = [
    rule for rule in RuleId if rule.row.takes in (OptionType.NUMBER, OptionType.SWITCH) and "check" in rule.row.commands
]
_OFF = {rule: "false" if rule.row.takes is OptionType.SWITCH else '"off"' for rule in _RULES}
LAX = '[check]\nassume-none = ["pdb", "quota"]\n' + "".join(f"{rule} = {value}\n" for rule, value in _OFF.items())
_WARNS = "[check.severity]\n" + "".join(f'{rule} = "warn"\n' for rule in _RULES)
_WAIVES = "".join(f'[[check.waive]]\nrule = "{rule}"\nreason = "trust me"\n' for rule in _RULES)
_OVERRIDES = '[[check.override]]\nnamespace = "*"\n' + "".join(
    f"{rule} = {_OFF[rule]}\n" for rule in _RULES if rule.row.is_overridable
)
_ACCEPTED = [
    {
        "rule": rule,
        "subject": "cluster",
        "amount": 1000,
        "reason": "trust me",
        "expires": "2999-12-31",
        "fingerprint": f"{number:032x}",
    }
    for number, rule in enumerate(_RULES)
]
_BASELINE = json.dumps({"apiVersion": "kpreempt.io/v1alpha1", "kind": "CheckBaseline", "accepted": _ACCEPTED})
_HOOK, _ARGO, _WAVE = "helm.sh/hook", "argocd.argoproj.io/hook", "argocd.argoproj.io/sync-wave"
_NODE = {
    **nodes(1, "64")[0],
    "metadata": {"name": "n9", "labels": {"kubernetes.io/hostname": "n9"}},
}
_PIPELINE = "jobs: {check: {steps: [{uses: x/kpreempt@v0, with: {arguments: --report-only}}]}}\n"
_GITLAB = "kpreempt: {script: ['true'], variables: {APPLIED_BY: helm}}\n"
_PRE_COMMIT = "repos: [{repo: x, rev: v0, hooks: [{id: kpreempt-check, args: [--report-only]}]}]\n"

# Content of a file that is not read as it should be.
_SPELLINGS: Mapping[str, Attack] = {
    "a byte order mark": _has(b"\xef\xbb\xbf" + _dump(EVIL).encode()),
    "UTF-16 as PowerShell writes it": _has(_dump(EVIL).encode("utf-16")),
    "UTF-16 in big-endian order": _has(b"\xfe\xff" + _dump(EVIL).encode("utf-16-be")),
    "a document marker before JSON": _has("---\n" + json.dumps(EVIL), "evil.json"),
    "JSON after a comment": _has("# none\n" + json.dumps(EVIL)),
    "a quoted key": _has(_dump(EVIL).replace("apiVersion:", '"apiVersion":').replace("kind: D", '"kind": D')),
    "an escaped key": _has(_dump(EVIL).replace("apiVersion:", r'"\x61piVersion":')),
    "a key with a space after it": _has(_dump(EVIL).replace("apiVersion:", "apiVersion :")),
    "comments before it": _has("# nothing to see here\n" * 4000 + _dump(EVIL)),
    "an indent of eight": _has("".join(f"        {line}\n" for line in _dump(EVIL).splitlines())),
    "items of a ConfigMap": _has({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "items": [EVIL]}),
    "items of a Deployment": _has({**_WEB, "items": [EVIL]}, "web.yaml"),
    "items of an unknown kind": _has({"apiVersion": "example.com/v1", "kind": "Widget", "items": [EVIL]}),
    "items of a hook": _has({**_marked(_WEB, **{_HOOK: "test"}), "items": [EVIL]}, "web.yaml"),
}
# Content that another tool would omit, or apply in another order.
_HOOKS: Mapping[str, Attack] = {
    "a test of Helm": _has(_marked(EVIL, **{_HOOK: "test"})),
    "a hook of Helm for deletions": _has(_marked(EVIL, **{_HOOK: "pre-delete"})),
    "a hook of Helm of an unknown moment": _has(_marked(EVIL, **{_HOOK: "none"})),
    "what Argo CD skips": _has(_marked(EVIL, **{_ARGO: "Skip"})),
    "a hook of Argo CD for failures": _has(_marked(EVIL, **{_ARGO: "SyncFail"})),
    "a wave after what makes room": _both(
        _has(_marked(EVIL, **{_WAVE: "1"})), _has(_marked(_changed(_STORE, "spec.replicas", 0), **{_WAVE: "-1"}))
    ),
    "a running workload that is scaled to zero as a hook": _has(
        _marked(_changed(_WEB, "spec.replicas", 0), **{_HOOK: "test"}), "web.yaml"
    ),
    "a hook, and a rules' file that names Helm": _both(
        _writes("kpreempt.toml", '[check]\napplied-by = "helm"\n'), _has(_marked(EVIL, **{_HOOK: "test"}))
    ),
}
# Protection that the change itself removes or weakens.
_DAMAGE: Mapping[str, Attack] = {
    "an object that is written twice": _has(_dump(EVIL, _changed(EVIL, "spec.replicas", 0))),
    "an object in two files": _both(_has(EVIL, "a.yaml"), _has(_changed(EVIL, "spec.replicas", 0), "b.yaml")),
    "a workload that is scaled to zero": _edits("store.yaml", "spec.replicas", 0),
    "a budget that allows everything": _edits("budget.yaml", "spec.minAvailable", 0),
    "a budget that is looser": _edits("budget.yaml", "spec.minAvailable", 3),
    "a budget that selects other pods": _edits("budget.yaml", "spec.selector.matchLabels", {"app": "stora"}),
    "a budget that is looser together with what it prevents": _both(
        _edits("budget.yaml", "spec.minAvailable", 0), _has(EVIL)
    ),
    "a lower priority": _edits("store.yaml", "spec.template.spec.priorityClassName", ""),
    "a node that is full": _has(_changed(EVIL, "spec.template.spec.nodeName", "n1")),
    "a node that is not there": _has(_changed(EVIL, "spec.template.spec.nodeName", "n7")),
    "a node object that makes room": _both(_has(EVIL), _has(_NODE, "node.yaml")),
}
# Objects of the base that the change deletes: found only by pipelines that compare with it and prune.
DELETIONS: Mapping[str, Attack] = {
    "a deleted file with a budget": _deletes("budget.yaml"),
    "a deleted file with a workload": _deletes("store.yaml"),
    "a workload that is commented out": _has("# gone\n", "web.yaml"),
}
# Content meant to let the damage pass.
_EXCUSES: Mapping[str, Attack] = {
    "rules that are off": _writes("kpreempt.toml", LAX),
    "rules that only warn": _writes("kpreempt.toml", _WARNS),
    "waivers in the rules' file": _writes("kpreempt.toml", _WAIVES),
    "an override for all namespaces": _writes("kpreempt.toml", _OVERRIDES),
    "a rules' file that is a link": _links,
    "rules in a folder that is named like a commit": _writes("HEAD^1/kpreempt.toml", LAX),
    "rules in a folder that is named like HEAD": _writes("HEAD/kpreempt.toml", LAX),
    "rules in a folder that is named like a branch": _writes("refs/remotes/origin/main/kpreempt.toml", LAX),
    "annotations": _has(_marked(EVIL, **{"kpreempt.io/waive": ",".join(_RULES), "kpreempt.io/waive-reason": "trust"})),
    "a baseline": _writes("kpreempt-baseline.json", _BASELINE),
    "GitHub's workflow": _writes(".github/workflows/kpreempt.yml", _PIPELINE),
    "GitLab's pipeline": _writes(".gitlab-ci.yml", _GITLAB),
    "pre-commit's configuration": _writes(".pre-commit-config.yaml", _PRE_COMMIT),
    "attributes of git": _writes(".gitattributes", "* export-ignore export-subst -text\n"),
}
_LINKS: Mapping[str, Attack] = {
    "a manifest that is a link to nowhere": _links_to("/nonexistent/evil.yaml"),
    "a manifest that is a link out of the folder": _links_to("../outside/evil.yaml"),
    "a folder that is a link out of the folder": _links_to("../outside", "more"),
    "a link to the folder above": _links_to("..", "more"),
}
ATTACKS: Mapping[str, Attack] = {**_SPELLINGS, **_HOOKS, **_DAMAGE, **DELETIONS, **_EXCUSES, **_LINKS}
HARMLESS: Attack = _edits("web.yaml", "spec.template.metadata.annotations", {"restarted": "today"})
