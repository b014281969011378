"""What pasted text says about pods: events of kubectl's output, in manifests or as text, and bare messages."""

from __future__ import annotations

import re

import msgspec

from kpreempt.analysis.messages.events import explain_events, pasted_pod
from kpreempt.analysis.messages.pasted import PastedEvent, PastedObject, parse_text
from kpreempt.errors import InputError, NotFoundError
from kpreempt.model.event import Event
from kpreempt.model.meta import slashed
from kpreempt.model.pod import Pod
from kpreempt.report.evidence import join_names
from kpreempt.snapshot.archives import InputLimits, check_density
from kpreempt.snapshot.decode import decode_object
from kpreempt.snapshot.manifest import ManifestObject, manifest_in
from kpreempt.verdict.messages import ExplainedEvents

_HINT = "a FailedScheduling message, or the output of kubectl describe pod or kubectl get events"
_OBJECTS = re.compile(r"^(?:apiVersion|kind|items):|^[{\[]", re.MULTILINE)
# How far into a text its form is looked for.
_HEAD = 4_096
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def explain_pasted(
    content: bytes, source: str, input_limits: InputLimits, *, namespace: str = "", pod: str = ""
) -> ExplainedEvents:
    """Return what a text says: a message, or events as kubectl prints them, in any of its formats.

    ``namespace`` is that of objects for which the text has none; with ``pod``, only the pod of this name counts.
    Raises ``InputError`` for other text, and ``NotFoundError`` if no event is about the pod.
    """
    objects = _parsed(content, source, input_limits)
    for each in objects:
        each.namespace = each.namespace or namespace
    if namespace:
        objects = [each for each in objects if each.namespace == namespace]
    if not pod:
        return explain_events(objects)
    named = [each for each in objects if each.name in ("", pod)]
    if not named:
        names = sorted({slashed(each.namespace, each.name) for each in objects})
        hint = f"events are about {join_names(names)}" if names else ""
        raise NotFoundError(f"{source}: no event is about {slashed(namespace, pod)}", hint=hint)
    for each in named:
        each.kind, each.name = each.kind or "Pod", pod
    return explain_events(named)


def _parsed(content: bytes, source: str, input_limits: InputLimits) -> list[PastedObject]:
    check_density(content, source)
    text = _decoded(content, source)
    error = InputError("contains no event, and no message of a scheduler", source=source, hint=_HINT)
    if _OBJECTS.search(text[:_HEAD]):
        try:
            return _objects(manifest_in(text.encode(), source, input_limits))
        except InputError as structured:
            # A line of a log may be JSON.
            error = structured
    if found := parse_text(text):
        return found
    raise error


def _decoded(content: bytes, source: str) -> str:
    """The text; shells of Windows write UTF-16."""
    try:
        text = content.decode("utf-16") if content[:2] in _UTF_16 else content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise InputError("is not text", source=source, hint=_HINT)
    return text


def _objects(manifest: list[ManifestObject]) -> list[PastedObject]:
    """The events and pods of ``-o yaml`` and ``-o json``. Raises ``InputError`` if there are none."""
    found: dict[tuple[str, str, str], PastedObject] = {}
    for each in manifest:
        kind = each.document.get("kind")
        if kind not in ("Event", "Pod"):
            continue
        record = decode_object(kind, each.document, source=each.source, line=each.line)
        if isinstance(record, Event):
            subject = record.subject
            key = (subject.kind, subject.namespace, subject.name)
            found.setdefault(key, PastedObject(*key)).events.append(PastedEvent(record))
        elif isinstance(record, Pod):
            own = pasted_pod(record)
            known = found.setdefault(("Pod", own.namespace, own.name), own)
            if known is not own:
                found["Pod", own.namespace, own.name] = msgspec.structs.replace(own, events=own.events + known.events)
    if not found:
        source = manifest[0].source if manifest else ""
        raise InputError("contains no events and no pods", source=source, hint=_HINT)
    return [*found.values()]
