"""What differs between the versions in how they read Policy files."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kpreempt.schedulers.extender_protocol import dialect as protocols


class Dialect(NamedTuple):
    """What a version knows of Policy files.

    ``priorities`` are the names of its priority functions, ``priority_arguments`` the arguments of those of one's own.
    ``quotes`` says how a name stands in its messages. ``extender_weight_always`` refuses an extender without a weight
    even where it scores nothing; ``has_preempt_verb`` says whether extenders are asked about victims. ``names_fields``
    says that it refuses fields that there are not, and names the field in what it says of the others (1.18).
    ``folds_case`` reads the fields of extenders in any case; 1.8 does not, and has fewer of them. ``protocol`` is how
    extenders are asked.
    """

    algorithm: str
    priorities: frozenset[str]
    priority_arguments: tuple[str, ...]
    quotes: Callable[[str], str] = str
    extender_weight_always: bool = False
    has_preempt_verb: bool = True
    names_fields: bool = False
    folds_case: bool = True
    protocol: protocols.Dialect = protocols.V1_13
