"""The gate that options and files ask for together."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from kpreempt.analysis.check.gate import waiver_of_option
from kpreempt.cli.gate_options import gate_flags
from kpreempt.cli.runner import write_baseline
from kpreempt.errors import InputError, UsageError
from kpreempt.gate_rules import GateFlags, RuleSeverity
from kpreempt.library.gate.settings import GateSettings, gate_settings
from kpreempt.verdict.check import GateFinding, RuleId

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def settings(tmp_path: Path, **flags: object) -> GateSettings:
    return gate_settings(gate_flags(flags), NOW, tmp_path)


def test_without_anything_the_rules_are_strict_and_the_others_off(tmp_path: Path) -> None:
    found = gate_settings(GateFlags(), NOW, tmp_path)
    limits = {rule: found.rules.general(rule) for rule in RuleId}
    off = {RuleId.MAX_VICTIMS, RuleId.MAX_VICTIMS_PER_WORKLOAD, RuleId.FORBID_VICTIMS, RuleId.MAX_SNAPSHOT_AGE}
    assert {rule for rule, limit in limits.items() if limit is None} == off
    assert limits[RuleId.MAX_CASCADE_DEPTH] == 1
    assert {rule: limit for rule, limit in limits.items() if limit} == {
        rule: rule.row.default for rule in RuleId if rule.row.default
    }
    assert (found.config, found.waivers, found.baseline.accepted) == ("", [], [])


def test_options_win_over_the_file_and_add_to_its_lists(tmp_path: Path) -> None:
    (tmp_path / "kpreempt.toml").write_text(
        "[check]\nmax-victims = 1\nmax-pending = 2\nforbid-loops = false\n"
        '[[check.forbid-victims]]\nnamespace = "a"\n[[check.waive]]\nrule = "max-broken-dependencies"\nreason = "x"\n'
    )
    found = settings(
        tmp_path, max_victims="off", forbid_loops=True, max_snapshot_age="90s", forbid_victims=["label=app=web"],
        waive=["max-pending"],
    )  # fmt: skip
    assert found.config == "kpreempt.toml"
    assert found.rules.limits == {
        RuleId.MAX_VICTIMS: None,
        RuleId.MAX_PENDING: 2,
        RuleId.FORBID_LOOPS: 0,
        RuleId.MAX_SNAPSHOT_AGE: 90,
    }
    assert [each.name for each in found.rules.forbidden] == ["namespace a", "label app in (web)"]
    assert [each.by for each in found.waivers] == ["--waive", "kpreempt.toml"]


def test_an_option_says_what_a_rule_counts_for_before_the_file_does(tmp_path: Path) -> None:
    (tmp_path / "kpreempt.toml").write_text('[check.severity]\nmax-pending = "warn"\nmax-broken-dependencies = "off"\n')
    rules = settings(tmp_path, severity=["max-pending=error", "lost-pods=warn"]).rules
    assert {
        rule: rules.severity_of(rule) for rule in (RuleId.MAX_PENDING, RuleId.MAX_BROKEN_DEPENDENCIES, RuleId.LOST_PODS)
    } == {
        RuleId.MAX_PENDING: RuleSeverity.ERROR,
        RuleId.MAX_BROKEN_DEPENDENCIES: RuleSeverity.OFF,
        RuleId.LOST_PODS: RuleSeverity.WARN,
    }
    assert not rules.is_on(RuleId.MAX_BROKEN_DEPENDENCIES)


def test_with_report_only_no_rule_is_an_error_and_those_that_are_off_stay_off(tmp_path: Path) -> None:
    rules = settings(tmp_path, report_only=True, severity=["max-pending=off"]).rules
    assert {rules.severity_of(rule) for rule in RuleId if rule is not RuleId.MAX_PENDING} == {RuleSeverity.WARN}
    assert rules.severity_of(RuleId.MAX_PENDING) is RuleSeverity.OFF


def test_a_file_that_is_named_takes_the_place_of_the_one_that_is_found(tmp_path: Path) -> None:
    (tmp_path / "kpreempt.toml").write_text("[check]\nmax-victims = 1\n")
    other = tmp_path / "other.toml"
    other.write_text("[check]\nmax-pending = 1\n")
    found = gate_settings(GateFlags(config=str(other)), NOW, tmp_path)
    assert (found.rules.limits, found.config) == ({RuleId.MAX_PENDING: 1}, str(other))


@pytest.mark.parametrize(
    ("flags", "message", "hint"),
    [
        pytest.param(
            {"severity": ["max-victims"]},
            "--severity max-victims: severity missing",
            "--severity max-victims=warn",
            id="a severity that is not said",
        ),
        pytest.param(
            {"severity": ["max-victims=loud"]},
            '--severity max-victims=loud: unknown severity "loud"',
            "error, warn, off",
            id="a severity that there is not",
        ),
        pytest.param(
            {"severity": ["outcome-uncertain=off"]},
            "--severity outcome-uncertain=off: outcome-uncertain cannot be turned off",
            "warn, or waive it by name",
            id="what is not known is not left untold",
        ),
        pytest.param(
            {"max_victims": "many"},
            "--max-victims many: not a number from 0 to 2147483647",
            "--max-victims off",
            id="a word",
        ),
        pytest.param(
            {"max_pending": "-1"},
            "--max-pending -1: not a number from 0 to 2147483647",
            "--max-pending off",
            id="less than nothing",
        ),
        pytest.param(
            {"max_broken_dependencies": "9" * 5000},
            f"--max-broken-dependencies {'9' * 5000}: not a number from 0 to 2147483647",
            "--max-broken-dependencies off",
            id="too many digits",
        ),
        pytest.param(
            {"max_cascade_depth": "²"},
            "--max-cascade-depth ²: not a number from 0 to 2147483647",
            "--max-cascade-depth off",
            id="a digit of another kind",
        ),
        pytest.param({"max_snapshot_age": "60"}, "--max-snapshot-age 60: not a time", "30m, 12h or off", id="no unit"),
        pytest.param(
            {"forbid_victims": ["kube-system"]},
            "--forbid-victims kube-system: does not select pods",
            "namespace=NAME, label=SELECTOR, priority-class=NAME",
            id="a name alone",
        ),
        pytest.param(
            {"forbid_victims": ["label="]},
            "--forbid-victims label=: value missing",
            "label=VALUE",
            id="a label that is missing",
        ),
        pytest.param(
            {"forbid_victims": ["label=a b"]},
            "--forbid-victims label=a b: not a label selector",
            None,
            id="a label that is none",
        ),
        pytest.param(
            {"waive": ["max-victim"]}, '--waive max-victim: unknown rule "max-victim"', "max-victims", id="no rule"
        ),
        pytest.param(
            {"write_baseline": "b"},
            "--write-baseline needs --expires: findings are not accepted forever",
            "--expires 2026-12-31",
            id="a baseline for ever",
        ),
        pytest.param(
            {"expires": "2026-12-31"},
            "--expires needs --write-baseline",
            "--write-baseline FILE",
            id="a date for nothing",
        ),
        pytest.param(
            {"write_baseline": "b", "expires": "tomorrow"},
            "--expires tomorrow: not a date",
            "--expires 2026-12-31",
            id="a date that is none",
        ),
        pytest.param(
            {"write_baseline": "b", "expires": "2026-11-20"},
            "--expires 2026-11-20: that date is in the past",
            "",
            id="a date that is over",
        ),
    ],
)
def test_wrong_options_are_refused(flags: dict[str, object], message: str, hint: str | None, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        settings(tmp_path, **flags)
    assert caught.value.message == message
    assert hint is None or caught.value.hint == hint


@pytest.mark.parametrize("option", ["config", "baseline"])
def test_files_that_are_not_there_are_bad_input(option: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        settings(tmp_path, **{option: str(tmp_path / "gone")})
    assert caught.value.problem == "cannot read: no such file or directory"


def test_a_file_without_end_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^/dev/zero: larger than 32 MiB$"):
        settings(tmp_path, config="/dev/zero")


def test_the_day_is_that_of_utc(tmp_path: Path) -> None:
    late = datetime(2026, 11, 21, 23, tzinfo=timezone(timedelta(hours=-5)))
    assert gate_settings(GateFlags(), late, tmp_path).today == date(2026, 11, 22)


def test_what_fails_is_written_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    finding = GateFinding(rule=RuleId.MAX_VICTIMS, subject="cluster", amount=3, fingerprint="f")
    flags = GateFlags(write_baseline=str(path), expires="2026-11-21")
    write_baseline(gate_settings(flags, NOW, tmp_path), [finding])
    (entry,) = gate_settings(GateFlags(baseline=str(path)), NOW, tmp_path).baseline.accepted
    assert (entry.rule, entry.amount, entry.expires) == (RuleId.MAX_VICTIMS, 3, date(2026, 11, 21))


def test_nothing_is_written_without_a_request(tmp_path: Path) -> None:
    write_baseline(gate_settings(GateFlags(), NOW, tmp_path), [])
    assert list(tmp_path.iterdir()) == []


def test_the_excuses_hold_the_waivers_of_options_file_and_objects(tmp_path: Path) -> None:
    found = gate_settings(GateFlags(waive=["max-pending"]), NOW, tmp_path)
    annotated = waiver_of_option("max-victims")
    suppressions = found.suppressions([annotated], {"f": 1})
    assert [each.rule for each in suppressions.waivers] == [RuleId.MAX_PENDING, RuleId.MAX_VICTIMS]
    assert (suppressions.base, suppressions.today) == ({"f": 1}, date(2026, 11, 21))
