"""NodeAffinity: node selector and node affinity, required and preferred (``plugins/nodeaffinity``, v1.36.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from kpreempt.errors import ConfigurationError
from kpreempt.model.affinity import (
    METADATA_NAME_FIELD,
    NodeSelector,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    is_valid_field_requirement,
    is_valid_node_requirement,
)
from kpreempt.model.affinity import (
    NodeAffinity as NodeAffinityRules,
)
from kpreempt.model.labels import format_requirement, parse_int64
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.arg_types import INT32, REQUIREMENT, ListOf, Struct, child, invalid, unsupported
from kpreempt.schedulers.kube.framework.cycle_state import CycleState, TreeKey
from kpreempt.schedulers.kube.framework.events import Action, on_node
from kpreempt.schedulers.kube.framework.in_tree import NodeFilterPlugin, SparseFilterPlugin, in_tree
from kpreempt.schedulers.kube.framework.interface import (
    Handle,
    PluginArgs,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
    normalize_to_max,
)
from kpreempt.schedulers.kube.framework.label_selectors import label_key_problems, label_value_problems
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.versions import Behavior
from kpreempt.verdict import SUCCESS, Code, Status, details
from kpreempt.verdict.status import SKIP

_NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS = ("In", "NotIn")

REASON_POD = "node(s) didn't match Pod's node affinity/selector"
REASON_ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
REASON_CONFLICT = "pod affinity terms conflict"


_STATE_KEY = TreeKey("NodeAffinity")


class NodeAffinity(PreFilterPlugin, NodeFilterPlugin, SparseFilterPlugin, PreScorePlugin, ScorePlugin):
    """Required terms reject nodes permanently; preferred ones add their weights.

    ``addedAffinity`` in the configuration applies to every pod of the profile.
    """

    name = "NodeAffinity"
    scales_to_extremes = True
    is_local = True

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._skips_idle_score = handle.behavior.skips_idle_scores
        added = args.get("addedAffinity")
        rules = msgspec.convert(added, NodeAffinityRules) if added else NodeAffinityRules()
        self._added_required = rules.required
        self._added_preferred = rules.preferred
        if rules.required is not None and not all(map(_is_valid_term, rules.required.node_selector_terms)):
            raise ConfigurationError(
                "parsing addedAffinity.requiredDuringSchedulingIgnoredDuringExecution: invalid term"
            )

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Skip pods without node affinity; restrict pods whose terms all name nodes to these nodes."""
        required = _required_of(pod)
        if required is None and self._added_required is None and not pod.spec.node_selector:
            return None, SKIP
        if required is None or not required.node_selector_terms:
            return None, SUCCESS
        named: frozenset[str] = frozenset()
        for term in required.node_selector_terms:
            names = _named_nodes(term)
            if names is None:
                return None, SUCCESS
            named |= names
        if not named:
            return None, Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [REASON_CONFLICT])
        return PreFilterResult(named), SUCCESS

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Reject nodes that the required terms of the configuration or the pod do not match."""
        node = node_info.node
        if self._added_required is not None and not self._added_required.matches(node.name, node.labels):
            unmet = _terms_of(self._added_required)
            return _refused(REASON_ENFORCED, details.NodeAffinityMismatch("addedAffinity", unmet))
        unmet = [
            f"{key}={value}" for key, value in sorted(pod.spec.node_selector.items()) if node.labels.get(key) != value
        ]
        if unmet:
            return _refused(REASON_POD, details.NodeAffinityMismatch("nodeSelector", unmet))
        required = _required_of(pod)
        if required is not None and not required.matches(node.name, node.labels):
            return _refused(REASON_POD, details.NodeAffinityMismatch("nodeAffinity", _terms_of(required)))
        return SUCCESS

    def suspects(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[NodeInfo]:
        """Return all nodes if the pod, or the configuration, requires anything of them."""
        requires = self._added_required is not None or pod.spec.node_selector or _required_of(pod) is not None
        return nodes if requires else ()

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        """Skip pods without preferences; as upstream, a preference that cannot be parsed is an error."""
        preferred = _preferred_of(pod)
        if not preferred and not self._added_preferred and self._skips_idle_score:
            return SKIP
        if not all(_is_valid_term(term.preference) for term in preferred if term.weight):
            return Status(Code.ERROR, ["a preferred node affinity term is invalid"])
        state.write(_STATE_KEY, [*self._added_preferred, *preferred])
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """Return the sum of the weights of the preferences that match."""
        terms = state.read(_STATE_KEY)
        if not isinstance(terms, list):
            # Without PreScore, the preferences are read from the pod.
            terms = [*self._added_preferred, *_preferred_of(pod)]
        node = node_info.node
        return sum(term.weight for term in terms if term.preference.matches(node.name, node.labels))

    def normalize_scores(self, state: CycleState, pod: Pod, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        """Scale so that the best node has 100."""
        return normalize_to_max(scores)


def _required_of(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity
    return affinity.node_affinity.required if affinity and affinity.node_affinity else None


def _preferred_of(pod: Pod) -> list[PreferredSchedulingTerm]:
    affinity = pod.spec.affinity
    return affinity.node_affinity.preferred if affinity and affinity.node_affinity else []


def _named_nodes(term: NodeSelectorTerm) -> frozenset[str] | None:
    """Return the nodes that the term's fields allow, or ``None`` if it does not restrict them by name."""
    names: frozenset[str] | None = None
    for requirement in term.match_fields:
        if requirement.key == METADATA_NAME_FIELD and requirement.operator == "In":
            values = frozenset(requirement.values)
            names = values if names is None else names & values
    return names


