"""What a change does to a cluster, for commands and programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from kpreempt.analysis.algorithms import one_by_one
from kpreempt.analysis.check.gate import Suppressions, Waiver, waivers_of_object, with_custom_rules
from kpreempt.analysis.check.remedies import ADD_NODE, RemedyInput, Rerun, with_remedies
from kpreempt.analysis.check.report import CheckedRollout, CheckInput, check_rollout
from kpreempt.analysis.check.rollout.cluster_documents import LiveDocuments
from kpreempt.analysis.check.rollout.hooks import Applier
from kpreempt.analysis.check.rollout.kinds import Deletion, only_in, parse_deletion
from kpreempt.analysis.check.rollout.plan import plan_change
from kpreempt.analysis.check.rollout.records import (
    ApplyOptions,
    ManifestDocument,
    Plan,
    Prepared,
    ServerDecisions,
    name_of,
)
from kpreempt.analysis.check.simulations import SimulationContext
from kpreempt.analysis.document_reader import Document, describe
from kpreempt.analysis.nodes.changes import with_changed_nodes
from kpreempt.analysis.remedies.edits import edited, edited_documents, merge_patched
from kpreempt.analysis.remedies.search import Candidate
from kpreempt.errors import InputError, UsageError
from kpreempt.gate_rules import RuleId
from kpreempt.library.draws import chances, paces
from kpreempt.library.gate.config import job_seconds_in
from kpreempt.library.gate.settings import GateSettings
from kpreempt.library.reading import LoadedCluster, assuming_none
from kpreempt.library.requests import Check
from kpreempt.library.schedulers import Answered, Context
from kpreempt.library.time_limits import time_for_remedies
from kpreempt.model.cluster import ClusterSnapshot, cannot_simulate
from kpreempt.model.documents import mapping_in
from kpreempt.report.check.summary import summary
from kpreempt.schedulers.kube.versions import minor_of_server, minor_version_of
from kpreempt.snapshot.decode import object_decoder
from kpreempt.snapshot.manifest import line_of_field
from kpreempt.verdict import Assumption

if TYPE_CHECKING:
    from kpreempt.snapshot.live.connection import Connection


def check(context: Context, request: Check) -> Answered:
    """Simulate what a change does to the cluster, check the rules, and find remedies for the findings.

    Raises ``InputError`` and ``NotFoundError`` for anything that the API server would reject.
    """
    gate = request.rules
    assert gate is not None
    if request.server_dry_run and request.decisions is None:
        raise UsageError("--server-dry-run needs a live cluster, not a snapshot")
    context = context._replace(loaded=assuming_none(context.loaded, gate.assume_none))
    cluster = context.loaded.cluster
    has_time = time_for_remedies()
    runner = _CheckRunner(context, request)
    found = runner.run()
    for note in found.plan.notes:
        context.warn(note)
    answer = found.check
    # A remedy is verified by a simulation.
    if not cannot_simulate(cluster):
        remedy_input = RemedyInput(
            cluster=cluster,
            documents=context.loaded.documents,
            change=runner.manifests(),
            simulation=simulation_context(context),
        )
        answer = with_remedies(found, remedy_input, runner.rerun(found.suppressions), has_time=has_time)
    answer = msgspec.structs.replace(answer, gate=gate.to_source(found.suppressions), summary=summary(answer))
    return Answered(answer, cluster)


class _CheckRunner:
    """Runs a check, and runs it again with edits to the cluster and to the manifests."""

    def __init__(self, context: Context, request: Check) -> None:
        gate = request.rules
        assert gate is not None
        self._context, self._request, self._gate = context, request, gate
        self._decode = object_decoder(context.configured.scheduler.extra_fields)
        self.options = ApplyOptions(
            namespace=request.namespace or context.namespace,
            prunes=request.prune,
            max_autoscaled=request.autoscaled == "max",
            job_seconds=gate.job_seconds if request.job_duration is None else job_seconds_of(request.job_duration),
            creates_namespaces=request.create_namespace,
            applied_by=applier_for(request, gate),
            minor=minor_of_server(context.loaded.cluster.version),
            assumed_minor=minor_version_of(context.configured.scheduler.algorithm),
            line_of=line_of_field,
            decisions=request.decisions or ServerDecisions(),
        )

    def manifests(self) -> list[Document]:
        """The plain objects of the change, with namespaces."""
        return [each.document for each in self.options.prepared(self._request.change).documents]

    def rerun(self, suppressions: Suppressions) -> Rerun:
        """Return a function that runs the check again with edits; findings of the base are known."""

        def run(candidate: Candidate, *, once: bool) -> CheckedRollout:
            loaded, change = self._edited(candidate)
            return self.run(loaded, change, suppressions=suppressions, once=once)

        return run

    def _edited(self, candidate: Candidate) -> tuple[LoadedCluster, list[ManifestDocument]]:
        """The cluster and the change after a candidate."""
        loaded, namespace = self._context.loaded, self.options.namespace
        names = [name_of(each.document, namespace) for each in self._request.change]
        edits = {each.object: each for each in candidate.edits if not each.in_cluster}
        change = []
        for given, name in zip(self._request.change, names, strict=True):
            edit = edits.get(name)
            if edit is None or not edit.deletes:
                document = given.document if edit is None else merge_patched(given.document, edit.patch)
                change.append(msgspec.structs.replace(given, document=document))
        others = [each for each in candidate.edits if each.in_cluster]
        cluster, documents = edited(loaded.cluster, others), edited_documents(loaded.documents, others)
        added = [each.removeprefix(ADD_NODE) for each in candidate.options if each.startswith(ADD_NODE)]
        if added:
            cluster, _ = with_changed_nodes(cluster, added=added, read_file=_no_file, now=self._context.at)
        return msgspec.structs.replace(loaded, cluster=cluster, documents=documents), change

    def run(
        self,
        loaded: LoadedCluster | None = None,
        change: Sequence[ManifestDocument] | None = None,
        *,
        suppressions: Suppressions | None = None,
        once: bool = False,
    ) -> CheckedRollout:
        """Run the check; with known ``suppressions``, the base is not simulated, and ``once`` means a single run."""
        context, request, gate, options = self._context, self._request, self._gate, self.options
        loaded = loaded or context.loaded
        cluster = loaded.cluster
        with context.phases.phase("admission"):
            live_documents = LiveDocuments(loaded.documents)
            manifests = options.prepared(request.change if change is None else change)
            base = options.prepared(request.before)
            lost = _only_in(base, manifests)

            def planned(manifests: Prepared, options: ApplyOptions) -> Plan:
                return plan_change(
                    cluster,
                    manifests,
                    live_documents,
                    self._decode,
                    options,
                    deleted=request.delete if manifests is not base else (),
                    only_in_base=lost if manifests is not base else (),
                )

            plan = planned(manifests, options)
            undecided = msgspec.structs.replace(options, decisions=ServerDecisions())
            base_plan = planned(base, undecided) if request.before and suppressions is None else None
            most_plan = None
            try:
                most_plan = (
                    planned(manifests, msgspec.structs.replace(options, max_autoscaled=True))
                    if plan.autoscalers
                    else None
                )
            except InputError as error:
                # More pods than can be simulated.
                message = f"its maximum number of replicas is not simulated: {error.problem}"
                unknown = [Assumption(name, "spec.maxReplicas", message) for name, _ in plan.autoscalers]
                plan = msgspec.structs.replace(plan, assumptions=[*plan.assumptions, *unknown])
        knows_base = suppressions is not None
        if suppressions is None:
            waivers = _waivers_of(plan, manifests.documents, ignores_waivers=gate.ignores_annotations)
            # Objects deleted by ``--delete`` are waived: they were named on purpose.
            meant = [
                Waiver(rule=rule, subject=each.described, by="--delete")
                for each in (parse_deletion(text, options.namespace) for text in request.delete)
                for rule in RuleId
                if each.kind in rule.row.waived_by_delete
            ]
            suppressions = gate.suppressions([*waivers, *meant])
        found = check_rollout(
            CheckInput(
                cluster=cluster,
                plan=plan,
                base=base_plan,
                largest_plan=most_plan,
                knows_base=knows_base,
                rules=gate.rules,
                suppressions=suppressions,
                seed=request.seed,
                runs=1 if once else request.runs,
                worst_of=0 if once else request.worst_of,
                assumptions=context.assumptions,
                is_live=context.is_live,
                apis={describe(each.document): str(each.document["apiVersion"]) for each in manifests.documents},
            ),
            self._decode,
            simulation_context(context),
        )
        return found._replace(check=with_custom_rules(found.check, gate.custom, gate.rules, suppressions))


def _no_file(path: str) -> ClusterSnapshot:
    raise AssertionError(f"a remedy never reads {path}")


def check_options(request: Check) -> None:
    """Raise ``UsageError`` for an invalid option value."""
    if request.autoscaled not in ("current", "max"):
        raise UsageError("--autoscaled must be current or max")
    if request.job_duration is not None:
        job_seconds_of(request.job_duration)
    if request.applied_by is not None:
        applier_of(request.applied_by)


def server_decisions(
    live: Connection | None, request: Check, gate: GateSettings, namespace: str
) -> ServerDecisions | None:
    """Let the API server decide about the change, if the request says so. Raises ``UsageError`` without a live one."""
    if not request.server_dry_run:
        return None
    from kpreempt.library.server_dry_run import dry_run

    options = ApplyOptions(
        namespace=namespace, creates_namespaces=request.create_namespace, applied_by=applier_for(request, gate)
    )
    return dry_run(live, request.change, options)


def only_in_base(
    base: Sequence[ManifestDocument],
    documents: Sequence[ManifestDocument],
    namespace: str,
    applied_by: Applier | None = None,
) -> list[Deletion]:
    """List the objects that are in the base but not in the manifests. Raises ``InputError``."""
    options = ApplyOptions(namespace=namespace, applied_by=applied_by)
    return _only_in(options.prepared(base), options.prepared(documents))


def _only_in(base: Prepared, manifests: Prepared) -> list[Deletion]:
    return only_in((each.document for each in base.documents), (each.document for each in manifests.documents))


def applier_for(request: Check, gate: GateSettings) -> Applier | None:
    """Return the tool that applies the change, if the request or the rules file sets it. Raises ``UsageError``."""
    return gate.applied_by if request.applied_by is None else applier_of(request.applied_by)


def applier_of(text: str) -> Applier:
    """Parse the tool of ``--applied-by``. Raises ``UsageError``."""
    try:
        return Applier(text)
    except ValueError:
        raise UsageError(f"--applied-by {text[:40]}: unknown tool", hint=", ".join(Applier)) from None


def job_seconds_of(text: str) -> int:
    """Parse how long pods of Jobs run, in seconds; 0 means forever. Raises ``UsageError``."""
    seconds = job_seconds_in(text)
    if seconds is None:
        raise UsageError(f"--job-duration {text}: expected a time from 1s to 168h, or never", hint="10m, 2h")
    return seconds


def _waivers_of(plan: Plan, given: Sequence[ManifestDocument], *, ignores_waivers: bool) -> list[Waiver]:
    """Collect the waivers in the annotations of the change's objects. Raises ``InputError``."""
    known = {change.object for change in plan.changes}
    return [
        waiver
        for each in given
        if (name := describe(each.document)) in known
        for waiver in waivers_of_object(
            name,
            mapping_in(each.document, "metadata", "annotations"),
            source=each.source,
            line=each.line,
            ignores_waivers=ignores_waivers,
        )
    ]


def simulation_context(context: Context) -> SimulationContext:
    """Build the simulation context for a request about a cluster."""
    scheduler, spread = context.configured.scheduler, context.spread or one_by_one
    return SimulationContext(scheduler, context.now, context.at, chances, paces, spread, context.phases)
