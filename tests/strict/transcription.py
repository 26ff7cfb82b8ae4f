"""Serve transcriptions as OpenAI's and Gemini's servers do, on real sockets, and refuse what they refuse.

server.script_text("Make it blue")                      # the next answer
server.script(TranscriptionAnswer(500, b"oops"))
server.script(TranscriptionAnswer(before=event.wait))   # it hangs until then
"""

import base64
import contextlib
import email.parser
import email.policy
import json
import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.threaded_server import ThreadedServer, serve_in_thread

TRANSCRIPTION_KEY = "sk-recordings-0123456789"
_FORM_PATH = "/v1/audio/transcriptions"
_GEMINI_PATH = re.compile(r"/v1beta/models/[\w.-]+:generateContent")
_FORM_FIELDS = {"model", "response_format", "language", "prompt", "temperature"}
_TYPE_BY_EXTENSION = {
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "m4a": "audio/mp4",
    "webm": "audio/webm",
    "ogg": "audio/ogg",
}
_GEMINI_TYPES = {"audio/mp3", "audio/wav", "audio/mp4", "audio/webm", "audio/ogg"}


@dataclass
class TranscriptionAnswer:
    """One answer; `before` runs first."""

    status: int = 200
    body: bytes = b"{}"
    before: Callable[[], object] | None = None
    copies: int = 1
    """How often the body is sent."""


@dataclass
class SentRecording:
    """A request that was accepted."""

    path: str
    audio: bytes
    mime_type: str
    fields: dict[str, Any]


@dataclass
class TranscriptionServer:
    """A server that hears what it was told to hear."""

    url: str
    key: str = TRANSCRIPTION_KEY
    sent: list[SentRecording] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    _answers: deque[TranscriptionAnswer] = field(default_factory=deque)

    def reset(self) -> None:
        """Forget everything."""
        for records in (self.sent, self.refusals, self._answers):
            records.clear()

    def script(self, answer: TranscriptionAnswer) -> None:
        """Queue an answer."""
        self._answers.append(answer)

    def script_text(self, text: str, **usage: Any) -> None:
        """Queue the answer of OpenAI's server with a transcript."""
        self.script(TranscriptionAnswer(body=json.dumps({"text": text, "usage": usage}).encode()))

    def script_gemini(self, text: str, prompt: int = 320, completion: int = 5) -> None:
        """Queue the answer of Gemini's server with a transcript."""
        written = json.dumps({"transcript": text})
        content = {"parts": [{"text": "Let me listen.", "thought": True}, {"text": written}], "role": "model"}
        usage = {"promptTokenCount": prompt, "candidatesTokenCount": completion}
        body = {"candidates": [{"content": content, "finishReason": "STOP"}], "usageMetadata": usage}
        self.script(TranscriptionAnswer(body=json.dumps(body).encode()))

    def answer(self, path: str, headers: Any, body: bytes) -> TranscriptionAnswer:
        """Return the next answer, or the refusal of a request that the real servers refuse."""
        try:
            self.sent.append(self._read(path, headers, body))
        except (ValueError, KeyError, TypeError, AssertionError) as problem:
            self.refusals.append(f"{type(problem).__name__}: {problem}")
            refusal = {"error": {"message": str(problem), "type": "invalid_request_error"}}
            return TranscriptionAnswer(400, json.dumps(refusal).encode())
        return self._answers.popleft() if self._answers else TranscriptionAnswer(500, b'{"error": "not scripted"}')

    def _read(self, path: str, headers: Any, body: bytes) -> SentRecording:
        if path == _FORM_PATH:
            assert headers["authorization"] == f"Bearer {self.key}", "no such key"
            return _read_form(path, headers["content-type"], body)
        assert _GEMINI_PATH.fullmatch(path), f"no {path} here"
        assert headers["x-goog-api-key"] == self.key, "no such key"
        return _read_gemini_request(path, json.loads(body))


def _read_form(path: str, content_type: str, body: bytes) -> SentRecording:
    head = f"Content-Type: {content_type}\r\nMIME-Version: 1.0\r\n\r\n".encode()
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
    assert message.get_content_type() == "multipart/form-data", "no form"
    assert not message.defects, "a form that cannot be read"
    fields: dict[str, Any] = {}
    audio, mime_type = b"", ""
    for part in message.iter_parts():
        name = str(part.get_param("name", header="content-disposition"))
        value = part.get_payload(decode=True)
        assert isinstance(value, bytes), "a part within a part"
        if name == "file":
            extension = str(part.get_filename()).rpartition(".")[2]
            audio, mime_type = value, part.get_content_type()
            assert _TYPE_BY_EXTENSION[extension] == mime_type, "unknown file format"
        else:
            fields[name] = value.decode()
    assert audio, "no file"
    assert fields["model"], "no model"
    assert fields["response_format"] == "json", "another format"
    assert fields.keys() <= _FORM_FIELDS, "an unknown field"
    return SentRecording(path, audio, mime_type, fields)


def _read_gemini_request(path: str, body: dict[str, Any]) -> SentRecording:
    assert body.keys() == {"contents", "generationConfig"}, "unknown member"
    [content] = body["contents"]
    recording, instruction = content["parts"]
    data, mime_type = recording["inlineData"]["data"], recording["inlineData"]["mimeType"]
    assert content["role"] == "user", "another role"
    assert instruction["text"], "no instruction"
    assert mime_type in _GEMINI_TYPES, "another type"
    config = body["generationConfig"]
    assert config["responseMimeType"] == "application/json", "no form of the answer"
    assert config["responseSchema"]["type"] == "OBJECT", "no schema of the answer"
    return SentRecording(path, base64.b64decode(data, validate=True), mime_type, config)


class _TranscriptionHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    transcriptions: TranscriptionServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        answer = self.transcriptions.answer(self.path, self.headers, body)
        if answer.before:
            answer.before()
        self.send_response(answer.status)
        self.send_header("content-length", str(len(answer.body) * answer.copies))
        self.end_headers()
        for _ in range(answer.copies):
            self.wfile.write(answer.body)

    def log_message(self, *_: Any) -> None:
        pass


@contextlib.contextmanager
def run_transcription_server() -> Iterator[TranscriptionServer]:
    """Run a server until the end of the block."""
    handler: type[_TranscriptionHandler] = type("Handler", (_TranscriptionHandler,), {})
    server = ThreadedServer(("127.0.0.1", 0), handler)
    handler.transcriptions = made = TranscriptionServer(f"http://127.0.0.1:{server.server_port}")
    with serve_in_thread(server):
        yield made
