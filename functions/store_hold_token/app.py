"""Store the callback token of a turn that is held until a person or a vendor acts."""

from typing import Any

from fermata.aws import observability
from fermata.aws.resources import get_resources, prepare_function
from fermata.turns.round.invocation import invocation_from_event
from fermata.turns.round.run_turn_steps import run_turn_steps


@observability.trace_handler
def handler(event: dict[str, Any], context: Any) -> None:
    run_turn_steps(get_resources(), invocation_from_event(event, context, is_hold=True))


prepare_function("dynamodb", "s3", "stepfunctions")
