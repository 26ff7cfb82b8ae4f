"""Programs ask the studio's agent with keys of the Conversation API, which permit what their rules say (0474)."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fermata.aws.api_key_rows import make_api_key_user
from fermata.aws.dynamodb_items_and_writes import TransactionCanceled
from fermata.content.change_sets.change_set_store import list_change_sets
from fermata.content.content_space import SpaceKey
from fermata.content.documents.read_document import read_document
from fermata.content.files.read_project import VOCABULARY_KEY
from fermata.content.space_members import SpaceMember, put_member
from fermata.domain.conversation_key import ConversationKeyRules
from fermata.domain.errors import Forbidden, InvalidRequest, Unauthorized
from fermata.domain.events import ToolResultEvent
from fermata.domain.model_io import TextDelta
from fermata.domain.plan_refusals import PlanLimitReached
from fermata.domain.workspace_plan import Subscription
from fermata.limits.monthly_messages import MonthlyMessages
from fermata.wire.auth.api_key_store import list_api_keys, revoke_api_key, rotate_api_key
from fermata.wire.auth.authenticate_api_key import authenticate_api_key
from fermata.wire.auth.conversation_key_store import (
    authenticate_conversation_key,
    change_conversation_key,
    create_conversation_key,
)
from functions.credentials import app as credentials
from tests.proxy_events import make_proxy_event
from tests.unit.client_protocols.conftest import Json, Requester
from tests.unit.client_protocols.studio_clients import (
    CHAT,
    FAQ,
    HISTORY,
    MESSAGE,
    OWNER,
    PROJECT,
    KeyClient,
    fill_project,
    read_answer,
)
from tests.unit.turns.stage import Stage, make_provider_error, reply_with_calls, tool_call_block

KEYS = "/admin/api/ai/api-keys"
SAVE = {"model": "faq", "locale": "en", "data": {FAQ.id: {"answer": "No."}}}
MakeKey = Callable[..., KeyClient]


@pytest.fixture
def make_key(stage: Stage, requester: Requester) -> MakeKey:
    """Makes programs with keys, for a project whose changes are reviewed."""
    fill_project(stage)
    return lambda **rules: KeyClient.with_rules(stage, requester, **rules)


def run_call(program: KeyClient, tool: str, **arguments: Any) -> ToolResultEvent:
    """Let the model call a tool for a program, and return what comes of it."""
    program.stage.script_replies(reply_with_calls(tool_call_block(tool, **arguments)), "Done.")
    program.ask("Do it")
    [result] = [event for event in program.stage.events() if isinstance(event, ToolResultEvent)]
    return result


def test_a_program_is_answered_as_a_whole_and_goes_on_with_its_conversation(make_key: MakeKey) -> None:
    program = make_key(instructions="Answer in one sentence.", model_id="model-2")
    call = tool_call_block("brain_query", model="faq", locale="en")
    program.stage.script_replies(reply_with_calls(call, text="I look."), "It is fresh.", "I said so.")
    first = program.ask("Is it fresh?", context={"activeModelId": "faq"})
    assert first["message"] == "I look.\n\nIt is fresh."
    assert [(one["id"], one["name"]) for one in first["toolResults"]] == [(call.tool_call_id, "brain_query")]
    assert first["usage"] == {"inputTokens": 20, "outputTokens": 10}
    told = program.stage.driver.requests[0]
    assert "Answer in one sentence." in told.volatile
    assert "Model: faq (collection)" in told.volatile
    assert program.stage.turn.model == "model-2"
    again = program.ask("What?", conversationId=first["conversationId"])
    assert again == {
        "conversationId": first["conversationId"],
        "message": "I said so.",
        "usage": {"inputTokens": 10, "outputTokens": 5},
    }
    history = program.send("GET", HISTORY, params={"conversationId": first["conversationId"], "limit": "5"}).json()
    assert [one["content"] for one in history["messages"]] == ["I look.", "It is fresh.", "What?", "I said so."]


def test_g046_a_key_is_for_one_project(make_key: MakeKey) -> None:
    program = make_key()
    fill_project(program.stage, space=SpaceKey("bakery", "other"))
    for method, path in (("POST", MESSAGE), ("GET", HISTORY)):
        parts = {"json": {"message": "Hello"}} if method == "POST" else {"params": {"conversationId": "c"}}
        response = program.send(method, path.replace("studio", "other"), **parts)
        assert response.status_code == 403
        assert "another project" in response.json()["error"]
    assert program.send("POST", MESSAGE.replace("studio", "studio.main"), json={"message": ""}).status_code == 400


def test_a_key_is_good_for_the_conversation_api_only_and_nothing_else_is(make_key: MakeKey) -> None:
    program = make_key(role="admin")
    assert program.send("POST", CHAT, json={"message": "Hello"}).status_code == 401
    disguised = program.key.replace("crn_conv_", "fmk_")
    for text in (program.key, disguised):
        with pytest.raises(Unauthorized):
            authenticate_api_key(program.stage.resources, text)
    with pytest.raises(Unauthorized):
        authenticate_conversation_key(program.stage.resources, disguised)
    for other in (disguised, program.key[:-1] + "!", "", program.key.replace("bakery", "other")):
        program.key = other
        assert program.post("Hello").status_code == 401
    assert program.requester.send("POST", MESSAGE, json={"message": "Hello"}).status_code == 401, "a user's token"


def test_a_key_is_stored_as_a_hash_and_shown_once(make_key: MakeKey) -> None:
    program = make_key(role="viewer")
    resources = program.stage.resources
    rows = json.dumps(resources.tables._client.scan(TableName=resources.settings.settings_table)["Items"], default=str)
    assert program.key.rpartition("_")[2] not in rows
    [key] = list_api_keys(resources, "bakery")
    view = key.to_view(None)
    assert program.key.startswith(view["prefix"])
    assert view["conversation"]["role"] == "viewer"


def test_a_revoked_key_is_refused_at_once_and_a_rotated_one_has_another_text(make_key: MakeKey) -> None:
    program = make_key()
    resources = program.stage.resources
    _, text = rotate_api_key(resources, OWNER, program.key_id, overlap_seconds=0)
    assert program.post("Hello").status_code == 401
    program.key = text
    program.stage.script_replies("Hello.")
    program.ask("Hello")
    revoke_api_key(resources, "bakery", program.key_id)
    assert program.post("Hello").status_code == 401


@pytest.mark.parametrize(
    ("rules", "call", "code"),
    [
        ({"role": "viewer"}, ("save_content", SAVE), None),
        ({"tools": ("brain_query",)}, ("save_content", SAVE), "permission_denied"),
        ({"models": ("landing",)}, ("save_content", SAVE), "model_access_denied"),
        ({"locales": ("tr",)}, ("save_content", SAVE), "locale_not_allowed"),
        ({"locales": ("tr",)}, ("save_content", {**SAVE, "locale": None}), None),
        ({"locales": ("en",)}, ("copy_locale", {"model": "faq", "from": "en", "to": "tr"}), "locale_not_allowed"),
        (
            {"role": "admin", "locales": ("tr",)},
            ("delete_model", {"model": "note", "confirm": True}),
            "locale_not_allowed",
        ),
        ({"locales": ("tr",)}, ("vocabulary", {"action": "update", "terms": {"cart": {"en": "Bag"}}}), None),
        ({"models": ("faq",)}, ("relation_expand", {"model": "landing", "entryId": "x", "fields": ["a"]}), None),
    ],
)
def test_the_rules_of_a_key_are_checked_when_a_tool_is_called(
    make_key: MakeKey, rules: Json, call: tuple[str, Json], code: str | None
) -> None:
    program = make_key(**rules)
    name, arguments = call
    result = run_call(program, name, **arguments)
    assert result.ok is False
    if code is not None:
        assert result.output["code"] == code
    assert read_answer(program.stage) == "Yes."
    assert list_change_sets(program.stage.resources, PROJECT) == []


def test_a_key_of_one_language_deletes_in_it_only_although_its_call_names_none(make_key: MakeKey) -> None:
    program = make_key(role="admin", locales=("en",))
    assert run_call(program, "delete_content", model="faq", entryIds=[FAQ.id]).ok
    content = read_document(program.stage.resources, PROJECT, FAQ).content
    assert content is not None
    assert set(content.locales) == {"tr"}
    assert run_call(program, "vocabulary", action="update", terms={"cart": None}).output["terms"].get("cart") is None
    kept = read_document(program.stage.resources, PROJECT, VOCABULARY_KEY).content
    assert kept is not None
    assert kept.get_locale("tr")["cart"] == "Sepet"


def test_a_key_of_an_admin_merges_where_an_editors_changes_wait(make_key: MakeKey) -> None:
    waiting = run_call(make_key(role="editor"), "save_content", **SAVE)
    assert (waiting.ok, waiting.output["merged"]) == (True, False)
    assert run_call(make_key(role="admin"), "save_content", **SAVE).output["merged"] is True


def test_a_key_needs_no_row_in_the_list_of_members(make_key: MakeKey) -> None:
    program = make_key(role="viewer")
    put_member(program.stage.resources, PROJECT, SpaceMember("bob", "editor"))
    program.stage.script_replies("Good morning.")
    assert "Good morning." in str(program.ask("Hello"))


def test_a_key_that_is_revoked_in_mid_turn_writes_no_more(make_key: MakeKey) -> None:
    program = make_key(role="admin")

    def revoke() -> TextDelta:
        revoke_api_key(program.stage.resources, "bakery", program.key_id)
        return TextDelta(text="I write. ")

    program.stage.script_replies([revoke, *reply_with_calls(tool_call_block("save_content", **SAVE))], "I may not.")
    answer = program.ask("Change the answer")
    assert answer["toolResults"][0]["result"]["code"] == "permission_denied"
    assert read_answer(program.stage) == "Yes."


def test_a_role_that_is_taken_away_in_mid_turn_counts_at_once(make_key: MakeKey) -> None:
    program = make_key(role="admin")

    def degrade() -> TextDelta:
        change_conversation_key(
            program.stage.resources, OWNER, program.key_id, lambda rules: rules.model_copy(update={"role": "viewer"})
        )
        return TextDelta(text="I write. ")

    program.stage.script_replies([degrade, *reply_with_calls(tool_call_block("save_content", **SAVE))], "I may not.")
    assert program.ask("Change")["toolResults"][0]["result"]["code"] == "permission_denied"


def test_a_conversation_of_another_key_means_a_new_one_and_is_not_shown(make_key: MakeKey) -> None:
    one, other = make_key(), make_key()
    one.stage.script_replies("Hello.", "Hello.")
    conversation = one.ask("Hello")["conversationId"]
    assert other.ask("Hello", conversationId=conversation)["conversationId"] != conversation
    assert other.send("GET", HISTORY, params={"conversationId": conversation}).status_code == 404
    assert other.send("GET", HISTORY).status_code == 400
    assert one.send("GET", HISTORY, params={"conversationId": conversation, "limit": "101"}).status_code == 400


@pytest.mark.parametrize("body", [{}, {"message": " "}, {"message": "a" * 10_001}, {"message": ["a"]}])
def test_a_body_that_is_no_message_is_refused(make_key: MakeKey, body: Any) -> None:
    assert make_key().send("POST", MESSAGE, json=body).status_code == 400


def test_a_key_has_a_limit_of_messages_a_minute(make_key: MakeKey) -> None:
    program = make_key(messages_per_minute=1)
    program.stage.script_replies("Hello.")
    assert [program.post("Hello").status_code for _ in range(2)] == [200, 429]
    assert "(1)" in program.post("Hello").json()["error"]


def test_a_key_has_a_limit_of_messages_a_month_which_repetitions_do_not_use(make_key: MakeKey) -> None:
    program = make_key(messages_per_month=2)
    program.stage.script_replies("Hello.", "Hello.")
    key = {"idempotency-key": "one"}
    assert program.post("Hello", key).text == program.post("Hello", key).text
    conversation = program.ask("Hello")["conversationId"]
    for members in ({}, {"conversationId": conversation}):
        refused = program.post("Hello", **members)
        assert refused.status_code == 429
        assert "has used its 2 messages by API of the month" in refused.json()["error"]
        assert int(refused.headers["retry-after"]) <= 31 * 86_400
    change_conversation_key(
        program.stage.resources, OWNER, program.key_id, lambda rules: rules.model_copy(update={"messages_per_month": 3})
    )
    program.stage.script_replies("Hello.")
    program.ask("Hello", conversationId=conversation)


def test_of_many_messages_at_once_as_many_are_counted_as_there_is_room_for(make_key: MakeKey) -> None:
    program = make_key()
    resources, user = program.stage.resources, make_api_key_user(program.key_id)
    month = MonthlyMessages(resources, "bakery", user, Subscription(), "api", 7)

    def count(_: int) -> bool:
        try:
            resources.tables.write_items(*month.build_writes())
        except (TransactionCanceled, PlanLimitReached):
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(count, range(50))) == 7
    assert month.count_used() == 7


def test_a_failed_turn_is_an_error(make_key: MakeKey) -> None:
    program = make_key()
    program.stage.script_replies([make_provider_error("provider_auth", retryable=False)])
    response = program.post("Hello")
    assert response.status_code == 502
    assert response.json()["error"]


def manage(requester: Requester, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    headers = requester.signer.bearer_headers(capabilities=requester.capabilities)
    answer = credentials.handler(make_proxy_event(method, path, headers, body), None)
    return answer["statusCode"], json.loads(answer["body"] or "null")


def test_keys_are_created_listed_and_changed_over_http(make_key: MakeKey, requester: Requester) -> None:
    make_key()
    rules = {"project": "studio", "role": "viewer", "tools": ["brain_query"], "locales": ["tr"], "modelId": "model-2"}
    status, body = manage(requester, "POST", KEYS, {"label": "Site", "conversation": rules})
    assert status == 201, body
    assert body["key"].startswith(f"crn_conv_bakery_{body['apiKey']['id']}_")
    assert body["apiKey"]["conversation"] == {
        "project": "studio/main", "role": "viewer", "models": None, "tools": ["brain_query"], "locales": ["tr"],
        "instructions": "", "modelId": "model-2", "messagesPerMinute": 10, "messagesPerMonth": 1000,
    }  # fmt: skip
    path = f"{KEYS}/{body['apiKey']['id']}"
    change = {"role": "editor", "tools": None, "messagesPerMinute": 60, "instructions": None}
    status, changed = manage(requester, "PATCH", path, {"label": "Shop", "conversation": change})
    assert status == 200, changed
    assert changed["apiKey"]["label"] == "Shop"
    shown = changed["apiKey"]["conversation"]
    assert (shown["role"], shown["tools"], shown["locales"], shown["messagesPerMinute"]) == ("editor", None, ["tr"], 60)
    listed = manage(requester, "GET", KEYS)[1]["apiKeys"]
    assert {one["conversation"]["role"] for one in listed} == {"editor"}
    assert {(one["messagesThisMonth"], one["renewsAt"] > one["createdAt"]) for one in listed} == {(0, True)}
    assert manage(requester, "DELETE", path)[0] == 200
    assert manage(requester, "PATCH", path, {"label": "Again"})[0] == 404


@pytest.mark.parametrize(
    ("rules", "status"),
    [
        ({"project": "ghost"}, 404),
        ({"project": "../x"}, 400),
        ({"project": "studio", "role": "owner"}, 400),
        ({"project": "studio", "role": "viewer", "tools": ["save_content"]}, 400),
        ({"project": "studio", "tools": ["make_coffee"]}, 400),
        ({"project": "studio", "tools": []}, 400),
        ({"project": "studio", "locales": ["de"]}, 400),
        ({"project": "studio", "models": ["ghost"]}, 400),
        ({"project": "studio", "messagesPerMinute": 61}, 400),
        ({"project": "studio", "messagesPerMonth": 0}, 400),
        ({"project": "studio", "instructions": "x" * 2_001}, 400),
        ({"project": "studio", "colour": "red"}, 400),
    ],
)
def test_rules_that_name_what_is_not_there_make_no_key(
    make_key: MakeKey, requester: Requester, rules: Json, status: int
) -> None:
    found, body = manage(requester, "POST", KEYS, {"label": "Site", "conversation": rules})
    assert (found, bool(body["error"])) == (status, True)
    assert manage(requester, "GET", KEYS)[1]["apiKeys"] == []


def test_only_who_manages_keys_and_content_makes_or_changes_such_a_key(make_key: MakeKey, requester: Requester) -> None:
    key_id = make_key(role="viewer").key_id
    editor = Requester(requester.signer, ("ai.chat", "ai.keys.manage", "ai.content.write"))
    body = {"label": "Site", "conversation": {"project": "studio", "role": "viewer"}}
    assert manage(editor, "POST", KEYS, body)[0] == 403
    assert manage(editor, "PATCH", f"{KEYS}/{key_id}", {"conversation": {"role": "admin"}})[0] == 403
    assert manage(editor, "POST", f"{KEYS}/{key_id}/rotate")[0] == 403
    assert manage(requester, "POST", KEYS, body | {"capabilities": ["ai.chat"]})[0] == 400
    assert manage(requester, "POST", KEYS, {"label": "Site"})[0] == 400
    with pytest.raises(Forbidden):
        create_conversation_key(
            make_key().stage.resources,
            OWNER.model_copy(update={"capabilities": frozenset({"ai.keys.manage"})}),
            "Site",
            ConversationKeyRules(project=PROJECT.name),
        )


def test_a_servers_key_has_no_rules_to_change(make_key: MakeKey, requester: Requester) -> None:
    program = make_key()
    status, body = manage(requester, "POST", KEYS, {"label": "Build", "capabilities": ["ai.chat"]})
    assert (status, body["apiKey"]["conversation"]) == (201, None)
    with pytest.raises(InvalidRequest):
        change_conversation_key(program.stage.resources, OWNER, body["apiKey"]["id"], lambda rules: rules)
