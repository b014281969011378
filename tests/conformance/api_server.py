"""What the API server's own code decides on objects, recorded in ``fixtures/admission``, and what kpreempt decides.

``python -m tests.conformance.api_server [--kind KIND] [--version 1.33] [--match REGEX]`` prints the objects that only
kpreempt rejects, and those that only the API server rejects, grouped by the reason.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from kpreempt.admission import admit, defaults, schema
from kpreempt.admission.plugin_state import PluginState
from kpreempt.admission.plugins import plugin_problems
from kpreempt.admission.resource_quotas import rejected_by_quotas
from kpreempt.admission.validation import Server, problems_of
from kpreempt.analysis.algorithms import api_server_of
from kpreempt.errors import KpreemptError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kinds import KINDS
from kpreempt.snapshot.decode import decode_object

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "admission"
VERSIONS = ("1.33", "1.36")
# What the reasons for objects begin with that cannot be decoded.
DECODING = "decoding: "
LEAST_SHARE = 0.95
# Assumptions that a pod would be rejected.
_REJECTS = re.compile("API server (would reject|rejects) the pod")
_SHORT = 60
_LINE = 300

Document = dict[str, Any]
Keys = tuple[str | int, ...]


class _Removed:
    def __repr__(self) -> str:
        return "removed"


REMOVED = _Removed()


class Change(NamedTuple):
    """A field of a document, and its new value; ``REMOVED`` takes it away."""

    at: Keys
    value: Any

    def applied(self, document: Document) -> Document:
        """The document with the change. An index behind the end of a list adds to it.

        Raises ``LookupError`` or ``TypeError`` if there is no such place.
        """
        changed = deepcopy(document)
        parent: Any = changed
        for key in self.at[:-1]:
            parent = parent[key]
        last: Any = self.at[-1]
        if self.value is REMOVED and isinstance(parent, dict):
            parent.pop(last, None)
        elif self.value is REMOVED:
            del parent[last]
        elif isinstance(parent, list) and last == len(parent):
            parent.append(deepcopy(self.value))
        else:
            parent[last] = deepcopy(self.value)
        return changed

    def recorded(self) -> list[Any]:
        """The change as JSON."""
        return [list(self.at)] if self.value is REMOVED else [list(self.at), self.value]

    def __str__(self) -> str:
        """``spec.containers[0].name = "a"``."""
        text = repr(self.value) if self.value is REMOVED else json.dumps(self.value)
        return f"{path_text(self.at)} = {_cut(text)}"


class Case(NamedTuple):
    """An object that is created or updated, and why the API server rejects it.

    ``base`` is the kind and name of a valid object, which is changed; objects in a ``cluster`` are as they are
    recorded, in ``given`` and ``old``. ``reasons`` are by version, and empty where it accepts the object.
    """

    base: str
    operation: str
    changes: tuple[Change, ...] = ()
    reasons: Mapping[str, Sequence[str]] = {}
    cluster: str = ""
    given: Document | None = None
    old: Document | None = None

    @property
    def kind(self) -> str:
        """The kind of the object."""
        return self.base.partition("/")[0]

    def documents(self) -> tuple[Document, Document | None]:
        """The object, and the one in the cluster or ``None``."""
        if self.given is not None:
            return self.given, self.old
        base = bases()[self.base]
        old = base.served if self.operation == "update" else None
        document = base.manifest if old is None else old
        for change in self.changes:
            document = change.applied(document)
        return document, old

    def __str__(self) -> str:
        what = " and ".join(map(str, self.changes)) if self.given is None else _without_kind(self.given)
        return f"{self.operation} {self.base}{self.cluster and f' in cluster {self.cluster}'}: {what}"


def _without_kind(document: Document) -> str:
    return json.dumps({key: value for key, value in document.items() if key not in ("apiVersion", "kind")})


def _cut(text: str, length: int = _SHORT) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def path_text(path: Keys) -> str:
    """``spec.containers[0].name``."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


def keys_of(path: str) -> Keys:
    """The keys of ``spec.containers.0.name``."""
    return tuple(int(key) if key.isdecimal() else key for key in path.split("."))


