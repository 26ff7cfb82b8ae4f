"""Define the signature of a tool that is carried out on a document."""

from collections.abc import Callable

from fermata_client.document.html_document import HtmlDocument
from fermata_client.service.json_types import JsonObject
from fermata_client.tools.arguments import ToolArguments

ToolEffect = tuple[HtmlDocument, JsonObject | None]
"""The document after the tool, and the `data` that the model gets."""

ToolEffectWithData = tuple[HtmlDocument, JsonObject]

ToolFunction = Callable[[HtmlDocument, ToolArguments], ToolEffect]
"""Raises `EditError` with a sentence for the model."""
