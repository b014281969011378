"""The plan of a sweep, from a file or from options: the clusters, the queries, and the schedulers.

``KINDS`` are the kinds of queries: the keys that a plan may set, how a cluster is queried, and the resulting rows.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from kpreempt.analysis.algorithms import AUTO, scheduler_for
from kpreempt.errors import InputError, UsageError, nearest
from kpreempt.files import name_of, read_file
from kpreempt.fleet.rows import SCHEMA_VERSION, Rows, add_budgets, add_gate, add_pending, add_verdicts
from kpreempt.library.cluster import Cluster
from kpreempt.library.gate.config import parse_toml
from kpreempt.library.gate.settings import Gate, settings_of
from kpreempt.library.options import LADDER, Request, fields_of, kind_of, option_of
from kpreempt.library.requests import Budgets, Check, Drain, Explain, Pending
from kpreempt.scheduler_table import ALGORITHMS, DEFAULT_ALGORITHM
from kpreempt.snapshot.archives import MAX_UNPACKED, InputLimits, parse_size
from kpreempt.snapshot.manifest import read_manifest
from kpreempt.verdict.records import Assumption, AssumptionKind

# More than anyone needs; the plan is rejected before its grid uses up the memory.
MAX_QUERIES = 10_000
_MAX_ALGORITHMS = 50
_SHOWN = 40
_KEYS = ("algorithms", "now", "max-unpacked", "skip-bad-objects", "clusters", "query")
_CLUSTER_KEYS = ("snapshots", "contexts", "kubeconfig")
_COMMON_KEYS = ("id", "kind")


class Settings(msgspec.Struct, frozen=True):
    """How every cluster is read. Ages count to ``now``, by default to the time of each dump."""

    now: datetime | None = None
    max_unpacked: int = MAX_UNPACKED
    skip_bad_objects: bool = False


class Plan(msgspec.Struct, frozen=True):
    """Clusters (``snapshots`` are paths, URLs and globs), and the queries to run against each of them.

    Every query is run with each of the ``algorithms``.
    """

    snapshots: tuple[str, ...]
    contexts: tuple[str, ...]
    kubeconfig: str
    algorithms: tuple[str, ...]
    queries: tuple[Query, ...]
    settings: Settings = Settings()

    @property
    def digest(self) -> str:
        """A digest of the queries and settings, but not the clusters: equal plans give equal answers."""
        from kpreempt import __version__

        content = (SCHEMA_VERSION, __version__, self.algorithms, self.queries, self.settings)
        return hashlib.sha256(json.dumps(msgspec.to_builtins(content), sort_keys=True).encode()).hexdigest()


class PlanOverrides(msgspec.Struct, frozen=True):
    """The values of the options, which replace or extend a plan."""

    snapshots: Sequence[str] = ()
    contexts: Sequence[str] = ()
    kubeconfig: str = ""
    algorithms: Sequence[str] = ()
    manifests: Sequence[str] = ()
    priorities: Sequence[int] = ()
    kinds: Sequence[str] = ()
    now: datetime | None = None
    max_unpacked: int | None = None
    skip_bad_objects: bool = False


def make_plan(path: str, given: PlanOverrides) -> Plan:
    """Build the plan from a file (none if ``path`` is empty) and the options, which take precedence.

    Manifest paths in a file are relative to its directory. Raises ``InputError`` and ``UsageError``.
    """
    document = parse_toml(read_file(path, name_of(path)), name_of(path)) if path else {}
    source = name_of(path) if path else "the options"
    top = _Table(document, source)
    top.allow(_KEYS)
    clusters = top.table("clusters")
    clusters.allow(_CLUSTER_KEYS)
    folder = Path(path).parent if path else Path()
    queries = document.get("query", [])
    if not isinstance(queries, list) or not all(isinstance(each, dict) for each in queries):
        raise InputError("expected tables", source=source, path="query", hint="[[query]]")
    entries = [_Table(each, source, f"query[{number}]") for number, each in enumerate(queries, 1)]
    entries += [_Table(each, "the options", "query") for each in _of_options(given)]
    if not entries:
        raise UsageError("the plan has no queries", hint="[[query]] in the plan, -f FILE or --query pending")
    plan = Plan(
        snapshots=tuple(given.snapshots or clusters.texts("snapshots")),
        contexts=tuple(given.contexts or clusters.texts("contexts")),
        kubeconfig=given.kubeconfig or clusters.text("kubeconfig"),
        algorithms=_algorithms(tuple(given.algorithms or top.texts("algorithms") or (AUTO,))),
        queries=_queries(entries, folder),
        settings=_settings(top, given),
    )
    if not plan.snapshots and not plan.contexts:
        raise UsageError("the plan has no clusters", hint="--snapshots 'dumps/*.json.zst' or --contexts a,b")
    return plan


class _Table:
    """A table of the file that knows its own path."""

    def __init__(self, content: Mapping[str, Any], source: str, path: str = "") -> None:
        self.content = content
        self.source = source
        self.path = path

    def allow(self, keys: Sequence[str]) -> None:
        """Raise ``InputError`` for any other key."""
        for key in self.content:
            if key not in keys:
                raise self.bad(key, "unknown key", nearest(key, keys))

    def bad(self, key: str, problem: str, hint: str = "") -> InputError:
        path = ".".join(filter(None, (self.path, key[:_SHOWN])))
        return InputError(problem, source=self.source, path=path, hint=hint)

    def value(self, key: str, kind: type, words: str, default: Any) -> Any:
        """Return the value of a key. Raises ``InputError`` if it has the wrong type."""
        found = self.content.get(key, default)
        if type(found) is not kind:
            raise self.bad(key, f"{str(found)[:_SHOWN]!r} is not {words}")
        return found

    def text(self, key: str) -> str:
        found: str = self.value(key, str, "a text", "")
        return found

    def texts(self, key: str) -> list[str]:
        """Return a string, or a list of strings, as a list."""
        found = self.content.get(key, [])
        listed = found if isinstance(found, list) else [found]
        if not all(isinstance(each, str) and each for each in listed):
            raise self.bad(key, "expected a string or a list of strings")
        return listed

    def table(self, key: str) -> _Table:
        return _Table(self.value(key, dict, f"a table: [{key}]", {}), self.source, key)


def _of_options(given: PlanOverrides) -> Iterator[dict[str, Any]]:
    ladder = {"priority": list(given.priorities)} if given.priorities else {}
    for each in given.manifests:
        # Relative to the current directory, not to the plan's.
        yield {"kind": "explain", "manifest": str(Path(each).absolute()), "id": Path(each).stem, **ladder}
    for kind in given.kinds:
        yield {"kind": kind}


def _algorithms(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(names) > _MAX_ALGORITHMS or len(set(names)) < len(names):
        raise UsageError(
            "an algorithm is repeated, or there are too many", hint=f"--algorithms auto,{DEFAULT_ALGORITHM}"
        )
    for each in names:
        if each != AUTO:
            if each not in ALGORITHMS and not each.startswith("kube-"):
                raise UsageError(f"unknown algorithm {each[:_SHOWN]!r}", hint=nearest(each, (AUTO, *ALGORITHMS)))
            scheduler_for(each)
    return names


def _settings(top: _Table, given: PlanOverrides) -> Settings:
    now = given.now or top.content.get("now")
    if isinstance(now, str):
        try:
            now = datetime.fromisoformat(now)
        except ValueError:
            raise top.bad("now", "is not a time with a time zone", "2026-11-21T03:12:00Z") from None
    if now is not None and (not isinstance(now, datetime) or now.tzinfo is None):
        raise top.bad("now", "is not a time with a time zone", "2026-11-21T03:12:00Z")
    size = given.max_unpacked
    if size is None and (text := top.text("max-unpacked")):
        size = parse_size(text, "max-unpacked")
    skips = given.skip_bad_objects or top.value("skip-bad-objects", bool, "true or false", False)
    return Settings(now, MAX_UNPACKED if size is None else size, skips)


def _queries(entries: Sequence[_Table], folder: Path) -> tuple[Query, ...]:
    found: dict[str, Query] = {}
    for entry in entries:
        for query in _expanded(entry, folder):
            if query.id in found:
                raise entry.bad("id", f"duplicate id {query.id[:_SHOWN]!r}", 'id = "another"')
            found[query.id] = query
            if len(found) > MAX_QUERIES:
                raise entry.bad("", f"the plan has more than {MAX_QUERIES:,} queries")
    return tuple(found.values())


def _expanded(entry: _Table, folder: Path) -> Iterator[Query]:
    """Yield the query with each combination of its listed values."""
    name = entry.text("kind") or "explain"
    if name not in KINDS:
        raise entry.bad("kind", f"unknown kind {name[:_SHOWN]!r}", nearest(name, KINDS))
    kind = KINDS[name]
    entry.allow((*_COMMON_KEYS, *kind.keys, *(("manifest",) if kind.has_manifest else ())))
    manifests = _manifests(entry, folder)
    if kind.has_manifest and bool(manifests) == bool(kind.instead and entry.content.get(kind.instead)):
        raise entry.bad(
            "manifest", "expected " + " or ".join(filter(None, ("a manifest", kind.instead and f"a {kind.instead}")))
        )
    if kind.needs and not any(each in entry.content for each in kind.needs):
        raise entry.bad("", f"expected one of {', '.join(kind.needs)}")
    identifier = entry.text("id") or name
    ladders: dict[str, list[Any]] = {}
    plain: dict[str, Any] = {}
    for key, expected in kind.keys.items():
        if key not in entry.content:
            continue
        value = entry.content[key]
        if isinstance(value, list) and expected.is_ladder:
            ladders[key] = [_typed(entry, key, each, expected.type) for each in value]
            if not value or len(set(value)) < len(value):
                raise entry.bad(key, "empty list or duplicate value")
        else:
            plain[key] = _typed(entry, key, value, expected.type)
    for values in product(*ladders.values()):
        steps = dict(zip(ladders, values, strict=True))
        suffix = ",".join(f"{key}={value}" for key, value in steps.items())
        yield Query(f"{identifier}[{suffix}]" if suffix else identifier, name, {**plain, **steps}, manifests)


def _typed(entry: _Table, key: str, value: Any, kind: type) -> Any:
    if kind is dict:
        return _rules(entry, key, value)
    if kind is list:
        if not isinstance(value, list) or not value or not all(isinstance(each, str) and each for each in value):
            raise entry.bad(key, "expected a list of strings")
        return value
    if type(value) is not kind or (isinstance(value, int) and abs(value) >= 2**31):
        words = {str: "a string", int: "a number", bool: "true or false"}[kind]
        raise entry.bad(key, f"{str(value)[:_SHOWN]!r} is not {words}")
    return value


def _rules(entry: _Table, key: str, value: Any) -> dict[str, Any]:
    """Parse the limits of a gate, as ``Gate`` takes them. Raises ``InputError`` if they are invalid."""
    if not isinstance(value, dict):
        raise entry.bad(key, "expected a table", "rules = { max-victims = 0 }")
    try:
        settings_of(Gate(rules=value), datetime.now(UTC), "check")
    except UsageError as error:
        raise entry.bad(key, error.message, error.hint) from None
    return value


def _manifests(entry: _Table, folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    input_limits = InputLimits()
    for path in entry.texts("manifest"):
        found += [each.document for each in read_manifest(str(folder / path), input_limits=input_limits)]
    text = json.dumps(found, default=lambda each: each.isoformat() if isinstance(each, date) else str(each))
    return json.loads(text)  # type: ignore[no-any-return]


class Query(msgspec.Struct, frozen=True):
    """One query: its id in the rows, its kind, the plan's values, and the objects of its manifests."""

    id: str
    kind: str
    says: dict[str, Any] = {}
    manifests: list[dict[str, Any]] = []