def change_of(recorded: Sequence[Any]) -> Change:
    """A change of its JSON."""
    return Change(tuple(recorded[0]), recorded[1] if len(recorded) > 1 else REMOVED)


class Base(NamedTuple):
    """A valid object as it is written, and as the API server has it."""

    manifest: Document
    served: Document


@cache
def written() -> Mapping[str, Document]:
    """The valid objects by kind and name, as they are written, with the status that they have in the cluster."""
    paths = sorted((FOLDER / "bases").glob("*.yaml"))
    documents: list[Document] = [each for path in paths for each in yaml.safe_load(path.read_text(encoding="utf-8"))]
    return {f"{each['kind']}/{_name(each['metadata'])}": each for each in documents}


def _name(metadata: Document) -> str:
    return str(metadata.get("name") or metadata["generateName"].rstrip("-"))


@cache
def bases() -> Mapping[str, Base]:
    """The valid objects, by kind and name."""
    served = json.loads(gzip.decompress((FOLDER / "served.json.gz").read_bytes()))
    return {name: Base(manifest_of(document), served[name]) for name, document in written().items()}


def manifest_of(document: Document) -> Document:
    """What is applied of a written object."""
    return {key: value for key, value in document.items() if key != "status"}


@cache
def clusters() -> Mapping[str, Mapping[str, Any]]:
    """The clusters by name: ``objects``, and the ``configuration`` of their admission plugins."""
    read: Mapping[str, Mapping[str, Any]] = yaml.safe_load((FOLDER / "clusters.yaml").read_text(encoding="utf-8"))
    return read


def files() -> list[Path]:
    """The files with cases: one for each kind, and ``plugins.jsonl.gz``."""
    return sorted(FOLDER.glob("*.jsonl.gz"))


def cases(path: Path) -> list[Case]:
    """The recorded cases of a file."""
    return [_case(json.loads(line)) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]


def _case(recorded: Mapping[str, Any]) -> Case:
    rejected = recorded.get("rejected", {})
    reasons = {version: rejected.get(version, rejected.get("all", ())) for version in VERSIONS}
    if "cluster" not in recorded:
        return Case(recorded["base"], recorded["on"], tuple(map(change_of, recorded["changes"])), reasons)
    given, old = recorded["object"], recorded.get("old")
    base = f"{given['kind']}/{_name(given['metadata'])}"
    return Case(base, "update" if old else "create", (), reasons, recorded["cluster"], given, old)


def decided(case: Case, minor: int) -> Sequence[str]:
    """Why kpreempt rejects an object, as an API server of this version would; nothing if it does not."""
    document, old = case.documents()
    document, undecoded = schema.decoded(document, minor)
    if undecoded:
        return [str(problem) for problem in undecoded]
    if old is not None:
        old, _ = schema.decoded(old, minor)
    document = defaults.with_defaults(document)
    found = [str(problem) for problem in problems_of(document, old, Server(minor))]
    if not found and case.cluster:
        found = _by_plugins(document, old, case.cluster, minor)
    return found


def _by_plugins(document: Document, old: Document | None, cluster: str, minor: int) -> list[str]:
    """Why admission plugins reject a valid object in a cluster."""
    snapshot = _snapshot(cluster, minor)
    state = PluginState(snapshot, [each for each in _objects(cluster) if each["kind"] == "ServiceAccount"])
    found = [str(problem) for problem in plugin_problems(document, old, state, Server(minor))]
    if found or old is not None or document["kind"] != "Pod":
        return found
    pod = decode_object("Pod", document)
    try:
        admission = admit(pod, snapshot, api_server_of(snapshot))
    except KpreemptError as error:
        return [str(error)]
    assumptions = [*admission.assumptions, *rejected_by_quotas(admission.pod, snapshot)]
    return [each.message for each in assumptions if _REJECTS.search(each.message)]


def _objects(cluster: str) -> list[Document]:
    listed: list[Document] = clusters()[cluster]["objects"]
    return listed


@cache
def _snapshot(cluster: str, minor: int) -> ClusterSnapshot:
    found: dict[str, Any] = defaultdict(list)
    for each in _objects(cluster):
        if each["kind"] in KINDS:
            found[KINDS[each["kind"]].field].append(decode_object(each["kind"], each))
    return ClusterSnapshot(**found, version=f"v1.{minor}.0")


