"""Python client of Fermata: start a turn, stream its events, carry out its browser tools, follow it to its end."""

from fermata_client.document.html_document import HtmlDocument
from fermata_client.document.html_file import HtmlFile
from fermata_client.service.client import FermataClient
from fermata_client.service.errors import (
    FermataClientError,
    InvalidResponseError,
    RequestRefusedError,
    ServiceUnreachableError,
    TurnLostError,
)
from fermata_client.service.retry import RetryPolicy
from fermata_client.tools.executor import HtmlFileExecutor
from fermata_client.turns.event_reducer import RoundView, ToolCallView, TurnView, fold_event, fold_events
from fermata_client.turns.outcome import TurnOutcome
from fermata_client.turns.runner import follow_turn, run_turn, undo_turn

__all__ = [
    "FermataClient",
    "FermataClientError",
    "HtmlDocument",
    "HtmlFile",
    "HtmlFileExecutor",
    "InvalidResponseError",
    "RequestRefusedError",
    "RetryPolicy",
    "RoundView",
    "ServiceUnreachableError",
    "ToolCallView",
    "TurnLostError",
    "TurnOutcome",
    "TurnView",
    "fold_event",
    "fold_events",
    "follow_turn",
    "run_turn",
    "undo_turn",
]
