"""Answers of extenders, good and bad. The messages are those of Go 1.26's ``encoding/json`` for the same text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpreempt.schedulers.extender_protocol.answers import (
    ExtenderError,
    FilterResult,
    HostPriority,
    MetaVictims,
    problem_of,
    read_filter_result,
    read_preemption_result,
    read_priorities,
)

VALUE = "looking for beginning of value"
KEY = "looking for beginning of object key string"
BROKEN = {
    "": "EOF",
    "  ": "EOF",
    "{": "unexpected EOF",
    "<html>": f"invalid character '<' {VALUE}",
    '{"a"': "unexpected EOF",
    '{"a":': "unexpected EOF",
    "{a": f"invalid character 'a' {KEY}",
    "[1": "unexpected EOF",
    "[1 2]": "invalid character '2' after array element",
    '{"a" 1}': "invalid character '1' after object key",
    '{"a":1 "b"}': "invalid character '\"' after object key:value pair",
    "nul": "unexpected EOF",
    "nulx": "invalid character 'x' in literal null (expecting 'l')",
    '"a\x01"': "invalid character '\\x01' in string literal",
    '"\\x"': "invalid character 'x' in string escape code",
    '"\\u12g4"': "invalid character 'g' in \\u hexadecimal character escape",
    "-": "unexpected EOF",
    "-a": "invalid character 'a' in numeric literal",
    "[1.": "unexpected EOF",
    "[1.x": "invalid character 'x' after decimal point in numeric literal",
    "[1e": "unexpected EOF",
    "[1ex": "invalid character 'x' in exponent of numeric literal",
    "tru3": "invalid character '3' in literal true (expecting 'e')",
    "\ufeff{}": f"invalid character 'ï' {VALUE}",
    '{"a":NaN}': f"invalid character 'N' {VALUE}",
    '{"a":-Infinity}': "invalid character 'I' in numeric literal",
    "{,}": f"invalid character ',' {KEY}",
    "[,]": f"invalid character ',' {VALUE}",
    '{"a":1,}': f"invalid character '}}' {KEY}",
    "[1,]": f"invalid character ']' {VALUE}",
    "[" * 20_000: "exceeded max depth",
}


@pytest.mark.parametrize("text", BROKEN, ids=lambda text: repr(text[:20]))
def test_what_is_no_json_is_refused_in_gos_words(text: str) -> None:
    with pytest.raises(ExtenderError) as refused:
        read_filter_result(text.encode(), has_unresolvable=True)
    assert str(refused.value) == BROKEN[text]


FILTER = {
    '{"Error":1}': "number into Go struct field ExtenderFilterResult.Error of type string",
    '{"Error":true}': "bool into Go struct field ExtenderFilterResult.Error of type string",
    '{"NodeNames":"x"}': "string into Go struct field ExtenderFilterResult.NodeNames of type []string",
    '{"NodeNames":[1]}': "number into Go struct field ExtenderFilterResult.NodeNames of type string",
    "[]": "array into Go value of type v1.ExtenderFilterResult",
    '"x"': "string into Go value of type v1.ExtenderFilterResult",
    '{"Nodes":[]}': "array into Go struct field ExtenderFilterResult.Nodes of type v1.NodeList",
    '{"Nodes":{"items":{}}}': "object into Go struct field NodeList.Nodes.items of type []v1.Node",
    '{"FailedNodes":{"a":1.5}}': "number into Go struct field ExtenderFilterResult.FailedNodes of type string",
    '{"FailedNodes":[]}': "array into Go struct field ExtenderFilterResult.FailedNodes of type v1.FailedNodesMap",
    '{"Nodes":{"items":[7]}}': "number into Go struct field NodeList.Nodes.items of type v1.Node",
    '{"Nodes":{"items":[{"metadata":{"name":7}}]}}': "metadata.name into Go struct field NodeList.Nodes.items "
    "of type v1.Node",
    "01": "number into Go value of type v1.ExtenderFilterResult",
}


@pytest.mark.parametrize("text", FILTER)
def test_a_filters_answer_of_another_type_is_refused(text: str) -> None:
    with pytest.raises(ExtenderError) as refused:
        read_filter_result(text.encode(), has_unresolvable=True)
    assert str(refused.value) == f"json: cannot unmarshal {FILTER[text]}"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("null", id="null"),
        pytest.param("{}", id="nothing"),
        pytest.param('{"nodes":null,"NODENAMES":null,"failedNodes":null,"error":null}', id="nulls"),
        pytest.param('{"Surprise":[1,{}]}', id="unknown fields"),
        pytest.param("{} trailing <html>", id="only the first value is read"),
    ],
)
def test_answers_that_say_nothing(text: str) -> None:
    assert read_filter_result(text.encode(), has_unresolvable=True) == FilterResult(None, None, {}, {}, "")


def test_fields_count_in_any_case_and_the_last_of_several() -> None:
    text = b'{"nodenames":["a"],"NodeNames":["b","b"],"FAILEDNODES":{"x":"1"},"failedNodes":{"y":"2"},"eRRor":"e"}'
    assert read_filter_result(text, has_unresolvable=True) == FilterResult(
        None, ["b", "b"], {"x": "1", "y": "2"}, {}, "e"
    )


def test_nodes_that_no_eviction_mends_are_known_where_the_version_knows_them() -> None:
    text = b'{"failedAndUnresolvableNodes":{"x":"1"}}'
    assert read_filter_result(text, has_unresolvable=True).unresolvable == {"x": "1"}
    assert read_filter_result(text, has_unresolvable=False).unresolvable == {}


def test_nodes_come_back_as_records() -> None:
    text = b"""{"Nodes": {"metadata": {}, "Items": [
        {"Metadata": {"name": "n1", "creationTimestamp": null, "labels": {"a": "b"}}, "kind": "Node",
         "status": {"allocatable": {"cpu": 4, "memory": "8Gi"}, "images": [null], "addresses": [{"type": "X"}]}}]}}"""
    nodes = read_filter_result(text, has_unresolvable=True).nodes
    assert nodes is not None
    assert [(node.name, node.labels) for node in nodes] == [("n1", {"a": "b"})]
    assert nodes[0].status.allocatable["cpu"].value == 4


def test_halves_of_characters_are_replaced() -> None:
    assert read_filter_result(b'{"NodeNames":["\\ud800x"]}', has_unresolvable=True).node_names == ["\ufffdx"]
    assert read_filter_result(b'{"NodeNames":["\xff"]}', has_unresolvable=True).node_names == ["\ufffd"]


def test_victims_by_node() -> None:
    text = b'{"NodeNameToMetaVictims":{"b":{"Pods":[{"UID":"2"},{"uid":"1"}],"NumPDBViolations":-7},"a":{"pods":null}}}'
    found = read_preemption_result(text)
    assert found == {"b": MetaVictims(["2", "1"], -7), "a": MetaVictims([], 0)}
    assert list(found) == ["b", "a"]
    assert read_preemption_result(b'{"nodeToVictims":{"a":{}}}') == {}


PREEMPTION = {
    '{"NodeNameToMetaVictims":[]}': "json: cannot unmarshal array into Go struct field "
    "ExtenderPreemptionResult.NodeNameToMetaVictims of type map[string]*v1.MetaVictims",
    '{"NodeNameToMetaVictims":{"a":null}}': 'the response has node "a" without victims (null)',
    '{"NodeNameToMetaVictims":{"a":{"Pods":[null]}}}': "the response has a pod without a UID (null)",
    '{"NodeNameToMetaVictims":{"a":{"Pods":[{"UID":1}]}}}': "json: cannot unmarshal number into Go struct field "
    "MetaPod.NodeNameToMetaVictims.Pods.UID of type string",
    '{"NodeNameToMetaVictims":{"a":{"NumPDBViolations":1.5}}}': "json: cannot unmarshal number 1.5 into Go struct "
    "field MetaVictims.NodeNameToMetaVictims.NumPDBViolations of type int64",
}


@pytest.mark.parametrize("text", PREEMPTION)
def test_an_answer_about_victims_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ExtenderError) as refused:
        read_preemption_result(text.encode())
    assert str(refused.value) == PREEMPTION[text]


def test_scores_may_be_anything_that_fits() -> None:
    text = b'[{"Host":"a","Score":-3},{"host":"a","score":9223372036854775807},null,{}]'
    assert read_priorities(text) == [("a", -3), ("a", 2**63 - 1), ("", 0), ("", 0)]
    assert read_priorities(b"null") == []
    assert read_priorities(b'[{"Host":"n","Score":2}]') == [HostPriority("n", 2)]


SCORES = {
    '[{"Host":1}]': "number into Go struct field HostPriority.Host of type string",
    '[{"Score":1.5}]': "number 1.5 into Go struct field HostPriority.Score of type int64",
    '[{"Score":1e2}]': "number 1e2 into Go struct field HostPriority.Score of type int64",
    '[{"Score":99999999999999999999}]': "number 99999999999999999999 into Go struct field HostPriority.Score "
    "of type int64",
    "{}": "object into Go value of type v1.HostPriorityList",
    "[1]": "number into Go value of type v1.HostPriority",
    '[{"Score":"1"}]': "string into Go struct field HostPriority.Score of type int64",
}


@pytest.mark.parametrize("text", SCORES)
def test_scores_of_another_type_are_refused(text: str) -> None:
    with pytest.raises(ExtenderError) as refused:
        read_priorities(text.encode())
    assert str(refused.value) == f"json: cannot unmarshal {SCORES[text]}"


def test_a_number_of_a_million_digits_is_refused_at_once() -> None:
    with pytest.raises(ExtenderError, match="cannot unmarshal number 111"):
        read_priorities(b'[{"Score":' + b"1" * 10**6 + b"}]")


NAMES = ["Nodes", "nodenames", "NodeNameToMetaVictims", "items", "metadata", "name", "Pods", "UID", "Host", "Score"]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers().map(str)
    | st.text()
    | st.sampled_from(["1.5", "NaN", '"a"', "null", "4"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda each: f"[{','.join(map(str, each))}]")
        | st.lists(st.tuples(st.sampled_from(NAMES), inner), max_size=3).map(
            lambda pairs: "{" + ",".join(f'"{name}":{value}' for name, value in pairs) + "}"
        )
    ),
)


@given(JSON.map(str).map(str.encode) | st.binary())
def test_nonsense_is_an_extender_error_and_nothing_else(body: bytes) -> None:
    for read in (read_preemption_result, read_priorities, lambda each: read_filter_result(each, has_unresolvable=True)):
        try:
            read(body)
        except ExtenderError as error:
            assert str(error)


@given(st.binary(max_size=12) | st.text('{}[]",:0123.eE+-tn\\u ', max_size=12).map(str.encode))
def test_the_words_for_what_is_no_json_are_found_just_where_the_decoder_refuses_it(body: bytes) -> None:
    """Held against the decoder of the standard library, whose words are others, and which ends a lone number early."""
    body = b"[" + body
    problem = problem_of(body.decode("utf-8", "replace"))
    try:
        read_filter_result(body, has_unresolvable=True)
        message = ""
    except ExtenderError as error:
        message = str(error)
    assert (message == problem) if problem else ("cannot unmarshal" in message or not message)
