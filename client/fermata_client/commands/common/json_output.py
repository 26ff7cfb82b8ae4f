"""Print the result of a command as JSON."""

import json
from typing import Any

import click


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))
