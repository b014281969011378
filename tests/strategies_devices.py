"""Random devices: classes, pools of slices, claims with and without devices, taint rules, and pods that use them."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.strategies import EXTENDED, HOSTNAME, NAMESPACE, ZONE, ZONES, Object, maybe, without_none

GPU, NIC = "gpu.example.com", "nic.example.com"
NUMA = "dra.example.com/numa"
_API = {"apiVersion": "resource.k8s.io/v1"}
# Until 1.34, devices that share counters were listed next to these, in the same slice.
COUNTERS_APART_SINCE = 35

SELECTORS = (
    f'device.driver == "{GPU}"',
    f'device.attributes["{GPU}"].model == "a100"',
    f'"model" in device.attributes["{GPU}"] && device.attributes["{GPU}"].model in ["a100", "h100"]',
    f'device.attributes["{GPU}"].?numa.orValue(7) < 2',
    f'device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0',
    f'has(device.attributes["{GPU}"].version) && device.attributes["{GPU}"].version.isGreaterThan(semver("1.5.0"))',
    f'device.attributes["{GPU}"].index % 2 == 0',
)
CONDITIONS = ("attached", "failed")
_classes = st.sampled_from(["gpu", "gpu", "gpu", "any", "nic", "big"])


def _class(name: str, *expressions: str, **more: object) -> Object:
    spec: Object = {"selectors": [{"cel": {"expression": each}} for each in expressions], **more}
    return {**_API, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


@st.composite
def device_classes(draw: st.DrawFn) -> list[Object]:
    """Classes, one of which may be missing; one or two may define an extended resource."""
    backs = draw(maybe(st.just({"extendedResourceName": EXTENDED}), one_in=2)) or {}
    found = [
        _class("gpu", SELECTORS[0], **backs),
        _class("any", **(draw(maybe(st.just(backs), one_in=4)) or {})),
        _class("nic", f'device.driver == "{NIC}"'),
        _class("big", SELECTORS[0], draw(st.sampled_from(SELECTORS[1:]))),
    ]
    for created, each in enumerate(found):
        each["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:0{(created * draw(st.integers(0, 3))) % 10}Z"
    return [each for each in found if draw(st.integers(0, 11))]


@st.composite
def taints(draw: st.DrawFn) -> Object:
    """A taint of a device."""
    value = draw(maybe(st.just("bad"), one_in=2))
    effect = draw(st.sampled_from(["NoSchedule", "NoExecute", "None"]))
    return without_none({"key": draw(st.sampled_from(["spot", "health"])), "value": value, "effect": effect})


tolerations = st.lists(
    st.sampled_from(
        [
            {"operator": "Exists"},
            {"key": "spot", "operator": "Exists"},
            {"key": "health", "operator": "Equal", "value": "bad", "effect": "NoSchedule"},
        ]
    ),
    min_size=1,
    max_size=2,
)


@st.composite
def devices(draw: st.DrawFn, index: int, driver: str, *, shares: bool) -> Object:
    """One device; with ``shares`` several claims may use it at once."""
    attributes: Object = {"index": {"int": index}}
    if draw(st.integers(0, 9)):
        attributes["model"] = {"string": draw(st.sampled_from(["t4", "a100", "a100", "h100"]))}
    if draw(st.booleans()):
        attributes[draw(st.sampled_from(["numa", f"{GPU}/numa"]))] = {"int": draw(st.integers(0, 2))}
    if draw(st.booleans()):
        attributes[NUMA] = {"int": draw(st.integers(0, 1))}
    if draw(st.booleans()):
        attributes["version"] = {"version": draw(st.sampled_from(["1.2.3", "1.5.0", "2.1.0-rc.1"]))}
    capacity: Object = {"memory": {"value": draw(st.sampled_from(["16Gi", "40Gi", "80Gi", "81920Mi"]))}}
    device: Object = {"name": f"{driver[:3]}-{index}", "attributes": attributes, "capacity": capacity}
    if shares:
        capacity["memory"] |= draw(_policies())
        capacity["slots"] = {"value": "4"} | draw(_slots())
        if draw(st.integers(0, 3)):
            device["allowMultipleAllocations"] = True
    if draw(st.integers(0, 4)) == 4:
        device["taints"] = draw(st.lists(taints(), min_size=1, max_size=2))
    if draw(st.integers(0, 9)) == 9:
        device |= {"bindingConditions": [CONDITIONS[0]], "bindingFailureConditions": [CONDITIONS[1]]}
        if draw(st.booleans()):
            device["bindsToNode"] = True
    return device


@st.composite
def _policies(draw: st.DrawFn) -> Object:
    policy = draw(
        st.sampled_from(
            [
                None,
                {"default": "10Gi", "validRange": {"min": "5Gi", "max": "40Gi", "step": "5Gi"}},
                {"default": "8Gi", "validRange": {"min": "4Gi"}},
                {"default": "10Gi", "validValues": ["10Gi", "20Gi", "40Gi"]},
            ]
        )
    )
    return without_none({"requestPolicy": policy})


@st.composite
def _slots(draw: st.DrawFn) -> Object:
    policy = draw(st.sampled_from([None, {"default": "1", "validValues": ["1", "2"]}]))
    return without_none({"requestPolicy": policy})


def _place(num_nodes: int) -> st.SearchStrategy[Object]:
    node = st.integers(0, num_nodes - 1).map(lambda index: {"nodeName": f"n{index}"})
    zone = st.sampled_from(ZONES).map(lambda name: {"nodeSelector": _selector(ZONE, name)})
    return st.one_of(node, node, node, zone, st.just({"allNodes": True}))


def _selector(key: str, *values: str) -> Object:
    expression = {"key": key, "operator": "In", "values": list(values)}
    return {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}


@st.composite
def pools(draw: st.DrawFn, name: str, num_nodes: int, place: Object | None, minor: int) -> list[Object]:
    """The slices of one pool: one or two of the newest generation, possibly one too few, and possibly an older one."""
    driver = draw(st.sampled_from([GPU, GPU, GPU, NIC]))
    kind = draw(st.sampled_from(["plain", "plain", "plain", "shares", "counters", "by device"]))
    stated = [draw(devices(index, driver, shares=kind == "shares")) for index in range(draw(st.integers(1, 4)))]
    spec: Object = {"driver": driver, **(place or draw(_place(num_nodes)))}
    if kind == "by device":
        spec = {"driver": driver, "perDeviceNodeSelection": True}
        for each in stated:
            each.update(draw(_place(num_nodes)))
    generation = draw(st.sampled_from([1, 2]))
    parts: list[Object] = [{"devices": stated}]
    if kind == "counters":
        counters = draw(_counters(stated))
        parts = [{"sharedCounters": counters}, *parts] if minor >= COUNTERS_APART_SINCE else parts
        parts[-1] |= {} if minor >= COUNTERS_APART_SINCE else {"sharedCounters": counters}
    elif len(stated) > 1 and draw(st.integers(0, 2)) == 2:
        parts = [{"devices": stated[1:]}, {"devices": stated[:1]}]
    count = len(parts) + (draw(st.integers(0, 9)) == 9)
    pool = {"name": name, "generation": generation, "resourceSliceCount": count}
    found = [_slice(f"{name}-{index}", {**spec, "pool": pool, **part}) for index, part in enumerate(parts)]
    if generation == 2 and draw(st.integers(0, 2)) == 2:
        old = [draw(devices(index, driver, shares=False)) for index in range(2)]
        place = {"nodeName": "n0"} if kind == "by device" else {}
        older = {"devices": old, "pool": pool | {"generation": 1, "resourceSliceCount": 1}}
        found.append(_slice(f"{name}-old", {**spec, **older} | place))
        found[-1]["spec"].pop("perDeviceNodeSelection", None)
    return found


@st.composite
def _counters(draw: st.DrawFn, stated: list[Object]) -> list[Object]:
    """Two counter sets, which all of the devices ``stated`` consume."""
    for each in stated:
        memory = draw(st.sampled_from(["10Gi", "20Gi", "40Gi"]))
        names = draw(st.sampled_from([("whole",), ("whole",), ("other",), ("whole", "other")]))
        each["consumesCounters"] = [
            {"counterSet": name, "counters": {"memory": {"value": memory}, "engines": {"value": "2"}}} for name in names
        ]
    amounts = {"memory": {"value": draw(st.sampled_from(["40Gi", "80Gi"]))}, "engines": {"value": "7"}}
    return [{"name": name, "counters": amounts} for name in ("whole", "other")]


def _slice(name: str, spec: Object) -> Object:
    return {**_API, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


@st.composite
def _wanted(draw: st.DrawFn, *, is_alternative: bool = False) -> Object:
    """One request, or one alternative of it."""
    request: Object = {"deviceClassName": draw(_classes), "allocationMode": "ExactCount", "count": 1}
    mode = draw(st.sampled_from(["one", "one", "one", "two", "three", "all"]))
    if mode == "all":
        request |= {"allocationMode": "All"}
        del request["count"]
    else:
        request["count"] = {"one": 1, "two": 2, "three": 3}[mode]
    if draw(st.integers(0, 3)) == 3:
        request["selectors"] = [{"cel": {"expression": draw(st.sampled_from(SELECTORS))}}]
    if draw(st.integers(0, 3)) == 3:
        request["tolerations"] = draw(tolerations)
    if draw(st.integers(0, 3)) == 3:
        amounts = {"memory": draw(st.sampled_from(["5Gi", "12Gi", "40Gi"])), "slots": draw(st.sampled_from("123"))}
        names = draw(st.sampled_from([("memory",), ("slots",), ("memory", "slots")]))
        request["capacity"] = {"requests": {name: amounts[name] for name in names}}
    if not is_alternative and draw(st.integers(0, 7)) == 7:
        request["adminAccess"] = True
    return request


@st.composite
def claim_specs(draw: st.DrawFn) -> Object:
    """One or two requests, with or without alternatives, and sometimes constraints across their devices."""
    requests: list[Object] = []
    names = []
    for index in range(draw(st.sampled_from([1, 1, 2]))):
        name = f"r{index}"
        names.append(name)
        if draw(st.integers(0, 3)) == 3:
            count = draw(st.integers(1, 3))
            alternatives = [{"name": f"a{each}", **draw(_wanted(is_alternative=True))} for each in range(count)]
            names += [f"{name}/{each['name']}" for each in alternatives]
            requests.append({"name": name, "firstAvailable": alternatives})
        else:
            requests.append({"name": name, "exactly": draw(_wanted())})
    spec: Object = {"requests": requests}
    if draw(st.integers(0, 3)) == 3:
        kind = draw(st.sampled_from(["matchAttribute", "matchAttribute", "distinctAttribute"]))
        attribute = draw(st.sampled_from([NUMA, f"{GPU}/numa", f"{GPU}/model"]))
        meant = draw(maybe(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True), one_in=2))
        spec["constraints"] = [without_none({kind: attribute, "requests": meant})]
    return {"devices": spec}


def _claim(name: str, spec: Object, status: Object | None = None, owner: Object | None = None) -> Object:
    metadata: Object = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}"}
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    return without_none({**_API, "kind": "ResourceClaim", "metadata": metadata, "spec": spec, "status": status})


def _owner(pod: Object) -> Object:
    metadata = pod["metadata"]
    return {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"], "controller": True}


def _user(pod: Object) -> Object:
    return {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}


@st.composite
def _allocations(draw: st.DrawFn, given: list[tuple[Object, Object]], node: str) -> Object:
    """The allocation of a claim: some of the devices ``given`` (each a slice's spec and a device)."""
    results = []
    for spec, device in given:
        result = {"request": "r0", "driver": spec["driver"], "pool": spec["pool"]["name"], "device": device["name"]}
        if device.get("allowMultipleAllocations") and draw(st.integers(0, 3)):
            number = draw(st.integers(0, 99))
            consumed = {"memory": draw(st.sampled_from(["10Gi", "20Gi"])), "slots": draw(st.sampled_from("12"))}
            result |= {"shareID": f"e9c26c73-0000-4000-8000-0000000000{number:02}", "consumedCapacity": consumed}
        elif draw(st.integers(0, 9)) == 9:
            result["adminAccess"] = True
        results.append(result)
    reach = draw(st.sampled_from(["node", "node", "zone", "anywhere"]))
    selector = None
    if reach == "node":
        selector = _selector(HOSTNAME, node)
    elif reach == "zone":
        selector = _selector(ZONE, draw(st.sampled_from(ZONES)))
    return {"allocation": without_none({"devices": {"results": results}, "nodeSelector": selector})}


@st.composite
def _held(draw: st.DrawFn, slices: list[Object], pods: list[Object], num_nodes: int) -> list[Object]:
    """Claims with devices, each used by a pod on a node, also by the incoming pod, or unused."""
    free = [(each["spec"], device) for each in slices for device in each["spec"].get("devices", ())]
    users = [pod for pod in pods if pod["metadata"]["namespace"] == NAMESPACE and "nodeName" in pod["spec"]]
    found = []
    for index in range(draw(st.integers(0, 3))):
        given = draw(st.lists(st.sampled_from(free), min_size=1, max_size=2, unique_by=id)) if free else []
        if not given:
            break
        for each in given:
            if not each[1].get("allowMultipleAllocations"):
                free.remove(each)
        user = draw(st.sampled_from(users)) if users and draw(st.integers(0, 3)) else None
        node = user["spec"]["nodeName"] if user else f"n{draw(st.integers(0, num_nodes - 1))}"
        status = draw(_allocations(given, node))
        name = f"held-{index}"
        if user is not None:
            status["reservedFor"] = [_user(user)]
            _use(user, name)
        found.append(_claim(name, draw(claim_specs()), status))
    return found


def _use(pod: Object, claim: str) -> None:
    """Let the pod use the claim, by its own name."""
    pod["spec"].setdefault("resourceClaims", []).append({"name": claim, "resourceClaimName": claim})
    pod["spec"]["containers"][0].setdefault("resources", {}).setdefault("claims", []).append({"name": claim})


@st.composite
def _of_incoming(draw: st.DrawFn, pod: Object, held: list[Object]) -> list[Object]:
    """The claims of the incoming pod: new ones, one of a template, one that others use, or a missing one."""
    found: list[Object] = []
    kind = draw(st.sampled_from(["own", "own", "own", "own", "two", "template", "held", "held", "extended", "missing"]))
    if kind in ("own", "two", "template"):
        for index in range(2 if kind == "two" else 1):
            found.append(_claim(f"own-{index}", draw(claim_specs())))
            _use(pod, f"own-{index}")
    if kind == "template":
        reference = pod["spec"]["resourceClaims"][0]
        del reference["resourceClaimName"]
        reference["resourceClaimTemplateName"] = "template"
        made = draw(st.sampled_from(["made", "made", "made", "needless", "not yet", "another's"]))
        if made != "another's":
            found[0]["metadata"]["ownerReferences"] = [_owner(pod)]
        if made != "not yet":
            name = None if made == "needless" else "own-0"
            status = without_none({"name": reference["name"], "resourceClaimName": name})
            pod["status"]["resourceClaimStatuses"] = [status]
    if kind == "held" and held:
        claim = draw(st.sampled_from(held))
        _use(pod, claim["metadata"]["name"])
        if draw(st.integers(0, 3)) == 3:
            claim["status"]["reservedFor"] = [_user(pod)]
    if kind == "extended":
        requests = pod["spec"]["containers"][0].setdefault("resources", {}).setdefault("requests", {})
        requests[EXTENDED] = draw(st.sampled_from("12"))
    if kind == "missing":
        _use(pod, "own-0")
    if found and draw(st.integers(0, 15)) == 15:
        found[0]["metadata"]["deletionTimestamp"] = "2026-11-20T00:00:00Z"
    return found


@st.composite
def taint_rules(draw: st.DrawFn, index: int) -> Object:
    """A rule that taints some devices, in the oldest version that a scheduler of its time reads."""
    selectors = [None, {"driver": GPU}, {"pool": "pool-0"}, {"driver": GPU, "device": "gpu-0"}, {"pool": "gone"}]
    selector = draw(st.sampled_from(selectors))
    spec = without_none({"deviceSelector": selector, "taint": draw(taints())})
    return {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": f"rule-{index}"},
        "spec": spec,
    }


def without_crash(objects: list[Object]) -> None:
    """Remove the selectors from classes that define extended resources.

    The real scheduler crashes if NodeResourcesBalancedAllocation scores such a resource.
    """
    for each in objects:
        if "extendedResourceName" in each.get("spec", {}):
            del each["spec"]["selectors"]


@st.composite
def device_objects(draw: st.DrawFn, num_nodes: int, pods: list[Object], incoming: Object, version: str) -> list[Object]:
    """All device objects of a cluster of the minor ``version``; ``pods`` and ``incoming`` get claims."""
    minor = int(version.partition(".")[2])
    slices = []
    for index in range(draw(st.integers(1, num_nodes + 1))):
        # Most nodes have a separate pool, so that the pod may fit.
        place = {"nodeName": f"n{index}"} if index < num_nodes and draw(st.integers(0, 3)) else None
        slices += draw(pools(f"pool-{index}", num_nodes, place, minor))
    held = draw(_held(slices, pods, num_nodes))
    found = [*draw(device_classes()), *draw(st.permutations(slices)), *held, *draw(_of_incoming(incoming, held))]
    if draw(st.integers(0, 3)) == 3:
        found += [draw(taint_rules(index)) for index in range(draw(st.integers(1, 2)))]
    return found
