"""Recordings reach an agent by every door that has them, and files are named by their addresses in our own too."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fermata.credentials import credential_store, scope_defaults
from fermata.domain.run_settings import FileDownloadLimits
from fermata.drivers.transport.file_download import DownloadedFile, FileDownloadCode, FileDownloadError
from tests.images import make_image
from tests.recordings import MP3, WAV, encode_recording
from tests.strict.transcription import TranscriptionAnswer, TranscriptionServer, run_transcription_server
from tests.unit.client_protocols.conftest import Requester
from tests.unit.turns.stage import Stage

DATA = encode_recording(WAV)
SAID = "Make the header blue."
CSV = "https://files.example/prices.csv"
NATIVE = "/admin/api/ai/chat/site"


@pytest.fixture(scope="module")
def ears() -> Iterator[TranscriptionServer]:
    with run_transcription_server() as server:
        yield server


@pytest.fixture(autouse=True)
def hearing_stage(stage: Stage, ears: TranscriptionServer) -> Stage:
    """A workspace whose default model is one of OpenAI's."""
    ears.reset()
    changed = {"fermata_stage": "local", "provider_urls": json.dumps({"openai": ears.url})}
    object.__setattr__(stage.resources, "settings", stage.resources.settings.model_copy(update=changed))
    stage.credential = credential_store.create_credential(
        stage.resources, stage.caller, "openai", "apiKey", "OpenAI", ears.key
    )
    scope_defaults.set_default(stage.resources, stage.caller, "site", stage.credential.id, "model-1")
    stage.new_conversation()
    return stage


def make_native(stage: Stage) -> tuple[str, Any]:
    part = {"kind": "audio", "mimeType": "audio/wav", "data": DATA}
    return NATIVE, {"conversationId": stage.conversation.id, "content": [part]}


def make_ui(_stage: Stage) -> tuple[str, Any]:
    part = {"type": "file", "mediaType": "audio/x-wav", "url": f"data:audio/x-wav;base64,{DATA}"}
    return "/api/agents/site", {"id": "chat", "messages": [{"id": "m", "role": "user", "parts": [part]}]}


def make_agui(_stage: Stage) -> tuple[str, Any]:
    part = {"type": "audio", "source": {"type": "data", "value": DATA, "mimeType": "audio/wav"}}
    return "/agui/site", {"threadId": "t", "runId": "r", "messages": [{"id": "m", "role": "user", "content": [part]}]}


def make_completion(_stage: Stage) -> tuple[str, Any]:
    part = {"type": "input_audio", "input_audio": {"data": DATA, "format": "wav"}}
    return "/v1/chat/completions", {"model": "site", "messages": [{"role": "user", "content": [part]}]}


def make_response(_stage: Stage) -> tuple[str, Any]:
    part = {"type": "input_audio", "input_audio": {"data": DATA, "format": "wav"}}
    return "/v1/responses", {"model": "site", "input": [{"role": "user", "content": [part]}]}


DOORS = pytest.mark.parametrize("make", [make_native, make_ui, make_agui, make_completion, make_response])


def read_texts(stage: Stage) -> list[str]:
    """Return what the user has said, as the model is sent it."""
    messages = [message for message in stage.driver.requests[-1].messages if message.role == "user"]
    return [block.text for message in messages for block in message.content if block.kind == "text"]


@DOORS
def test_a_recording_is_heard_at_every_door_and_sent_to_the_provider_once(
    stage: Stage, requester: Requester, ears: TranscriptionServer, make: Callable[[Stage], tuple[str, Any]]
) -> None:
    ears.script_text(SAID)
    stage.script_replies("Done.", "Done.")
    path, body = make(stage)
    for _ in range(2):
        answer = requester.send("POST", path, json=body, headers={"idempotency-key": "k"})
        assert answer.status_code == 200, answer.text
    assert read_texts(stage) == [SAID]
    assert (len(ears.sent), len(stage.driver.requests)) == (1, 1)
    assert not ears.refusals


@DOORS
def test_a_server_that_fails_is_told_at_every_door_and_starts_nothing(
    stage: Stage, requester: Requester, ears: TranscriptionServer, make: Callable[[Stage], tuple[str, Any]]
) -> None:
    path, body = make(stage)
    ears.script(TranscriptionAnswer(500, b"<html>"))
    failed = requester.send("POST", path, json=body)
    assert (failed.status_code, "could not be transcribed" in failed.text) == (503, True)
    ears.script(TranscriptionAnswer(body=b"<html>"))
    refused = requester.send("POST", path, json=body)
    assert (refused.status_code, "not JSON" in refused.text) == (502, True)
    assert not stage.driver.requests


