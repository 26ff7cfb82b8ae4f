"""Store the callback token of a turn that is held until a person or a vendor acts."""

from typing import Any

from fermata.aws import observability
from fermata.aws.resources import get_resources
from fermata.turns.round.advance_turn import advance_turn
from fermata.turns.round.invocation import invocation_from_event


@observability.trace_handler
def handler(event: dict[str, Any], context: Any) -> None:
    advance_turn(get_resources(), invocation_from_event(event, context, is_hold=True))
