"""The table tests of kube-scheduler 1.36.3, run on kpreempt's parts.

Every case is either run or listed here with the reason why not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance import upstream_cycles as cycles
from tests.conformance import upstream_extenders as extenders
from tests.conformance import upstream_hooks as hooks
from tests.conformance import upstream_schedule as schedule
from tests.conformance import upstream_topology as topology
from tests.conformance import upstream_values as values
from tests.conformance import upstream_volumes as volumes
from tests.conformance.cases import UPSTREAM, read_lines

Case = dict[str, Any]
SUITES = (
    "defaultpreemption",
    "diagnosis",
    "filters",
    "labels",
    "pdb",
    "podresources",
    "quantity",
    "schedulepod",
    "scores",
    "tolerations",
)

NO_QUANTITY_ARITHMETIC = "kpreempt adds exact integers and never writes a quantity in canonical form"
NO_SELECTOR_TEXT = "kpreempt reads structured selectors; it does not parse the text syntax"
NO_POD_GROUPS = "pod groups and gangs are not modelled"
NO_CLAIMS = "the allocation of resource claims is not modelled"
NO_QUEUE = "about the scheduling queue, not about a verdict"
NO_LIMITS = "limits take no part in scheduling"

TOPOLOGY_PACKAGES = frozenset(["interpodaffinity", "podtopologyspread"])

LEFT_OUT: dict[str, str] = {
    **dict.fromkeys(
        (
            "resource/TestAdd",
            "resource/TestJSONWhitespace",
            "resource/TestMilliNewSet",
            "resource/TestNewScaledSet",
            "resource/TestNewSet",
            "resource/TestQuantityCmp",
            "resource/TestQuantityCmpInt64AndDec",
            "resource/TestQuantityParseEmit",
            "resource/TestQuantityRoundUp",
            "resource/TestQuantityString",
            "resource/TestScaledValue",
            "resource/TestSub",
        ),
        NO_QUANTITY_ARITHMETIC,
    ),
    **dict.fromkeys(
        ("labels/TestSelectorMatches", "labels/TestSelectorParse", "labels/TestSetSelectorParser"), NO_SELECTOR_TEXT
    ),
    "labels/TestRequirementConstructor": "the API server validates selectors; an invalid one never reaches a scheduler",
    "nodeaffinity/TestNodeSelectorRequirementsAsSelector": NO_SELECTOR_TEXT,
    **dict.fromkeys(
        (
            "preemption/TestMoreImportantVictim",
            "preemption/TestPodGroupEvaluator_SelectVictimsOnDomain",
            "preemption/TestIsPodGroupPreemptiblePod",
            "preemption/TestNewDomainForWorkloadPreemption",
            "gangscheduling/TestGangSchedulingFlow",
            "helper/TestMatchingSchedulingGroup",
        ),
        NO_POD_GROUPS,
    ),
    **dict.fromkeys(
        (
            "dynamicresources/TestPlugin",
            "noderesources/TestCalculateResourceAllocatableRequest",
            "resource/TestPodResourceRequestsWithDRANodeAllocatableClaims",
        ),
        NO_CLAIMS,
    ),
    "defaultpreemption/TestPreEnqueue": NO_QUEUE,
    "noderesources/TestHaveAnyRequestedResourcesIncreased": NO_QUEUE,
    "resource/TestPodResourceLimits": NO_LIMITS,
    "helper/TestDoNotScheduleTaintsFilterFunc": "about a function value",
}

RUN: dict[str, Callable[[Case], list[str]]] = {
    "noderesources/TestIsFit": cycles.run_is_fit,
    "noderesources/TestBrokenLinearFunction": values.piecewise,
    "helper/TestDefaultNormalizeScore": values.normalize,
    "imagelocality/TestNormalizedImageName": values.image_name,
    "scheduler/TestNumFeasibleNodesToFind": values.nodes_to_find,
    "framework/TestGetNamespacesFromPodAffinityTerm": values.term_namespaces,
    "helper/TestDefaultSelector": topology.run_case,
    "helper/TestGetPodServices": topology.run_case,
    "resource/TestQuantityParse": values.parse_quantity,
    "v1/TestLabelSelectorAsSelector": values.match_label_selector,
    "labels/TestRequirementSelectorMatching": values.match_requirements,
    "labels/TestSetMatches": values.set_matches,
    "corev1/TestMatchNodeSelectorTerms": values.match_node_selector,
    "nodeaffinity/TestNodeSelectorMatch": values.match_node_selector,
    "nodeaffinity/TestPodMatchesNodeSelectorAndAffinityTerms": values.match_required_node_affinity,
    "nodeaffinity/TestPreferredSchedulingTermsScore": values.score_preferred_terms,
    "v1/TestTolerationToleratesTaint": values.tolerate,
    "v1/TestCompareNumericValues": values.compare_numbers,
    "v1/TestTaintToString": values.format_taint,
    "corev1/TestFindMatchingUntoleratedTaint": values.find_taint,
    "corev1/TestPodPriority": values.pod_priority,
    "framework/TestCalculatePodResourcesWithResize": values.running_pod_resources,
    "framework/TestPodInfoCalculateResources": values.running_pod_resources,
    "resource/TestAggregateContainerRequestsAndLimits": values.requests_of_pod,
    "resource/TestPodLevelResourceRequests": values.requests_of_pod,
    "resource/TestPodRequestsAndLimits": values.requests_of_pod,
    "resource/TestPodRequestsAndLimitsWithoutOverhead": values.requests_of_pod,
    "resource/TestPodResourceRequests": values.requests_of_pod,
    "noderesources/TestResourceAllocationScorerCalculateRequests": values.requests_for_scoring,
    "framework/TestFitError_Error": values.fit_error,
    "framework/TestHostPortInfo_Check": values.host_port_conflict,
    "preemption/TestFilterVictimsWithPDBViolation": values.budget_violations,
    "util/TestMoreImportantPod": values.more_important,
    "util/TestGetEarliestPodStartTime": values.earliest,
    "defaultpreemption/TestPostFilter": cycles.run_post_filter,
    "defaultpreemption/TestDryRunPreemption": cycles.run_dry_runs,
    "defaultpreemption/TestSelectBestCandidate": cycles.run_selection,
    "defaultpreemption/TestPodEligibleToPreemptOthers": cycles.run_eligibility,
    "defaultpreemption/TestPreempt": cycles.run_preempt,
    "framework/TestNodesForStatusCode": cycles.run_potential_nodes,
    "preemption/TestCallExtenders": extenders.run_candidates,
    "scheduler/TestFindNodesThatPassExtenders": extenders.run_passing,
    "defaultpreemption/TestCustomOrdering": hooks.run_custom_ordering,
    "defaultpreemption/TestCustomSelection": hooks.run_custom_selection,
    "preemption/TestDryRunPreemption": hooks.run_first_pods,
    "preemption/TestSelectCandidate": hooks.run_best_candidate,
    "scheduler/TestFindFitAllError": schedule.run_fit_error,
    "scheduler/TestFindFitPredicateCallCounts": schedule.run_call_counts,
    "scheduler/TestPreferNominatedNodeFilterCallCounts": schedule.run_call_counts,
    "scheduler/TestSchedulerSchedulePod": schedule.run_schedule_pod,
    "scheduler/Test_prioritizeNodes": schedule.run_prioritize,
    "runtime/TestFilterPluginsWithNominatedPods": schedule.run_nominated,
    "nodeaffinity/TestNodeAffinity": cycles.run_filters,
    "nodename/TestNodeName": cycles.run_filters,
    "nodeports/TestFits": cycles.run_filters,
    "nodeports/TestNodePorts": cycles.run_filters,
    "noderesources/TestEnoughRequests": cycles.run_filters,
    "noderesources/TestNotEnoughRequests": cycles.run_filters,
    "noderesources/TestRestartableInitContainers": cycles.run_filters,
    "noderesources/TestStorageRequests": cycles.run_filters,
    "schedulinggates/TestPreEnqueue": cycles.run_filters,
    "tainttoleration/TestTaintTolerationFilter": cycles.run_filters,
    "tainttoleration/TestTaintTolerationFilterWithFeatureGate": cycles.run_filters,
    "imagelocality/TestImageLocalityPriority": cycles.run_scores,
    "nodeaffinity/TestNodeAffinityPriority": cycles.run_scores,
    "noderesources/TestNodeResourcesBalancedAllocation": cycles.run_scores,
    "noderesources/TestFitScore": cycles.run_scores,
    "noderesources/TestLeastAllocatedScoringStrategy": cycles.run_scores,
    "noderesources/TestMostAllocatedScoringStrategy": cycles.run_scores,
    "noderesources/TestRequestedToCapacityRatioScoringStrategy": cycles.run_scores,
    "noderesources/TestResourceBinPackingMultipleExtended": cycles.run_scores,
    "noderesources/TestResourceBinPackingSingleExtended": cycles.run_scores,
    "tainttoleration/TestTaintTolerationScore": cycles.run_scores,
}


def reason_left_out(case: Case) -> str | None:
    """Return why a case is not run although its test is."""
    given, objects = case.get("input") or {}, case.get("objects") or []
    if any(each["kind"] in ("ResourceSlice", "DeviceClass", "ResourceClaim") for each in objects):
        return NO_CLAIMS
    if (case.get("featureGates") or {}).get("DRANodeAllocatableResources"):
        return NO_CLAIMS
    if "schedulingGroup" in ((case.get("pod") or {}).get("spec") or {}):
        return NO_POD_GROUPS
    if case["test"] == "TestNodesForStatusCode" and given["code"] != "Unschedulable":
        return "about a code that preemption does not look for"
    if case.get("replay", {}).get("defaultGates") == "differs" and not case.get("featureGates"):
        return "holds only with gates that are off by default"
    return None


def run_of(case: Case) -> Callable[[Case], list[str]] | None:
    """Return the function that runs a case, or ``None`` if its test is omitted."""
    if case["package"] in volumes.PACKAGES:
        return volumes.run_case
    if case["package"] in TOPOLOGY_PACKAGES:
        return topology.run_case
    if (case.get("input") or {}).get("extenders"):
        return extenders.RUN[upstream_test(case)]
    return RUN.get(upstream_test(case)) if reason_left_out(case) is None else None


def all_cases() -> list[Case]:
    return [case for suite in SUITES for case in read_lines(UPSTREAM / f"{suite}.jsonl.gz")]


def upstream_test(case: Case) -> str:
    return f"{case['package']}/{case['test']}"


CASES = all_cases()
TO_RUN = [case for case in CASES if run_of(case) is not None]


@pytest.mark.parametrize("case", TO_RUN, ids=lambda case: case["id"])
def test_the_case_agrees_with_upstream(case: Case) -> None:
    run = run_of(case)
    assert run is not None
    assert run(case) == []


def test_every_upstream_test_is_run_or_omitted_with_a_reason() -> None:
    whole_packages = TOPOLOGY_PACKAGES | volumes.PACKAGES
    names = {upstream_test(case) for case in CASES if case["package"] not in whole_packages}
    assert names == RUN.keys() | LEFT_OUT.keys()
    assert not RUN.keys() & LEFT_OUT.keys()
