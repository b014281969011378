"""Record again what the API server decides on objects: ``python -m tests.parity.admission``. It needs Go.

Rewrites ``fixtures/admission`` from what is written there: valid objects in ``bases``, changes of them in
``changes.yaml`` and ``values.yaml``, and clusters. ``tests/reference/cmd/apiserver`` of each version decides.

``--search COUNT [--seed SEED]`` records nothing: it compares kpreempt with the API server on as many random changes,
and prints where they differ.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import subprocess
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import yaml

from tests.conformance.api_server import (
    DECODING,
    FOLDER,
    REMOVED,
    VERSIONS,
    Base,
    Case,
    Change,
    Document,
    bases,
    clusters,
    general,
    keys_of,
    manifest_of,
    outcomes,
    summary,
    written,
)
from tests.parity.admission_clusters import questions
from tests.parity.admission_mutations import changes
from tests.parity.reference import program

# Two changes that are accepted alone may conflict: so many pairs are tried for each object and operation.
_PAIRS = 50
# Of what is alike, only one in so many is kept: fields of a pod template, updates, and metadata of further objects.
_TEMPLATE_SHARE = 5
_UPDATE_SHARE = 2
_POD_UPDATE_SHARE = 5
_METADATA_SHARE = 8
# So many cases are kept of those that are rejected for the same reason, or of which the types are wrong.
_SAME_REASON = 6
_SAME_TYPE = 3
_REASONS = 2
_LONGEST = 150
# What is random, or the time, in a served object.
_UID = "5a0c2b7e-0000-4000-8000-000000000000"
_TIME = "2026-01-01T00:00:00Z"
_RENAMING = ("name", "generateName", "namespace")


def ask(version: str, queries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The answers of the API server's code to queries of ``cmd/apiserver``."""
    text = "".join(json.dumps(query) + "\n" for query in queries)
    done = subprocess.run([program("apiserver", version)], input=text, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def served() -> dict[str, Document]:
    """The valid objects as the oldest version has them, with their status.

    Raises ``ValueError`` if one of them is not valid.
    """
    queries = [
        {"id": name, "operation": "create", "object": manifest_of(each), "served": True}
        for name, each in written().items()
    ]
    found = {}
    for answer in ask(VERSIONS[0], queries):
        if not answer["accepted"]:
            raise ValueError(f"{answer['id']} is not valid: {answer}")
        metadata = answer["served"]["metadata"]
        text = json.dumps(answer["served"]).replace(metadata["uid"], _UID)
        document = json.loads(re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", _TIME, text))
        if prefix := metadata.get("generateName"):
            document["metadata"]["name"] = f"{prefix}00000"
        document["status"] = written()[answer["id"]].get("status", document.get("status", {}))
        found[answer["id"]] = document
    return found


def singles(name: str, base: Base, *, is_first: bool) -> Iterator[Case]:
    """Single changes of an object, on creation and on update. ``is_first``: of those of its kind."""
    cases = [Case(name, "create", (change,)) for change in changes(base.manifest)]
    cases += [Case(name, "update", (change,)) for change in changes(base.served) if not _renames(change)]
    for case in {str(each): each for each in cases}.values():
        if _is_among(case, _share(case, is_first=is_first)):
            yield case


def _renames(change: Change) -> bool:
    """Whether a change makes it another object, or metadata that no update has."""
    return change.at[0] == "metadata" and (len(change.at) == 1 or change.at[1] in _RENAMING)


def _share(case: Case, *, is_first: bool) -> int:
    at, share = case.changes[0].at, 1
    if "template" in at[:-1]:
        share *= _TEMPLATE_SHARE
    if case.operation == "update":
        share *= _POD_UPDATE_SHARE if case.kind == "Pod" else _UPDATE_SHARE
    if at[0] == "metadata" and not is_first:
        share *= _METADATA_SHARE
    return share


def _is_among(case: Case, share: int) -> bool:
    """Whether a case is one of the ``share`` of all: the same ones each time."""
    return _digest(case) % share == 0


def _digest(case: Case) -> int:
    return zlib.crc32(str(case).encode())


def together() -> Iterator[Case]:
    """The changes in ``changes.yaml``."""
    listed = yaml.safe_load((FOLDER / "changes.yaml").read_text(encoding="utf-8"))
    for name, members in listed.items():
        for operation, made in (item for member in members for item in member.items()):
            fields = [Change(keys_of(at), REMOVED if value is None else value) for at, value in made.items()]
            yield Case(name, operation, tuple(fields))


def pairs(accepted: Sequence[Case]) -> Iterator[Case]:
    """Two changes of one object that are accepted alone."""
    chance = random.Random(44)
    groups: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in accepted:
        groups[case.base, case.operation].append(case)
    for (base, operation), members in groups.items():
        for _ in range(_PAIRS):
            first, second = chance.choice(members).changes[0], chance.choice(members).changes[0]
            case = Case(base, operation, (first, second))
            shorter = min(len(first.at), len(second.at))
            if first.at[:shorter] != second.at[:shorter] and _is_possible(case):
                yield case


def _is_possible(case: Case) -> bool:
    """Whether the place of the second change is there after the first one."""
    try:
        case.documents()
    except (LookupError, TypeError):
        return False
    return True


def with_reasons(cases: Iterable[Case]) -> list[Case]:
    """The cases with what each version says. Those on which its code panics are left out."""
    chosen = list(cases)
    queries = []
    cluster = ""
    for number, case in enumerate(chosen):
        document, old = case.documents()
        query: dict[str, Any] = {"id": str(number), "operation": case.operation, "object": document, "old": old}
        if case.cluster != cluster:
            cluster = case.cluster
            read = clusters()[cluster]
            query |= {"cluster": read["objects"], "configuration": read.get("configuration", {})}
        queries.append(query)
    answers = {version: ask(version, queries) for version in VERSIONS}
    return [
        case._replace(reasons={version: _reasons(answers[version][number]) for version in VERSIONS})
        for number, case in enumerate(chosen)
        if not any(_panicked(answers[version][number], case) for version in VERSIONS)
    ]


def _panicked(answer: Mapping[str, Any], case: Case) -> bool:
    error = str(answer.get("error", ""))
    if error and not error.startswith("panic"):
        raise ValueError(f"{case}: {error}")
    return bool(error)


def _reasons(answer: Mapping[str, Any]) -> list[str]:
    prefix = DECODING if answer.get("stage") == "decode" else ""
    return [_written(f"{prefix}{message}") for message in sorted(answer.get("messages", ()))[:_REASONS]]


def _written(reason: str) -> str:
    """The first line of a reason, without addresses and UIDs; if it is long, without its middle."""
    text = re.sub(r"\b0x[0-9a-f]+|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "…", reason.partition("\n")[0])
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}…{text[-_LONGEST // 2 :]}"


def thinned(cases: Sequence[Case]) -> list[Case]:
    """The cases without most of those that are rejected for the same reason; all that are accepted."""
    counts: Counter[tuple[str, ...]] = Counter()
    kept = set()
    for number, case in sorted(enumerate(cases), key=lambda item: _digest(item[1])):
        firsts = [general(found[0]) if found else "" for found in case.reasons.values()]
        key = (case.kind, case.operation, *firsts)
        counts[key] += 1
        is_type = all(first.startswith(DECODING) for first in firsts)
        if not any(firsts) or counts[key] <= (_SAME_TYPE if is_type else _SAME_REASON):
            kept.add(number)
    return [case for number, case in enumerate(cases) if number in kept]


def line(case: Case) -> str:
    """A case as it is recorded."""
    recorded: dict[str, Any]
    if case.cluster:
        recorded = {"cluster": case.cluster, "object": case.given}
        if case.old is not None:
            recorded["old"] = case.old
    else:
        made = [change.recorded() for change in case.changes]
        recorded = {"base": case.base, "on": case.operation, "changes": made}
    reasons = {version: found for version, found in case.reasons.items() if found}
    if reasons:
        is_same = len(reasons) == len(VERSIONS) and len(set(map(tuple, reasons.values()))) == 1
        recorded["rejected"] = {"all": reasons[VERSIONS[0]]} if is_same else reasons
    return json.dumps(recorded, separators=(",", ":"), ensure_ascii=False) + "\n"


def write(name: str, text: str) -> None:
    """Write a compressed file that is the same each time."""
    path = FOLDER / name
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def of_kinds() -> Iterator[tuple[str, list[Case]]]:
    """The cases of each kind."""
    names: dict[str, list[str]] = defaultdict(list)
    for name in bases():
        names[name.partition("/")[0]].append(name)
    by_hand = list(together())
    for kind, members in names.items():
        found = [
            case for number, name in enumerate(members) for case in singles(name, bases()[name], is_first=number == 0)
        ]
        alone = with_reasons([*(case for case in by_hand if case.kind == kind), *found])
        accepted = [case for case in alone if len(case.changes) == 1 and not any(case.reasons.values())]
        both = with_reasons(pairs(accepted))
        yield kind, thinned([*alone, *both])


def in_clusters() -> list[Case]:
    """The cases that depend on the cluster."""
    cases = [
        Case(each.object["kind"], "update" if each.old else "create", (), {}, each.cluster, each.object, each.old)
        for each in questions()
    ]
    return with_reasons(sorted({str(case): case for case in cases}.values(), key=lambda case: case.cluster))


def others(count: int, seed: int) -> Iterator[Case]:
    """Random changes, one or two of an object at a time."""
    chance = random.Random(seed)
    names = sorted(bases())
    for name in chance.choices(names, k=count):
        operation = chance.choice(("create", "update"))
        possible = [change for change in _changes_of(name, operation) if not _renames(change)]
        case = Case(name, operation, tuple(chance.sample(possible, chance.randint(1, 2))))
        if _is_possible(case):
            yield case


@cache
def _changes_of(name: str, operation: str) -> list[Change]:
    base = bases()[name]
    return list(changes(base.manifest if operation == "create" else base.served))


def record() -> None:
    """Rewrite all files."""
    write("served.json.gz", json.dumps(served(), separators=(",", ":")))
    total = 0
    for name, cases in [*of_kinds(), ("plugins", in_clusters())]:
        write(f"{name}.jsonl.gz", "".join(map(line, cases)))
        rejected = sum(any(case.reasons.values()) for case in cases)
        total += len(cases)
        sys.stdout.write(f"{name}: {len(cases)} objects, {rejected} of them rejected\n")
    sys.stdout.write(f"{total} objects\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Record all, or compare on random changes."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.admission", description=main.__doc__)
    parser.add_argument("--search", type=int, metavar="COUNT", help="compare on COUNT random changes instead")
    parser.add_argument("--seed", type=int, default=0, help="another SEED makes other changes")
    given = parser.parse_args(arguments)
    if given.search is None:
        record()
        return 0
    found = list(outcomes(with_reasons(others(given.search, given.seed))))
    sys.stdout.writelines(f"{text}\n" for text in summary(found))
    return int(any(outcome.is_false for outcome in found))


if __name__ == "__main__":
    sys.exit(main())
