"""Keeps the token of a turn that waits for a person or a vendor."""

from typing import Any

from fermata.aws import signals
from fermata.aws.desk import open_desk
from fermata.turns.advancing import advance
from fermata.turns.waking import woken


@signals.traced
def handler(event: dict[str, Any], context: Any) -> None:
    advance(open_desk(), woken(event, context, holds=True))