def _is_valid_term(term: NodeSelectorTerm) -> bool:
    return all(map(is_valid_node_requirement, term.match_expressions)) and all(
        map(is_valid_field_requirement, term.match_fields)
    )


def _terms_of(selector: NodeSelector) -> list[str]:
    """Return the terms in selector syntax; one of them must match."""
    return [
        ",".join(
            format_requirement(requirement.key, requirement.operator, requirement.values)
            for requirement in (*term.match_expressions, *term.match_fields)
        )
        or "(empty term)"
        for term in selector.node_selector_terms
    ]


def _refused(reason: str, detail: details.NodeAffinityMismatch) -> Status:
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [reason], detail=detail)


def arg_problems(path: str, args: Mapping[str, Any], behavior: Behavior) -> list[str]:
    """List problems of the arguments at ``path`` (``apis/config/validation/validation_pluginargs.go``)."""
    affinity = args.get("addedAffinity", {})
    path = child(path, "addedAffinity")
    required_path = child(path, "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms")
    preferred_path = child(path, "preferredDuringSchedulingIgnoredDuringExecution")
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", [])
    problems = [
        problem for index, term in enumerate(terms) for problem in _node_term(f"{required_path}[{index}]", term)
    ]
    for index, preferred in enumerate(affinity.get("preferredDuringSchedulingIgnoredDuringExecution", [])):
        if preferred.get("weight"):
            problems += _node_term(f"{preferred_path}[{index}]", preferred.get("preference", {}))
    return problems


def _node_term(path: str, term: Mapping[str, Any]) -> list[str]:
    problems = []
    for index, requirement in enumerate(term.get("matchExpressions", [])):
        problems += _node_expression(f"{path}.matchExpressions[{index}]", requirement)
    for index, requirement in enumerate(term.get("matchFields", [])):
        location = f"{path}.matchFields[{index}]"
        values = requirement.get("values")
        operator = requirement.get("operator", "")
        if operator not in _FIELD_OPERATORS:
            problems.append(unsupported(child(location, "operator"), operator, _FIELD_OPERATORS))
        elif len(values or ()) != 1:
            problems.append(invalid(child(location, "values"), values, "must have one element"))
    return problems


def _node_expression(path: str, requirement: Mapping[str, Any]) -> list[str]:
    operator, key = requirement.get("operator", ""), requirement.get("key", "")
    if operator not in _NODE_OPERATORS:
        return [unsupported(child(path, "operator"), operator, _NODE_OPERATORS)]
    given = requirement.get("values")
    values: list[str] = given or []
    values_path = child(path, "values")
    key_problems = label_key_problems(key)
    problems = [invalid(child(path, "key"), key, "; ".join(key_problems))] if key_problems else []
    if operator in ("In", "NotIn") and not values:
        problems.append(invalid(values_path, given, "for 'in', 'notin' operators, values set can't be empty"))
    if operator in ("Exists", "DoesNotExist") and values:
        problems.append(invalid(values_path, given, "values set must be empty for exists and does not exist"))
    if operator in ("Gt", "Lt"):
        if len(values) != 1:
            problems.append(invalid(values_path, given, "for 'Gt', 'Lt' operators, exactly one value is required"))
        problems += [
            invalid(f"{values_path}[{index}]", value, "for 'Gt', 'Lt' operators, the value must be an integer")
            for index, value in enumerate(values)
            if parse_int64(value) is None
        ]
    for index, value in enumerate(values):
        if value_problems := label_value_problems(value):
            problems.append(invalid(f"{values_path}[{index}][{key}]", value, "; ".join(value_problems)))
    return problems


def is_selected_now(pod: Pod, old: Node | None, new: Node | None) -> bool:
    """Return whether the pod's selector and affinity match the node now, and did not before."""
    if new is None or not pod.spec.selects(new.name, new.labels):
        return False
    return old is None or not pod.spec.selects(old.name, old.labels)


_NODE_REQUIREMENTS = ListOf(Struct("NodeSelectorRequirement", REQUIREMENT))
_NODE_TERM = Struct("NodeSelectorTerm", {"matchExpressions": _NODE_REQUIREMENTS, "matchFields": _NODE_REQUIREMENTS})
_ADDED_AFFINITY = Struct(
    "NodeAffinity",
    {
        "requiredDuringSchedulingIgnoredDuringExecution": Struct(
            "NodeSelector", {"nodeSelectorTerms": ListOf(_NODE_TERM)}
        ),
        "preferredDuringSchedulingIgnoredDuringExecution": ListOf(
            Struct("PreferredSchedulingTerm", {"weight": INT32, "preference": _NODE_TERM})
        ),
    },
)

PLUGIN = in_tree(
    NodeAffinity,
    args={"addedAffinity": _ADDED_AFFINITY},
    arg_problems=arg_problems,
    awaits=lambda: [on_node(Action.ADD | Action.UPDATE_NODE_LABEL, is_selected_now)],
)
