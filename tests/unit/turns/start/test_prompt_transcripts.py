"""Recordings of prompts are transcribed once, before the turn starts; the model reads what was said (decision 0500)."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from fermata.aws.blob_store import conversation_folder, snapshots_folder
from fermata.aws.resources import Resources
from fermata.conversations.message_views import read_message_image, read_message_page
from fermata.credentials import credential_store
from fermata.domain.audio_header import MAX_AUDIO_BYTES
from fermata.domain.blocks import AudioBlock
from fermata.domain.caller import Caller
from fermata.domain.errors import (
    ApiError,
    BadGateway,
    Conflict,
    InvalidRequest,
    NotFound,
    PayloadTooLarge,
    PaymentRequired,
    ServiceUnavailable,
    TooManyRequests,
    Unprocessable,
)
from fermata.domain.use_limits import DEFAULT_USER_LIMITS, CallerLimits
from fermata.privacy.erase_content import erase_conversation
from fermata.turns.generate import transcribe_recording
from fermata.turns.start import prompt_transcripts
from fermata.turns.start.idempotency import build_transcript_prefix, idempotency_partition
from fermata.turns.turn import Turn
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from tests.agent_definitions import make_definition, push_definitions, start_agent_turn
from tests.recordings import MP3, OGG, WAV, encode_recording
from tests.resources import resources_of_new_process
from tests.strict.transcription import TranscriptionAnswer, TranscriptionServer, run_transcription_server
from tests.unit.resource_fixtures import clock, resources, shared_resources
from tests.unit.turns.stage import ADA, Stage
from tests.uploads import put_upload

__all__ = ["clock", "resources", "shared_resources"]


@pytest.fixture(scope="module")
def server() -> Iterator[TranscriptionServer]:
    with run_transcription_server() as server:
        yield server


@pytest.fixture
def stage(resources: Resources, server: TranscriptionServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """A conversation with a model of OpenAI."""
    server.reset()
    urls = json.dumps({"openai": server.url, "gemini": server.url})
    process = resources_of_new_process(resources, fermata_stage="local", provider_urls=urls)
    stage = Stage(process, monkeypatch)
    use_provider(stage, server, "openai")
    yield stage
    stage.close()
    assert not server.refusals


def use_provider(stage: Stage, server: TranscriptionServer, provider: str) -> None:
    stage.credential = credential_store.create_credential(
        stage.resources, stage.caller, provider, "apiKey", provider, server.key
    )
    stage.new_conversation()


def recording(raw: bytes = WAV, mime_type: str = "audio/wav") -> AudioBlock:
    return AudioBlock(mime_type=mime_type, data=encode_recording(raw))


def say(stage: Stage, *audio: AudioBlock, text: str = "", **members: Any) -> Turn:
    return stage.start_turn(text, pictures=audio, **members)


def read_prompt(stage: Stage) -> str:
    """Return the text that the model is sent."""
    stage.script_replies("Done.")
    stage.run_workflow()
    [message] = [one for one in stage.driver.requests[-1].messages if one.role == "user"][-1:]
    assert {block.kind for block in message.content} == {"text"}
    return "\n\n".join(block.text for block in message.content if block.kind == "text")


def list_requests(stage: Stage) -> list[dict[str, Any]]:
    """Return the ledger rows of the transcriptions."""
    month = f"t#{ADA.tenant}#{stage.clock.now_iso()[:7]}"
    rows = stage.resources.tables.query_index(stage.resources.settings.usage_table, "byTime", ("gpk", month))
    return [row for row in rows if "prompt" in row and row["turn"] != getattr(stage._turn, "id", "")]


def test_what_is_said_is_the_prompt_of_the_model_the_history_and_the_title(
    stage: Stage, server: TranscriptionServer
) -> None:
    server.script_text("Make the header blue.", type="tokens", input_tokens=100, output_tokens=5)
    say(stage, recording())
    assert read_prompt(stage) == "Make the header blue."
    assert stage.load_conversation().title == "Make the header blue."
    page = read_message_page(stage.resources, stage.load_conversation(), "fermata")
    [text, audio] = page.lines[0]["content"]
    assert text == {"kind": "text", "text": "Make the header blue."}
    assert (audio["kind"], audio["mimeType"]) == ("audio", "audio/wav")
    message_id, index = audio["url"].split("/")[-3], audio["url"].split("/")[-1]
    assert read_message_image(stage.resources, stage.load_conversation(), message_id, index) == (WAV, "audio/wav")
    folder = conversation_folder(ADA.tenant, stage.conversation.id)
    assert [stage.resources.blobs.get_bytes(key) for key in stage.resources.blobs.list_keys(folder)] == [WAV]
    assert server.sent[0].fields["model"] == "gpt-4o-mini-transcribe"


def test_two_recordings_are_named_beside_what_was_written(stage: Stage, server: TranscriptionServer) -> None:
    server.script_text("It is late.")
    server.script_text("")
    say(stage, recording(), recording(OGG, "audio/ogg"), text="What is said here?")
    assert read_prompt(stage) == (
        "What is said here?\n\nTranscript of the recording 1:\n\nIt is late.\n\n"
        "Transcript of the recording 2:\n\n(no speech)"
    )


def test_one_file_is_sent_once_inline_or_uploaded_and_again_only_when_it_was_forgotten(
    stage: Stage, server: TranscriptionServer
) -> None:
    server.script_text("Hello.")
    turn = say(stage, recording(), idempotency_key="k")
    assert say(stage, recording(), idempotency_key="k").id == turn.id
    uploaded = AudioBlock(mime_type="audio/wav", blob=put_upload(stage.resources, ADA, "audio", WAV))
    assert say(stage, uploaded, idempotency_key="k").id == turn.id
    assert read_prompt(stage) == "Hello."
    say(stage, uploaded)
    assert read_prompt(stage) == "Hello."
    assert len(server.sent) == 1
    stage.pass_time(prompt_transcripts.KEPT_TRANSCRIPT_SECONDS + 1)
    server.script_text("Hello again.")
    say(stage, recording())
    assert read_prompt(stage) == "Hello again."


def test_what_is_kept_of_a_recording_goes_with_its_conversation_and_not_with_another(
    stage: Stage, server: TranscriptionServer
) -> None:
    def count_kept(conversation: str) -> int:
        folder = f"{snapshots_folder(ADA.tenant, ADA.user)}/{conversation}"
        partition = idempotency_partition(ADA.tenant, ADA.user)
        rows = stage.resources.tables.query_items(stage.resources.settings.bridges_table, partition)
        own = [row for row in rows if row["sk"].startswith(build_transcript_prefix(conversation))]
        assert len(own) == len([*stage.resources.blobs.list_keys(folder)])
        return len(own)

    said = []
    for text in ("Hello.", "Hello again."):
        server.script_text(text)
        say(stage, recording())
        assert read_prompt(stage) == text
        said.append(stage.conversation.id)
        stage.new_conversation()
    assert [count_kept(one) for one in said] == [1, 1]
    erase_conversation(stage.resources, ADA.tenant, said[0], ADA.user)
    assert [count_kept(one) for one in said] == [0, 1]


def test_gemini_hears_with_the_model_of_the_turn_and_its_tokens_cost_more_than_text(
    stage: Stage, server: TranscriptionServer
) -> None:
    use_provider(stage, server, "gemini")
    server.script_gemini("Hello.", prompt=1000, completion=10)
    say(stage, recording(MP3, "audio/mpeg"))
    assert read_prompt(stage) == "Hello."
    assert server.sent[0].path == "/v1beta/models/model-1:generateContent"
    [row] = list_requests(stage)
    assert (row["provider"], row["model"], row["prompt"], row["priced"]) == ("gemini", "model-1", 1000, False)


@pytest.mark.parametrize(
    ("usage", "cost", "is_estimated"),
    [
        ({"type": "tokens", "input_tokens": 1000, "output_tokens": 100}, Decimal("0.0035"), False),
        ({"type": "duration", "seconds": 60}, Decimal("0.003"), False),
        ({}, Decimal("0.003"), True),
    ],
)
def test_a_recording_has_a_ledger_row_of_its_own(
    stage: Stage, server: TranscriptionServer, usage: dict[str, Any], cost: Decimal, is_estimated: bool
) -> None:
    server.script_text("Hello.", **usage)
    say(stage, recording(WAV + bytes(240_000 - len(WAV))))
    [row] = list_requests(stage)
    assert (row["cost"], row["priced"], row["estimated"], row["billable"], row["outcome"]) == (
        cost, True, is_estimated, True, "ok",
    )  # fmt: skip
    assert (row["scope"], row["user"], row["model"]) == ("site", ADA.user, "gpt-4o-mini-transcribe")


def test_a_budget_holds_what_a_recording_of_its_size_may_cost(stage: Stage, server: TranscriptionServer) -> None:
    set_budgets(stage.resources, stage.caller, Budgets(tenant=BudgetLimits(monthly_usd=Decimal("0.004"))))
    stage.set_price(input_per_mtok=Decimal(0), output_per_mtok=Decimal(0))
    long = recording(WAV + bytes(100_000))  # up to a hundred seconds, for 0.005
    with pytest.raises(PaymentRequired):
        say(stage, long)
    assert not server.sent
    server.script_text("Hello.", seconds=60)
    say(stage, recording())
    assert read_prompt(stage) == "Hello."
    stage.new_conversation()
    with pytest.raises(PaymentRequired):
        say(stage, recording(WAV + bytes(40_000)))


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (TranscriptionAnswer(500, b"<html>"), ServiceUnavailable, "could not be transcribed"),
        (TranscriptionAnswer(429, b'{"error": {"message": "slow down"}}'), ServiceUnavailable, "transcribed"),
        (TranscriptionAnswer(body=b"<html>Welcome</html>"), BadGateway, "not JSON"),
        (TranscriptionAnswer(400, b'{"error": {"message": "Audio is corrupted"}}'), BadGateway, "corrupted"),
        (TranscriptionAnswer(body=b'{"text": "  "}'), Unprocessable, "No speech"),
        (TranscriptionAnswer(body=json.dumps({"text": "x" * 200_001}).encode()), Unprocessable, "200,000 characters"),
    ],
)
def test_a_failure_is_told_in_words_and_leaves_nothing_but_its_ledger_row(
    stage: Stage, server: TranscriptionServer, answer: TranscriptionAnswer, kind: type[ApiError], says: str
) -> None:
    server.script(answer)
    with pytest.raises(kind, match=says):
        say(stage, recording())
    assert (stage.load_messages(), stage.load_conversation().claim) == ([], None)
    assert len(list_requests(stage)) == 1
    if answer.status != 200:
        server.script_text("Hello.")
        say(stage, recording())
        assert read_prompt(stage) == "Hello."


def test_a_server_that_hangs_is_left_at_the_deadline_and_its_cost_estimated(
    stage: Stage, server: TranscriptionServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcribe_recording, "TRANSCRIPTION_SECONDS", 0.2)
    over = threading.Event()
    server.script(TranscriptionAnswer(before=over.wait))
    try:
        with pytest.raises(ServiceUnavailable, match=r"no whole answer|sent nothing"):
            say(stage, recording())
    finally:
        over.set()
    [row] = list_requests(stage)
    assert (row["outcome"], row["estimated"], row["billable"]) == ("provider_stalled", True, False)


def test_the_same_file_at_once_waits_for_the_first_and_a_dead_function_blocks_it_for_seconds(
    stage: Stage, server: TranscriptionServer
) -> None:
    refused: list[ApiError] = []

    def send_again() -> None:
        with pytest.raises(Conflict) as conflict:
            say(stage, recording())
        refused.append(conflict.value)

    server.script(TranscriptionAnswer(body=b'{"text": "Hello."}', before=send_again))
    say(stage, recording())
    assert [(error.status, error.retry_after) for error in refused] == [(409, 2)]
    assert len(server.sent) == 1


def test_a_claim_of_a_dead_function_is_taken_over(
    stage: Stage, server: TranscriptionServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_names: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(prompt_transcripts.PromptTranscripts, "_replace", die)
        server.script(TranscriptionAnswer(500))
        with pytest.raises(KeyboardInterrupt):
            say(stage, recording())
    with pytest.raises(Conflict, match="being transcribed"):
        say(stage, recording())
    stage.pass_time(91)
    server.script_text("Hello.")
    say(stage, recording())
    assert read_prompt(stage) == "Hello."


@pytest.mark.parametrize(
    ("audio", "kind", "says"),
    [
        (recording(MP3), InvalidRequest, "recording 1 .* does not hold the audio/wav"),
        (recording(b"\x89PNG\r\n\x1a\n"), InvalidRequest, "does not hold"),
        (AudioBlock(mime_type="audio/wav", blob="image-1-" + "0" * 64 + "-9999999999"), InvalidRequest, "kind audio"),
        (AudioBlock(mime_type="audio/wav", blob="audio-9-" + "0" * 64 + "-9999999999"), NotFound, "Nothing was"),
        (AudioBlock(mime_type="audio/wav", data="A" * (MAX_AUDIO_BYTES * 4 // 3 + 4)), PayloadTooLarge, "shorter"),
    ],
    ids=["another type", "a picture", "upload of a picture", "no upload", "too large"],
)
def test_what_is_no_recording_is_never_sent(
    stage: Stage, server: TranscriptionServer, audio: AudioBlock, kind: type[ApiError], says: str
) -> None:
    with pytest.raises(kind, match=says):
        say(stage, audio)
    assert not server.sent


def test_uploads_and_transcripts_of_others_are_not_there(stage: Stage, server: TranscriptionServer) -> None:
    others = Caller(tenant="mill", user=ADA.user, capabilities=ADA.capabilities)
    ref = put_upload(stage.resources, others, "audio", WAV)
    with pytest.raises(NotFound):
        say(stage, AudioBlock(mime_type="audio/wav", blob=ref))
    server.script_text("A secret.")
    say(stage, recording())
    stage.caller = Caller(tenant=ADA.tenant, user="bob", capabilities=ADA.capabilities)
    stage.new_conversation()
    server.script_text("Heard again.")
    say(stage, recording())
    assert read_prompt(stage) == "Heard again."


def test_each_request_counts_as_an_upload_of_the_day(stage: Stage, server: TranscriptionServer) -> None:
    limits = CallerLimits(user=replace(DEFAULT_USER_LIMITS, uploads_per_day=1))
    server.script_text("Hello.")
    for _ in range(2):
        say(stage, recording(), limits=limits)
        assert read_prompt(stage) == "Hello."
    with pytest.raises(TooManyRequests):
        say(stage, recording(OGG, "audio/ogg"), limits=limits)


def test_a_provider_that_does_not_hear_is_a_refusal_that_says_what_to_do(stage: Stage) -> None:
    stage.credential = credential_store.create_credential(
        stage.resources, stage.caller, "anthropic", "apiKey", "claude", "sk-ant-test"
    )
    stage.new_conversation()
    with pytest.raises(Unprocessable, match="name a connection as its 'transcription'"):
        say(stage, recording())


class TestAgentsOfTenants:
    """An agent whose model does not hear names a connection that does."""

    def push(self, stage: Stage, connection: dict[str, Any], **settings: Any) -> None:
        named = {"connectionId": "ears", "model": "whisper-1", **settings}
        claude = credential_store.create_credential(stage.resources, ADA, "anthropic", "apiKey", "claude", "sk-ant-x")
        agent = make_definition(
            credential=claude.id,
            properties={"transcription": named},
            connections={"ears": {"id": "ears", **connection}},
        )
        push_definitions(stage.resources, stage.caller, agent)

    def test_its_connection_hears(self, stage: Stage, server: TranscriptionServer) -> None:
        self.push(
            stage, {"type": "OpenAI", "credential": stage.credential.id}, providerOptions={"openai": {"language": "de"}}
        )
        server.script_text("Guten Tag.", seconds=30)
        start_agent_turn(stage, "helper", "", pictures=(recording(),))
        assert read_prompt(stage) == "Guten Tag."
        fields = server.sent[0].fields
        assert (fields["model"], fields["language"]) == ("whisper-1", "de")
        [row] = list_requests(stage)
        assert (row["cost"], row["scope"]) == (Decimal("0.003"), "agent:helper")

    def test_a_connection_of_a_provider_that_does_not_hear_is_refused(self, stage: Stage) -> None:
        self.push(stage, {"type": "Anthropic", "properties": {"apiKey": {"_secret": "KEY"}}})
        with pytest.raises(Unprocessable, match="has no models for recordings"):
            start_agent_turn(stage, "helper", "", pictures=(recording(),))
