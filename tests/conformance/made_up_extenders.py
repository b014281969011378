"""The fake extenders of upstream's tests, as objects and behind a real HTTP server.

A ``MadeUp`` describes one; ``Way`` is how a scheduler reaches it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any, NamedTuple

from kpreempt.extenders import connect
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.schedulers.extender_protocol import (
    CURRENT,
    ExtenderError,
    ExtenderSettings,
    FilterAnswer,
    FilteredNode,
    HostPriority,
    HttpExtender,
    NodeVictims,
)
from kpreempt.verdict import Code
from tests.fake_extender import FakeExtender, ReceivedRequest, good

Predicate = Callable[[str], Code]
Prioritizer = Callable[[str], int]
SOME_ERROR = "some error"


def only(*nodes: str) -> Predicate:
    """Accepts only these nodes."""
    return lambda node: Code.SUCCESS if node in nodes else Code.UNSCHEDULABLE


def codes(by_node: Mapping[str, Code], otherwise: Code) -> Predicate:
    """Returns a code for each node."""
    return lambda node: by_node.get(node, otherwise)


def prefers(preferred: str) -> Prioritizer:
    """Scores ten for one node, and one for each other."""
    return lambda node: 10 if node == preferred else 1


def fails(_: str) -> int:
    """A prioritizer that returns an error."""
    raise ExtenderError(SOME_ERROR)


PREDICATES: dict[str, Predicate] = {
    "TruePredicateExtender": lambda _: Code.SUCCESS,
    "FalsePredicateExtender": lambda _: Code.UNSCHEDULABLE,
    "ErrorPredicateExtender": lambda _: Code.ERROR,
    "Node1PredicateExtender": only("node1"),
    "Node2PredicateExtender": only("node2"),
    # The functions in TestFindNodesThatPassExtenders.
    "scheduler.TestFindNodesThatPassExtenders.func2": codes(
        {"a": Code.SUCCESS, "b": Code.UNSCHEDULABLE}, Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    ),
    "scheduler.TestFindNodesThatPassExtenders.func3": codes(
        {"a": Code.SUCCESS, "b": Code.UNSCHEDULABLE}, Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    ),
}
PRIORITIZERS: dict[str, Prioritizer] = {
    "ErrorPrioritizerExtender": fails,
    "Node1PrioritizerExtender": prefers("node1"),
    "Node2PrioritizerExtender": prefers("node2"),
}


class MadeUp(NamedTuple):
    """An extender: its predicates, prioritizers (with weights), and its configuration.

    ``preemption`` is its effect on candidates: ``predicates`` drops those that they reject, ``""`` means that it does
    not take part, ``error`` fails, ``no victims`` returns a node without any.
    """

    name: str
    predicates: Sequence[Predicate] = ()
    prioritizers: Sequence[tuple[Prioritizer, int]] = ()
    weight: int = 1
    ignorable: bool = False
    is_interested: bool = True
    preemption: str = "predicates"
    managed_resources: tuple[str, ...] = ()
    reason: str = 'FakeExtender: node "{}" failed'

    def judge(self, node: str) -> Code:
        """Return the first predicate's rejection of the node."""
        rejections = (code for predicate in self.predicates if (code := predicate(node)) != Code.SUCCESS)
        code = next(rejections, Code.SUCCESS)
        if code == Code.ERROR:
            raise ExtenderError(SOME_ERROR)
        return code

    def filtered(self, nodes: Sequence[str]) -> tuple[list[str], dict[str, str], dict[str, str]]:
        """Return the nodes that pass, and why others do not; the last are unresolvable."""
        judged = {node: self.judge(node) for node in nodes}
        failed = [node for node, code in judged.items() if code == Code.UNSCHEDULABLE]
        beyond = [node for node, code in judged.items() if code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE]
        return (
            [node for node, code in judged.items() if code == Code.SUCCESS],
            {node: self.reason.format(node) for node in failed},
            {node: self.reason.format(node) + " and unresolvable" for node in beyond},
        )

    def scores(self, nodes: Sequence[str]) -> dict[str, int]:
        """The sum of all prioritizers."""
        return {node: sum(score(node) * weight for score, weight in self.prioritizers) for node in nodes}

    def remaining_of(self, nodes: Sequence[str]) -> list[str]:
        """Return the remaining candidates."""
        if self.preemption == "error":
            raise ExtenderError("extender preempt error")
        return self.filtered(nodes)[0]

    def settings(self, prefix: str, *, names: bool = True) -> ExtenderSettings:
        """Its configuration. One that is not interested manages a resource that no pod requests."""
        return ExtenderSettings(
            url_prefix=prefix,
            filter_verb="filter" if self.predicates else "",
            prioritize_verb="prioritize" if self.prioritizers else "",
            preempt_verb="preempt" if self.preemption else "",
            weight=self.weight,
            ignorable=self.ignorable,
            node_cache_capable=names,
            managed_resources=self.managed_resources if self.is_interested else ("example.com/unheard-of",),
        )


