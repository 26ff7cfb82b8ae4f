"""Fermata from the outside: stream a turn, carry out its browser tools, follow it to its end."""

from fermata_client.client import FermataClient
from fermata_client.errors import Broken, ClientError, Refused, TurnLost, Unreachable
from fermata_client.file_executor import HtmlFileExecutor
from fermata_client.fold import Round, ToolBadge, TurnView, fold, fold_all
from fermata_client.html_document import HtmlDocument
from fermata_client.html_file import HtmlFile
from fermata_client.outcome import Outcome
from fermata_client.patience import Patience
from fermata_client.turn import follow_turn, run_turn, undo_turn

__all__ = [
    "Broken",
    "ClientError",
    "FermataClient",
    "HtmlDocument",
    "HtmlFile",
    "HtmlFileExecutor",
    "Outcome",
    "Patience",
    "Refused",
    "Round",
    "ToolBadge",
    "TurnLost",
    "TurnView",
    "Unreachable",
    "fold",
    "fold_all",
    "follow_turn",
    "run_turn",
    "undo_turn",
]
