"""Rows as they are stored since the first deployment are read, and written back as they were (decision 0132)."""

import json
import zlib
from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from fermata.aws.dynamodb_items_and_writes import Put
from fermata.aws.resources import Resources
from fermata.credentials.open_credential import read_credential
from fermata.domain.base import StoredModel, StoredNames
from fermata.domain.model_io import TokenUsage
from fermata.pricing.catalogue import read_stored_catalogue, store_catalogue
from fermata.pricing.token_cost import Price
from fermata.turns.edit_journal import build_edit_put, build_mark_put, list_journal_entries, load_inverse_steps
from fermata.turns.pause import build_pause_put, pause_from_item
from fermata.turns.turn import TurnPartition, turn_from_item, turn_to_item
from fermata.usage.budgets.budget_limits import read_budgets
from fermata.usage.ledger.ledger_store import RequestUsage, TurnOutcome, build_request_put, build_turn_end_put
from tests.unit.resource_fixtures import clock, resources, shared_resources

__all__ = ["clock", "resources", "shared_resources"]

EXPIRES = 4_000_000_000
CALLS: list[dict[str, Any]] = [
    {
        "tool_call_id": "c1",
        "tool_name": "edit",
        "runner": "browser",
        "mutates": True,
        "effect_key": "T/2/0",
        "wait_seconds": 60.0,
        "state": "requested",
        "request_id": "2.0.nonce",
        "deadline": 1000.0,
        "revision": "r1",
        "summary": '{"a":1}',
        "ignored_members": ["b"],
    },
    {
        "tool_call_id": "c2",
        "tool_name": "read",
        "runner": "settled",
        "mutates": False,
        "effect_key": "T/2/1",
        "wait_seconds": 0.0,
        "output": {"ok": False, "error": "No such tool."},
    },
    {
        "tool_call_id": "c3",
        "tool_name": "read",
        "runner": "server",
        "mutates": False,
        "effect_key": "T/2/2",
        "wait_seconds": 5.0,
        "input": {"nodeId": "n"},
        "state": "answered",
        "answer_hash": "h",
    },
]
PAUSE_DATA = {
    "user": "u",
    "scope": "site",
    "conversation": "C",
    "round": 2,
    "planned": "r0",
    "takes_back": {
        "turn": "T0",
        "edit": "000001#0000",
        "effect_key": "T0/1/0",
        "inverse_calls": [{"turn": "T0", "edit": "000001#0000", "step": 0}],
        "deadline": 900,
        "first": 3,
    },
    "token": "callback",
    "epoch": "E",
    "held": True,
    "entry": 7,
    "next": 9,
    "standing": {"r": 2, "p": "calls", "o": 3},
    "expires": EXPIRES,
}
PAUSE = {"pk": "t#acme#turn#T", "sk": "p#000002", "v": 1, "turn": "T", "tenant": "acme", "version": 4, "ttl": EXPIRES}

EDIT = {
    "effect_key": "T/1/0",
    "seq": 5,
    "round": 1,
    "call": 3,
    "tool_call_id": "c1",
    "tool_name": "edit",
    "input": '{"a":1}',
    "revision_before": "r1",
    "revision_after": "r2",
    "at": "2026-11-01T00:00:00.000Z",
    "problem": "none given",
    "link": {"turn": "T0", "edit": "000001#0000", "step": 2, "redoes": True},
}
MARK = {
    "by": "T2",
    "begun": True,
    "steps": [
        {
            "step": 0,
            "state": "open",
            "turn": "T2",
            "edit": "000001#0001",
            "redoes": True,
            "tool": "restore",
        },
        {"step": 1},
    ],
    "reason": "conflict",
    "revision": "r3",
    "redone": "T1",
}

TURN = {
    "id": "T",
    "tenant": "acme",
    "user": "u",
    "scope": "site",
    "agent": "site@0123456789abcdef",
    "conversation": "C",
    "provider": "anthropic",
    "model": "m",
    "credential": "k",
    "credential_version": 2,
    "capabilities": ["ai.chat"],
    "dialect": "fermata",
    "tool_names": "seed",
    "generation": "0.0.6",
    "withheld_tools": [],
    "has_browser_tools": True,
    "remote_tools": [],
    "prompt_version": "p",
    "situation": "s",
    "max_rounds": 5,
    "thinking_tokens": 0,
    "started_ms": 1000,
    "expires": EXPIRES,
    "budgeted": True,
    "undoes": "T0",
    "undone_expires": EXPIRES - 9,
    "through": "000001#0000",
    "prompt_digest": "d",
    "limits_shard": 5,
    "is_cancelled_on_disconnect": False,
}