class Key(NamedTuple):
    """A key in a plan: its type, and whether a list of values makes one query per value."""

    type: type
    is_ladder: bool = False


def _keys(request: type[Request], **more: Key) -> Mapping[str, Key]:
    """Return the keys of a query in a plan: the request's options for plans, and ``more``."""
    options = {name: (kind_of(each), option_of(each)) for name, each in fields_of(request).items()}
    return {
        **{
            name.replace("_", "-"): Key(kind, option.in_plans == LADDER)
            for name, (kind, option) in options.items()
            if option is not None and option.in_plans
        },
        **more,
    }


class Kind(NamedTuple):
    """A kind of query. ``run`` runs it against a cluster and adds the rows; ``instead`` can replace a manifest.

    If there are ``needs``, one of them is required.
    """

    run: Callable[[Cluster, Query, Rows], None]
    keys: Mapping[str, Key]
    has_manifest: bool = False
    instead: str = ""
    needs: tuple[str, ...] = ()


def _explain(cluster: Cluster, query: Query, rows: Rows) -> None:
    says = _options(query)
    pod = says.pop("pod", None)
    add_verdicts(rows, query.kind, cluster.explain_all(query.manifests if pod is None else pod, **says).items)


def _check(cluster: Cluster, query: Query, rows: Rows) -> None:
    with warnings.catch_warnings(record=True) as ignored:
        warnings.simplefilter("always", UserWarning)
        answer = cluster.check(query.manifests, gate=Gate(rules=query.says.get("rules", {})), **_options(query))
    add_gate(rows, query.kind, answer)
    rows.assume("", [Assumption("manifest", "", str(each.message), AssumptionKind.INFORMATIONAL) for each in ignored])


def _drain(cluster: Cluster, query: Query, rows: Rows) -> None:
    add_gate(rows, query.kind, cluster.drain(gate=Gate(rules=query.says.get("rules", {})), **_options(query)))


def _options(query: Query) -> dict[str, Any]:
    return {name.replace("-", "_"): value for name, value in query.says.items() if name != "rules"}


KINDS: Mapping[str, Kind] = {
    "explain": Kind(_explain, _keys(Explain), has_manifest=True, instead="pod"),
    "pending": Kind(
        lambda cluster, query, rows: add_pending(rows, query.kind, cluster.pending(**query.says)),
        _keys(Pending),
    ),
    "budgets": Kind(
        lambda cluster, query, rows: add_budgets(rows, query.kind, cluster.budgets(**query.says)),
        _keys(Budgets),
    ),
    "check": Kind(_check, _keys(Check, rules=Key(dict)), has_manifest=True),
    "drain": Kind(_drain, _keys(Drain, rules=Key(dict)), needs=("nodes", "selector", "pool")),
}
