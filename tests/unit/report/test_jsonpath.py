"""kubectl's JSONPath. What is expected is what ``kubectl label --local -o jsonpath=`` v1.36 prints of the document."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kpreempt.errors import UsageError
from kpreempt.report.jsonpath import check_template, render_template

ROWS: list[Any] = [
    {"pod": "shop/a", "n": 1, "f": 1.5, "ok": True, "nil": None, "l": [1, 2, 3], "m": {"b.c": "x", "k": "<&>"}},
    {"pod": "shop/b", "n": 2, "ok": False, "l": [], "m": {}},
    {"pod": "shop/c (x)", "n": -3},
]


class Document(msgspec.Struct):
    rows: list[Any]
    kind: str = "Foo"
    metadata: dict[str, str] = msgspec.field(default_factory=lambda: {"name": "a"})
    small: float = 0.00001
    big: float = 1e25
    million: float = 1e6


class Listing(msgspec.Struct):
    items: list[Any]


def filled(template: str) -> str:
    return render_template(Document(ROWS), "jsonpath", template)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{.rows[*].pod}", "shop/a shop/b shop/c (x)"),
        (r'{range .rows[*]}{.pod}{"\t"}{.n}{"\n"}{end}', "shop/a\t1\nshop/b\t2\nshop/c (x)\t-3\n"),
        ("{range .rows[*]}[{.pod}, {.n}] {end}", "[shop/a, 1] [shop/b, 2] [shop/c (x), -3] "),
        ("{range .rows[*]}{.pod}{range .l[*]}-{@}{end};{end}!", "shop/a-1-2-3;shop/b;shop/c (x);!"),
        ("{range .nope[*]}{.pod}{range .l[*]}x{end}{end}end", "end"),
        ('{.rows[?(@.pod=="shop/b")].n}', "2"),
        ('{.rows[?(@.pod=="shop/c (x)")].n}', "-3"),
        ("{.rows[?(@.pod!='shop/a')].pod}", "shop/b shop/c (x)"),
        ("{.rows[?( @.n >= 1 )].pod}", "shop/a shop/b"),
        ("{.rows[?(@.ok)].pod}", "shop/a shop/b"),
        ("{.rows[?(@.ok==true)].pod}", "shop/a"),
        ("{.rows[?(@.f==1.5)].pod}", "shop/a"),
        ("{.rows[?(@.x==1)].pod}", ""),
        ("{.rows[-1].pod}", "shop/c (x)"),
        ("{.rows[:2].pod}", "shop/a shop/b"),
        ("{.rows[::2].pod}", "shop/a shop/c (x)"),
        ("{.rows[0].l[0:0]}", ""),
        ("{.rows[0,2].pod}", "shop/a shop/c (x)"),
        ("{.rows[*]['pod','n']}", "shop/a shop/b shop/c (x) 1 2 -3"),
        (r"{.rows[0].m.b\.c}", "x"),
        (r"{.rows[0].m['b\.c']}", "x"),
        ("{.rows[0].m['b.c']}", ""),
        ("{.rows[0].m}", r'{"b.c":"x","k":"\u003c\u0026\u003e"}'),
        ("{.rows[0].m.*}", "x <&>"),
        ("{.rows[0].nil}", "null"),
        ("{.rows[0].nil.x}", ""),
        ("{.rows[0].f} {.small} {.big} {.million}", "1.5 1e-05 1e+25 1e+06"),
        ("{..pod}", "shop/a shop/b shop/c (x)"),
        ("{$.metadata.name}", "a"),
        ("{ .metadata .name }", "a"),
        ("a{.metadata.name}b{.kind}c", "aabFooc"),
        ("text {1} {+3} {true}", "text 1 3 true"),
        (r"""{"it\"s"}{'\''}{"\x41\u00e9\101"}""", "it\"s'AéA"),
        ("{.metadata.name}}x", "a}x"),
        ("{.nope.nope}", ""),
        ("{.}", ""),
    ],
)
def test_a_template_gives_what_kubectl_gives(template: str, expected: str) -> None:
    assert filled(template) == expected


@pytest.mark.parametrize("path", [".metadata.name", "metadata.name", "{.metadata.name}"])
def test_a_path_may_stand_without_braces(path: str) -> None:
    assert filled(path) == "a"


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{.foo", "character 6: the action has no closing }"),
        (
            "x{metadata}",
            "character 3: 'metadata' is neither range nor end: a path starts with a dot, as in {.metadata}",
        ),
        ("{[}", "character 2: [ has no closing ]"),
        ("{.a[x]}", "character 4: [x] is not an index"),
        ("{.rows[?(@.n=~1)]}", "character 13: unknown operator ="),
        ("{.a[?(@.n==1]}", "character 4: the filter [?( has no closing )]"),
        ("{....a}", "character 4: two consecutive .."),
        ("{end}", "character 1: end without range"),
        ("{range .a[*]}x", "character 1: the range has no {end}"),
        ("{1.2.3}", "character 2: '1.2.3' is not a number"),
        (r'{"\q"}', r'character 2: "\q" has an invalid escape'),
        ("{'x}", "character 2: the quoted text is not closed"),
        ("{#}", "character 2: unexpected '#'"),
        ("x" * 10_001 + "{.a}", "the template has more than 10,000 characters"),
    ],
)
def test_a_template_that_cannot_be_read_says_where(template: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_template("jsonpath", template)
    assert caught.value.message == f"-o jsonpath: {problem}"


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{.rows[5].pod}", "character 7: index 5 is out of bounds: the length is 3"),
        ("{.rows[2:1]}", "character 7: the start 2 is after the end 1"),
        ("{.rows[::0]}", "character 7: the step must be greater than 0"),
        ("{.metadata[0]}", "character 11: a map has no elements"),
        ("{.metadata[?(@.x)]}", "character 11: a map has no elements to filter"),
        ('{.rows[?(@.n=="x")]}', "character 7: an integer == a text cannot be compared"),
        ("{.rows[?(@.ok<true)]}", "character 7: a boolean < a boolean cannot be compared"),
    ],
)
def test_a_template_that_does_not_fit_the_document_says_where(template: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        filled(template)
    assert caught.value.message == f"-o jsonpath: {problem}"


@pytest.mark.parametrize(
    "template", ["{.rows[*][*]['*',*]}", "{...*...*...*}", "{range .rows[*]}{range $.*}{range $...*}{end}{end}{end}"]
)
def test_values_that_multiply_end_in_a_message(template: str) -> None:
    rows: list[Any] = [[0] * 1000] * 600
    with pytest.raises(UsageError, match="more than 1,000,000 values"):
        render_template(Document([rows, rows, rows]), "jsonpath", template)


def test_text_of_the_document_drives_no_terminal_and_that_of_the_template_is_its_authors() -> None:
    hostile = Document([{"pod": "a\x1b[31m\n", "deep": {"x": "\x1b"}}])
    assert render_template(hostile, "jsonpath", r'{.rows[0].pod}{"\x1b"}') == "a\\x1b[31m\\x0a\x1b"
    assert "\x1b" not in render_template(hostile, "jsonpath", "{.rows}")
    assert "\x1b" not in render_template(hostile, "custom-columns", "A:.rows[*].pod,B:.rows[0].deep")


def test_columns_are_padded_as_kubectls_are() -> None:
    expected = (
        "POD          N     M\n"
        "shop/a       1     map[b.c:x k:<&>]\n"
        "shop/b       2     map[]\n"
        "shop/c (x)   -3    <none>\n"
    )
    assert render_template(Listing(ROWS), "custom-columns", "POD:.pod,N:n,M:{.m}") == expected


def test_a_cell_has_all_values_and_null_is_nil() -> None:
    assert render_template(Listing(ROWS[:1]), "custom-columns", "L:.l[*],N:.nil") == "L       N\n1,2,3   <nil>\n"


def test_what_is_no_list_is_a_row() -> None:
    assert render_template(Document(ROWS), "custom-columns", "K:.kind") == "K\nFoo\n"


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("POD", "'POD' is not HEADER:PATH"),
        ("POD:.pod,", "'' is not HEADER:PATH"),
        ("A:.pod,B:.l[x]", "B: character 4: [x] is not an index"),
        ("A:{.a}{.b}", "A: '{.a}{.b}' is not a path: expected .name1.name2 or {.name1.name2}"),
        ("", "the template is missing"),
    ],
)
def test_a_wrong_column_is_named(spec: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_template("custom-columns", spec)
    assert caught.value.message == f"-o custom-columns: {problem}"
