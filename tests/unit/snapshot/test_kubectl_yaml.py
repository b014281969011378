"""Scalars mean what kubectl makes of them; each row was checked against ``sigs.k8s.io/yaml`` v1.6.0."""

from __future__ import annotations

import pytest

from kpreempt.snapshot.yaml_reference import YamlError, load_documents

SCALARS: list[tuple[str, object]] = [
    *[(text, True) for text in ("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y")],
    *[(text, False) for text in ("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N")],
    *[(text, None) for text in ("", "~", "null", "Null", "NULL")],
    *[(text, text) for text in ("tRUE", "yEs", "nULL", "None", "nan", "inf", "-inf", "Infinity")],
    *[("0", 0), ("-0", 0), ("+1", 1), ("-1", -1), ("1_000", 1000), ("0x1F", 31), ("0b101", 5), ("-0x1F", -31)],
    *[("010", 8), ("0o17", 15), ("0O17", 15), ("-010", -8), ("08", 8.0), ("0x", "0x"), ("0b2", "0b2")],
    *[("1.5", 1.5), ("1.", 1.0), (".5", 0.5), ("-.5", -0.5), ("1e3", 1000.0), ("1E-3", 0.001), ("1.5e+2", 150.0)],
    *[("9223372036854775807", 2**63 - 1), ("9223372036854775808", 2**63), ("18446744073709551616", 2.0**64)],
    *[("12:30", "12:30"), ("2026-11-21", "2026-11-21"), ("2026-11-21T03:12:00Z", "2026-11-21T03:12:00Z")],
    *[
        ("100m", "100m"),
        ("500Gi", "500Gi"),
        ("1e", "1e"),
        ("1.2.3", "1.2.3"),
        ("6d4cf", "6d4cf"),
        ("-", "-"),
        ("<<", "<<"),
    ],
    *[('"1"', "1"), ("'true'", "true"), ('"~"', "~"), ("!!str 1", "1"), ("!!float 1", 1.0), ("!!int '7'", 7)],
]


@pytest.mark.parametrize(("text", "value"), SCALARS, ids=[text or "empty" for text, _ in SCALARS])
def test_a_scalar_is_what_kubectl_makes_of_it(text: str, value: object) -> None:
    ((_, document),) = load_documents(f"a: {text}\n" if text != "-" else 'a: "-"\n')
    assert (type(document["a"]), document["a"]) == (type(value), value)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("yes", "true"),
        ("n", "false"),
        ("1", "1"),
        ("0x10", "16"),
        ("1.5", "1.5"),
        ("'1'", "1"),
        ("2026-01-01", "2026-01-01"),
    ],
)
def test_a_key_is_a_text(text: str, key: str) -> None:
    assert list(load_documents(f"{text}: x\n")) == [(1, {key: "x"})]


def test_merge_keys_and_aliases_work() -> None:
    text = "a: &a {x: 1, z: 2}\nb: {<<: *a, z: 3}\nc: {<<: [{x: 4}, *a]}\nd: *a\n"
    ((_, document),) = load_documents(text)
    assert document == {"a": {"x": 1, "z": 2}, "b": {"x": 1, "z": 3}, "c": {"x": 4, "z": 2}, "d": {"x": 1, "z": 2}}


@pytest.mark.parametrize("text", [".inf", "-.Inf", ".nan", "!!int x", "!!bool 3", "!!python/object:os.system x"])
def test_what_json_does_not_have_is_refused(text: str) -> None:
    with pytest.raises(YamlError):
        list(load_documents(f"a: {text}\n"))
