"""`fermata webhooks` and `fermata listen`: output, requests, exit codes."""

import json
import os
import re
import signal
import urllib.request
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fermata.webhooks.webhook_event import WebhookEvent
from fermata_client.cli import main
from fermata_client.commands.workspace.webhooks import WEBHOOK_EVENTS
from local.processes import ROOT
from tests.scripted_tool_server import ReceivedCall, ScriptedToolServer, run_scripted_tool_server

WEBHOOK = {
    "id": "w1",
    "url": "https://server.example/\x1b[31mhook",
    "events": ["turnEnd"],
    "enabled": True,
    "mayAnswer": False,
}
DELIVERY = {
    "id": "2026-11-28T09:30:00.000Z~t.7.0",
    "event": "turnEnd",
    "state": "failed",
    "attempts": 3,
    "status": 500,
    "at": "2026-11-28T09:30:00.000Z",
}


@pytest.fixture
def service() -> Iterator[ScriptedToolServer]:
    with run_scripted_tool_server() as server:
        yield server


def run(service: ScriptedToolServer, *arguments: str) -> Result:
    url = f"http://127.0.0.1:{service.server_port}"
    return CliRunner().invoke(main, [*arguments, "--url", url, "--token", "t"])


def test_webhooks_are_listed_without_control_characters(service: ScriptedToolServer) -> None:
    service.script_answer({"webhooks": [WEBHOOK]})
    result = run(service, "webhooks")
    assert result.exit_code == 0, result.output
    assert "w1" in result.output
    assert "\x1b" not in result.output


def test_a_webhook_is_added_and_its_secret_printed_alone(service: ScriptedToolServer) -> None:
    service.script_answer({"webhook": WEBHOOK, "signingSecret": "whsec_x"}, 201)
    result = run(service, "webhooks", "add", "https://server.example/hook", "--event", "turnEnd", "--may-answer")
    assert result.stdout == "whsec_x\n"
    assert service.calls[0].body == {
        "url": "https://server.example/hook",
        "events": ["turnEnd"],
        "mayAnswer": True,
    }


def test_deliveries_are_listed_and_repeated(service: ScriptedToolServer) -> None:
    service.script_answer({"deliveries": [DELIVERY]})
    result = run(service, "webhooks", "deliveries", "w1")
    assert "failed" in result.output
    assert run(service, "webhooks", "redeliver", "w1", DELIVERY["id"]).exit_code == 0
    assert service.calls[-1].path.endswith("/webhooks/w1/deliveries/2026-11-28T09%3A30%3A00.000Z~t.7.0/redeliver")
    assert run(service, "webhooks", "remove", "w1", "--yes").exit_code == 0


def test_listen_prints_what_arrives_and_removes_its_webhook(service: ScriptedToolServer) -> None:
    posts: list[Thread] = []

    def post_event(call: ReceivedCall) -> None:
        if call.path.endswith("/webhooks"):
            request = urllib.request.Request(call.body["url"], b'{"type":"turnEnd"}', {"webhook-id": "t.7.0"})
            posts.append(Thread(target=lambda: urllib.request.urlopen(request, timeout=30).close()))
            posts[-1].start()

    answer: Any = {"webhook": WEBHOOK, "signingSecret": "whsec_x"}
    service.script_answer(answer, 201, before=post_event)
    service.script_answer({"ok": True})
    result = run(service, "listen", "--count", "1")
    posts[0].join()
    assert result.exit_code == 0, result.output
    [line] = result.stdout.splitlines()
    assert json.loads(line)["body"] == {"type": "turnEnd"}
    assert json.loads(line)["headers"]["webhook-id"] == "t.7.0"
    assert "whsec_x" in result.stderr
    assert service.calls[-1].path == "/admin/api/ai/webhooks/w1"


def test_listen_removes_its_webhook_when_its_terminal_is_closed(service: ScriptedToolServer) -> None:
    def post_event_and_close_terminal(url: str) -> None:
        urllib.request.urlopen(urllib.request.Request(url, b"{}"), timeout=30).close()
        os.kill(os.getpid(), signal.SIGHUP)

    def begin(call: ReceivedCall) -> None:
        if call.path.endswith("/webhooks"):
            Thread(target=post_event_and_close_terminal, args=(call.body["url"],)).start()

    service.script_answer({"webhook": WEBHOOK, "signingSecret": "whsec_x"}, 201, before=begin)
    service.script_answer({"ok": True})
    result = run(service, "listen")
    assert result.exit_code == 130
    assert service.calls[-1].path == "/admin/api/ai/webhooks/w1"


def test_the_command_and_the_console_know_the_events_of_the_service() -> None:
    assert tuple(WebhookEvent) == WEBHOOK_EVENTS
    lists = re.findall(r"_EVENTS = (\[.*?\]);", (ROOT / "console/src/pages/webhooks.js").read_text(), re.DOTALL)
    assert [event for one in lists for event in re.findall('"(.+?)"', one)] == list(WebhookEvent)
