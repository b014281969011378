"""Upstream's table tests of values: quantities, selectors, tolerations, requests, messages, budgets.

Each function takes a case and returns the differences; nothing means agreement.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from kpreempt.model.affinity import NodeAffinity, NodeSelector, PodAffinityTerm, PreferredSchedulingTerm
from kpreempt.model.labels import LabelSelector, matches_requirement
from kpreempt.model.node import Node
from kpreempt.model.pod import ContainerPort, Pod, PodMeta
from kpreempt.model.quantity import MAX_INT64, NANO_PER_UNIT, Quantity
from kpreempt.model.taints import Taint, Toleration, find_untolerated_taint
from kpreempt.schedulers.choice import earliest_start
from kpreempt.schedulers.kube.framework.interface import MAX_NODE_SCORE, NodeToStatus, no_node_message, normalize_to_max
from kpreempt.schedulers.kube.framework.label_selectors import AffinityTerm
from kpreempt.schedulers.kube.framework.node_info import HostPorts, PodInfo
from kpreempt.schedulers.kube.framework.resource_scoring import piecewise_linear
from kpreempt.schedulers.kube.framework.resources import NON_MISSING_REQUESTS, pod_requests, resource_calculator
from kpreempt.schedulers.kube.plugins.image_locality import normalized_image_name
from kpreempt.schedulers.kube.preemption.importance import BudgetIndex, is_more_important
from kpreempt.schedulers.kube.preemption.odds import sampling_of
from kpreempt.schedulers.kube.versions import behavior
from tests.conformance.cases import NOW, cluster_of, gates_of, pod_of, record
from tests.conformance.statuses import status_of

Case = dict[str, Any]


def differ(what: str, want: object, got: object) -> list[str]:
    """One line if the two differ."""
    return [] if want == got else [f"{what}: want {want!r}, got {got!r}"]


def parse_quantity(case: Case) -> list[str]:
    """``ParseQuantity``, ``Value`` and ``MilliValue`` if they are exact."""
    text, want = case["input"]["text"], case["expect"]
    try:
        parsed = Quantity(text)
    except ValueError:
        return [] if want.get("error") else [f"{text!r}: refused"]
    if want.get("error"):
        return [f"{text!r}: taken as {parsed.nano}"]
    decimal = Decimal(want["decimal"])
    found = differ("decimal", decimal * NANO_PER_UNIT, Decimal(parsed.nano))
    observed = case.get("observed", {})
    if decimal >= 0 and decimal * 1000 <= MAX_INT64:
        found += differ("value", observed.get("value", parsed.value), parsed.value)
        found += differ("milliValue", observed.get("milliValue", parsed.milli_value), parsed.milli_value)
    return found


def match_label_selector(case: Case) -> list[str]:
    """``LabelSelectorAsSelector``: whether the selector is valid."""
    given = case["input"]["labelSelector"]
    if given is None:
        return []
    if any(
        each["operator"] not in ("In", "NotIn", "Exists", "DoesNotExist")
        for each in given.get("matchExpressions") or []
    ):
        return []
    return differ("error", case["expect"]["error"], not record(given, LabelSelector).is_valid())


def match_requirements(case: Case) -> list[str]:
    """``Selector.Matches`` on requirements."""
    operators = {"in": "In", "notin": "NotIn", "exists": "Exists", "!": "DoesNotExist", "gt": "Gt", "lt": "Lt"}
    operators |= {"=": "In", "==": "In", "!=": "NotIn"}
    got = all(
        matches_requirement(
            each["key"], operators[each["operator"]], each["values"] or [], case["input"]["labels"] or {}
        )
        for each in case["input"]["requirements"] or []
    )
    return differ("match", case["expect"]["match"], got)


def match_node_selector(case: Case) -> list[str]:
    """Node selector terms on a node."""
    if "match" not in case["expect"]:
        return []
    if case["input"]["node"] is None:
        return differ("match", case["expect"]["match"], False)
    node = record(case["input"]["node"], Node)
    selector = record(case["input"]["nodeSelector"] or {}, NodeSelector)
    return differ("match", case["expect"]["match"], selector.matches(node.name, node.labels))


def match_required_node_affinity(case: Case) -> list[str]:
    """A pod's node selector and required node affinity."""
    pod, labels = pod_of(case["pod"]), case["input"]["nodeLabels"] or {}
    name = case["input"]["nodeName"]
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = (affinity or NodeAffinity()).required
    got = all(labels.get(key) == value for key, value in pod.spec.node_selector.items()) and (
        required is None or required.matches(name, labels)
    )
    return differ("match", case["expect"]["requiredNodeAffinityMatch"], got)


