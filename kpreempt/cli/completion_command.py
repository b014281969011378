"""``kpreempt completion``: the script that a shell loads to complete the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from kpreempt.cli.options import Request


class CompletionRequest(Request):
    """What the options of ``kpreempt completion`` ask for."""

    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish|kubectl", help="Which script.")]


def completion(request: CompletionRequest) -> int:
    """Print the script that completes commands, options and names of the live cluster when TAB is pressed.

    bash: source <(kpreempt completion bash), in ~/.bashrc. zsh: the same in ~/.zshrc, after compinit. fish: kpreempt
    completion fish > ~/.config/fish/completions/kpreempt.fish. kubectl asks the program kubectl_complete-kpreempt,
    which is installed with kpreempt; its script is for those who have a single file, and belongs beside it.
    """
    from kpreempt.cli.completion.scripts import SCRIPTS
    from kpreempt.errors import UsageError, nearest

    if request.shell not in SCRIPTS:
        raise UsageError(f"there is no script for {request.shell!r}", hint=nearest(request.shell, SCRIPTS))
    typer.echo(SCRIPTS[request.shell], nl=False)
    return 0
