"""The command ``completion``."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print a script that completes commands, options and names in a shell.

    \b
    eval "$(opticoll completion bash)"     in ~/.bashrc
    eval "$(opticoll completion zsh)"      in ~/.zshrc
    opticoll completion fish > ~/.config/fish/completions/opticoll.fish
    """  # noqa: D301  click's mark for a paragraph that keeps its lines
    from click.shell_completion import get_completion_class

    known = get_completion_class(shell)
    assert known is not None
    click.echo(known(click.get_current_context().find_root().command, {}, "opticoll", "_OPTICOLL_COMPLETE").source())
    return 0
