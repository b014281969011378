# ruff: noqa: E501 - tables of manifests read better in rows
"""Which affinities and topology spread constraints the API server rejects."""

from __future__ import annotations

import pytest
import yaml

from kpreempt.admission.validation.affinity import check_affinity, check_spread_constraints
from kpreempt.admission.validation.problems import Server

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def problems_of(affinity: str, minor: int = 36, labels: tuple[str, ...] = ()) -> list[str]:
    return [str(each) for each in check_affinity(yaml.safe_load(affinity), Server(minor), (), labels)]


def of_node(term: str, minor: int = 36) -> list[str]:
    texts = problems_of(f"{{nodeAffinity: {{{REQUIRED}: {{nodeSelectorTerms: [{{{term}}}]}}}}}}", minor)
    return [text.removeprefix(f"nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].") for text in texts]


def of_pods(term: str, minor: int = 36, labels: tuple[str, ...] = ()) -> list[str]:
    texts = problems_of(f"{{podAffinity: {{{REQUIRED}: [{{{term}}}]}}}}", minor, labels)
    return [text.removeprefix(f"podAffinity.{REQUIRED}[0].") for text in texts]


def of_spread(constraint: str, minor: int = 36, labels: tuple[str, ...] = ()) -> list[str]:
    spec = yaml.safe_load(f"topologySpreadConstraints: [{{{constraint}}}]")
    texts = [str(each) for each in check_spread_constraints(spec, Server(minor), (), labels)]
    return [text.removeprefix("topologySpreadConstraints[0].") for text in texts]


@pytest.mark.parametrize(
    "term",
    [
        "",
        "matchExpressions: [{key: a, operator: In, values: [b, '']}, {key: a, operator: NotIn, values: [b]}]",
        "matchExpressions: [{key: a/b, operator: Exists}, {key: a, operator: DoesNotExist, values: []}]",
        "matchExpressions: [{key: a, operator: Gt, values: ['1']}, {key: a, operator: Lt, values: [x]}]",
        "matchFields: [{key: metadata.name, operator: In, values: [node.1]}]",
    ],
)
def test_valid_node_terms(term: str) -> None:
    assert of_node(term) == []


NODE_TERMS = {
    "matchExpressions: [{key: a, operator: In}]": "matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
    "matchExpressions: [{key: a, operator: Exists, values: [b]}]": "matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
    "matchExpressions: [{key: a, operator: Gt, values: ['1', '2']}]": "matchExpressions[0].values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'",
    "matchExpressions: [{key: a, operator: Is}]": 'matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator',
    "matchExpressions: [{operator: Exists}]": 'matchExpressions[0].key: Invalid value: "": name part must be non-empty',
    "matchExpressions: [{key: a, operator: In, values: [b, b c]}]": 'matchExpressions[0].values[1]: Invalid value: "b c": a valid label must',
    "matchFields: [{key: metadata.name, operator: Exists}]": 'matchFields[0].operator: Invalid value: "Exists": not a valid selector operator',
    "matchFields: [{key: metadata.name, operator: In, values: [a, b]}]": "matchFields[0].values: Required value: must be only one value",
    "matchFields: [{key: metadata.uid, operator: In, values: [a]}]": 'matchFields[0].key: Invalid value: "metadata.uid": not a valid field selector key',
    "matchFields: [{key: metadata.name, operator: In, values: [a_b]}]": 'matchFields[0].values[0]: Invalid value: "a_b": a lowercase RFC 1123 subdomain',
}  # fmt: skip


@pytest.mark.parametrize(("term", "problem"), NODE_TERMS.items())
def test_rejected_node_terms(term: str, problem: str) -> None:
    [only] = of_node(term)
    assert only.startswith(problem)


def test_values_of_required_node_terms_are_label_values_since_1_33() -> None:
    term = "matchExpressions: [{key: a, operator: In, values: [b c]}]"
    assert of_node(term, 32) == []
    assert of_node(term, 33) != []
    assert problems_of(f"{{nodeAffinity: {{{PREFERRED}: [{{weight: 1, preference: {{{term}}}}}]}}}}") == []


@pytest.mark.parametrize(("weight", "is_valid"), [(0, False), (1, True), (100, True), (101, False)])
def test_weights(weight: int, is_valid: bool) -> None:
    text = f".weight: Invalid value: {weight}: must be in the range 1-100"
    node = f"{{nodeAffinity: {{{PREFERRED}: [{{weight: {weight}, preference: {{}}}}]}}}}"
    assert problems_of(node) == ([] if is_valid else [f"nodeAffinity.{PREFERRED}[0]{text}"])
    pods = f"{{podAntiAffinity: {{{PREFERRED}: [{{weight: {weight}, podAffinityTerm: {{topologyKey: a}}}}]}}}}"
    assert problems_of(pods) == ([] if is_valid else [f"podAntiAffinity.{PREFERRED}[0]{text}"])


