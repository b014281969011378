"""Random configurations of the Volcano scheduler, as text."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

# The main subject of a session.
AIMS = ("preempt", "reclaim", "allocate", "enqueue", "hierarchy", "mix")

ACTIONS = {
    "preempt": ("preempt", "allocate, preempt", "enqueue, allocate, preempt, backfill", "allocate, backfill, preempt"),
    "reclaim": ("reclaim", "enqueue, reclaim, allocate, preempt", "reclaim, preempt", "allocate, reclaim"),
    "allocate": ("allocate", "enqueue, allocate, backfill", "allocate, backfill", "backfill"),
    "enqueue": ("enqueue", "enqueue, allocate", "enqueue, allocate, backfill"),
    "hierarchy": ("reclaim", "allocate, reclaim", "allocate", "enqueue, allocate, backfill, reclaim, preempt"),
    "mix": (
        "enqueue, reclaim, allocate, backfill, preempt",
        "allocate, backfill, reclaim, preempt",
        "preempt, reclaim",
        "allocate,allocate",
    ),
}
LAYOUTS = (
    (("priority", "gang", "conformance"), ("predicates", "proportion", "nodeorder")),
    (("priority", "gang", "conformance"), ("overcommit", "drf", "predicates", "proportion", "nodeorder")),
    (("priority", "gang", "conformance"), ("drf", "predicates", "proportion", "nodeorder", "binpack")),
    (("priority",), ("gang",), ("conformance", "drf", "predicates", "proportion", "nodeorder")),
    (("priority", "gang", "conformance", "drf", "predicates", "proportion", "nodeorder"),),
    (("gang", "conformance"), ("drf", "predicates", "proportion", "nodeorder")),
    (("priority", "gang"), ("predicates", "nodeorder", "binpack")),
    (("priority", "gang", "conformance"),),
)
HIERARCHIES = (
    (("priority", "gang", "conformance"), ("drf", "predicates", "nodeorder")),
    (("drf", "gang", "predicates"),),
    (("priority", "gang"), ("overcommit", "drf", "predicates"), ("proportion",)),
)
PLUGINS = (
    "priority",
    "gang",
    "conformance",
    "drf",
    "predicates",
    "proportion",
    "nodeorder",
    "binpack",
    "overcommit",
    "unheard-of",
)
FLAGS = (
    "enableJobOrder",
    "enableJobReady",
    "enableJobPipelined",
    "enableTaskOrder",
    "enablePreemptable",
    "enableReclaimable",
    "enableQueueOrder",
    "enablePredicate",
    "enableNodeOrder",
    "enableJobEnqueued",
    "enableJobStarving",
    "enabledOverused",
    "enabledAllocatable",
)
WEIGHTS = ("0", "1", "5", "-1", '"3"', "2.5")
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "nodeorder": (
        "leastrequested.weight",
        "mostrequested.weight",
        "nodeaffinity.weight",
        "podaffinity.weight",
        "balancedresource.weight",
        "tainttoleration.weight",
        "imagelocality.weight",
        "podtopologyspread.weight",
    ),
    "binpack": (
        "binpack.weight",
        "binpack.cpu",
        "binpack.memory",
        "binpack.resources.nvidia.com/gpu",
        "binpack.resources.example.com/foo",
    ),
    "overcommit": ("overcommit-factor",),
    "predicates": (
        "predicate.NodeAffinityEnable",
        "predicate.NodePortsEnable",
        "predicate.TaintTolerationEnable",
        "predicate.PodAffinityEnable",
        "predicate.PodTopologySpreadEnable",
    ),
}
VALUES: dict[str, tuple[str, ...]] = {
    "overcommit": ("1.0", "2", "0.5", "1.5", '"1.0"'),
    "predicates": ("false", "true", '"false"'),
}
REFUSED = (
    'actions: "allocate, elect"\ntiers:\n- plugins:\n  - name: gang\n',
    'actions: "allocate"\ntiers:\n- plugins:\n  - name: drf\n    enableHierarchy: true\n  - name: proportion\n',
    "tiers:\n- plugins:\n  - name: gang\n",
    'actions: "allocate"\ntiers: 3\n',
    'actions: "allocate\n',
)


@st.composite
def configurations(draw: st.DrawFn, aim: str) -> str:
    """A configuration for a session with this aim; sometimes the built-in one, or an invalid one."""
    kind = draw(st.integers(0, 39))
    if kind == 39 and draw(st.booleans()):
        return draw(st.sampled_from(REFUSED))
    if kind == 38:
        return ""
    actions = draw(st.sampled_from(ACTIONS[aim]))
    if aim == "hierarchy":
        layout = draw(st.sampled_from(HIERARCHIES))
    elif kind >= 32:
        layout = draw(_random_layouts())
    else:
        layout = draw(st.sampled_from(LAYOUTS))
    # Most configurations, like most clusters', have none.
    has_flags, has_arguments = draw(st.integers(0, 3)) == 3, draw(st.integers(0, 3)) == 3
    lines = [f'actions: "{actions}"', "tiers:"]
    for tier in layout:
        lines.append("- plugins:")
        for name in tier:
            lines += draw(_plugins(name, hierarchy=aim == "hierarchy", flags=has_flags, arguments=has_arguments))
    return "\n".join(lines) + "\n"


@st.composite
def _random_layouts(draw: st.DrawFn) -> tuple[tuple[str, ...], ...]:
    names = draw(st.permutations(PLUGINS))[: draw(st.integers(1, len(PLUGINS)))]
    first, second = sorted(draw(st.integers(0, len(names))) for _ in range(2))
    tiers = (tuple(names[:first]), tuple(names[first:second]), tuple(names[second:]))
    return tuple(tier for tier in tiers if tier)


@st.composite
def _plugins(draw: st.DrawFn, name: str, *, hierarchy: bool, flags: bool, arguments: bool) -> list[str]:
    lines = [f"  - name: {name}"]
    if name == "drf" and hierarchy:
        lines.append("    enableHierarchy: true")
    if flags:
        switched = draw(st.lists(st.sampled_from(FLAGS), max_size=2, unique=True))
        lines += [f"    {flag}: {draw(st.sampled_from(['false', 'false', 'true']))}" for flag in switched]
    if arguments and name in ARGUMENTS:
        chosen = draw(st.lists(st.sampled_from(ARGUMENTS[name]), min_size=1, max_size=3, unique=True))
        lines.append("    arguments:")
        values: Any = VALUES.get(name, WEIGHTS)
        lines += [f"      {argument}: {draw(st.sampled_from(values))}" for argument in chosen]
        if any("resources" in argument for argument in chosen):
            lines.append('      binpack.resources: "nvidia.com/gpu, example.com/foo"')
    return lines