class Outcome(NamedTuple):
    """What both say of a case in one version."""

    case: Case
    version: str
    expected: Sequence[str]
    found: Sequence[str]

    @property
    def is_false(self) -> bool:
        """Whether only kpreempt rejects the object."""
        return bool(self.found) and not self.expected

    @property
    def is_missed(self) -> bool:
        """Whether only the API server rejects it."""
        return bool(self.expected) and not self.found


def outcomes(chosen: Iterable[Case], versions: Sequence[str] = VERSIONS) -> Iterator[Outcome]:
    """Each case in each version."""
    for case in chosen:
        for version in versions:
            found = decided(case, int(version.removeprefix("1.")))
            yield Outcome(case, version, case.reasons[version], found)


def share_found(found: Iterable[Outcome]) -> float:
    """The share of the objects rejected by the API server that kpreempt rejects; 1 if there are none."""
    rejected = [outcome for outcome in found if outcome.expected]
    return 1 - sum(outcome.is_missed for outcome in rejected) / len(rejected) if rejected else 1


def general(reason: str) -> str:
    """A reason without what differs from case to case."""
    text = re.sub(r"\[\d+\]", "[]", reason)
    text = re.sub(r'(pods?|containers?) ("[^"]*"(, )?)+', r"\1 …", text)
    return re.sub(r"(Invalid|Unsupported|Duplicate) value: (.*: |.*)", r"\1 value: …: ", text)


def report(found: Iterable[tuple[Outcome, str]]) -> Iterator[str]:
    """Lines with outcomes of the same kind and reason taken together, those with the most of a kind first."""
    groups: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for outcome, reason in found:
        groups[outcome.case.kind, general(reason)].append(outcome)
    for (kind, reason), members in sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1]))):
        versions = "/".join(sorted({member.version for member in members}))
        yield f"{len(members):4} {versions} {kind}: {reason}\n          e.g. {_cut(str(members[0].case), _LINE)}"


def false_rejections(found: Iterable[Outcome]) -> list[str]:
    """The objects that only kpreempt rejects, by the first reason of kpreempt."""
    return list(report((outcome, outcome.found[0]) for outcome in found if outcome.is_false))


def missed_rejections(found: Iterable[Outcome]) -> list[str]:
    """The objects that only the API server rejects, by its first reason."""
    return list(report((outcome, outcome.expected[0]) for outcome in found if outcome.is_missed))


def summary(found: Sequence[Outcome]) -> Iterator[str]:
    """Lines with all differences, and with the shares of each kind."""
    yield from ("== rejected by kpreempt alone", *(false_rejections(found) or ["none"]))
    yield from ("== missed", *(missed_rejections(found) or ["none"]))
    for kind in [*sorted({outcome.case.kind for outcome in found}), ""]:
        part = [outcome for outcome in found if kind in ("", outcome.case.kind)]
        rejected, wrong = sum(bool(outcome.expected) for outcome in part), sum(outcome.is_false for outcome in part)
        shown = f"{len(part):6} decisions, {rejected:6} rejected, {share_found(part):7.2%} found, {wrong:4} false"
        yield f"{kind or 'all':26}{shown}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print where kpreempt and the API server disagree."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.api_server", description=main.__doc__)
    parser.add_argument("--kind", action="append", help="only objects of this KIND; repeatable")
    parser.add_argument("--version", action="append", choices=VERSIONS, help="only this version; repeatable")
    parser.add_argument("--match", default="", metavar="REGEX", help="only cases whose change or reason matches")
    parser.add_argument("--plugins", action="store_true", help="only objects that depend on the cluster")
    given = parser.parse_args(arguments)
    chosen = [
        case
        for path in files()
        for case in cases(path)
        if (not given.kind or case.kind in given.kind)
        and (not given.plugins or case.cluster)
        and re.search(given.match, f"{case} {json.dumps(case.reasons)}")
    ]
    found = list(outcomes(chosen, given.version or VERSIONS))
    sys.stdout.writelines(f"{text}\n" for text in summary(found))
    return 1 if any(outcome.is_false for outcome in found) or share_found(found) < LEAST_SHARE else 0


if __name__ == "__main__":
    sys.exit(main())
