"""Transcripts of recordings in each provider's protocol, over real sockets; what is no such answer is refused."""

import json
import threading
import tracemalloc
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from pydantic import SecretStr

from fermata.domain.audio_header import normalize_audio_type, read_audio_type
from fermata.domain.errors import ProviderError
from fermata.domain.model_io import TokenUsage
from fermata.drivers.audio_transcription import (
    AudioFile,
    TranscribedAudio,
    build_gemini_body,
    can_transcribe,
    request_transcript,
)
from fermata.drivers.registry import get_provider
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.http_connection import HttpConnection
from tests.recordings import MP3, RECORDINGS, TAGGED_MP3, WAV
from tests.strict.transcription import TranscriptionAnswer, TranscriptionServer, run_transcription_server

SPOKEN = AudioFile(WAV, "audio/wav")


@pytest.fixture(scope="module")
def server() -> Iterator[TranscriptionServer]:
    with run_transcription_server() as server:
        yield server


@pytest.fixture(autouse=True)
def forget_requests(server: TranscriptionServer) -> None:
    server.reset()


def hear(
    server: TranscriptionServer,
    provider: str = "openai",
    audio: AudioFile = SPOKEN,
    seconds: float = 5,
    **options: Any,
) -> TranscribedAudio:
    connection = HttpConnection(stall_seconds=seconds, total_seconds=seconds)
    endpoint = AuthenticatedEndpoint(server.url, SecretStr(server.key))
    try:
        with connection.call_scope():
            return request_transcript(get_provider(provider), connection, endpoint, "m", audio, options)
    finally:
        connection.close()
        assert not server.refusals


@pytest.mark.parametrize("mime_type", RECORDINGS)
@pytest.mark.parametrize("provider", ["openai", "openai-compatible", "openrouter"])
def test_a_form_has_the_recording_as_it_is(server: TranscriptionServer, provider: str, mime_type: str) -> None:
    server.script_text(" Make it blue.\n", type="duration", seconds=9)
    audio = AudioFile(RECORDINGS[mime_type] + b"\r\n--\r\n\x00\xff", mime_type)
    heard = hear(server, provider, audio, language="en", stream=True)
    assert heard == TranscribedAudio("Make it blue.", TokenUsage(), 9.0)
    [sent] = server.sent
    assert (sent.audio, sent.mime_type) == (audio.data, mime_type)
    assert sent.fields == {"model": "m", "response_format": "json", "language": "en"}


def test_gemini_is_sent_the_recording_inline_and_what_it_thinks_is_no_transcript(server: TranscriptionServer) -> None:
    server.script_gemini("Mach es blau.", prompt=320, completion=5)
    heard = hear(server, "gemini", AudioFile(MP3, "audio/mpeg"))
    assert heard == TranscribedAudio("Mach es blau.", TokenUsage(prompt=320, completion=5))
    [sent] = server.sent
    assert (sent.path, sent.audio, sent.mime_type) == ("/v1beta/models/m:generateContent", MP3, "audio/mp3")


def test_a_body_for_gemini_allocates_its_recording_no_more_than_twice() -> None:
    audio = AudioFile(bytes(1_000_000), "audio/wav")
    tracemalloc.start()
    try:
        size = len(build_gemini_body(audio))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert size > 1_333_000
    assert peak < 2.1 * size, "a copy of a recording of 10 MB is 13 MB of a small function"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (
            {"type": "tokens", "input_tokens": 14, "output_tokens": 3},
            TranscribedAudio("x", TokenUsage(prompt=14, completion=3)),
        ),
        ({"seconds": 2.5, "cost": 0.0002}, TranscribedAudio("x", TokenUsage(reported_cost=Decimal("0.0002")), 2.5)),
        ({}, TranscribedAudio("x")),
        ({"seconds": 1e300, "input_tokens": -4, "output_tokens": "5", "cost": "free"}, TranscribedAudio("x")),
        ({"seconds": "9", "cost": -1, "input_tokens": 10**12}, TranscribedAudio("x")),
    ],
)
def test_only_plausible_counts_are_believed(
    server: TranscriptionServer, usage: dict[str, Any], expected: TranscribedAudio
) -> None:
    server.script_text("x", **usage)
    assert hear(server) == expected


