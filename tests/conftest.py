"""Settings for all tests: the tiers (``tests/tiers.py``), and the number of examples of property tests."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

from tests.tiers import LEFT_OUT, MAX_EXAMPLES, MIN_SCENARIOS, Sample, Tier, is_accepted, quick_indexes, share

# A CI run uses the same examples each time, so failures are repeatable; local runs draw new ones.
settings.register_profile("ci", derandomize=True, database=None, deadline=None)
settings.register_profile("new examples", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "new examples")

# The number of tests, parameter sets and recorded scenarios that were skipped, by their name in the summary.
_LEFT_OUT: pytest.StashKey[Counter[str]] = pytest.StashKey()
_SCENARIOS = "recorded scenarios"
_PROPERTIES = "properties"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kpreempt")
    group.addoption("--tier", type=Tier, choices=list(Tier), default=Tier.ALL, help="what to run (tests/tiers.py)")
    group.addoption("--fail-on-skips", action="store_true", help="fail on skips that tests/tiers.py does not accept")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_LEFT_OUT] = Counter()


@pytest.fixture
def sample(pytestconfig: pytest.Config) -> Sample:
    """The recorded scenarios that the tier takes of a suite: at least 30 in the quick one."""

    def taken(scenarios: Iterable[Any]) -> list[Any]:
        every = list(scenarios)
        some = share(every, pytestconfig.getoption("tier"), MIN_SCENARIOS)
        pytestconfig.stash[_LEFT_OUT][_SCENARIOS] += len(every) - len(some)
        return some

    return taken


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tier: Tier = config.getoption("tier")
    if tier is Tier.ALL:
        return
    sampled = _sampled(items)
    kept, others = [], []
    for item in items:
        mark = next((name for name in LEFT_OUT if item.get_closest_marker(name)), "")
        is_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        is_quick = not mark and item not in sampled
        is_split = is_quick and (is_property or "sample" in getattr(item, "fixturenames", ()))
        if tier is Tier.QUICK:
            if is_quick and is_property:
                _limit_examples(item)
                config.stash[_LEFT_OUT][_PROPERTIES] += 1
            (kept if is_quick else others).append(item)
            if not is_quick:
                config.stash[_LEFT_OUT][LEFT_OUT.get(mark, "further cases")] += 1
        else:
            (others if is_quick and not is_split else kept).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=others)


def _sampled(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """The parameter sets that the quick tier skips, of tests with the mark ``sampled``."""
    tests: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled"):
            tests[item.nodeid.partition("[")[0]].append(item)
    left_out = set()
    for each in tests.values():
        mark = each[0].get_closest_marker("sampled")
        assert mark is not None
        picked = quick_indexes(len(each), *mark.args)
        left_out |= {item for index, item in enumerate(each) if index not in picked}
    return left_out


def _limit_examples(item: pytest.Item) -> None:
    """Limit a property to a few examples."""
    test: Any = item.obj  # type: ignore[attr-defined]
    test = getattr(test, "__func__", test)
    own: settings = test._hypothesis_internal_use_settings
    test._hypothesis_internal_use_settings = settings(own, max_examples=min(own.max_examples, MAX_EXAMPLES))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left out"] = dict(session.config.stash[_LEFT_OUT])
    elif session.config.getoption("fail_on_skips") and _unaccepted(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Collect what a pytest-xdist worker skipped: each worker collects all tests, and runs some of them."""
    total, of_node = node.config.stash[_LEFT_OUT], Counter(getattr(node, "workeroutput", {}).get("left out", {}))
    scenarios = total.pop(_SCENARIOS, 0) + of_node.pop(_SCENARIOS, 0)
    total |= of_node
    total[_SCENARIOS] = scenarios


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.getoption("tier") is Tier.QUICK:
        left_out = config.stash[_LEFT_OUT]
        counts = [f"{left_out[name]:,} {name}" for name in (*LEFT_OUT.values(), "further cases") if left_out[name]]
        terminalreporter.section("left out")
        terminalreporter.line(
            f"Left out: {', '.join(counts) or 'no tests'}; {left_out[_SCENARIOS]:,} recorded scenarios; and all but "
            f"{MAX_EXAMPLES} examples of {left_out[_PROPERTIES]:,} properties. `make test-all` runs them, too."
        )
    if skipped := _skipped(config):
        reasons = ", ".join(f"{count} because {reason}" for reason, count in Counter(skipped).most_common())
        terminalreporter.line(f"Skipped: {reasons}.")
    if config.getoption("fail_on_skips"):
        for reason in sorted(set(_unaccepted(config))):
            terminalreporter.line(f"Not accepted by ACCEPTED_SKIPS in tests/tiers.py: {reason}", red=True)


def _skipped(config: pytest.Config) -> list[str]:
    """The reason of each skip."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    reports = reporter.stats.get("skipped", []) if reporter else []
    return [str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports]


def _unaccepted(config: pytest.Config) -> list[str]:
    return [reason for reason in _skipped(config) if not is_accepted(reason)]
