"""A request of no stored turn is marked before it is sent, and is in the ledger once, also if its function dies."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from fermata.aws import observability
from fermata.aws.dynamodb_items_and_writes import Delete
from fermata.content.search.search_index import IndexSettings
from fermata.credentials.model_choice import resolve_model_choice
from fermata.domain.errors import ProviderError, ServiceUnavailable
from fermata.domain.one_shot_generation import GenerateRequest
from fermata.drivers.audio_transcription import AudioFile
from fermata.turns.generate import ask_model, embed_texts, transcribe_recording
from fermata.turns.generate.ask_model import generate_answer
from fermata.turns.generate.request_mark import REQUEST_SORT_KEY
from fermata.turns.recover.recover_open_turns import recover_open_turns
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from fermata.usage.budgets.budget_status import load_budget_status
from tests.faults import ProcessDied
from tests.unit.turns.stage import ADA, Stage, make_provider_error

MANY_AWS_CALLS = 40
"""More than a request makes."""


@pytest.fixture(autouse=True)
def scripted(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask_model, "get_provider", lambda _provider: stage.driver)
    stage.set_price(input_per_mtok=1, output_per_mtok=1)
    set_budgets(stage.resources, ADA, Budgets(tenant=BudgetLimits(daily_usd=Decimal(5))))


def ask(stage: Stage, *replies: Any, chars: int = 400) -> str:
    stage.script_replies(*replies)
    asked = GenerateRequest((("user", "x" * chars),), credential=stage.credential.id, model="model-1")
    return generate_answer(stage.resources, ADA, asked, stage.connection).text


def sweep_later(stage: Stage, seconds: float = 301) -> None:
    stage.pass_time(seconds)
    recover_open_turns(stage.resources)


def list_requests(stage: Stage) -> list[tuple[str, int, bool, bool]]:
    """Return outcome, prompt tokens, whether it is estimated and whether it is billable, of each row of a request."""
    rows = sorted((row for row in list_rows(stage) if row["sk"] != "end"), key=lambda row: row["tried"] or 99)
    return [(row["outcome"], row["prompt"], row["estimated"], row["billable"]) for row in rows]


def list_ends(stage: Stage) -> list[tuple[str, str, bool]]:
    return [(row["how"], row["code"], row["billable"]) for row in list_rows(stage) if row["sk"] == "end"]


def list_rows(stage: Stage) -> list[dict[str, Any]]:
    month = ("gpk", f"t#bakery#{stage.resources.clock.now_iso()[:7]}")
    return stage.resources.tables.query_index(stage.resources.settings.usage_table, "byTime", month)


def list_open_marks(stage: Stage) -> list[str]:
    table = stage.resources.settings.bridges_table
    shards = [stage.resources.tables.query_index(table, "open", ("open", f"open#{shard}")) for shard in range(4)]
    return [row["sk"] for rows in shards for row in rows]


def read_account(stage: Stage) -> tuple[float, float]:
    today = load_budget_status(stage.resources, "bakery")["tenant"]["today"]
    return today["spentUsd"], today["heldUsd"]


def test_a_request_whose_function_died_is_in_the_ledger_after_five_minutes(stage: Stage) -> None:
    with pytest.raises(ProcessDied):
        ask(stage, [ProcessDied()])
    sweep_later(stage, 299)
    assert list_rows(stage) == []
    assert read_account(stage)[1] > 0
    sweep_later(stage, 2)
    sweep_later(stage)
    assert list_requests(stage) == [("died", 100, True, False)]
    assert list_ends(stage) == [("error", "interrupted", False)]
    spent, held = read_account(stage)
    assert (round(spent, 6), held) == (0.0001, 0)
    assert list_open_marks(stage) == []


def test_a_request_before_the_one_during_which_its_function_died_has_its_own_row(stage: Stage) -> None:
    with pytest.raises(ProcessDied):
        ask(stage, [make_provider_error("provider_overloaded")], [ProcessDied()])
    sweep_later(stage)
    assert list_requests(stage) == [("provider_overloaded", 0, False, False), ("died", 100, True, False)]


@pytest.mark.parametrize("when", ["before", "after"])
def test_whichever_call_its_function_dies_at_each_request_that_was_sent_has_one_row(stage: Stage, when: str) -> None:
    """A request that was announced and not sent may have an estimate."""
    ask(stage, "In Bern.")
    for number in range(1, MANY_AWS_CALLS):
        sweep_later(stage)
        stage.driver.scripts.clear()
        sent, known = len(stage.driver.requests), len(list_requests(stage))
        stage.faults.interrupt_at_call(number, die, when=when)
        try:
            ask(stage, [make_provider_error("provider_overloaded")], "In Bern.")
        except ProcessDied:
            sweep_later(stage)
        else:
            break
        rows, requests = len(list_requests(stage)) - known, len(stage.driver.requests) - sent
        assert rows in (requests, requests + 1), number
        assert rows <= 2, number
        assert list_open_marks(stage) == []
        assert read_account(stage)[1] == 0
    else:
        raise AssertionError("a request makes more calls than were tried")
    stage.faults.clear()
    codes = [code for _, code, _ in list_ends(stage)]
    assert codes.count("interrupted") == 3


def die() -> None:
    raise ProcessDied


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Warnings that are logged, each with how its turn has ended instead."""
    logged: list[tuple[str, str]] = []

    def log(event: str, **facts: Any) -> None:
        logged.append((event, facts.get("ended_as", "")))

    monkeypatch.setattr(observability, "log_warning", log)
    return logged


