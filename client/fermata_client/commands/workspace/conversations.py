"""`fermata conversations`: list, show, rename and delete conversations."""

from collections.abc import Iterator

import click

from fermata_client.commands.common.default_subcommand import group_with_default
from fermata_client.commands.common.errors import report_errors
from fermata_client.commands.common.json_output import print_json
from fermata_client.commands.common.options import json_option, service_options
from fermata_client.commands.common.program_name import suggest_command
from fermata_client.commands.common.service_connection import connect_to_service
from fermata_client.service.client import FermataClient
from fermata_client.service.json_types import JsonObject
from fermata_client.terminal.plain_text import strip_control_chars, summarize_input
from fermata_client.terminal.table import format_minute, print_table

MAX_PAGE_SIZE = 500
CONVERSATION_ID_ARGUMENT = click.argument("conversation_id", metavar="ID")


@group_with_default("list")
def conversations() -> None:
    """List conversations, show one, rename it or delete it. Alone, it lists them."""


@conversations.command("list")
@click.option("--scope", metavar="NAME", help="Only those of this scope.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many.")
@json_option
@service_options
@report_errors
def list_conversations(scope: str | None, limit: int, as_json: bool, url: str | None, token: str | None) -> None:
    """List your conversations, the one that was used last first."""
    with connect_to_service(url, token) as client:
        scopes = [scope] if scope else client.list_scopes()
        listed = [conversation for name in scopes for conversation in _iter_newest(client, name, limit)]
    newest = sorted(listed, key=lambda conversation: str(conversation["updatedAt"]), reverse=True)[:limit]
    if as_json:
        print_json(newest)
        return
    rows = [
        (
            conversation["id"],
            format_minute(conversation["updatedAt"]),
            conversation["scope"],
            f"{conversation['costUsdTotal']:.4f}",
            conversation["title"],
        )
        for conversation in newest
    ]
    print_table(("id", "used", "scope", "USD", "title"), rows)


def _iter_newest(client: FermataClient, scope: str, limit: int) -> Iterator[JsonObject]:
    cursor: str | None = None
    while limit > 0:
        page = client.list_conversations(scope, cursor=cursor, limit=min(limit, MAX_PAGE_SIZE))
        yield from page["conversations"]
        limit -= len(page["conversations"])
        cursor = page.get("nextCursor")
        if not cursor:
            return


@conversations.command("show")
@CONVERSATION_ID_ARGUMENT
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many messages.")
@click.option("--before", metavar="POSITION", help="Show older messages, from before this one.")
@json_option
@service_options
@report_errors
def show_conversation(
    conversation_id: str, limit: int, before: str | None, as_json: bool, url: str | None, token: str | None
) -> None:
    """Show what was said in the conversation ID, its newest messages."""
    with connect_to_service(url, token) as client:
        page = client.list_messages(conversation_id, before=before, limit=limit)
    if as_json:
        print_json(page)
        return
    conversation = page["conversation"]
    click.echo(strip_control_chars(conversation["title"]))
    click.echo(_totals_line(conversation))
    for message in conversation["messages"]:
        for line in _message_lines(message):
            click.echo(line)
    if active := conversation.get("activeTurn"):
        click.echo(f"A turn is {active['state']} in it: {active['bridgeId']}", err=True)
    if cursor := page.get("nextCursor"):
        hint = suggest_command("conversations show", conversation_id, url=url, before=str(cursor))
        click.echo(f"Older messages: {hint}", err=True)


def _totals_line(conversation: JsonObject) -> str:
    tokens = f"{conversation['promptTokensTotal']:,} + {conversation['completionTokensTotal']:,} tokens"
    model = strip_control_chars(conversation["modelId"]) or "the scope's model"
    used = format_minute(conversation["updatedAt"])
    return f"{conversation['scope']} · {model} · {used} · {tokens} · ${conversation['costUsdTotal']:.4f}\n"


def _message_lines(message: JsonObject) -> Iterator[str]:
    mark = "> " if message["role"] == "user" else ""
    for block in message["content"]:
        match block["kind"]:
            case "text":
                yield from (strip_control_chars(mark + line) for line in block["text"].splitlines())
            case "image" | "audio":
                yield f"{mark}[{strip_control_chars(block['mimeType'])}]"
            case "toolCall":
                yield f"  → {strip_control_chars(block['toolName'])} {summarize_input(block['input'])}".rstrip()
            case "toolResult":
                yield _tool_result_line(message, block)


def _tool_result_line(message: JsonObject, block: JsonObject) -> str:
    name = strip_control_chars(message["toolName"] or "")
    return f"  ✓ {name}" if block["ok"] else f"  ✗ {name}: {strip_control_chars(block.get('error', 'failed'))}"


@conversations.command("rename")
@CONVERSATION_ID_ARGUMENT
@click.argument("title")
@service_options
@report_errors
def rename_conversation(conversation_id: str, title: str, url: str | None, token: str | None) -> None:
    """Rename the conversation ID to TITLE."""
    with connect_to_service(url, token) as client:
        renamed = client.update_conversation(conversation_id, title=title)
    click.echo(f"{conversation_id} is now called: {strip_control_chars(renamed['title'])}")


@conversations.command("delete")
@CONVERSATION_ID_ARGUMENT
@click.confirmation_option(prompt="Delete this conversation, and end the turn that runs in it?", help="Do not ask.")
@service_options
@report_errors
def delete_conversation(conversation_id: str, url: str | None, token: str | None) -> None:
    """Delete the conversation ID. What it cost stays in the audit."""
    with connect_to_service(url, token) as client:
        client.delete_conversation(conversation_id)
    click.echo(f"{conversation_id} is deleted.")