REQUEST_ROW = {
    "tenant": "acme",
    "user": "u",
    "scope": "site",
    "conversation": "C",
    "turn": "T",
    "round": 1,
    "attempt": 2,
    "tried": 3,
    "provider": "anthropic",
    "model": "m",
    "credential": "k",
    "cost": Decimal("0.5"),
    "price": {"input_per_mtok": Decimal(3), "output_per_mtok": Decimal(15), "cache_read_per_mtok": Decimal("0.3")},
    "priced": True,
    "billable": False,
    "estimated": True,
    "outcome": "failed",
    "budgeted": True,
    "at": "2026-11-28T00:00:00.000Z",
    "prompt": 10,
    "completion": 20,
    "cacheRead": 1,
    "cacheCreation": 2,
    "cachedWithin": True,
    "pk": "t#acme#turn#T",
    "sk": "r000001#a002#t03",
    "gpk": "t#acme#2026-11",
    "gsk": "2026-11-28T00:00:00.000Z#T#r000001#a002#t03",
    "v": 1,
}
TURN_END_ROW = {
    "tenant": "acme",
    "user": "u",
    "scope": "site",
    "conversation": "C",
    "turn": "T",
    "provider": "anthropic",
    "model": "m",
    "how": "error",
    "code": "over_age",
    "billable": False,
    "rounds": 2,
    "budgeted": True,
    "at": "2026-11-28T00:00:00.000Z",
    "pk": "t#acme#ended#T",
    "sk": "end",
    "gpk": "t#acme#2026-11",
    "gsk": "2026-11-28T00:00:00.000Z#T#end",
    "v": 1,
}
CREDENTIAL_ROW = {
    "pk": "t#acme",
    "sk": "credential#k",
    "v": 1,
    "id": "k",
    "tenant": "acme",
    "user": "u",
    "provider_id": "openai",
    "auth_mode": "baseUrl",
    "display_label": "Mine",
    "base_url": "https://models.example",
    "sealed": b"sealed",
    "key_id": "kms",
    "version": 2,
    "created_at": "2026-11-01T00:00:00.000Z",
}
BUDGETS_ROW = {
    "pk": "t#acme",
    "sk": "budgets",
    "v": 1,
    "tenant": {"daily_usd": Decimal(5), "since": "2026-11-01T00:00:00.000Z"},
    "each_user": {"since": ""},
    "users": {"u": {"monthly_usd": Decimal(7), "since": "2026-11-02T00:00:00.000Z"}},
    "lifted": {"each": "2026-11"},
    "updated_at": "2026-11-02T00:00:00.000Z",
    "updated_by": "u",
    "version": 3,
}
CATALOGUE_MODEL = {
    "price": {"input_per_mtok": "3", "output_per_mtok": "15", "cache_read_per_mtok": "0.3"},
    "context_window": 200_000,
    "sees": True,
    "calls": False,
}


def put_row(resources: Resources, table: str, row: dict[str, Any]) -> None:
    resources.tables.write_items(Put(table, row))


def test_a_pause_is_read_and_written_back_with_its_stored_names(resources: Resources) -> None:
    row = PAUSE | {"data": _json(PAUSE_DATA), "calls": _json(CALLS)}
    pause = pause_from_item(resources, row)
    assert pause.undo_target is not None
    assert pause.undo_target.get_inverse_call(0).edit_key == "000001#0000"
    assert (pause.planned_on_revision, pause.is_held, pause.callback_token) == ("r0", True, "callback")
    assert pause.build_invocation_hint("") == {"round": 2, "entry": 7, "next": 9, "table": "e3b0c442"}
    assert pause.turn_state.open_calls == 3
    assert [call.is_edit for call in pause.calls] == [True, False, False]
    assert pause.calls[0].request_revision == "r1"
    assert pause.calls[1].known_output is not None
    assert build_pause_put(resources, pause, expected_version=4).item == row


def test_a_journal_edit_and_its_mark_are_read_and_written_back_with_their_stored_names(resources: Resources) -> None:
    partition = TurnPartition("acme", "T", EXPIRES)
    inverse = [{"tool": "edit", "input": {"a": 0}}, {"tool": "read", "input": {}}]
    keys = {"pk": partition.pk, "v": 1, "ttl": EXPIRES}
    edit_row = keys | {"sk": "j#000001#0003", "tools": ["edit", "read"], "inverse": _json(inverse), "data": _json(EDIT)}
    mark_row = keys | {"sk": "j#000001#0003#u", "data": _json(MARK)}
    for row in (edit_row, mark_row):
        put_row(resources, resources.settings.bridges_table, row)
    (entry,) = list_journal_entries(resources, "acme", "T")
    assert entry.mark is not None
    assert entry.edit.undo_link is not None
    assert entry.edit.undo_link.is_redo
    assert (entry.mark.marking_turn, entry.mark.has_begun, entry.mark.last_redo_turn) == ("T2", True, "T1")
    assert entry.inverse_tools == ("restore", "read")
    assert build_edit_put(resources, partition, entry.edit, load_inverse_steps(resources, entry)).item == edit_row
    assert build_mark_put(resources, partition, entry.key, entry.mark).item == mark_row


