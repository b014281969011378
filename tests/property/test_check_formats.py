"""For any names and messages, each format of check's result stays valid."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kpreempt.report.answers import render_answer
from kpreempt.report.escape import is_hidden
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.check import FindingStatus
from tests.checks import hostile

# Characters with a meaning in one of the formats, among all others.
_SIGNS = st.sampled_from(
    [
        "\n",
        "\r",
        "\x1b",
        "\0",
        "`",
        "|",
        "\\",
        "<",
        ">",
        "&",
        "]]>",
        "::",
        "%0A",
        "@a",
        "#1",
        '"',
        "/",
        "[x](u)",
        "[",
        "](",
        ")",
    ]
)
_TEXTS = st.lists(st.one_of(_SIGNS, st.characters(), st.text(max_size=5)), max_size=12).map("".join)
_MAX_CHARACTERS = 65_536


def written(text: str, format_name: str) -> str:
    return render_answer(hostile([text]), format_name, RenderOptions())


@settings(max_examples=40, deadline=None)
@given(_TEXTS)
def test_no_format_writes_a_hidden_character_but_the_ends_of_lines(text: str) -> None:
    for format_name in ("text", "markdown", "junit", "sarif", "github", "gitlab"):
        hidden = {character for character in written(text, format_name) if is_hidden(character)}
        assert hidden == {"\n"}, format_name


# As in SARIF 2.1.0 (3.11.6): brackets without a preceding unescaped backslash.
_SARIF_LINK = re.compile(r"(?<!\\)(?:\\\\)*\[(?:[^\\\]]|\\.)*\]\(")


def texts_in(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (each for key, each in value.items() if key == "text" and isinstance(each, str))
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts_in(each)


@settings(max_examples=60, deadline=None)
@given(_TEXTS)
def test_no_text_of_sarif_is_a_link(text: str) -> None:
    found = list(texts_in(json.loads(written(text, "sarif"))))
    assert found
    assert [each for each in found if _SARIF_LINK.search(each)] == []


def test_a_link_in_sarif_is_the_text_that_it_was() -> None:
    stated = [each for each in texts_in(json.loads(written("[x](u)\\", "sarif"))) if "(u)" in each]
    assert stated
    assert all(r"\[x\](u)" in each for each in stated)
    assert all(re.sub(r"\\(.)", r"\1", each).count("[x](u)") == each.count("(u)") for each in stated)
    plain = [each for each in texts_in(json.loads(written("containers[0].image", "sarif"))) if "containers" in each]
    assert plain
    assert not any("\\" in each for each in plain)


@settings(max_examples=40, deadline=None)
@given(_TEXTS)
def test_programs_read_as_many_findings_as_there_are(text: str) -> None:
    findings = hostile([text]).findings
    failing = [each for each in findings if each.status is FindingStatus.FAILS]
    assert len(json.loads(written(text, "sarif"))["runs"][0]["results"]) == len(findings)
    assert len(json.loads(written(text, "gitlab"))) == len(findings)
    suite = ElementTree.fromstring(written(text, "junit"))
    assert len(list(suite.iter("failure"))) == len({each.rule for each in failing})
    commands = written(text, "github").splitlines()
    assert len(commands) == min(len(failing), 10)
    assert all(command.startswith("::error ") for command in commands)


@settings(max_examples=40, deadline=None)
@given(_TEXTS)
def test_a_comment_fits_and_no_line_of_it_is_a_command_for_a_bot(text: str) -> None:
    comment = written(text * 50, "markdown")
    assert len(comment) < _MAX_CHARACTERS
    assert not [line for line in comment.splitlines() if line.startswith("/")]


@settings(max_examples=40, deadline=None)
@given(_TEXTS)
def test_in_a_comment_nothing_is_a_link_or_an_element_of_its_own(text: str) -> None:
    parsed = MarkdownIt("commonmark").enable("table").parse(written(text, "markdown"))
    inline = [child for token in parsed for child in token.children or []]
    own = {"text", "code_inline", "strong_open", "strong_close", "html_inline", "softbreak"}
    assert {token.type for token in inline} <= own
    # The facts are listed one per line.
    assert sum(token.type == "softbreak" for token in inline) == sum(token.content == "<br>" for token in inline)
    assert {token.content for token in inline if token.type == "html_inline"} <= {"<code>", "</code>", "<br>"}
    found = {token.type for token in parsed if token.type.startswith(("heading", "blockquote", "fence", "code"))}
    assert found - {"fence"} == {"heading_open", "heading_close"}
    # The text that waives the findings can be copied to kpreempt.toml.
    for token in parsed:
        assert token.type != "fence" or set(tomllib.loads(token.content)) == {"check"}
