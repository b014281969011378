"""The families of schedulers, as a table: which questions each answers, and what answers them.

Which options a family takes is said where these are declared. A plain pod's question loads nothing of other families.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

from kpreempt import scheduler_table
from kpreempt.errors import UsageError
from kpreempt.library.options import KUBE, KUEUE, VOLCANO, Request, fields_of, group_of, option_of


class Family(NamedTuple):
    """Schedulers that decide about the same things, by the ``algorithm`` that names them; the others have none.

    ``answers`` are the commands that it answers in its own way, with the function of the family's module that does.
    By the commands ``decides_single_pods`` it is asked about one pod after the other, as if it were a kube-scheduler.
    ``decides_on`` says why it has no use for an option. Where it ``answers_scenarios`` of ``batch`` in its own way, its
    module has their form, ``SCENARIO``, and ``answer_scenario``.
    """

    name: str
    algorithm: str = ""
    answers: Mapping[str, str] = {}
    decides_single_pods: tuple[str, ...] = ()
    decides_on: str = ""
    answers_scenarios: bool = False

    def module(self) -> Any:
        """The module of this folder that knows the family."""
        return import_module(f"kpreempt.cli.{self.name}")


_KUBE = Family(KUBE)
FAMILIES = (
    _KUBE,
    Family(
        VOLCANO,
        scheduler_table.VOLCANO,
        {"explain": "explain_jobs", "volcano": "volcano"},
        decides_single_pods=("check", "compare"),
        decides_on="whole jobs",
        answers_scenarios=True,
    ),
    Family(
        KUEUE,
        scheduler_table.KUEUE,
        {
            "explain": "explain_workloads",
            "pending": "pending_workloads",
            "at-risk": "workloads_at_risk",
            "who-evicted": "who_evicted_workload",
            "compare": "compare_configurations",
        },
        decides_on="whole Workloads",
        answers_scenarios=True,
    ),
)
_BY_ALGORITHM = {each.algorithm: each for each in FAMILIES}


def family_of(algorithm: str | None) -> Family:
    """The family of the scheduler that is named; that of kube-scheduler for none, and for an unknown one."""
    return _BY_ALGORITHM.get(algorithm or "", _KUBE)


def family_for(request: Request) -> Family:
    """The family that a command asks. Raises ``UsageError`` for an option that says nothing to it."""
    family = family_of(request.algorithm_named)
    if request.command_name not in (*family.answers, *family.decides_single_pods):
        family = _KUBE
    options: dict[str, Any] = {}
    for name, annotation in fields_of(type(request)).items():
        group = group_of(annotation)
        options |= group.options if group else {name: annotation}
    for name, annotation in options.items():
        option = option_of(annotation)
        if option and name in request.set_options and option.families and family.name not in option.families:
            if family is _KUBE:
                others = " or ".join(each.algorithm for each in FAMILIES if each.name in option.families)
                raise UsageError(f"{option.long_name} is for --algorithm {others}")
            raise UsageError(
                f"{option.long_name} says nothing to {family.algorithm}, which decides on {family.decides_on}"
            )
    return family
