"""Runs a turn's next round, or whatever else is undone."""

from functools import cache
from typing import Any

from fermata.aws import signals
from fermata.aws.desk import open_desk
from fermata.credentials import addresses
from fermata.drivers.line import Line
from fermata.turns.advancing import advance
from fermata.turns.waking import woken


@cache
def line() -> Line:
    settings = open_desk().settings
    patience = {"stall_seconds": settings.provider_stall_seconds, "total_seconds": settings.provider_seconds}
    return Line(**patience, guard=addresses.guard(settings))


@signals.traced
def handler(event: dict[str, Any], context: Any) -> None:
    advance(open_desk(), woken(event, context), line())
