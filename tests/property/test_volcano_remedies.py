"""Every remedy for a random job keeps its promise, and remedies are offered if a single change would help."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

import pytest

from kpreempt.analysis.volcano.remedies import is_bound
from kpreempt.verdict.remedies import Change, ChangeKind, ObjectEdit, Remedy, RemedyStage
from kpreempt.verdict.volcano import GangAnswer
from tests.volcano_scenarios import (
    Document,
    applied,
    check_promise,
    configuration,
    explained,
    gang,
    job,
    node,
    priority_class,
    queue,
)

SCENARIOS = 12
MIN_OFFERED = 0.6
CLASSES = {"low": 10, "mid": 100, "high": 1000}


class Scenario(NamedTuple):
    objects: list[Document]
    manifest: Document | None
    pod: str
    conf: Document


def scenario(random: Random) -> Scenario:
    """Running gangs on a few nodes, and a job that is submitted or waits."""
    objects: list[Document] = [priority_class(name, value) for name, value in CLASSES.items()]
    free = {f"n{each}": random.choice([2, 4, 8]) for each in range(random.randint(1, 4))}
    for name, cpu in free.items():
        pool = {"pool": random.choice(["batch", "web"])}
        objects.append(node(name, str(cpu), cordoned=random.random() < 0.2, **pool))
    queues = ["default", "train"]
    for name in queues:
        limits: Document = {"capability": {"cpu": str(random.randint(1, 8))}} if random.random() < 0.3 else {}
        state = "Closed" if random.random() < 0.1 else "Open"
        objects.append(queue(name, state=state, weight=random.randint(1, 3), **limits))
    for number in range(random.randint(0, 4)):
        cpu = random.randint(1, 3)
        places = []
        for _ in range(random.randint(1, 3)):
            place = next((each for each, left in free.items() if left >= cpu), "")
            if place:
                free[place] -= cpu
                places.append(place)
        if places:
            name, needs = random.choice(list(CLASSES)), random.randint(1, len(places))
            objects += gang(
                f"r{number}",
                str(cpu),
                places,
                queue=random.choice(queues),
                needs=needs,
                priority=name,
                value=CLASSES[name],
            )
    actions = random.choice(["enqueue, allocate, backfill", "enqueue, allocate, preempt", "enqueue, allocate, reclaim"])
    without = random.sample(["overcommit", "proportion", "drf"], random.randint(0, 2))
    conf = configuration(actions, without)
    cpu, tasks, name = random.randint(1, 6), random.randint(1, 4), random.choice(list(CLASSES))
    own_queue = random.choice(["default", "train", "train", "trian"])
    if random.random() < 0.5:
        selector = {"nodeSelector": {"pool": random.choice(["batch", "bacth"])}} if random.random() < 0.3 else {}
        manifest = job("w", str(cpu), tasks=tasks, queue=own_queue, priorityClassName=name, **selector)
        manifest["spec"]["priorityClassName"] = name
        return Scenario(objects, manifest, "", conf)
    objects += gang("w", str(cpu), [""] * tasks, queue=own_queue, needs=tasks, priority=name, value=CLASSES[name])
    return Scenario(objects, None, "w-0", conf)


def answers(seed: int) -> Iterator[tuple[Scenario, GangAnswer]]:
    random = Random(seed)
    for _ in range(SCENARIOS):
        made = scenario(random)
        yield made, explained(made.objects, made.manifest, made.pod, made.conf)


def after(made: Scenario, remedy: Remedy) -> GangAnswer:
    objects, manifest, conf = applied(made.objects, made.manifest, made.conf, remedy)
    return explained(objects, manifest, made.pod, conf)


def priorities_of(objects: list[Document]) -> dict[str, int]:
    return {
        f"ml/{each['metadata']['name']}": each["spec"].get("priority", 0) for each in objects if each["kind"] == "Pod"
    }


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(80))
def test_every_remedy_keeps_its_promise(seed: int) -> None:
    for made, before in answers(seed):
        for remedy in before.remedies:
            check_promise(before, after(made, remedy), remedy, priorities_of(made.objects))


def single_changes(made: Scenario) -> Iterator[Remedy]:
    """Single changes of the kinds that are tried, with other amounts."""

    def edit(name: str, patch: Document) -> Remedy:
        return Remedy(stage=RemedyStage.REPAIR, changes=[], edits=[ObjectEdit(name, patch)])

    for each in made.objects:
        kind, name = each["kind"], each["metadata"]["name"]
        if kind == "Node":
            change = Change(ChangeKind.ADD_NODE, name, after=3)
            yield Remedy(stage=RemedyStage.CAPACITY, changes=[change])
            if each["spec"]:
                yield edit(f"Node {name}", {"spec": {"unschedulable": None, "taints": None}})
        if kind == "Queue":
            yield edit(f"Queue {name}", {"status": {"state": "Open"}})
            yield edit(f"Queue {name}", {"spec": {"weight": 50}})
            yield edit(f"Queue {name}", {"spec": {"capability": {"cpu": "20"}}})
    if made.manifest is not None:
        yield edit("Job ml/w", {"spec": {"minAvailable": 1}})
        yield edit("Job ml/w", {"spec": {"queue": "train"}})
    else:
        yield edit("PodGroup ml/w", {"spec": {"minMember": 1}})
        yield edit("PodGroup ml/w", {"spec": {"queue": "train"}})


def helps(made: Scenario, before: GangAnswer, change: Remedy) -> bool:
    """Whether a change gets the job bound without evictions."""
    found = after(made, change)
    evicted = [
        {each.task for session in one.sessions for action in session.actions for each in action.evictions}
        for one in (before, found)
    ]
    return is_bound(found) and evicted[1] <= evicted[0]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(1000, 1008))
def test_remedies_are_offered_if_a_single_change_helps(seed: int) -> None:
    helped = [
        bool(before.remedies)
        for made, before in answers(seed)
        if before.search is not None and any(helps(made, before, each) for each in single_changes(made))
    ]
    assert helped
    assert sum(helped) / len(helped) >= MIN_OFFERED
