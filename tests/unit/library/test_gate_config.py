"""``kpreempt.toml``: what it may say, and what is said of every mistake."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from kpreempt.analysis.check.gate import ForbiddenVictims, Override, Waiver
from kpreempt.cli.terminal import complain
from kpreempt.errors import InputError
from kpreempt.gate_rules import RuleId, RuleSeverity
from kpreempt.library.gate.config import find_config, parse_config
from kpreempt.model.labels import LabelSelector, LabelSelectorRequirement

WHOLE = """
[check]
max-pdb-violations = 2
max-victims = "off"
require-schedulable = false
forbid-loops = true
max-snapshot-age = "1h30m"

[[check.override]]
namespace = "dev-*"
max-pending = "off"

[[check.override]]
workload = "Deployment shop/api"
max-victims = 3

[[check.forbid-victims]]
namespace = "kube-system"

[[check.forbid-victims]]
label = "tier=data"
priority-class = "gold"

[[check.waive]]
rule = "unmodeled-input"
subject = "scheduler"
reason = "the extender only scores"
expires = 2026-12-31

[[check.waive]]
rule = "max-pending"
reason = "so it is"
expires = "2026-12-30"
"""


def test_all_that_a_file_may_say_is_read() -> None:
    config = parse_config(WHOLE.encode(), "kpreempt.toml")
    assert config.limits == {
        RuleId.MAX_PDB_VIOLATIONS: 2,
        RuleId.MAX_VICTIMS: None,
        RuleId.REQUIRE_SCHEDULABLE: None,
        RuleId.FORBID_LOOPS: 0,
        RuleId.MAX_SNAPSHOT_AGE: 5400,
    }
    assert config.overrides == [
        Override(namespace="dev-*", limits={RuleId.MAX_PENDING: None}),
        Override(workload="Deployment shop/api", limits={RuleId.MAX_VICTIMS: 3}),
    ]
    data = LabelSelector(match_expressions=[LabelSelectorRequirement("tier", "In", ["data"])])
    assert config.forbidden == [
        ForbiddenVictims(namespace="kube-system"),
        ForbiddenVictims(selector=data, priority_class="gold"),
    ]
    assert config.waivers == [
        Waiver(
            rule=RuleId.UNMODELED_INPUT,
            subject="scheduler",
            reason="the extender only scores",
            by="kpreempt.toml",
            expires=date(2026, 12, 31),
        ),
        Waiver(rule=RuleId.MAX_PENDING, reason="so it is", by="kpreempt.toml", expires=date(2026, 12, 30)),
    ]


def test_a_file_may_be_empty() -> None:
    assert parse_config(b"", "k.toml").limits == {}


NUMBER = 'is not a number from 0 to 2147483647, or "off"'


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        pytest.param(
            "[check]\nmax-victims 5",
            "k: invalid TOML: expected '=' after a key in a key/value pair (at line 2, column 13)",
            "",
            id="what invalid TOML has its line and column",
        ),
        pytest.param(
            "[check]\nmax-victims = " + "9" * 5000, "k: invalid TOML: a number is too long", "", id="a number"
        ),
        pytest.param("[chek]", "k: chek: unknown key", "check", id="a table that is almost one"),
        pytest.param("check = 1", "k: check: 1 is not a table", "[check]", id="a table that is none"),
        pytest.param("[check]\nmax-victim = 1", "k: check.max-victim: unknown key", "max-victims", id="a wrong key"),
        pytest.param(
            "[check]\npdbs-unreadable = false",
            "k: check.pdbs-unreadable: unknown key",
            None,
            id="what is not known can be waived, not switched off",
        ),
        pytest.param("[check]\nmax-victims = -1", f"k: check.max-victims: -1 {NUMBER}", "", id="a number below 0"),
        pytest.param("[check]\nmax-victims = true", f"k: check.max-victims: true {NUMBER}", "", id="a switch"),
        pytest.param("[check]\nmax-victims = 1.5", f"k: check.max-victims: 1.5 {NUMBER}", "", id="a fraction"),
        pytest.param(
            "[check]\nmax-victims = 9999999999",
            f"k: check.max-victims: a number that large {NUMBER}",
            "",
            id="a large number",
        ),
        pytest.param("[check]\nmax-victims = []", f"k: check.max-victims: an array {NUMBER}", "", id="an array"),
        pytest.param(
            "[check]\nforbid-loops = 1", "k: check.forbid-loops: 1 is not true or false", "", id="a number for a switch"
        ),
        pytest.param(
            '[check]\nmax-snapshot-age = "soon"',
            'k: check.max-snapshot-age: "soon" is not a time such as "30m" or "12h", or "off"',
            "",
            id="a time that is none",
        ),
        pytest.param(
            "[check]\nmax-snapshot-age = 60",
            'k: check.max-snapshot-age: 60 is not a time such as "30m" or "12h", or "off"',
            "",
            id="a time without its unit",
        ),
        pytest.param(
            "[check.override]\nmax-victims = 1",
            "k: check.override: a table is not an array of tables",
            "[[check.override]]",
            id="one pair of brackets only",
        ),
        pytest.param(
            "[[check.override]]\nmax-victims = 1",
            "k: check.override[0]: needs a namespace or a workload",
            'workload = "Deployment shop/api"',
            id="an override of nothing",
        ),
        pytest.param(
            '[[check.override]]\nnamespace = "a"',
            "k: check.override[0]: must set a limit",
            None,
            id="an empty override",
        ),
        pytest.param(
            '[[check.override]]\nnamespace = "a"\nmax-victims = 1\n[[check.override]]\nnamespace = ""\nmax-victims = 1',
            "k: check.override[1].namespace: must not be empty",
            "",
            id="the second of two is the one that is wrong",
        ),
        pytest.param(
            '[[check.override]]\nnamespace = "a"\nmax-snapshot-age = "1h"',
            "k: check.override[0].max-snapshot-age: unknown key",
            None,
            id="a rule that is not of any namespace",
        ),
        pytest.param(
            '[[check.override]]\nworkload = "a"\nmax-pdb-violations = 1',
            "k: check.override[0].max-pdb-violations: PodDisruptionBudgets belong to a namespace, not to a workload",
            'namespace = "shop"',
            id="budgets of a workload",
        ),
        pytest.param(
            "[[check.forbid-victims]]",
            "k: check.forbid-victims[0]: must select pods that must not be victims",
            "namespace, label, priority-class",
            id="nobody in particular",
        ),
        pytest.param(
            '[[check.forbid-victims]]\nlabel = "a b"',
            'k: check.forbid-victims[0].label: "a b" is not a label selector',
            None,
            id="labels that are none",
        ),
        pytest.param(
            "[[check.forbid-victims]]\nnamespace = 1",
            "k: check.forbid-victims[0].namespace: 1 is not a string",
            "",
            id="a number for a name",
        ),
        pytest.param(
            '[[check.waive]]\nrule = "max-victim"\nreason = "x"',
            'k: check.waive[0].rule: unknown rule "max-victim"',
            "max-victims",
            id="a waiver of no rule",
        ),
        pytest.param(
            '[[check.waive]]\nreason = "x"', "k: check.waive[0].rule: missing", None, id="a waiver without a rule"
        ),
        pytest.param(
            '[check.severity]\nmax-victims = "loud"',
            'k: check.severity.max-victims: unknown severity "loud"',
            "error, warn, off",
            id="a severity that there is not",
        ),
        pytest.param(
            "[check.severity]\nmax-victims = 1",
            "k: check.severity.max-victims: 1 is not a string",
            "",
            id="a severity that is a number",
        ),
        pytest.param(
            '[check.severity]\noutcome-uncertain = "off"',
            "k: check.severity.outcome-uncertain: outcome-uncertain cannot be turned off",
            "warn, or waive it by name",
            id="what is not known is not left untold",
        ),
        pytest.param(
            '[[check.waive]]\nrule = "max-victims"',
            "k: check.waive[0].reason: missing: why is the rule waived?",
            "",
            id="a waiver without a reason",
        ),
        pytest.param(
            '[[check.waive]]\nrule = "max-victims"\nreason = "x"\nexpires = "20261231"',
            'k: check.waive[0].expires: "20261231" is not a date such as 2026-12-31',
            "",
            id="a date in another form",
        ),
        pytest.param(
            '[[check.waive]]\nrule = "max-victims"\nreason = "x"\nexpires = 2026-12-31T00:00:00Z',
            "k: check.waive[0].expires: 2026-12-31 00:00:00+00:00 is not a date such as 2026-12-31",
            "",
            id="a time for a date",
        ),
    ],
)
def test_a_mistake_is_one_message_with_the_file_the_key_and_what_is_allowed(
    text: str, message: str, hint: str | None
) -> None:
    with pytest.raises(InputError) as caught:
        parse_config(text.encode(), "k")
    assert caught.value.message == message
    assert hint is None or caught.value.hint == hint


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"\xff\xfe", id="bytes"),
        pytest.param(b"a = " + b"[" * 100_000, id="arrays in arrays"),
        pytest.param(b"[check]\nmax-victims = 1\nmax-victims = 2", id="a key twice"),
        pytest.param(b"a" * 5000 + b" = 1", id="a key of many letters"),
        pytest.param(b"a." * 500 + b"b = 1", id="a key of many parts"),
    ],
)
def test_a_file_that_is_no_toml_is_bad_input(content: bytes) -> None:
    with pytest.raises(InputError, match=r"^k: ") as caught:
        parse_config(content, "k")
    assert len(caught.value.message) < 200


def test_what_a_file_says_reaches_a_terminal_harmless_and_short(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError) as caught:
        parse_config(b'[check]\nmax-victims = "\\u001b[2J' + b"x" * 1000 + b'"', "k")
    complain(caught.value.message, caught.value.hint)
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert len(said) < 200


def test_the_nearest_file_up_to_the_root_of_the_repository_counts(tmp_path: Path) -> None:
    root, below = tmp_path / "repo", tmp_path / "repo" / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / "kpreempt.toml").touch()
    assert find_config(below) is None
    (root / ".git").touch()
    assert find_config(below) is None
    (root / "kpreempt.toml").touch()
    assert find_config(below) == (root / "kpreempt.toml", "../../kpreempt.toml")
    (below / "kpreempt.toml").touch()
    assert find_config(below) == (below / "kpreempt.toml", "kpreempt.toml")
    assert find_config(root / "a") == (root / "kpreempt.toml", "../kpreempt.toml")


def test_outside_a_repository_only_the_folders_own_file_counts(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "kpreempt.toml").touch()
    assert find_config(tmp_path / "a") is None
    assert find_config(tmp_path) == (tmp_path / "kpreempt.toml", "kpreempt.toml")


OWN = '[[check.rule]]\nname = "few-victims"\nexpression = "result.evictions.max < 3"\nmessage = "many are evicted"\n'


def test_a_rule_of_ones_own_is_read_and_can_be_waived_and_warn() -> None:
    text = f'{OWN}severity = "warn"\n[[check.waive]]\nrule = "few-victims"\nreason = "so be it"\n'
    config = parse_config(text.encode(), "kpreempt.toml")
    (rule,) = config.rules
    assert (rule.rule, rule.message, rule.rule.row.severity) == ("few-victims", "many are evicted", RuleSeverity.WARN)
    assert [each.rule for each in config.waivers] == [rule.rule]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(OWN.replace("< 3", "<"), "check.rule[0].expression: invalid expression: ", id="no expression"),
        pytest.param(OWN.replace("result.", "cluster."), "check.rule[0].expression: ", id="a variable there is not"),
        pytest.param(OWN.replace("evictions.max < 3", "seed + 1"), "check.rule[0].expression: invalid", id="no truth"),
        pytest.param(OWN.replace("few-victims", "Few Victims"), "check.rule[0].name: ", id="a name that is none"),
        pytest.param(OWN.replace("few-victims", "max-victims"), "check.rule[0].name: a rule", id="taken"),
        pytest.param(OWN + OWN, "check.rule[1].name: a rule", id="twice"),
        pytest.param(OWN + 'severity = "bad"\n', "check.rule[0].severity: unknown severity", id="a severity"),
        pytest.param(OWN + "limit = 3\n", "check.rule[0].limit: unknown key", id="a key"),
        pytest.param('[[check.rule]]\nname = "a"\n', "check.rule[0].expression: missing", id="nothing to ask"),
        pytest.param("[check.rule]\n", "check.rule: a table is not an array", id="no array"),
        pytest.param(
            OWN.replace('"result.evictions.max < 3"', '"' + "(" * 5000 + '"'), "check.rule[0].expression: ", id="deep"
        ),
    ],
)
def test_a_rule_that_is_wrong_is_a_mistake_of_the_file(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_config(text.encode(), "kpreempt.toml")
    assert f"kpreempt.toml: {message}" in str(caught.value)
    assert "\n" not in caught.value.message