def send_files(requester: Requester, stage: Stage, *urls: str, **members: Any) -> Any:
    files = [{"kind": "file", "url": url, "name": "prices.csv"} for url in urls]
    content = [{"kind": "text", "text": "Read this."}, *files]
    body = {"conversationId": stage.conversation.id, "content": content, **members}
    return requester.send("POST", NATIVE, json=body, headers={"idempotency-key": "k"})


def serve_files(monkeypatch: pytest.MonkeyPatch, files: dict[str, DownloadedFile]) -> list[str]:
    """Let these be the files of the internet; returns the addresses that are asked for."""
    asked: list[str] = []

    def download(url: str, _limits: FileDownloadLimits) -> DownloadedFile:
        asked.append(url)
        if url not in files:
            raise FileDownloadError(FileDownloadCode.FETCH_FAILED, "files.example", "was answered with status 404", 404)
        return files[url]

    monkeypatch.setattr("fermata.client_protocols.client_messages.download_file", download)
    return asked


def test_files_by_address_are_known_by_their_bytes_and_downloaded_once(
    stage: Stage, requester: Requester, ears: TranscriptionServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture, song = "https://files.example/a", "https://files.example/b"
    files = {
        CSV: DownloadedFile(b"rye,3", "text/csv"),
        picture: DownloadedFile(make_image(20, 10, "PNG"), "application/octet-stream"),
        song: DownloadedFile(MP3, "application/octet-stream"),
    }
    asked = serve_files(monkeypatch, files)
    ears.script_text(SAID)
    stage.script_replies("Read.")
    for _ in range(2):
        assert send_files(requester, stage, CSV, picture, song).status_code == 200
        files.clear()  # the answer is there though the files are gone
    [text] = read_texts(stage)
    assert text == f"Read this.\n\nAttached file: prices.csv\n\nrye,3\n\nTranscript of the recording:\n\n{SAID}"
    kinds = [block.kind for block in stage.load_messages()[0].content]
    assert (kinds, asked) == (["text", "image", "audio"], [CSV, picture, song])


@pytest.mark.parametrize(
    ("file", "says"),
    [
        (DownloadedFile(b"%PDF-1.7", "application/pdf"), "of the type application/pdf"),
        (DownloadedFile(b"<html>", "image/png"), "not the image/png it says"),
        (DownloadedFile(b"ID4", "audio/mpeg"), "not the audio/mpeg it says"),
        (DownloadedFile(b"\xff\xd8\xff", "text/plain"), "no text in UTF-8"),
    ],
)
def test_a_file_that_is_none_of_them_is_refused_by_name(
    stage: Stage, requester: Requester, monkeypatch: pytest.MonkeyPatch, file: DownloadedFile, says: str
) -> None:
    serve_files(monkeypatch, {CSV: file})
    refused = send_files(requester, stage, CSV)
    assert refused.status_code == 400
    assert "'prices.csv'" in refused.json()["error"]
    assert says in refused.json()["error"]
    assert not stage.load_messages()


def test_addresses_meet_the_guard_and_stay_secret(stage: Stage, requester: Requester) -> None:
    for url, code in (
        ("http://files.example/a?sig=secret", "url_not_https"),
        ("https://169.254.169.254/a?sig=secret", "url_not_public"),
        ("https://[::1]/a?sig=secret", "url_not_public"),
    ):
        refused = send_files(requester, stage, url)
        assert (refused.status_code, code in refused.text, "secret" in refused.text) == (400, True, False)
    many = send_files(requester, stage, *[CSV] * 9)
    assert (many.status_code, "8 files at most" in many.text) == (400, True)
    other = send_files(requester, stage, "file:///etc/passwd")
    assert (other.status_code, "https address" in other.text) == (400, True)


def test_a_prompt_that_waits_has_its_files_already(
    stage: Stage, requester: Requester, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = serve_files(monkeypatch, {CSV: DownloadedFile(b"rye,3", "text/csv")})
    monkeypatch.setattr(stage.workflow, "start_execution", lambda *_names, **_hint: None)
    first = {"conversationId": stage.conversation.id, "prompt": "Hello"}
    assert requester.send("POST", NATIVE, json=first, headers={"accept": "application/json"}).status_code == 202
    queued = send_files(requester, stage, CSV, whenBusy="enqueue")
    assert queued.status_code == 202
    assert "rye,3" in queued.json()["queuedPrompt"]["text"]
    assert asked == [CSV]
