"""Recordings made without a network: a cluster that changes, and a recorder that watches it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from kpreempt.analysis.check.rollout.kept_documents import is_kept, kept
from kpreempt.model.cluster import Unread
from kpreempt.model.kinds import KINDS
from kpreempt.snapshot.batches import Batch
from kpreempt.snapshot.collect import Collector
from kpreempt.snapshot.kinds import RECORDED
from kpreempt.snapshot.recording.changes import ChangeType
from kpreempt.snapshot.recording.recorder import LeaseHolder, Lines, Listed, Recorder, Stream, Watched, WatchReport
from kpreempt.snapshot.recording.segments import Limits, Segments
from kpreempt.snapshot.write import DumpHeader, api_version_of

START = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
Document = dict[str, Any]


def a_pod(name: str, node: str = "", *, uid: str = "", priority: int = 0, **status: Any) -> Document:
    return {
        "metadata": {"namespace": "shop", "name": name, "uid": uid or f"uid-{name}"},
        "spec": {
            "priority": priority,
            **({"nodeName": node} if node else {}),
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
        },
        "status": {"phase": "Running" if node else "Pending", **status},
    }


def a_node(name: str, cpu: str = "4") -> Document:
    return {
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "20"}},
    }


class Making:
    """A recording in ``folder``, of a cluster of which every version is remembered as a list would have it."""

    def __init__(
        self,
        folder: Path,
        objects: dict[str, list[Document]] | None = None,
        limits: Limits | None = None,
        *,
        keeps_documents: bool = True,
    ) -> None:
        self.folder = str(folder)
        self.now = START
        self.version = 100
        self.objects: dict[tuple[str, str, str], Document] = {}
        for kind, documents in (objects or {}).items():
            for document in documents:
                self._put(kind, document)
        self.at: dict[int, tuple[datetime, list[Document]]] = {self.version: (self.now, self.list())}
        self.limits = limits or Limits()
        self.lines = Lines(is_kept, partial(kept, salt="salt")) if keeps_documents else Lines()
        self.begin()

    def begin(self) -> None:
        """Begin to record, as a process does that is started."""
        self.segments = Segments(self.folder, self.limits)
        collector = Collector(
            defaults_namespace=False, keep_document=self.lines.keep_document, packs=self.lines.of_document
        )
        collector.add(Batch("the test", [json.dumps(each).encode() for each in self.list()], lambda _: 0))
        header = DumpHeader(
            server_version="v1.36.3",
            taken_at=self.now,
            kpreempt_version="1",
            unread=dict[str, Unread](),
            listed=list(RECORDED if self.lines.keep_document is is_kept else KINDS),
        )
        self.recorder = Recorder(
            self.segments,
            collector.cluster(),
            header,
            dict.fromkeys(RECORDED, self.version),
            source="the test",
            holder="one",
            lines=self.lines,
            documents=collector.documents(),
        )

    def _put(self, kind: str, document: Document) -> Document:
        metadata = {**document["metadata"], "resourceVersion": str(self.version)}
        whole = {"apiVersion": api_version_of(RECORDED[kind]), "kind": kind, **document, "metadata": metadata}
        self.objects[kind, metadata.get("namespace", ""), metadata["name"]] = whole
        return whole

    def list(self) -> list[Document]:
        """All objects, as lists of the server have them."""
        kinds = list(RECORDED)

        def place(key: tuple[str, str, str]) -> tuple[int, str]:
            kind, namespace, name = key
            return kinds.index(kind), f"{namespace}/{name}" if namespace else name

        return [self.objects[key] for key in sorted(self.objects, key=place)]

    def change(self, what: str, kind: str, document: Document, *, reported: bool = True, seconds: float = 0.1) -> int:
        """Change an object some time later, and tell the recorder unless it misses that."""
        self.now += timedelta(seconds=seconds)
        self.version += 1
        whole = self._put(kind, document)
        if what == "DELETED":
            del self.objects[kind, whole["metadata"].get("namespace", ""), whole["metadata"]["name"]]
        self.at[self.version] = self.now, self.list()
        if reported:
            news = Watched(ChangeType(what), json.dumps(whole).encode(), whole["apiVersion"])
            self.recorder.take(WatchReport(self.now, Stream(RECORDED[kind]), news))
            self.recorder.tick(self.now)
        return self.version

    def relist(self, kind: str) -> None:
        """Have the recorder list a kind again."""
        items = [msgspec.Raw(json.dumps(each).encode()) for each in self.list() if each["kind"] == kind]
        listed = Listed(self.version, items, api_version_of(RECORDED[kind]))
        self.recorder.take(WatchReport(self.now, Stream(RECORDED[kind]), listed))

    def hold(self, identity: str) -> None:
        """Have another scheduler go on."""
        self.recorder.take(WatchReport(self.now, None, LeaseHolder(identity)))

    def wait(self, seconds: float) -> None:
        """Let time go by."""
        end = self.now + timedelta(seconds=seconds)
        while self.now < end:
            self.now = min(end, self.now + timedelta(seconds=10))
            self.recorder.tick(self.now)

    def end(self) -> None:
        """End recording."""
        self.recorder.flush(self.now)
        self.close()

    def close(self) -> None:
        """End it as a kill does."""
        self.segments.close()
