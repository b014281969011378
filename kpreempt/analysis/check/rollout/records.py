"""The plan of a change: what it does to the cluster's objects, before any controller or scheduler has acted on it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kpreempt.analysis.check.rollout.hooks import Order
from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.naming import some_of
from kpreempt.analysis.workload_pods import PodTemplate
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.verdict import Assumption
from kpreempt.verdict.check import Change


class ManifestDocument(msgspec.Struct, frozen=True):
    """An object of the input as plain data, and where it is written.

    ``origin`` is the file that a ``# Source:`` comment names, as Helm writes it into a stream; else it is empty.
    ``text`` is that of its whole source, empty if it isn't at hand.
    """

    document: Document
    source: str = ""
    line: int = 0
    origin: str = ""
    text: bytes = b""


class PlannedWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """A workload that the change makes, changes or deletes.

    ``kind``, ``namespace`` and ``name`` are those of the object that has the pods: of a CronJob the Job that it makes.
    ``before`` is how the cluster has it, and ``None`` where it is new; ``after`` is how it will be, with the API's
    defaults, and ``None`` where it is deleted. Of a workload of which the snapshot does not say all, ``before`` says
    less, too: then ``is_same_template`` is false. ``replica_sets`` are those that a Deployment owns in the cluster.
    """

    change: Change
    kind: str
    namespace: str
    name: str
    before: Document | None = None
    after: Document | None = None
    is_same_template: bool = False
    replica_sets: list[Document] = []

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class MissingNamespaces(msgspec.Struct, frozen=True):
    """The objects that have no namespace when they are applied, by its name: ``absent`` there is none at all.

    ``late`` ones are made by the change, after these objects. ``assumptions`` are of a cluster that does not show it.
    """

    absent: dict[str, list[str]] = {}
    late: dict[str, list[str]] = {}
    assumptions: list[Assumption] = []

    @property
    def objects(self) -> list[str]:
        """All that is not applied."""
        return [name for own in (*self.absent.values(), *self.late.values()) for name in own]

    @property
    def detail(self) -> str:
        """What is wrong, and what is not applied for it."""
        return "; ".join(
            f"{words}; not applied: {some_of(own)}"
            for found, words in (
                (self.absent, "neither in the cluster nor in the change"),
                (self.late, "the change makes it only after what is in it"),
            )
            if (own := [name for names in found.values() for name in names])
        )


class Reset(msgspec.Struct, frozen=True):
    """A manifest that sets the size of a workload back to what it says, from the one that its autoscaler has set."""

    workload: str
    autoscaler: str
    current: int
    written: int


class Adoption(msgspec.Struct, frozen=True, kw_only=True):
    """What a controller adopts: ``objects`` without one (``Pod shop/one``) that the selector of ``owner`` matches.

    ``change`` is the object of the change that makes it so. ``surplus`` is how many of them the controller has too
    many, and deletes; ``None`` if its simulation shows that.
    """

    owner: str
    objects: list[str]
    change: str
    surplus: int | None = None


class Safeguards(msgspec.Struct, frozen=True, kw_only=True):
    """What else a change does to the protection of pods, beyond what the cluster before and after shows.

    ``minimum_sizes`` are the fewest replicas that HorizontalPodAutoscalers leave workloads, by kind, namespace and
    name, before and after the change. ``released`` are objects whose manifests leave out the controller that the
    cluster has for them, with that controller. ``cron_jobs`` have the pod specs of CronJobs before and after.
    ``workloads`` are the cluster's documents of workloads, if the change is about PriorityClasses.
    """

    minimum_sizes: tuple[Mapping[tuple[str, str, str], int], Mapping[tuple[str, str, str], int]] = ({}, {})
    released: Mapping[str, str] = {}
    cron_jobs: Mapping[str, tuple[Document, Document]] = {}
    workloads: list[Document] = []


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a change does.

    ``changes`` are all objects in the order of the input, also those that stay as they are, and then the deletions.
    ``workloads`` are those of them that have pods and do not stay as they are. ``pods`` are plain pods, not admitted
    yet; ``deleted_pods`` are the ``namespace/name`` of plain pods that go, of which some come again in ``pods``.
    ``deleted_nodes`` go with the pods on them.
    ``cluster`` has all other objects of the change laid over it. ``notes`` tell what of the input is passed over.
    ``order`` says what comes when. Objects that have no namespace are simulated all the same. Pods of Jobs run for
    ``job_seconds`` where nothing else is said of them, which are guessed where that is ``None``, and
    never end where it is 0.
    ``resets`` are the sizes that the apply takes away from autoscalers. ``autoscalers`` are those that are new or
    changed, each with the workload of the change that it scales, if their most replicas are not what is simulated.
    ``rejections`` are the objects that the API server rejects, with the reason; they are not simulated.
    ``only_in_base`` are the objects that the manifests lack and the base has, and that stay in the cluster since
    nothing prunes them. ``adoptions`` are of pods and ReplicaSets that no controller owns. ``node_names`` are the nodes
    that pods newly name in their spec, by the object of the change. ``duplicates`` says of objects that are written
    more than once what the documents that do not count do before.
    """

    changes: list[Change]
    workloads: list[PlannedWorkload]
    pods: list[PodTemplate]
    deleted_pods: list[str]
    deleted_nodes: list[str] = []
    cluster: ClusterSnapshot
    assumptions: list[Assumption] = []
    notes: list[str] = []
    order: Order = Order()
    missing_namespaces: MissingNamespaces = MissingNamespaces()
    job_seconds: int | None = None
    resets: list[Reset] = []
    rejections: dict[str, str] = {}
    only_in_base: list[str] = []
    adoptions: list[Adoption] = []
    node_names: dict[str, str] = {}
    safeguards: Safeguards = Safeguards()
    duplicates: dict[str, str] = {}
    autoscalers: list[tuple[str, str]] = []
