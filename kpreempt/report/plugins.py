"""The plugins and extenders of a scheduler: what runs, in order, and what does not run."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.amounts import count
from kpreempt.report.blocks import (
    Block,
    Listing,
    Part,
    Phrase,
    Report,
    Role,
    Rows,
    Section,
    Sentence,
    Span,
    Words,
    strong,
)
from kpreempt.report.evidence import assumption_sections, join_names
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.plugins import (
    ListedExtender,
    ListedPlugin,
    ListedPoint,
    ListedProfile,
    OmittedPlugin,
    SchedulerPlugins,
)

_OWN_SOURCE = "kube-scheduler"


def report(listed: SchedulerPlugins, _options: RenderOptions) -> Report:
    """The plugins of each profile by extension point, then the sources of out-of-tree plugins, and the extenders."""
    sources: dict[str, str] = {}
    for profile in listed.profiles:
        sources |= {each.name: each.source for each in _once(profile) if _is_out_of_tree(each)}
    installed: list[Words] = [
        (strong(each.name), f" from {each.package}" if each.package else "") for each in listed.available
    ]
    if installed:
        installed.append(Span("not enabled by any profile", "dim"))
    extenders: list[list[Words]] = [
        [(strong(each.url), Span(f"  extenders[{each.index}]", "dim")), *_extender_in_words(each)]
        for each in listed.extenders
    ]
    return Report(
        lead=("Plugins of ", strong(listed.algorithm)),
        sections=[
            *(section for profile in listed.profiles for section in _sections(profile)),
            _listed("OUT-OF-TREE", [(strong(name), f": {source}") for name, source in sources.items()]),
            _listed("INSTALLED", installed),
            Section(
                "EXTENDERS",
                "in calling order" if extenders else "",
                [Listing(extenders, "extender", is_numbered=True)],
            ),
            *assumption_sections(listed.assumptions),
        ],
        command="plugins",
        is_complete=True,
    )


def _sections(profile: ListedProfile) -> list[Section]:
    """The plugins that run for the profile, those that are not modeled, and those that are disabled."""
    number = len(profile.names)
    outside = sum(_is_out_of_tree(plugin) for plugin in _once(profile) if plugin.name in profile.names)
    ends: Phrase = (",", Span(f" {outside} out-of-tree", "warn")) if outside else ()
    blocks: list[Block] = [Rows([_point(point) for point in profile.points if point.is_run])]
    if others := [_point(point) for point in profile.points if not point.is_run]:
        blocks += [Sentence(Span("run after the node is chosen, and not here:", "dim")), Rows(others)]
    names = [_named(each.name, [] if each.is_everywhere else each.points) for each in profile.disabled]
    anchor = profile.scheduler_name or "unnamed"
    return [
        Section(
            "PROFILE",
            (strong(profile.scheduler_name or '""'), f": {count(number, 'plugin')}", *ends),
            blocks,
            anchor=f"profile-{anchor}",
        ),
        _listed("NOT RUN", [_left_out(each) for each in profile.omitted], f"not-run-{anchor}", style="warn"),
        _listed("DISABLED", [f"on by default: {', '.join(names)}"] if names else [], f"disabled-{anchor}"),
    ]


def _listed(label: str, lines: Sequence[Words], anchor: str = "", *, style: Role = "heading") -> Section:
    return Section(label, blocks=[Listing([[line] for line in lines])], anchor=anchor, is_inline=True, style=style)


def _point(point: ListedPoint) -> tuple[str, Words]:
    """The plugins in order; score plugins are shown as terms of the sum of a node's score."""
    phrase: list[Part] = []
    for plugin in point.plugins:
        phrase += [", "] if phrase else []
        phrase += [Span(f"{plugin.weight:,}·", "dim")] if plugin.weight not in (None, 1) else []
        phrase.append(strong(plugin.name) if _is_out_of_tree(plugin) else plugin.name)
    return point.point, tuple(phrase)


# What the plugin does that only delays pods (``PreEnqueue`` in ``defaultpreemption/default_preemption.go``, v1.37.1).
_DELAYS = {"DefaultPreemption": "keeps a pod out of the queue while the requests that evict its victims are running"}


def _left_out(plugin: OmittedPlugin) -> Phrase:
    why = "not modeled" if plugin.is_known else "neither in-tree nor installed"
    if plugin.only_delays and plugin.name in _DELAYS:
        why = f"{_DELAYS[plugin.name]}; no verdict depends on it"
    return (_named(plugin.name, plugin.points), f": {why}")


def _named(name: str, points: Sequence[str]) -> str:
    return f"{name} at {_all(points)}" if points else name


def _extender_in_words(extender: ListedExtender) -> list[Phrase]:
    calls = [
        ("filter", extender.filter_verb, ""),
        ("prioritize", extender.prioritize_verb, f" with weight {extender.weight:,}"),
        ("preempt", extender.preempt_verb, ""),
    ]
    shown = [_call(call, verb) + more for call, verb, more in calls if verb]
    words: list[Phrase] = []
    if shown:
        state = Span("called", "good") if extender.is_called else Span("not called without --call-extenders", "warn")
        words.append((state, f": {_all(shown)}"))
    if extender.bind_verb:
        words.append((Span("never called", "dim"), f": {_call('bind', extender.bind_verb)}"))
    if not words:
        words.append((Span("never called", "dim"), ": no verb is configured"))
    if extender.managed_resources:
        words.append((f"for pods that request {_all(extender.managed_resources).replace(' and ', ' or ')}",))
    if extender.ignored_resources:
        words.append((f"ignoredByScheduler: {_all(extender.ignored_resources)}",))
    details = [f"timeout {extender.timeout_seconds:g}s"]
    details += ["ignorable"] if extender.is_ignorable else []
    details += ["nodeCacheCapable"] if extender.is_node_cache_capable else []
    words.append((Span(", ".join(details), "dim"),))
    return words


def _call(call: str, verb: str) -> str:
    return call if verb == call else f"{call} (as {verb})"


def _all(names: Sequence[str]) -> str:
    return join_names(names, limit=len(names))


def _once(profile: ListedProfile) -> list[ListedPlugin]:
    """The plugins of a profile that run here or after the choice, without duplicates."""
    return list({plugin.name: plugin for point in profile.points for plugin in point.plugins}.values())


def _is_out_of_tree(plugin: ListedPlugin) -> bool:
    return plugin.source != _OWN_SOURCE
