"""The dataset of a sweep: a directory for each cluster with a Parquet file for each table, written atomically.

The files are ``DIR/cluster=NAME/verdicts.parquet`` and so on; unfinished partitions are under ``DIR/.partial``.
``summary_of`` summarizes the dataset in one record, with the worst clusters first.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from kpreempt.errors import InputError, UsageError
from kpreempt.files import name_of
from kpreempt.fleet import imported
from kpreempt.fleet.rows import BY_SEVERITY, FLAG, NUMBER, SCHEMA_VERSION, TABLES, TEXT, TEXTS, Tables
from kpreempt.verdict.status import Outcome
from kpreempt.verdict.sweep import Sweep, SweepAssumption, SweepFailure, SweptCluster

# Equal rows give equal bytes.
_COMPRESSION = "zstd"
_PREFIX = "cluster="
_PARTIAL = ".partial"
_LONGEST_NAME = 200


class Mark(NamedTuple):
    """A partition's metadata: the digests of its plan and snapshot, and whether its cluster failed."""

    plan: str
    fingerprint: str
    has_failed: bool = False


def encoded(tables: Tables, mark: Mark) -> dict[str, bytes]:
    """Encode each table as the bytes of its file; equal rows give equal bytes."""
    pa, pq = imported("pyarrow"), imported("pyarrow.parquet")
    types = {TEXT: pa.string(), NUMBER: pa.int64(), FLAG: pa.bool_(), TEXTS: pa.list_(pa.string())}
    marks = {
        "kpreempt.schema": str(SCHEMA_VERSION),
        "kpreempt.plan": mark.plan,
        "kpreempt.snapshot": mark.fingerprint,
        "kpreempt.failed": str(mark.has_failed).lower(),
    }
    found = {}
    for name, columns in TABLES.items():
        fields = [pa.field(each.name, types[each.type]) for each in columns]
        values = list(zip(*tables[name], strict=True)) or [()] * len(columns)
        arrays = [pa.array(map(_plain, each), field.type) for each, field in zip(values, fields, strict=True)]
        table = pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata=marks))
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression=_COMPRESSION)
        found[name] = sink.getvalue().to_pybytes()
    return found


def _plain(value: Any) -> Any:
    """Convert enumerations to their names, and texts that are not valid UTF-8 to escapes."""
    return str(value).encode(errors="backslashreplace").decode() if isinstance(value, str) else value