class AsObject(HttpExtender):
    """A fake extender as in upstream's tests: an object, without JSON in between."""

    def __init__(self, made_up: MadeUp) -> None:
        super().__init__(made_up.settings(made_up.name), CURRENT, _never_called)
        self._made_up = made_up

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> FilterAnswer:
        passing, failed, unresolvable = self._made_up.filtered([node.name for node in nodes])
        return FilterAnswer([FilteredNode(name) for name in passing], failed, unresolvable)

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> list[HostPriority]:
        scores = self._made_up.scores([node.name for node in nodes])
        return [HostPriority(name, score) for name, score in scores.items()]

    def process_preemption(
        self, pod: Pod, candidates: Mapping[str, NodeVictims], pods_of: Callable[[str], Sequence[Pod] | None]
    ) -> dict[str, NodeVictims]:
        left = {node: candidates[node] for node in self._made_up.remaining_of(list(candidates))}
        return dict.fromkeys(left, NodeVictims([])) if self._made_up.preemption == "no victims" else left


def _never_called(_: str, __: bytes) -> bytes:
    raise AssertionError


def answer(made_up: MadeUp, verb: str, request: Any) -> bytes:
    """Return the HTTP response of a fake extender: a filter's error in its body, others as a status."""
    try:
        return good(_answer(made_up, verb, request))
    except ExtenderError as error:
        return good({"Error": str(error)}) if verb == "filter" else good({}, "500 Internal Server Error")


def _answer(made_up: MadeUp, verb: str, request: Any) -> Any:
    if verb == "preempt":
        candidates = request["NodeNameToMetaVictims"] or {
            node: {**victims, "Pods": [{"UID": pod["metadata"]["uid"]} for pod in victims["Pods"]]}
            for node, victims in request["NodeNameToVictims"].items()
        }
        nothing = {"Pods": []} if made_up.preemption == "no victims" else {}
        left = made_up.remaining_of(list(candidates))
        return {"NodeNameToMetaVictims": {node: candidates[node] | nothing for node in left}}
    objects = (request["Nodes"] or {}).get("items") or []
    names = request["NodeNames"] or [node["metadata"]["name"] for node in objects]
    if verb == "prioritize":
        return [{"Host": node, "Score": score} for node, score in made_up.scores(names).items()]
    passing, failed, unresolvable = made_up.filtered(names)
    return {
        "Nodes": {"items": [node for node in objects if node["metadata"]["name"] in passing]} if objects else None,
        "NodeNames": passing if request["NodeNames"] is not None else None,
        "FailedNodes": failed,
        "FailedAndUnresolvableNodes": unresolvable,
    }


class Way(Enum):
    """How a scheduler reaches an extender; over HTTP by names or with complete objects."""

    OBJECT = "as objects"
    NAMES = "over HTTP, by names"
    WHOLE = "over HTTP, with whole objects"


@contextmanager
def reached(made_up: Sequence[MadeUp], way: Way) -> Iterator[list[HttpExtender]]:
    """Provide the extenders as a scheduler has them, within the block."""
    if way == Way.OBJECT:
        yield [AsObject(each) for each in made_up]
        return
    with serving(made_up) as url:
        all_settings = [each.settings(f"{url}/{each.name}", names=way == Way.NAMES) for each in made_up]
        yield [HttpExtender(each, CURRENT, connect(each, environment={})) for each in all_settings]


@contextmanager
def serving(made_up: Sequence[MadeUp]) -> Iterator[str]:
    """The URL of a server that answers for each extender below its name."""
    by_name = {each.name: each for each in made_up}

    def reply(request: ReceivedRequest) -> bytes:
        name, verb = request.path.strip("/").split("/")
        return answer(by_name[name], verb, request.body)

    with FakeExtender(reply) as server:
        yield server.url


def name_of(extender: str) -> str:
    """Return the name of a fake extender, from its name in a verdict."""
    return extender.rpartition("/")[2]
