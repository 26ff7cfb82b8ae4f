"""`fermata completion`: print the script with which a shell completes commands, options and files."""

import click
from click.shell_completion import get_completion_class

from fermata_client.commands.common.program_name import PROGRAM_NAME

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of SHELL.

    \b
    bash: eval "$(fermata completion bash)"           in ~/.bashrc
    zsh:  eval "$(fermata completion zsh)"            in ~/.zshrc
    fish: fermata completion fish | source            in ~/.config/fish/config.fish
    """
    completion_class = get_completion_class(shell)
    assert completion_class is not None
    command = context.find_root().command
    click.echo(completion_class(command, {}, PROGRAM_NAME, f"_{PROGRAM_NAME.upper()}_COMPLETE").source())