POD_TERMS = {
    "": "topologyKey: Required value: can not be empty",
    "topologyKey: a b": 'topologyKey: Invalid value: "a b": name part',
    "topologyKey: a, labelSelector: {matchExpressions: [{key: a, operator: In}]}": "labelSelector.matchExpressions[0].values: Required value",
    "topologyKey: a, namespaceSelector: {matchLabels: {a: b c}}": 'namespaceSelector.matchLabels.a: Invalid value: "b c"',
    "topologyKey: a, namespaces: [a, b.c]": 'namespaces[1]: Invalid value: "b.c": a lowercase RFC 1123 label',
    "topologyKey: a, matchLabelKeys: [b]": "matchLabelKeys: Forbidden: must not be specified when labelSelector is not set",
    "topologyKey: a, mismatchLabelKeys: [b c], labelSelector: {}": 'mismatchLabelKeys[0]: Invalid value: "b c": name part',
    "topologyKey: a, matchLabelKeys: [c, b], mismatchLabelKeys: [b], labelSelector: {}": 'matchLabelKeys[1]: Invalid value: "b": exists in both matchLabelKeys and mismatchLabelKeys',
    "topologyKey: a, matchLabelKeys: [b], labelSelector: {matchLabels: {b: c}, matchExpressions: [{key: b, operator: Exists}]}": 'matchLabelKeys[0]: Invalid value: "b": exists in both matchLabelKeys and labelSelector',
}  # fmt: skip


@pytest.mark.parametrize(("term", "problem"), POD_TERMS.items())
def test_rejected_pod_terms(term: str, problem: str) -> None:
    [only] = of_pods(term)
    assert only.startswith(problem)
    [preferred] = problems_of(f"{{podAntiAffinity: {{{PREFERRED}: [{{weight: 1, podAffinityTerm: {{{term}}}}}]}}}}")
    assert preferred == f"podAntiAffinity.{PREFERRED}[0].podAffinityTerm.{only}"


VALID_PODS = (
    "topologyKey: a, namespaces: [b], namespaceSelector: {}, labelSelector: {matchLabels: {c: d}}, matchLabelKeys: [e]"
)


def test_valid_pod_terms() -> None:
    assert of_pods(VALID_PODS, labels=("e",)) == []


@pytest.mark.parametrize("selector", ["matchLabels: {b: c}", "matchExpressions: [{key: b, operator: Exists}]"])
def test_keys_of_a_pods_labels_may_not_be_in_the_selector(selector: str) -> None:
    keys = f"topologyKey: a, matchLabelKeys: [b], labelSelector: {{{selector}}}"
    problem = 'matchLabelKeys[0]: Invalid value: "b": exists in both matchLabelKeys and labelSelector'
    assert of_pods(keys, 31, ("b",)) == [problem]
    assert of_pods(keys, 31, ("c",)) == []
    spread = f"maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, {keys}"
    assert of_spread(spread, 34, ("b",)) == [problem]
    assert of_spread(spread, 34, ("c",)) == []
    # Older servers do not need the label.
    assert of_spread(spread, 33) == [problem]


def test_label_keys_of_affinities_are_ignored_before_1_31() -> None:
    assert of_pods("topologyKey: a, matchLabelKeys: [b c]", 30) == []
    assert of_pods("topologyKey: a, matchLabelKeys: [b c]", 31) != []


SPREAD = "topologyKey: a, whenUnsatisfiable: DoNotSchedule"
CONSTRAINTS = {
    SPREAD: "maxSkew: Invalid value: 0: must be greater than zero",
    "maxSkew: 1, whenUnsatisfiable: DoNotSchedule": "topologyKey: Required value: can not be empty",
    "maxSkew: 1, topologyKey: a": 'whenUnsatisfiable: Unsupported value: "": supported values: "DoNotSchedule", "ScheduleAnyway"',
    f"maxSkew: 1, {SPREAD}, minDomains: 0": "minDomains: Invalid value: 0: must be greater than zero",
    "maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway, minDomains: 2": "minDomains: Invalid value: 2: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway",
    f"maxSkew: 1, {SPREAD}, nodeAffinityPolicy: Maybe": 'nodeAffinityPolicy: Unsupported value: "Maybe": supported values: "Honor", "Ignore"',
    f"maxSkew: 1, {SPREAD}, nodeTaintsPolicy: Maybe": 'nodeTaintsPolicy: Unsupported value: "Maybe"',
    f"maxSkew: 1, {SPREAD}, matchLabelKeys: [b]": "matchLabelKeys: Forbidden: must not be specified when labelSelector is not set",
    f"maxSkew: 1, {SPREAD}, labelSelector: {{}}, matchLabelKeys: [b c]": 'matchLabelKeys[0]: Invalid value: "b c": name part',
    f"maxSkew: 1, {SPREAD}, labelSelector: {{matchLabels: {{a: b c}}}}": 'labelSelector.matchLabels.a: Invalid value: "b c"',
}  # fmt: skip


@pytest.mark.parametrize("minor", [33, 34])
@pytest.mark.parametrize(("constraint", "problem"), CONSTRAINTS.items())
def test_rejected_spread_constraints(constraint: str, problem: str, minor: int) -> None:
    [only] = of_spread(constraint, minor)
    assert only.startswith(problem)


def test_spread_constraints_of_a_topology_differ() -> None:
    both = f"maxSkew: 1, {SPREAD}, minDomains: 2, nodeTaintsPolicy: Honor"
    assert of_spread(f"{both}}}, {{maxSkew: 2, topologyKey: a, whenUnsatisfiable: ScheduleAnyway") == []
    problem = 'topologySpreadConstraints[1]: Duplicate value: "{topologyKey, whenUnsatisfiable}: {a, DoNotSchedule}"'
    assert of_spread(f"{both}}}, {{maxSkew: 2, {SPREAD}") == [problem]