def score_preferred_terms(case: Case) -> list[str]:
    """Weights of preferred terms on a node."""
    if "score" not in case["expect"]:
        return []
    node = record(case["input"]["node"], Node)
    terms = [record(term, PreferredSchedulingTerm) for term in case["input"]["preferredSchedulingTerms"]]
    got = sum(term.weight for term in terms if term.preference.matches(node.name, node.labels))
    return differ("score", case["expect"]["score"], got)


def tolerate(case: Case) -> list[str]:
    """One toleration on one taint."""
    gates = gates_of(case["featureGates"])
    given = record(case["input"]["toleration"], Toleration)
    got = given.tolerates(
        record(case["input"]["taint"], Taint), compares_numbers=gates.taint_toleration_comparison_operators
    )
    return differ("tolerated", case["expect"]["tolerated"], got)


def compare_numbers(case: Case) -> list[str]:
    """Gt and Lt tolerations."""
    given = case["input"]
    toleration = Toleration(key="k", operator=given["operator"], value=given["tolerationValue"])
    if given["operator"] not in ("Gt", "Lt"):
        return []
    got = toleration.tolerates(Taint("k", given["taintValue"]), compares_numbers=True)
    return differ("result", case["expect"]["result"], got)


def find_taint(case: Case) -> list[str]:
    """``FindMatchingUntoleratedTaint``."""
    gates = gates_of(case["featureGates"])
    got = find_untolerated_taint(
        [record(taint, Taint) for taint in case["input"]["taintsConsidered"] or []],
        [record(toleration, Toleration) for toleration in case["input"]["tolerations"] or []],
        frozenset(["NoSchedule", "NoExecute", "PreferNoSchedule", ""]),
        compares_numbers=gates.taint_toleration_comparison_operators,
    )
    return differ("allTolerated", case["expect"]["allTolerated"], got is None)


def pod_priority(case: Case) -> list[str]:
    """A missing priority is 0."""
    return differ("priority", case["expect"]["priority"], pod_of(case["pod"]).priority)


def format_taint(case: Case) -> list[str]:
    """A taint as text; kpreempt only writes taints with a key and an effect."""
    taint = record(case["input"]["taint"], Taint)
    return differ("string", case["expect"]["string"], str(taint)) if taint.effect and taint.value else []


def set_matches(case: Case) -> list[str]:
    """A plain map of labels as a selector."""
    got = LabelSelector(match_labels=case["input"]["matchLabels"] or {}).matches(case["input"]["labels"] or {})
    return differ("match", case["expect"]["match"], got)


def running_pod_resources(case: Case) -> list[str]:
    """How a running pod counts on its node."""
    gates = gates_of(case["featureGates"])
    info = PodInfo(pod_of(case["pod"]), gates)
    want = case["expect"]["podResource"]
    resource = want["resource"]
    got = info.resource
    return (
        differ("milliCPU", resource["milliCPU"], got.milli_cpu)
        + differ("memory", resource["memory"], got.memory)
        + differ("ephemeralStorage", resource["ephemeralStorage"], got.ephemeral_storage)
        + differ("scalarResources", resource["scalarResources"] or {}, got.scalar)
        + differ("non0", (want["non0CPU"], want["non0Mem"]), resource_calculator(gates).of(info.pod)[1:])
    )


def requests_of_pod(case: Case) -> list[str]:
    """``PodRequests`` with its options."""
    options = case["input"]["options"]
    if "requests" not in case["expect"]:
        return []
    pod = pod_of(case["pod"])
    got = pod_requests(
        pod,
        use_status=options.get("useStatusResources", False),
        pod_level=not options.get("skipPodLevelResources", False),
        pod_level_status=False,
    )
    if options.get("excludeOverhead"):
        for name, amount in pod.spec.overhead.items():
            got[name] -= amount.nano
    want = {name: Quantity(text).nano for name, text in (case["expect"]["requests"] or {}).items()}
    return differ("requests", {k: v for k, v in want.items() if v}, {k: v for k, v in got.items() if v})


