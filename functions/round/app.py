"""Run the next step of a turn: usually a round, which sends a model request."""

from functools import cache
from typing import Any

from fermata.aws import observability
from fermata.aws.resources import get_resources, prepare_function
from fermata.credentials import base_urls
from fermata.drivers.transport.http_connection import HttpConnection, get_tls_context
from fermata.turns.round.invocation import invocation_from_event
from fermata.turns.round.run_turn_steps import run_turn_steps


@cache
def get_provider_connection() -> HttpConnection:
    settings = get_resources().settings
    return HttpConnection(
        stall_seconds=settings.provider_stall_seconds,
        total_seconds=settings.provider_seconds,
        guard=base_urls.make_url_guard(settings),
        named_origins=base_urls.list_local_urls(settings),
    )


@observability.trace_handler
def handler(event: dict[str, Any], context: Any) -> None:
    run_turn_steps(get_resources(), invocation_from_event(event, context), get_provider_connection())


if prepare_function("dynamodb", "s3", "kms", "stepfunctions"):
    get_provider_connection()
    get_tls_context()
