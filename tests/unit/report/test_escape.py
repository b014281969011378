from __future__ import annotations

import json

import pytest

from kpreempt.report.escape import printable, printable_json


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("shop/api-7f9", "shop/api-7f9", id="an ordinary name"),
        pytest.param("naïve 名前 …→✗", "naïve 名前 …→✗", id="letters and symbols of any script"),
        pytest.param("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m", id="a colour"),
        pytest.param("\x9b31m", "\\x9b31m", id="the one-byte start of an escape sequence"),
        pytest.param("a\nb\tc\x00d", "a\\x0ab\\x09c\\x00d", id="line breaks, tabs and NUL"),
        pytest.param("admin\u202egnp", "admin\\u202egnp", id="text that runs backwards"),
        pytest.param("a\u200bb\ufeff", "a\\u200bb\\ufeff", id="characters without width"),
        pytest.param("a\u2028b", "a\\u2028b", id="a line separator"),
        pytest.param("a\u00a0b", "a\\xa0b", id="a space that is not one"),
        pytest.param("\U000e0041", "\\U000e0041", id="an invisible tag"),
        pytest.param("::set-output name=a::b", "\\x3a:set-output name=a::b", id="a command of GitHub's"),
        pytest.param("a ::error::b", "a \\x3a:error::b", id="one that a broken line may begin with"),
        pytest.param("fe80::ab ::1 a::b", "fe80::ab ::1 a::b", id="two colons elsewhere"),
        pytest.param("x##[error]y", "x\\x23#[error]y", id="a command in brackets"),
        pytest.param("###vso[a.b]", "#\\x23#vso[a.b]", id="a command of Azure's"),
        pytest.param("## [a] #[b]", "## [a] #[b]", id="number signs elsewhere"),
    ],
)
def test_what_does_not_show_as_itself_is_spelled_out(text: str, expected: str) -> None:
    assert printable(text) == expected


@pytest.mark.parametrize("text", ["\x9b31m", "\u202e", "\U000e0041", "plain", "\x7f", "名", "###[a]", "##vso[b]"])
def test_in_json_the_data_stays_the_same(text: str) -> None:
    document = json.dumps({"name": text}, ensure_ascii=False)
    escaped = printable_json(document)
    assert json.loads(escaped) == {"name": text}
    assert printable(escaped) == escaped
