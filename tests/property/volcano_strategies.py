"""Arbitrary results on Volcano: every field drawn by its type, with a few shared names."""

from __future__ import annotations

import types
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st

from kpreempt.verdict.volcano import GangAnswer, SessionAnswer

# Names that occur in runs and groups, and some that would drive a terminal.
NAMES = ["ml/train-0", "ml/train-1", "ml/train-2", "shop/api-7f8c", "cpu", "memory", "nvidia.com/gpu"]
NAMES += ["proportion", "overcommit", "evil\x1b[31m/x\u202e", "", "{}", "ml/" + "long-" * 20 + "1"]
TEXTS = st.sampled_from(NAMES) | st.text(max_size=12)
_SMALL_INDEX = 2


@cache
def of_type(wanted: Any) -> st.SearchStrategy[Any]:
    """Values of a type, as declared by the records."""
    origin, arguments = get_origin(wanted), get_args(wanted)
    if wanted is str:
        return TEXTS
    if wanted is Any:
        return st.none() | st.booleans() | st.integers(0, 3000) | TEXTS
    if wanted is bool:
        return st.booleans()
    if wanted is int:
        return st.integers(0, 3000)
    if wanted is float:
        return st.sampled_from([-1, 0, 0.5, 2000, 3333.4, 2.0**31])
    if wanted in (None, type(None)):
        return st.none()
    if wanted is msgspec.UnsetType:
        return st.just(msgspec.UNSET)
    if origin is list:
        return st.lists(of_type(arguments[0]), max_size=_SMALL_INDEX)
    if origin is dict:
        return st.dictionaries(of_type(arguments[0]), of_type(arguments[1]), max_size=_SMALL_INDEX)
    if origin is tuple:
        return st.tuples(*map(of_type, arguments))
    if origin in (Union, types.UnionType):
        return st.one_of([of_type(each) for each in arguments])
    if issubclass(wanted, Enum):
        return st.sampled_from(wanted)
    hints = get_type_hints(wanted)
    return st.builds(wanted, **{name: st.deferred(lambda hint=hints[name]: of_type(hint)) for name in hints})


session_answers: st.SearchStrategy[SessionAnswer] = of_type(SessionAnswer)
gang_answers: st.SearchStrategy[GangAnswer] = of_type(GangAnswer)
