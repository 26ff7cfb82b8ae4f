"""Run a command against a scripted turn that edits a page."""

from click.testing import CliRunner, Result

from fermata_client.cli import main
from fermata_client.service.json_types import Event
from tests.client.scripted_events import (
    context_event,
    done_event,
    number_events,
    ready_event,
    text_event,
    tool_call_event,
    tool_request_event,
    tool_result_event,
    usage_event,
)

PAGE = "<!doctype html>\n<title>T</title>\n<main>\n  <p>a</p>\n</main>\n"


def editing_turn(end: Event | None = None) -> list[Event]:
    insert = {"parentId": "n2", "html": "<p>b</p>\n<p>c</p>"}
    return number_events(
        ready_event(),
        text_event("I add two paragraphs."),
        tool_call_event(1, "insertHtml", insert),
        context_event(),
        tool_request_event(1, "insertHtml", insert),
        tool_result_event(1),
        text_event("Done \x1b[31mred\x1b[0m."),
        usage_event(),
        end or done_event(),
    )


def run_command(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))
