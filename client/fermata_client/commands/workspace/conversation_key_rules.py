"""Read the rules of a key of the Conversation API from options of a command."""

from collections.abc import Callable
from typing import Any

import click

_ALL = "all"
_LISTS = {
    "models": ("--model", "A content model that it may use. Repeat for more; 'all' for all."),
    "tools": ("--tool", "A tool of the studio that it may use. Repeat for more; 'all' for all of its role."),
    "locales": ("--locale", "A language that it may use. Repeat for more; 'all' for all."),
}
_RULE_OPTIONS = (
    click.option("--role", type=click.Choice(["viewer", "editor", "admin"]), help="What it may do in its project."),
    *(click.option(name, rule, multiple=True, help=words) for rule, (name, words) in _LISTS.items()),
    click.option("--instructions", help="What the agent is told besides, at most 2,000 characters."),
    click.option("--language-model", "model_id", help="The language model that answers; '' for the default."),
    click.option("--per-minute", "messages_per_minute", type=click.IntRange(1, 60), help="Messages a minute."),
    click.option("--per-month", "messages_per_month", type=click.IntRange(min=1), help="Messages a month (UTC)."),
)


def add_rule_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of the rules, which it takes as `**rules`."""
    for option in reversed(_RULE_OPTIONS):
        command = option(command)
    return command


def build_key_rules_body(rules: dict[str, Any]) -> dict[str, Any]:
    """Return the rules that were given, as the service takes them. A list that is 'all' is null.

    Args:
        rules: The values of the options.
    """
    body: dict[str, Any] = {}
    for name in _LISTS:
        if given := rules.pop(name):
            body[name] = None if _ALL in given else list(given)
    names = {
        "role": "role",
        "instructions": "instructions",
        "model_id": "modelId",
        "messages_per_minute": "messagesPerMinute",
        "messages_per_month": "messagesPerMonth",
    }
    body |= {names[name]: value for name, value in rules.items() if value is not None}
    if body.get("modelId") == "":
        body["modelId"] = None
    return body


def describe_key_rules(rules: dict[str, Any]) -> str:
    """Return the rules of a key on one line for people."""
    parts = [f"{rules['role']} in {rules['project']}"]
    lists = [f"{name} {', '.join(rules[name])}" for name in _LISTS if rules.get(name) is not None]
    limits = f"{rules['messagesPerMinute']}/min, {rules['messagesPerMonth']}/month"
    return "; ".join([*parts, *lists, limits])
