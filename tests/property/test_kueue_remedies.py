"""Every remedy for a random Workload keeps its promise, and remedies are offered if a single change would help."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from kpreempt.analysis.remedies.edits import edited_documents
from kpreempt.schedulers.kueue import KueueConfiguration
from kpreempt.schedulers.kueue.objects import FairSharingConfiguration
from kpreempt.verdict.kueue import KueueAnswer
from kpreempt.verdict.remedies import ObjectEdit
from tests.kueue_scenarios import (
    Document,
    applied,
    check_promise,
    cluster_queue,
    explained,
    flavor,
    local_queue,
    namespace,
    node,
    workload,
)

SCENARIOS = 25
MIN_OFFERED = 0.6


def scenario(random: Random) -> tuple[list[Document], KueueConfiguration]:
    """Some ClusterQueues, Workloads within their quota, and pending ones, of which the first is ``w0``."""
    objects: list[Document] = [namespace(), flavor()]
    nodes = random.choice([0, 0, 3])
    objects += [node(f"n{each}", random.choice(["4", "8"])) for each in range(nodes)]
    names = [f"q{each}" for each in range(random.randint(1, 3))]
    pool = random.choice(["", "pool", "pool"])
    quotas = {name: random.randint(0, 8) for name in names}
    for name, quota in quotas.items():
        more: Document = {}
        if pool and random.random() < 0.4:
            more[random.choice(["borrowingLimit", "lendingLimit"])] = random.randint(0, 4)
        policies: Document = {
            "withinClusterQueue": random.choice(["Never", "LowerPriority", "LowerOrNewerEqualPriority"]),
            "reclaimWithinCohort": random.choice(["Never", "LowerPriority", "Any"]),
        }
        if policies["reclaimWithinCohort"] != "Never" and random.random() < 0.5:
            policies["borrowWithinCohort"] = {"policy": random.choice(["Never", "LowerPriority"])}
        strategy = random.choice(["BestEffortFIFO", "BestEffortFIFO", "StrictFIFO"])
        objects.append(
            cluster_queue(
                name,
                str(quota),
                cohort=pool,
                more=more,
                preemption=policies,
                queueingStrategy=strategy,
                stopPolicy=_held(random),
            )
        )
        objects.append(local_queue(name))
    for number in range(random.randint(0, 3)):
        name = random.choice(names)
        cpu = random.randint(1, max(1, quotas[name]))
        if cpu <= quotas[name]:
            quotas[name] -= cpu
            objects.append(workload(f"r{number}", name, str(cpu), admitted=str(cpu), priority=random.randint(0, 3)))
    for number in range(random.randint(1, 4)):
        created = f"2026-11-22T11:{random.randint(10, 59)}:0{number}Z"
        queue = random.choice(names) if random.random() < 0.95 else f"{names[0]}0"
        count, cpu = random.randint(1, 3), random.randint(1, 4)
        objects.append(
            workload(
                f"w{number}",
                queue,
                str(cpu),
                count=count,
                priority=random.randint(0, 3),
                created=created,
                owner=random.choice(["", "Job", "RayJob"]),
                active=random.random() < 0.95,
            )
        )
    fair = FairSharingConfiguration() if random.random() < 0.3 else None
    return objects, KueueConfiguration(fair_sharing=fair)


def _held(random: Random) -> str:
    return "Hold" if random.random() < 0.05 else "None"


def answers(seed: int) -> Iterator[tuple[list[Document], KueueConfiguration, KueueAnswer]]:
    random = Random(seed)
    for _ in range(SCENARIOS):
        objects, config = scenario(random)
        yield objects, config, explained(objects, "w0", config=config)


def priorities_of(objects: list[Document]) -> dict[str, int]:
    return {
        f"team/{each['metadata']['name']}": each["spec"]["priority"] for each in objects if each["kind"] == "Workload"
    }


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(80))
def test_every_remedy_keeps_its_promise(seed: int) -> None:
    for objects, config, before in answers(seed):
        for remedy in before.remedies:
            after = explained(applied(objects, remedy, before.workload), "w0", config=config)
            check_promise(before, after, remedy, priorities_of(objects))


def single_edits(objects: list[Document], before: KueueAnswer) -> Iterator[ObjectEdit]:
    """Single changes of the kinds that are tried, with other amounts."""
    for each in objects:
        name = f"{each['kind']} {each['metadata']['name']}"
        if each["kind"] != "ClusterQueue":
            continue
        for policy in ({"withinClusterQueue": "LowerPriority"}, {"reclaimWithinCohort": "LowerPriority"}):
            yield ObjectEdit(name, {"spec": {"preemption": policy}})
        yield ObjectEdit(name, {"spec": {"stopPolicy": "None"}})
        [group] = each["spec"]["resourceGroups"]
        for more in (2, 6, 12):
            [own] = group["flavors"]
            [quota] = own["resources"]
            quota = {**quota, "nominalQuota": str(int(quota["nominalQuota"]) + more)}
            groups = [{**group, "flavors": [{**own, "resources": [quota]}]}]
            yield ObjectEdit(name, {"spec": {"resourceGroups": groups}})
    yield ObjectEdit(f"Workload {before.workload}", {"spec": {"priority": 4}})
    yield ObjectEdit(f"Workload {before.workload}", {"spec": {"active": True}})


def helps(objects: list[Document], config: KueueConfiguration, edit: ObjectEdit) -> bool:
    found = explained(edited_documents(objects, [edit]), "w0", config=config)
    return bool(found.alone.admitted_in and found.together.admitted_in and not found.together.evicted_in)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(1000, 1008))
def test_remedies_are_offered_if_a_single_change_helps(seed: int) -> None:
    helped: list[Any] = []
    for objects, config, before in answers(seed):
        if before.search is not None and any(helps(objects, config, edit) for edit in single_edits(objects, before)):
            helped.append(any(each.solves for each in before.remedies))
    assert helped
    assert sum(helped) / len(helped) >= MIN_OFFERED
