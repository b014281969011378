"""What a Preempted event says, in the words of the schedulers that wrote it.

1.36 writes ``Preempted by pod UID on node NODE`` (``framework/preemption/executor.go``), for a pod group ``podgroup``,
and for a victim that was not bound yet ``... (in kube-scheduler memory).`` Before there were ``Preempted by a pod on
node NODE`` and ``Preempted by NAMESPACE/NAME on node NODE``. The preemptor is the event's ``related`` object, too.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kpreempt.model.event import Event

_MESSAGE = re.compile(
    r"[Pp]reempted by (?:(?P<type>pod|podgroup) (?P<uid>\S+)|(?P<anonymous>a pod)|(?P<namespace>[^/\s]+)/(?P<name>\S+)"
    r"|(?P<bare_uid>\S+)) on node (?P<node>\S+?)(?: \(in kube-scheduler memory\)\.)?$"
)


class PreemptedBy(NamedTuple):
    """What is known of the preemptor, and the node; all but ``is_pod_group`` may be empty."""

    uid: str = ""
    namespace: str = ""
    name: str = ""
    node: str = ""
    is_pod_group: bool = False


def read_preempted(event: Event) -> PreemptedBy:
    """What the event says; what it says in other words is not understood, and left empty."""
    match = _MESSAGE.match(event.text.strip())
    said = match.groupdict() if match else {}
    related = event.related
    found = PreemptedBy(
        uid=said.get("uid") or said.get("bare_uid") or "",
        namespace=said.get("namespace") or "",
        name=said.get("name") or "",
        node=said.get("node") or "",
        is_pod_group=said.get("type") == "podgroup",
    )
    if related is None or not related.name:
        return found
    return found._replace(
        uid=found.uid or related.uid,
        namespace=found.namespace or related.namespace,
        name=found.name or related.name,
        is_pod_group=found.is_pod_group or related.kind == "PodGroup",
    )
