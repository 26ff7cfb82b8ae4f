"""`fermata chat`: ask a model without an open page, or about the content system behind the site."""

from pathlib import Path

import click

from fermata_client.commands.common.errors import report_errors
from fermata_client.commands.common.options import check_prompt, turn_json_option, turn_options
from fermata_client.commands.common.program_name import suggest_command
from fermata_client.commands.common.service_connection import connect_to_service
from fermata_client.commands.turns.model_credential import find_credential_of_model
from fermata_client.commands.turns.prompt_images import prompt_content
from fermata_client.commands.turns.turn_exit_codes import report_outcome
from fermata_client.service.client import FermataClient
from fermata_client.terminal.turn_printer import TurnPrinter
from fermata_client.turns.runner import run_turn

DEFAULT_CHAT_SCOPE = "data"
"""It offers the model no tools, because there is no page to use them on."""


@click.command()
@click.argument("prompt")
@click.option("--conversation", metavar="ID", help="Continue this conversation instead of creating one.")
@click.option("--scope", metavar="NAME", help="The area of the editor to ask about.  [default: data]")
@click.option(
    "--image",
    "images",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An image for a model that reads images; up to eight.",
)
@turn_json_option
@turn_options
@report_errors
def chat(
    prompt: str,
    conversation: str | None,
    scope: str | None,
    images: tuple[Path, ...],
    as_json: bool,
    url: str | None,
    token: str | None,
    model: str | None,
) -> None:
    """Ask PROMPT and show the answer.

    In the scope `content` the model can read the collections and documents of the site. Tools that need an open editor
    are refused.
    """
    if not images:
        check_prompt(prompt)
    if conversation:
        _refuse_changes(scope, model)
    printer = TurnPrinter(to_stderr=as_json)
    with printer, connect_to_service(url, token) as client:
        credential = find_credential_of_model(client, scope or DEFAULT_CHAT_SCOPE, model, url)
        outcome = run_turn(
            client,
            scope or _scope_of(client, conversation),
            None if images else prompt,
            content=prompt_content(client, prompt, images) if images else None,
            conversation_id=conversation,
            on_event=printer,
            model=model,
            credential=credential,
        )
    if not as_json:
        hint = suggest_command("chat", "Go on", url=url, conversation=str(outcome.conversation_id))
        click.echo(f"Continue with: {hint}", err=True)
    report_outcome(outcome, printer, as_json=as_json)


def _refuse_changes(scope: str | None, model: str | None) -> None:
    """Raise `click.UsageError` for an option that would change an existing conversation."""
    for name, value in (("scope", scope), ("model", model)):
        if value:
            raise click.UsageError(
                f"A conversation keeps its {name}. Omit --{name}, or create a new one by omitting --conversation."
            )


def _scope_of(client: FermataClient, conversation: str | None) -> str:
    return str(client.get_conversation(conversation)["scope"]) if conversation else DEFAULT_CHAT_SCOPE