class Dataset:
    """A directory of partitions."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.name = name_of(path)

    def begin(self, *, resumes: bool) -> None:
        """Prepare the directory. Raises ``UsageError`` if it contains anything that must not be extended."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            others = [each.name for each in self.path.iterdir() if each.name != _PARTIAL]
        except OSError as error:
            raise InputError(f"cannot write: {error.strerror}", source=self.name) from None
        if any(not each.startswith(_PREFIX) for each in others):
            raise UsageError(f"--to {self.name}: contains other files", hint="a new directory")
        if others and not resumes:
            raise UsageError(f"--to {self.name}: already contains a sweep", hint="--resume, to run what is missing")
        shutil.rmtree(self.path / _PARTIAL, ignore_errors=True)

    def folders(self) -> list[str]:
        """List the directory names of all partitions, sorted. Raises ``InputError`` if there is no dataset."""
        try:
            return sorted(each.name for each in self.path.iterdir() if each.name.startswith(_PREFIX))
        except OSError as error:
            raise InputError(f"cannot read: {error.strerror}", source=self.name) from None

    def mark(self, cluster: str) -> Mark | None:
        """Return the metadata of the cluster's partition; ``None`` if it is incomplete or has another schema."""
        pq = imported("pyarrow.parquet")
        marks = []
        for table in TABLES:
            try:
                found = pq.read_schema(self._folder(cluster) / f"{table}.parquet").metadata or {}
            except (OSError, ValueError):
                return None
            marks.append({key.decode(): value.decode(errors="replace") for key, value in found.items()})
        first = marks[0]
        if any(each.get("kpreempt.plan") != first.get("kpreempt.plan") for each in marks):
            return None
        if first.get("kpreempt.schema") != str(SCHEMA_VERSION):
            return None
        return Mark(first["kpreempt.plan"], first.get("kpreempt.snapshot", ""), first.get("kpreempt.failed") == "true")

    def write(self, cluster: str, files: Mapping[str, bytes]) -> None:
        """Write the partition of a cluster, replacing any existing one. Raises ``InputError``."""
        target = self._folder(cluster)
        partial = self.path / _PARTIAL / target.name
        try:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            for table, content in files.items():
                (partial / f"{table}.parquet").write_bytes(content)
            if target.exists():
                old = self.path / _PARTIAL / f"old-{target.name}"
                target.replace(old)
                shutil.rmtree(old)
            partial.replace(target)
        except OSError as error:
            raise InputError(f"cannot write: {error.strerror or error}", source=self.name) from None

    def end(self) -> None:
        """Remove unfinished partitions."""
        shutil.rmtree(self.path / _PARTIAL, ignore_errors=True)

    def tables(self, name: str, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Yield a table of each cluster as an Arrow table. Raises ``InputError`` for an unreadable partition."""
        pa, pq = imported("pyarrow"), imported("pyarrow.parquet")
        for folder in self.folders():
            path = self.path / folder / f"{name}.parquet"
            try:
                with path.open("rb") as file:
                    parts = pq.ParquetFile(file)
                    selected = parts.schema_arrow.names if columns is None else list(columns)
                    if lacking := set(selected) - set(parts.schema_arrow.names):
                        raise ValueError(f"column {min(lacking)} missing")
                    yield parts.read(selected, use_threads=False)
            except (OSError, ValueError, KeyError, pa.ArrowException) as error:
                problem = str(error).partition("\n")[0][:200]
                raise InputError(f"cannot read: {problem}", source=name_of(os.fspath(path))) from None

    def folder_of(self, cluster: str) -> str:
        """Return the name of the cluster's directory, whether or not it exists."""
        import hashlib

        # Characters that are not allowed in a path are escaped as in a URL.
        name = quote(cluster, safe=" @:+,~", errors="backslashreplace")
        if len(name) > _LONGEST_NAME:
            name = f"{name[:_LONGEST_NAME]}~{hashlib.sha256(cluster.encode(errors='replace')).hexdigest()[:12]}"
        return f"{_PREFIX}{name}"

    def _folder(self, cluster: str) -> Path:
        return self.path / self.folder_of(cluster)


# Columns that all datasets have.
_LISTED = 200
_MAX_LISTED = 1_000
# Kinds of queries that are about single pods.
_OF_PODS = ("explain", "pending")
_COUNTED = ("cluster", "query", "algorithm", "kind", "worst_outcome", "certain", "victims", "violations")


class _Tally:
    """Counters for a pass through the dataset."""

    def __init__(self) -> None:
        self.algorithms: dict[str, None] = {}
        self.queries: dict[str, None] = {}
        self.failures: list[SweepFailure] = []
        self.num_failures: Counter[str] = Counter()
        self.failed: dict[str, str] = {}
        self.answers: Counter[str] = Counter()


def summary_of(dataset: Dataset) -> Sweep:
    """Summarize the whole sweep. Raises ``InputError`` if the dataset cannot be read."""
    tally = _Tally()
    for table in dataset.tables("failures"):
        for row in table.to_pylist():
            tally.num_failures[row["cluster"]] += 1
            if not row["query"]:
                tally.failed[row["cluster"]] = row["reason"]
            if len(tally.failures) < _LISTED:
                tally.failures.append(SweepFailure(**row))
    swept = dict(zip(dataset.folders(), dataset.tables("clusters"), strict=True))
    items = [
        _cluster(about.to_pylist()[0], verdicts, tally)
        for about, verdicts in zip(swept.values(), dataset.tables("verdicts", _COUNTED), strict=True)
        if about.num_rows
    ]
    outcomes: Counter[str] = Counter()
    audits: Counter[str] = Counter()
    for each in items:
        outcomes.update(each.outcomes)
        audits.update(each.audits)
    return Sweep(
        schema_version=SCHEMA_VERSION,
        algorithms=list(tally.algorithms),
        queries=list(tally.queries)[:_MAX_LISTED],
        outcomes=_sorted(outcomes),
        audits=dict(sorted(audits.items())),
        answers=sum(tally.answers.values()),
        uncertain=sum(each.uncertain for each in items),
        num_failures=sum(tally.num_failures.values()),
        items=sorted(items, key=_severity_key),
        failures=tally.failures,
        assumptions=_assumptions(dataset),
    )


def _cluster(about: dict[str, Any], verdicts: Any, tally: _Tally) -> SweptCluster:
    outcomes: Counter[str] = Counter()
    audits: Counter[str] = Counter()
    name = about["cluster"]
    queries, algorithms = _columns(verdicts, "query", "algorithm")
    tally.queries |= dict.fromkeys(queries)
    tally.algorithms |= dict.fromkeys(algorithms)
    tally.answers[name] = len(set(zip(queries, algorithms, strict=True)))
    victims = violations = uncertain = 0
    counted = _columns(verdicts, "kind", "worst_outcome", "certain", "victims", "violations")
    for kind, outcome, certain, evicted, violated in zip(*counted, strict=True):
        (outcomes if kind in _OF_PODS else audits)[outcome] += 1
        uncertain += not certain
        if kind in _OF_PODS:
            victims += evicted or 0
            violations += violated or 0
    return SweptCluster(
        cluster=name,
        source=about["source"] or "",
        version=about["version"] or "",
        nodes=about["nodes"],
        pods=about["pods"],
        outcomes=_sorted(outcomes),
        audits=dict(sorted(audits.items())),
        victims=victims,
        violations=violations,
        uncertain=uncertain,
        failures=tally.num_failures[name],
        error=tally.failed.get(name, ""),
    )


def _columns(table: Any, *names: str) -> list[list[Any]]:
    return [table[name].to_pylist() for name in names]


def _assumptions(dataset: Dataset) -> list[SweepAssumption]:
    """Count the clusters with each assumption, the most frequent first."""
    found: Counter[tuple[str, str]] = Counter()
    for table in dataset.tables("assumptions", ["kind", "message"]):
        found.update(set(zip(*_columns(table, "kind", "message"), strict=True)))
    listed = sorted(found.items(), key=lambda each: (-each[1], each[0]))[:_LISTED]
    return [SweepAssumption(kind=kind, message=message, clusters=number) for (kind, message), number in listed]


def _sorted(outcomes: Counter[str]) -> dict[str, int]:
    """Sort outcomes by severity, the best first."""
    known = [str(each) for each in BY_SEVERITY]
    return {each: outcomes[each] for each in sorted(outcomes, key=lambda one: (one in known and known.index(one), one))}


def _severity_key(each: SweptCluster) -> tuple[Any, ...]:
    stuck = each.outcomes.get(Outcome.UNSCHEDULABLE, 0)
    errors = each.audits.get("error", 0)
    return (
        not each.error,
        -each.failures,
        -stuck,
        -each.violations,
        -errors,
        -each.victims,
        -each.uncertain,
        each.cluster,
    )
