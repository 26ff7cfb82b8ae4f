"""`fermata chat`: answer, images, scope and model of its conversation."""

import json
from pathlib import Path

from tests.client.commands.run_command import run_command
from tests.client.scripted_events import (
    done_event,
    number_events,
    ready_event,
    text_event,
)
from tests.client.scripted_service import ServiceScript
from tests.images import make_image


def test_chat_shows_the_answer_and_how_to_go_on(url: str, script: ServiceScript) -> None:
    script.events[:] = number_events(ready_event(), text_event("Hello "), text_event("there."), done_event())
    result = run_command("chat", "hi", "--url", url, "--token", "good")
    assert (result.exit_code, result.stdout) == (0, "Hello there.\n")
    assert "fermata chat 'Go on' --conversation conv-1" in result.stderr


def test_a_program_gets_the_answer_of_a_chat_with_its_numbers(url: str, script: ServiceScript) -> None:
    script.events[:] = number_events(ready_event(), text_event("Hello "), text_event("there."), done_event())
    result = run_command("chat", "hi", "--url", url, "--token", "good", "--json")
    printed = json.loads(result.stdout)
    assert (result.exit_code, printed["text"], printed["status"]) == (0, "Hello there.", "done")


def test_chat_with_a_model_of_another_credential_than_the_defaults_uses_that_credential(
    url: str, script: ServiceScript
) -> None:
    script.events[:] = number_events(ready_event(), text_event("Hi."), done_event())
    script.answers_by_path = {
        "/defaults": {"defaults": {"data": {"credentialId": "k1", "modelId": "claude-opus-4-5"}}},
        "/credentials": {
            "credentials": [{"id": "k2", "providerId": "openai-compatible"}, {"id": "k1", "providerId": "anthropic"}]
        },
        "/providers/anthropic/models": {"models": [{"id": "claude-opus-4-5"}]},
        "/providers/openai-compatible/models": {"models": [{"id": "own-model"}]},
    }
    created = []
    for model in ("own-model", "claude-opus-4-5"):
        assert run_command("chat", "hi", "--url", url, "--token", "good", "--model", model).exit_code == 0
        created.append(next(body for method, path, body in script.requests[::-1] if path == "/conversations"))
    assert created == [
        {"scope": "data", "credentialId": "k2", "modelId": "own-model"},
        {"scope": "data", "modelId": "claude-opus-4-5"},
    ]


def test_chat_takes_pictures_along_in_their_order(url: str, script: ServiceScript, tmp_path: Path) -> None:
    script.events = number_events(ready_event(), text_event("Nice."), done_event())
    for name, kind in (("a.png", "PNG"), ("b.jpg", "JPEG"), ("c.webp", "WEBP"), ("d.gif", "GIF")):
        (tmp_path / name).write_bytes(make_image(kind=kind))
    images = [part for name in ("a.png", "b.jpg", "c.webp", "d.gif") for part in ("--image", name)]
    result = run_command("chat", "look", *images, "--url", url, "--token", "good")
    assert result.exit_code == 0
    body = next(body for method, path, body in script.requests if path.startswith("/chat/"))
    assert body["content"][0] == {"kind": "text", "text": "look"}
    kinds = [part["mimeType"] for part in body["content"][1:]]
    assert kinds == ["image/png", "image/jpeg", "image/webp", "image/gif"]


def test_chat_sends_nothing_that_is_no_picture(url: str, script: ServiceScript, file: Path) -> None:
    result = run_command("chat", "look", "--image", str(file), "--url", url, "--token", "good")
    assert (result.exit_code, "is not an image that can be sent" in result.stderr) == (1, True)
    assert script.requests == []


def test_chat_goes_on_in_the_scope_of_its_conversation(url: str, script: ServiceScript) -> None:
    script.events[:] = number_events(ready_event(), done_event())
    assert run_command("chat", "more", "--url", url, "--token", "good", "--conversation", "conv-9").exit_code == 0
    posts = [(path, body["conversationId"]) for method, path, body in script.requests if method == "POST"]
    assert posts == [("/chat/content", "conv-9")]


def test_chat_begins_in_the_scope_that_was_named(url: str, script: ServiceScript) -> None:
    script.events[:] = number_events(ready_event(), done_event())
    assert run_command("chat", "hi", "--url", url, "--token", "good", "--scope", "content").exit_code == 0
    assert [path for method, path, _ in script.requests if method == "POST"] == ["/conversations", "/chat/content"]


def test_a_conversation_keeps_its_scope(url: str) -> None:
    result = run_command("chat", "more", "--url", url, "--token", "good", "--conversation", "c", "--scope", "site")
    assert (result.exit_code, "Error: A conversation keeps its scope." in result.stderr) == (2, True)


def test_a_conversation_keeps_its_model(url: str) -> None:
    result = run_command("chat", "more", "--url", url, "--token", "good", "--conversation", "c", "--model", "m")
    assert (result.exit_code, "Error: A conversation keeps its model." in result.stderr) == (2, True)
