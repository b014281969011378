"""Several contexts at once: ``--context a,b``."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import msgspec

from kpreempt.errors import KpreemptError, UsageError

if TYPE_CHECKING:
    from kpreempt.snapshot.live.flags import ConnectionFlags

Answer = TypeVar("Answer")
Item = TypeVar("Item")


def contexts_of(flags: ConnectionFlags) -> list[str]:
    """The contexts of ``--context a,b``; none where it names one, commas in its name included, or is not given.

    Raises ``UsageError`` for a name that is there twice or empty, and ``InputError`` for a kubeconfig that cannot be
    read.
    """
    if "," not in flags.context:
        return []
    from kpreempt.snapshot.live.kubeconfig import read_kubeconfig

    if flags.context in read_kubeconfig(flags, os.environ).contexts:
        return []
    names = [each.strip() for each in flags.context.split(",")]
    if not all(names) or len(set(names)) < len(names):
        raise UsageError(f"--context {flags.context}: a context is empty, or there twice", hint="--context a,b")
    return names


def answers_of(
    contexts: list[str],
    flags: ConnectionFlags,
    ask: Callable[[ConnectionFlags], Answer],
    make: Callable[[str, Answer | None, str], Item],
) -> list[Item]:
    """What ``make`` makes of each context, its answer and its error: one cluster that fails keeps no other back."""
    items: list[Item] = []
    for context in contexts:
        try:
            items.append(make(context, ask(msgspec.structs.replace(flags, context=context)), ""))
        except KpreemptError as error:
            items.append(make(context, None, error.message))
    return items
