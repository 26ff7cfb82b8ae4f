"""`fermata queue`: list the prompts that wait in a conversation, edit one, or drop it."""

import click

from fermata_client.commands.common.errors import report_errors
from fermata_client.commands.common.json_output import print_json
from fermata_client.commands.common.options import json_option, service_options
from fermata_client.commands.common.service_connection import connect_to_service
from fermata_client.terminal.plain_text import strip_control_chars
from fermata_client.terminal.table import format_minute, print_table

MAX_SHOWN_CHARS = 60
CONVERSATION_ARGUMENT = click.argument("conversation", metavar="CONVERSATION")
PROMPT_ARGUMENT = click.argument("prompt_id", metavar="PROMPT")


@click.group()
def queue() -> None:
    """List the prompts that wait in a conversation, edit or drop one."""


@queue.command("list")
@CONVERSATION_ARGUMENT
@json_option
@service_options
@report_errors
def list_queue(conversation: str, as_json: bool, url: str | None, token: str | None) -> None:
    """List the prompts that wait in CONVERSATION, and what became of those of the last days."""
    with connect_to_service(url, token) as client:
        found = client.list_queued_prompts(conversation)
    if as_json:
        print_json(found)
        return
    rows = [
        (
            prompt["promptId"],
            prompt["state"],
            format_minute(prompt["createdAt"]),
            strip_control_chars(prompt.get("error") or prompt["text"])[:MAX_SHOWN_CHARS],
        )
        for prompt in found
    ]
    print_table(("id", "state", "sent", "text"), rows)


@queue.command("edit")
@CONVERSATION_ARGUMENT
@PROMPT_ARGUMENT
@click.argument("text")
@click.option("--version", type=int, help="Refuse it if the prompt has another version.")
@service_options
@report_errors
def edit_prompt(
    conversation: str, prompt_id: str, text: str, version: int | None, url: str | None, token: str | None
) -> None:
    """Replace the text of PROMPT, which waits in CONVERSATION."""
    with connect_to_service(url, token) as client:
        edited = client.edit_queued_prompt(conversation, prompt_id, text, version=version)
    click.echo(f"{prompt_id}: version {edited['version']}")


@queue.command("drop")
@CONVERSATION_ARGUMENT
@PROMPT_ARGUMENT
@service_options
@report_errors
def drop_prompt(conversation: str, prompt_id: str, url: str | None, token: str | None) -> None:
    """Drop PROMPT, which waits in CONVERSATION."""
    with connect_to_service(url, token) as client:
        dropped = client.drop_queued_prompt(conversation, prompt_id)
    click.echo(f"{prompt_id}: {dropped['state']}")