def requests_for_scoring(case: Case) -> list[str]:
    """Requests with the minimum that a container counts for."""
    requests = pod_requests(pod_of(case["pod"]), non_missing=NON_MISSING_REQUESTS)
    want = case["expect"]["podRequestForScoring"]
    got = {"cpu": requests["cpu"] // 10**6, "memory": requests["memory"] // 10**9}
    return differ("requests", want, got)


def fit_error(case: Case) -> list[str]:
    """The text of a FailedScheduling event."""
    diagnosis = case["input"]["diagnosis"]
    statuses = NodeToStatus()
    statuses.statuses = {name: status_of(each) for name, each in (diagnosis["nodeToStatus"]["nodes"] or {}).items()}
    statuses.absent = status_of(diagnosis["nodeToStatus"]["absentNodes"])
    got = no_node_message(
        case["input"]["numAllNodes"],
        statuses,
        pre_filter=diagnosis["preFilterMsg"],
        post_filter=diagnosis["postFilterMsg"],
    )
    return differ("message", case["expect"]["message"], got)


def host_port_conflict(case: Case) -> list[str]:
    """Host ports in use, and one that is requested."""
    ports = HostPorts()
    for each in case["input"]["used"]:
        port = record(each, ContainerPort)
        ports.add(port.host_ip, each["protocol"], port.host_port)
    wanted = case["input"]["wanted"]
    got = ports.conflicts(wanted["hostIP"], wanted["protocol"], wanted["hostPort"])
    return differ("conflict", case["expect"]["conflict"], got)


def budget_violations(case: Case) -> list[str]:
    """Which victims violate a budget if each unit is one pod."""
    observed = case.get("observed", {}).get("filterPodsWithPDBViolation")
    if observed is None:
        return []
    budgets = BudgetIndex(cluster_of(case["objects"]).pod_disruption_budgets)
    pods = [PodInfo(pod_of(unit[0]), behavior()) for unit in case["input"]["victims"]]
    got = [index for index, each in enumerate(budgets.count(pods)) if each.violates]
    return differ("violating", observed["violatingVictims"] or [], got)


def more_important(case: Case) -> list[str]:
    """``MoreImportantPod``."""
    one, other = (PodInfo(pod_of(case["input"][key]), behavior()) for key in ("pod1", "pod2"))
    return differ("result", case["expect"]["pod1MoreImportant"], is_more_important(one, other, NOW))


def earliest(case: Case) -> list[str]:
    """``GetEarliestPodStartTime``."""
    start = earliest_start([pod_of(pod) for pod in case["input"]["victims"]], NOW)
    got = start.strftime("%Y-%m-%dT%H:%M:%SZ") if start else None
    return differ("start", case["expect"]["earliestStartTime"], got)


def piecewise(case: Case) -> list[str]:
    """A piecewise linear function; upstream's test allows a tenth."""
    shape = [(point["utilization"], point["score"]) for point in case["input"]["points"]]
    return [
        f"f({each['p']}): want {each['expected']}, got {got}"
        for each in case["expect"]["values"]
        if abs((got := piecewise_linear(shape, each["p"])) - each["expected"]) > 0.1
    ]


def normalize(case: Case) -> list[str]:
    """``DefaultNormalizeScore``; the highest score is always 100 here."""
    given = case["input"]
    if given["maxPriority"] != MAX_NODE_SCORE:
        return []
    got = normalize_to_max(given["scores"] or [], reverse=given["reverse"])
    return differ("scores", case["expect"]["scores"] or [], got)


def image_name(case: Case) -> list[str]:
    """The name of an image with its tag."""
    return differ("name", case["expect"]["normalizedImageName"], normalized_image_name(case["input"]["image"]))


def nodes_to_find(case: Case) -> list[str]:
    """How many feasible nodes are enough."""
    given = case["input"]
    percentage = given["globalPercentage"] if given["profilePercentage"] is None else given["profilePercentage"]
    nodes = given["numAllNodes"]
    sampling = sampling_of(nodes, nodes, percentage=percentage, is_scoring=True)
    return differ("nodes", case["expect"]["numFeasibleNodesToFind"], sampling.nodes_to_find if sampling else nodes)


def term_namespaces(case: Case) -> list[str]:
    """The namespaces that a pod affinity term names or implies."""
    pod = Pod(metadata=PodMeta(namespace=case["input"]["podNamespace"]))
    term = AffinityTerm(pod, record(case["input"]["term"], PodAffinityTerm))
    return differ("namespaces", sorted(case["expect"]["namespaces"] or []), sorted(term.namespaces))
