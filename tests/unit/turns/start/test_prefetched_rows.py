"""Test that a start reads rows as new as its request, whichever credential was guessed."""

from collections import Counter
from typing import Any

import pytest

from fermata.conversations import conversation_store
from fermata.credentials import credential_store, scope_defaults
from fermata.domain.errors import NotFound
from tests.unit.turns.stage import Stage

SNAPSHOT = {"page": {"id": "home"}}


@pytest.fixture
def reads(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Reads of DynamoDB by operation."""
    counts = Counter[str]()
    call = stage.resources.tables._client._make_api_call

    def count(operation: str, params: Any) -> Any:
        counts[operation] += operation in ("GetItem", "BatchGetItem", "Query")
        return call(operation, params)

    monkeypatch.setattr(stage.resources.tables._client, "_make_api_call", count)
    return counts


def test_a_second_prompt_reads_its_rows_with_one_request(stage: Stage, reads: Counter[str]) -> None:
    stage.start_turn("One", snapshot=SNAPSHOT)
    stage.new_conversation()
    reads.clear()
    stage.start_turn("Two", snapshot=SNAPSHOT, idempotency_key="k")
    assert +reads == {"BatchGetItem": 1}


def test_a_wrong_guess_costs_one_more_read(stage: Stage, reads: Counter[str]) -> None:
    stage.start_turn("One")
    other = credential_store.create_credential(stage.resources, stage.caller, "anthropic", "apiKey", "other", "sk-2")
    stage.conversation = conversation_store.create_conversation(
        stage.resources, stage.caller, "site", None, other.id, "model-1"
    )
    reads.clear()
    assert stage.start_turn("Two").credential == other.id
    assert +reads == {"BatchGetItem": 1, "GetItem": 1}


def test_a_guessed_credential_is_read_anew(stage: Stage) -> None:
    stage.start_turn("One")
    stage.new_conversation()
    credential_store.update_credential(stage.resources, stage.caller, stage.credential.id, None, "sk-ant-new")
    assert stage.start_turn("Two").credential_version == 2
    stage.new_conversation()
    credential_store.delete_credential(stage.resources, stage.caller, stage.credential.id)
    with pytest.raises(NotFound):
        stage.start_turn("Three")


def test_a_new_default_applies_to_the_next_prompt(stage: Stage) -> None:
    def start(text: str) -> str:
        stage.conversation = conversation_store.create_conversation(
            stage.resources, stage.caller, "site", None, None, ""
        )
        return stage.start_turn(text).credential

    scope_defaults.set_default(stage.resources, stage.caller, "site", stage.credential.id, "model-1")
    assert start("One") == stage.credential.id
    other = credential_store.create_credential(stage.resources, stage.caller, "anthropic", "apiKey", "other", "sk-2")
    scope_defaults.set_default(stage.resources, stage.caller, "site", other.id, "model-1")
    assert start("Two") == other.id