@pytest.mark.parametrize(
    "body",
    [b"{}", b"[]", b'{"text": null}', b'{"text": ["a"]}', b"null"],
)
def test_an_answer_without_a_transcript_is_refused(server: TranscriptionServer, body: bytes) -> None:
    for provider in ("openai", "gemini"):
        server.script(TranscriptionAnswer(body=body))
        with pytest.raises(ProviderError, match="Is m a model for recordings"):
            hear(server, provider)


@pytest.mark.parametrize(
    "parts",
    [[], [{"text": "Make it blue."}], [{"text": '{"transcript": 1}'}], [{"text": "[]"}], [{"inlineData": {}}]],
)
def test_what_gemini_writes_has_the_form_that_it_was_told(server: TranscriptionServer, parts: Any) -> None:
    server.script(TranscriptionAnswer(body=json.dumps({"candidates": [{"content": {"parts": parts}}]}).encode()))
    with pytest.raises(ProviderError, match="did not answer with a transcript"):
        hear(server, "gemini")


def test_a_page_of_html_an_endless_answer_and_an_error_are_told_in_words(server: TranscriptionServer) -> None:
    server.script(TranscriptionAnswer(body=b"<html>Welcome</html>"))
    with pytest.raises(ProviderError, match="what it answers is not JSON"):
        hear(server)
    server.script(TranscriptionAnswer(body=b'{"text": "' + b"x" * 1_000_000, copies=100))
    with pytest.raises(ProviderError, match="what it answers is not JSON"):
        hear(server)
    server.script(TranscriptionAnswer(500, b"<html>"))
    with pytest.raises(ProviderError) as failed:
        hear(server)
    assert (failed.value.code, failed.value.retryable) == ("provider_error", True)


def test_a_server_that_hangs_is_left_at_the_deadline(server: TranscriptionServer) -> None:
    over = threading.Event()
    server.script(TranscriptionAnswer(before=over.wait))
    try:
        with pytest.raises(ProviderError) as failed:
            hear(server, seconds=0.2)
    finally:
        over.set()
    assert failed.value.code == "provider_stalled"


def test_providers_without_such_models_are_known() -> None:
    hearing = {"openai", "openai-compatible", "openrouter", "gemini"}
    assert {name for name in [*hearing, "anthropic", "ollama"] if can_transcribe(name)} == hearing


@pytest.mark.parametrize(("mime_type", "raw"), [*RECORDINGS.items(), ("audio/mpeg", TAGGED_MP3)])
def test_recordings_are_known_by_their_first_bytes(mime_type: str, raw: bytes) -> None:
    assert read_audio_type(raw) == mime_type


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xff",
        b"\xff\xf1\x50\x80" + b"\x00" * 20,  # AAC without a container
        b"\xff\xd8\xff\xe0" + b"\x00" * 20,  # a JPEG
        b"\xff\xfe\x41\x00" + b"\x00" * 20,  # a text in UTF-16
        b"fLaC\x00\x00\x00\x22",
        b"RIFF\x24\x00\x00\x00WEBPVP8 ",
        b"\x1a\x45\xdf\xa3\x9fmatroska" + b"\x00" * 90 + b"webm",
        b"%PDF-1.7",
    ],
)
def test_anything_else_is_no_recording(raw: bytes) -> None:
    assert read_audio_type(raw) is None


def test_browsers_names_of_types_are_understood() -> None:
    names = ("audio/webm;codecs=opus", "Audio/MP3", "audio/x-wav", "audio/x-m4a", "video/mp4", "")
    found = [normalize_audio_type(name) for name in names]
    assert found == ["audio/webm", "audio/mpeg", "audio/wav", "audio/mp4", "video/mp4", ""]
