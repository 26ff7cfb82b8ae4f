"""`fermata conversations`: what was talked about."""

from collections.abc import Iterator
from typing import Any

import click

from fermata_client.client import FermataClient
from fermata_client.commands.common import SCOPES, json_option, one_sentence, print_json, service, service_options
from fermata_client.commands.listing import minute, show_rows
from fermata_client.screen import plain, shortened

Json = dict[str, Any]
MOST_AT_ONCE = 500
ID = click.argument("conversation_id", metavar="ID")


@click.group(invoke_without_command=True)
@click.pass_context
def conversations(context: click.Context) -> None:
    """List conversations, show one, rename it or delete it. Alone, it lists them."""
    if context.invoked_subcommand is None:
        context.invoke(list_conversations)


@conversations.command("list")
@click.option("--scope", type=click.Choice(SCOPES), help="Only those of this scope.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many.")
@json_option
@service_options
@one_sentence
def list_conversations(scope: str | None, limit: int, as_json: bool, url: str | None, token: str | None) -> None:
    """List your conversations, the one that was used last first."""
    with service(url, token) as client:
        found = [one for name in ([scope] if scope else SCOPES) for one in _newest(client, name, limit)]
    found = sorted(found, key=lambda one: str(one["updatedAt"]), reverse=True)[:limit]
    if as_json:
        print_json(found)
        return
    rows = [
        (one["id"], minute(one["updatedAt"]), one["scope"], f"{one['costUsdTotal']:.4f}", one["title"]) for one in found
    ]
    show_rows(("id", "used", "scope", "USD", "title"), rows)


def _newest(client: FermataClient, scope: str, limit: int) -> Iterator[Json]:
    cursor: str | None = None
    while limit > 0:
        page = client.conversations(scope, cursor=cursor, limit=min(limit, MOST_AT_ONCE))
        yield from page["conversations"]
        limit -= len(page["conversations"])
        cursor = page.get("nextCursor")
        if not cursor:
            return


@conversations.command()
@ID
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many messages.")
@click.option("--before", metavar="POSITION", help="Show older messages, from before this one.")
@json_option
@service_options
@one_sentence
def show(
    conversation_id: str, limit: int, before: str | None, as_json: bool, url: str | None, token: str | None
) -> None:
    """Show what was said in the conversation ID, its newest messages."""
    with service(url, token) as client:
        page = client.messages(conversation_id, before=before, limit=limit)
    if as_json:
        print_json(page)
        return
    conversation = page["conversation"]
    click.echo(plain(conversation["title"]))
    click.echo(_numbers(conversation))
    for message in conversation["messages"]:
        for line in _lines(message):
            click.echo(line)
    if active := conversation.get("activeTurn"):
        click.echo(f"A turn is {active['state']} in it: {active['bridgeId']}", err=True)
    if cursor := page.get("nextCursor"):
        click.echo(f"Older messages: fermata conversations show {conversation_id} --before {cursor}", err=True)


def _numbers(conversation: Json) -> str:
    tokens = f"{conversation['promptTokensTotal']:,} + {conversation['completionTokensTotal']:,} tokens"
    model = plain(conversation["modelId"]) or "the scope's model"
    used = minute(conversation["updatedAt"])
    return f"{conversation['scope']} · {model} · {used} · {tokens} · ${conversation['costUsdTotal']:.4f}\n"


def _lines(message: Json) -> Iterator[str]:
    mark = "> " if message["role"] == "user" else ""
    for block in message["content"]:
        match block["kind"]:
            case "text":
                yield from (plain(mark + line) for line in block["text"].splitlines())
            case "image":
                yield f"{mark}[{plain(block['mimeType'])}]"
            case "toolCall":
                yield f"  → {plain(block['toolName'])} {shortened(block['input'])}".rstrip()
            case "toolResult":
                yield _result(message, block)


def _result(message: Json, block: Json) -> str:
    name = plain(message["toolName"] or "")
    return f"  ✓ {name}" if block["ok"] else f"  ✗ {name}: {plain(block.get('error', 'failed'))}"


@conversations.command()
@ID
@click.argument("title")
@service_options
@one_sentence
def rename(conversation_id: str, title: str, url: str | None, token: str | None) -> None:
    """Call the conversation ID TITLE."""
    with service(url, token) as client:
        changed = client.change_conversation(conversation_id, title=title)
    click.echo(f"{conversation_id} is now called: {plain(changed['title'])}")


@conversations.command()
@ID
@click.confirmation_option(prompt="Delete this conversation, and end the turn that runs in it?", help="Do not ask.")
@service_options
@one_sentence
def delete(conversation_id: str, url: str | None, token: str | None) -> None:
    """Delete the conversation ID. What it cost stays in the audit."""
    with service(url, token) as client:
        client.delete_conversation(conversation_id)
    click.echo(f"{conversation_id} is deleted.")
