"""The plugins and extenders of a scheduler for a terminal: what runs, in order, and what does not."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.amounts import count
from kpreempt.report.closing_section import add_assumptions_section
from kpreempt.report.colour import finished
from kpreempt.report.evidence import join_names
from kpreempt.report.layout import Page, Part, Phrase, Span, strong
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.plugins import (
    LeftOutPlugin,
    ListedExtender,
    ListedPlugin,
    ListedPoint,
    ListedProfile,
    SchedulerPlugins,
)

_INDENT = 2
# Where the plugins beside an extension point start.
_COLUMN = 13
_OWN_SOURCE = "kube-scheduler"


def render_plugins(listed: SchedulerPlugins, options: RenderOptions) -> str:
    """The plugins of each profile by extension point, then where the out-of-tree ones are from, and the extenders."""
    page = Page(options.width)
    page.paragraph("Plugins of ", strong(listed.algorithm))
    for profile in listed.profiles:
        page.blank()
        _add_profile(page, profile)
    _add_sources(page, listed)
    _add_available(page, listed)
    _add_extenders(page, listed.extenders)
    add_assumptions_section(page, listed.assumptions, options)
    return finished(page, options)


def _add_profile(page: Page, profile: ListedProfile) -> None:
    number = len(profile.names)
    outside = sum(_is_from_outside(plugin) for plugin in _once(profile) if plugin.name in profile.names)
    ends: Phrase = (",", Span(f" {outside} out-of-tree", "warn")) if outside else ()
    page.paragraph(strong(profile.scheduler_name or '""'), f": {count(number, 'plugin')}", *ends)
    for point in profile.points:
        if point.is_run:
            _add_point(page, point)
    if any(not point.is_run for point in profile.points):
        page.paragraph(Span("after the node is chosen, not run here:", "dim"), indent=_INDENT)
        for point in profile.points:
            if not point.is_run:
                _add_point(page, point)
    _add_rows(page, Span("NOT RUN", "warn"), [_left_out(each) for each in profile.left_out])
    if profile.disabled:
        names = [_named(each.name, [] if each.is_everywhere else each.points) for each in profile.disabled]
        _add_rows(page, Span("DISABLED", "heading"), [("on by default: ", ", ".join(names))])


def _add_point(page: Page, point: ListedPoint) -> None:
    """The plugins in their order, those that score as terms of the sum that a node's score is."""
    phrase: list[Part] = []
    for plugin in point.plugins:
        phrase += [", "] if phrase else []
        phrase += [Span(f"{plugin.weight:,}·", "dim")] if plugin.weight not in (None, 1) else []
        phrase.append(strong(plugin.name) if _is_from_outside(plugin) else plugin.name)
    page.labelled(Span(point.point, "dim"), *phrase, indent=_INDENT, column=_COLUMN)


def _left_out(plugin: LeftOutPlugin) -> Phrase:
    why = "not modelled" if plugin.is_known else "neither in-tree nor installed"
    return (_named(plugin.name, plugin.points), f": {why}")


def _named(name: str, points: Sequence[str]) -> str:
    return f"{name} at {_all(points)}" if points else name


def _add_sources(page: Page, listed: SchedulerPlugins) -> None:
    """Where the plugins are from that are not kube-scheduler's own, with the points at which they are enabled."""
    sources: dict[str, str] = {}
    for profile in listed.profiles:
        sources |= {each.name: each.source for each in _once(profile) if _is_from_outside(each)}
    _add_rows(page, Span("OUT-OF-TREE", "heading"), [(strong(name), f": {source}") for name, source in sources.items()])


def _add_available(page: Page, listed: SchedulerPlugins) -> None:
    rows: list[Phrase] = [
        (strong(each.name), f" of {each.package}" if each.package else "") for each in listed.available
    ]
    if rows:
        rows.append((Span("not enabled by any profile", "dim"),))
    _add_rows(page, Span("INSTALLED", "heading"), rows)


def _add_extenders(page: Page, extenders: Sequence[ListedExtender]) -> None:
    """Each extender with what it is asked, about which pods, and what else the configuration says of it."""
    if not extenders:
        return
    page.blank()
    page.labelled(Span("EXTENDERS", "heading"), "in the order in which they are called", column=_COLUMN)
    for number, extender in enumerate(extenders, start=1):
        label = f"{number}."
        place = Span(f"  extenders[{extender.index}]", "dim")
        page.labelled(label, strong(extender.url), place, indent=_INDENT, column=len(label) + 1, hanging=_INDENT)
        indent = _INDENT + len(label) + 1
        for phrase in _extender_in_words(extender):
            page.paragraph(*phrase, indent=indent, hanging=_INDENT)


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
        words.append((Span("never called", "dim"), ": it has no verb"))
    if extender.managed_resources:
        words.append((f"for pods that request {_any(extender.managed_resources)}",))
    if extender.ignored_resources:
        words.append((f"ignoredByScheduler: {_all(extender.ignored_resources)}",))
    details = [f"timeout {extender.timeout_seconds:g}s"]
    details += ["ignorable"] if extender.is_ignorable else []
    details += ["nodeCacheCapable"] if extender.is_node_cache_capable else []
    words.append((Span(", ".join(details), "dim"),))
    return words


def _call(call: str, verb: str) -> str:
    return call if verb == call else f"{call} (as {verb})"


def _any(names: Sequence[str]) -> str:
    return _all(names).replace(" and ", " or ")


def _all(names: Sequence[str]) -> str:
    return join_names(names, limit=len(names))


def _add_rows(page: Page, label: Span, rows: Sequence[Phrase]) -> None:
    if not rows:
        return
    page.blank()
    for number, row in enumerate(rows):
        page.labelled("" if number else label, *row, column=_COLUMN, hanging=_INDENT)


def _once(profile: ListedProfile) -> list[ListedPlugin]:
    """The plugins of a profile that run or would after the choice, each once."""
    return list({plugin.name: plugin for point in profile.points for plugin in point.plugins}.values())


def _is_from_outside(plugin: ListedPlugin) -> bool:
    return plugin.source != _OWN_SOURCE