def test_a_turn_is_read_and_written_back_with_its_stored_names() -> None:
    keys = {"pk": "t#acme#turn#T", "sk": "turn", "v": 1, "ttl": EXPIRES}
    row = keys | {
        "n": 3,
        "state": "open",
        "data": _json(TURN),
        "open": "open#0",
        "openSince": "1970-01-01T00:00:01.000Z",
    }
    turn = turn_from_item(row, 0)
    assert turn is not None
    assert turn.execution_number == 3
    assert turn.has_budget
    assert (turn.undone_turn, turn.oldest_edit_to_undo) == ("T0", "000001#0000")
    assert turn_to_item(turn) == row | {"open": turn_to_item(turn)["open"]}


def test_ledger_rows_are_written_with_their_stored_names(resources: Resources) -> None:
    who = {"tenant": "acme", "user": "u", "scope": "site", "conversation": "C", "turn": "T"}
    at = "2026-11-28T00:00:00.000Z"
    usage = RequestUsage(
        **who,
        round=1,
        attempt=2,
        request_number=3,
        provider="anthropic",
        model="m",
        credential="k",
        tokens=TokenUsage(prompt=10, completion=20, cache_read=1, cache_creation=2, cached_within=True),
        cost=Decimal("0.5"),
        price=Price(input_per_mtok=Decimal(3), output_per_mtok=Decimal(15), cache_read_per_mtok=Decimal("0.3")),
        is_billable=False,
        is_estimated=True,
        outcome="failed",
        has_budget=True,
        recorded_at=at,
    )
    outcome = TurnOutcome(
        **who,
        provider="anthropic",
        model="m",
        end_type="error",
        error_code="over_age",
        is_billable=False,
        rounds=2,
        has_budget=True,
        recorded_at=at,
    )
    assert build_request_put(resources, usage).item == REQUEST_ROW
    assert build_turn_end_put(resources, outcome).item == TURN_END_ROW


def test_a_credential_is_read_and_written_back_with_its_stored_names(resources: Resources) -> None:
    put_row(resources, resources.settings.settings_table, CREDENTIAL_ROW)
    credential = read_credential(resources, "acme", "k")
    assert credential is not None
    assert (credential.sealed_key, credential.kms_key_id) == (b"sealed", "kms")
    # Rows without a revision are older than decision 0173.
    assert credential.to_row() == CREDENTIAL_ROW | {"revision": 0}


def test_budgets_are_read_and_written_back_with_their_stored_names(resources: Resources) -> None:
    put_row(resources, resources.settings.settings_table, BUDGETS_ROW)
    budgets = read_budgets(resources, "acme")
    assert budgets.lifted_month_by_owner == {"each": "2026-11"}
    assert budgets.to_row("acme") == BUDGETS_ROW


def test_the_price_catalogue_is_read_and_written_back_with_its_stored_names(resources: Resources) -> None:
    models = {"acme-1": CATALOGUE_MODEL}
    row = {"pk": "catalogue", "sk": "current", "v": 1, "refreshed": 5, "offers": _json(models)}
    row |= {"routed": zlib.compress(_json(models).encode())}
    put_row(resources, resources.settings.pricing_table, row)
    catalogue = read_stored_catalogue(resources)
    assert catalogue is not None
    model = catalogue.openrouter_models["acme-1"]
    assert (model.can_read_images, model.can_call_tools) == (True, False)
    store_catalogue(resources, catalogue)
    stored = resources.tables.get_item(resources.settings.pricing_table, "catalogue", "current")
    assert stored is not None
    assert stored | {"routed": bytes(stored["routed"])} == row | {"version": 1}


def test_a_row_with_the_name_of_a_field_instead_of_the_stored_name_is_not_understood(resources: Resources) -> None:
    calls = [{**call, "is_edit": call["mutates"]} for call in CALLS]
    for call in calls:
        del call["mutates"]
    with pytest.raises(ValidationError):
        pause_from_item(resources, PAUSE | {"data": _json(PAUSE_DATA), "calls": _json(calls)})


def test_a_stored_name_is_declared_for_existing_fields_only() -> None:
    with pytest.raises(TypeError, match="plannd_on_revision"):

        class Misspelt(StoredModel, alias_generator=StoredNames({"plannd_on_revision": "planned"})):
            planned_on_revision: str


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