def test_a_function_that_wakes_up_after_its_request_was_accounted_for_adds_no_row(
    stage: Stage, warnings: list[tuple[str, str]]
) -> None:
    stage.faults.interrupt("dynamodb.TransactWriteItems", lambda: sweep_later(stage), contains="ended#")
    assert ask(stage, "In Bern.") == "In Bern."
    assert list_requests(stage) == [("died", 100, True, False)]
    assert read_account(stage)[1] == 0
    assert warnings == [("request.accounted_as_dead", "")]


def test_an_end_that_is_refused_for_another_reason_is_not_logged_as_the_sweeps(
    stage: Stage, warnings: list[tuple[str, str]]
) -> None:
    def erase_marks() -> None:
        table = stage.resources.settings.bridges_table
        shards = [stage.resources.tables.query_index(table, "open", ("open", f"open#{shard}")) for shard in range(4)]
        for row in (row for rows in shards for row in rows):
            stage.resources.tables.write_items(Delete(table, row["pk"], row["sk"]))

    stage.faults.interrupt("dynamodb.TransactWriteItems", erase_marks, contains="ended#")
    assert ask(stage, "In Bern.") == "In Bern."
    assert warnings == [("request.end_refused", "")]


def test_a_function_that_wakes_up_sends_no_further_request(stage: Stage) -> None:
    stage.faults.interrupt("dynamodb.UpdateItem", lambda: sweep_later(stage), contains="sent")
    with pytest.raises(ServiceUnavailable, match="too long"):
        ask(stage, [make_provider_error("provider_overloaded")], "In Bern.")
    assert len(stage.driver.requests) == len(list_requests(stage)) == 1


def test_an_answered_request_leaves_a_mark_that_names_nobody_and_that_no_copy_opens_again(stage: Stage) -> None:
    ask(stage, "In Bern.")
    tables, settings = stage.resources.tables, stage.resources.settings
    [turn] = {row["turn"] for row in list_rows(stage)}
    mark = tables.get_item(settings.bridges_table, f"t#bakery#turn#{turn}", REQUEST_SORT_KEY)
    assert mark is not None
    assert mark.keys() == {"pk", "sk", "v", "sent", "ttl"}
    sweep_later(stage)
    assert [outcome for outcome, *_ in list_requests(stage)] == ["ok"]


def embed(stage: Stage) -> None:
    settings = IndexSettings(model="model-1", credential=stage.credential.id)
    embed_texts.check_embedding_model(stage.resources, ADA, settings)


def transcribe(stage: Stage) -> None:
    choice = resolve_model_choice(stage.resources, "bakery", "site", stage.credential.id, "model-1")
    transcriber = transcribe_recording.Transcriber(choice, lambda: None)  # type: ignore[arg-type, return-value]
    audio = AudioFile(b"x" * 8_000, "audio/mpeg")
    transcribe_recording.transcribe_recording(stage.resources, ADA, "site", transcriber, audio)


@pytest.mark.parametrize(
    ("send", "sender"),
    [
        (embed, "embed_texts.request_text_embeddings"),
        (transcribe, "transcribe_recording.request_transcript"),
        (ask, "ask_model.stream_with_retries"),
    ],
)
def test_each_kind_of_request_is_marked_before_its_first_byte(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, send: Callable[[Stage], object], sender: str
) -> None:
    seen: list[list[str]] = []

    def fail(*_given: Any, **_named: Any) -> Any:
        seen.append(list_open_marks(stage))
        raise ProviderError("provider_stalled", "Nothing came.", retryable=False)

    monkeypatch.setattr(f"fermata.turns.generate.{sender}", fail)
    with pytest.raises(Exception, match="Nothing came"):
        send(stage)
    assert seen == [[REQUEST_SORT_KEY]]
    assert list_open_marks(stage) == []
    assert len(list_requests(stage)) == 1
