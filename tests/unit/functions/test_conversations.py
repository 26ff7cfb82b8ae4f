"""Conversations over HTTP: listed, shown page by page, changed, deleted."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from fermata.aws.resources import Resources, get_resources
from fermata.conversations import conversation_store, message_views
from fermata.credentials import credential_store
from fermata.domain.caller import Caller
from functions.api import app
from functions.stream_turns import app as stream_turns
from tests.images import make_jpeg_header
from tests.proxy_events import make_proxy_event
from tests.resources import TestClock
from tests.tenant_tokens import TokenSigner, make_tenant
from tests.unit.conversations.message_builders import ThreadBuilder, make_image, store_messages
from tests.unit.turns.stage import Stage

AI = "/admin/api/ai"
ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset({"ai.chat"}))


@pytest.fixture
def bakery(resources: Resources, deployed: None) -> TokenSigner:
    return make_tenant(resources)


def send(
    method: str, path: str, signer: TokenSigner, body: Any = None, query: Any = None, **claims: Any
) -> tuple[int, Any, Any]:
    event = make_proxy_event(method, f"{AI}/{path}", signer.bearer_headers(**claims), body) | {
        "queryStringParameters": query
    }
    answer = app.handler(event, None)
    return answer["statusCode"], json.loads(answer["body"] or "null"), answer["headers"]


def create_conversation(signer: TokenSigner, clock: TestClock, **members: Any) -> str:
    clock.advance(1)
    status, body, _ = send("POST", "conversations", signer, {"scope": "site"} | members)
    assert status == 201
    return str(body["conversation"]["id"])


def create_conversation_with_turns(resources: Resources, turns: int) -> str:
    made = conversation_store.create_conversation(resources, ADA, "site", None, None, "m").id
    thread = ThreadBuilder()
    for number in range(turns):
        thread.add_prompt(f"Prompt {number}", *([make_image()] if number == 0 else []))
        thread.add_reply("Ok")
    store_messages(resources, "bakery", made, thread.messages)
    return made


class TestListing:
    def test_a_single_page_has_no_cursor(self, bakery: TokenSigner, clock: TestClock) -> None:
        made = [create_conversation(bakery, clock, title=f"Number {number}") for number in range(3)]
        status, body, headers = send("GET", "conversations", bakery, query={"scope": "site"})
        assert (status, set(body)) == (200, {"conversations"})
        assert [one["id"] for one in body["conversations"]] == made[::-1]
        assert headers["Cache-Control"] == "private, no-store"

    def test_the_cursor_leads_to_the_next_page(self, bakery: TokenSigner, clock: TestClock) -> None:
        made = [create_conversation(bakery, clock) for _ in range(5)]
        seen: list[str] = []
        query = {"scope": "site", "limit": "2"}
        for _ in range(3):
            _, body, _ = send("GET", "conversations", bakery, query=query)
            seen += [one["id"] for one in body["conversations"]]
            query = query | {"cursor": body.get("nextCursor", "")}
        assert seen == made[::-1]
        assert "nextCursor" not in body

    def test_a_page_costs_one_query_and_one_read_of_its_credentials(
        self, resources: Resources, bakery: TokenSigner, clock: TestClock
    ) -> None:
        mine, removed = (
            credential_store.create_credential(resources, ADA, "anthropic", "apiKey", name, "sk-ant-secret").id
            for name in "ab"
        )
        for identity in (mine, removed, mine, removed):
            create_conversation(bakery, clock, credentialId=identity, modelId="m")
        create_conversation(bakery, clock)
        credential_store.delete_credential(resources, ADA, removed)
        asked: list[str] = []
        get_resources().tables._client.meta.events.register("before-call", lambda model, **_: asked.append(model.name))
        _, body, _ = send("GET", "conversations", bakery, query={"scope": "site"})
        assert [one["credentialId"] for one in body["conversations"]] == [None, None, mine, None, mine]
        assert [name for name in asked if name != "GetItem"] == ["Query", "BatchGetItem"]

    def test_a_page_costs_one_query_however_many_conversations_there_are(
        self, bakery: TokenSigner, clock: TestClock
    ) -> None:
        asked: list[str] = []
        get_resources().tables._client.meta.events.register("before-call", lambda model, **_: asked.append(model.name))
        for count in (1, 40):
            for _ in range(count):
                create_conversation(bakery, clock)
            send("GET", "conversations", bakery, query={"scope": "site"})
            asked.clear()
            _, body, _ = send("GET", "conversations", bakery, query={"scope": "site"})
            assert asked == ["Query"]
        assert len(body["conversations"]) == 41

    @pytest.mark.parametrize("query", [None, {}, {"scope": "shop"}, {"scope": ""}])
    def test_an_error_about_a_missing_scope_names_the_scopes(self, bakery: TokenSigner, query: Any) -> None:
        status, body, _ = send("GET", "conversations", bakery, query=query)
        assert status == 400
        assert "site, content, data, plugin" in body["error"]

    @pytest.mark.parametrize(
        "query", [{"limit": "x"}, {"limit": "501"}, {"limit": "-1"}, {"limit": "²"}, {"cursor": "x"}]
    )
    def test_an_invalid_page_is_refused(self, bakery: TokenSigner, query: dict[str, str]) -> None:
        assert send("GET", "conversations", bakery, query={"scope": "site"} | query)[0] == 400

    def test_listing_needs_its_capability(self, bakery: TokenSigner) -> None:
        assert send("GET", "conversations", bakery, query={"scope": "site"}, capabilities=())[0] == 403


class TestOneConversation:
    def test_the_first_page_has_the_newest_messages_and_a_cursor_to_older_ones(
        self, resources: Resources, bakery: TokenSigner
    ) -> None:
        made = create_conversation_with_turns(resources, 10)
        status, body, headers = send("GET", f"conversations/{made}", bakery, query={"limit": "6"})
        assert (status, headers["Cache-Control"]) == (200, "private, no-store")
        assert [line["position"] for line in body["conversation"]["messages"]] == list(range(14, 20))
        _, older, _ = send("GET", f"conversations/{made}", bakery, query={"before": body["nextCursor"]})
        assert [line["position"] for line in older["conversation"]["messages"]] == list(range(14))
        assert "nextCursor" not in older

    def test_a_short_conversation_is_shown_whole(self, resources: Resources, bakery: TokenSigner) -> None:
        made = create_conversation_with_turns(resources, 10)
        _, body, _ = send("GET", f"conversations/{made}", bakery)
        assert set(body) == {"conversation"}
        assert len(body["conversation"]["messages"]) == 20

    def test_unknown_members_of_an_instatic_browser_are_ignored(
        self, resources: Resources, bakery: TokenSigner, clock: TestClock
    ) -> None:
        cms = make_tenant(resources, "cms", dialect="instatic")
        made = create_conversation(cms, clock, surprise=1)
        status, body, _ = send("PUT", f"conversations/{made}", cms, {"title": "Home", "scope": "content"})
        assert (status, body["conversation"]["title"], body["conversation"]["scope"]) == (200, "Home", "site")

    @pytest.mark.parametrize("query", [{"before": "x"}, {"limit": "1001"}])
    def test_an_invalid_page_is_refused(self, resources: Resources, bakery: TokenSigner, query: dict[str, str]) -> None:
        assert (
            send("GET", f"conversations/{create_conversation_with_turns(resources, 1)}", bakery, query=query)[0] == 400
        )

    def test_a_title_a_key_and_a_model_can_be_changed(
        self, resources: Resources, bakery: TokenSigner, clock: TestClock
    ) -> None:
        made = create_conversation(bakery, clock)
        mine = credential_store.create_credential(resources, ADA, "anthropic", "apiKey", "Mine", "sk-ant-secret").id
        changes = {"title": " Home ", "credentialId": mine, "modelId": "m2"}
        status, body, _ = send("PUT", f"conversations/{made}", bakery, changes)
        assert status == 200
        shown = body["conversation"]
        assert (shown["title"], shown["credentialId"], shown["modelId"]) == ("Home", mine, "m2")
        assert "messages" not in shown

    def test_a_removed_credential_is_shown_as_none(
        self, resources: Resources, bakery: TokenSigner, clock: TestClock
    ) -> None:
        mine = credential_store.create_credential(resources, ADA, "anthropic", "apiKey", "Mine", "sk-ant-secret").id
        made = create_conversation(bakery, clock, credentialId=mine, modelId="m")
        assert send("GET", f"conversations/{made}", bakery)[1]["conversation"]["credentialId"] == mine
        credential_store.delete_credential(resources, ADA, mine)
        shown = send("GET", f"conversations/{made}", bakery)[1]["conversation"]
        assert (shown["credentialId"], shown["modelId"]) == (None, "m")
        renamed = send("PUT", f"conversations/{made}", bakery, {"title": "Home"})[1]["conversation"]
        assert (renamed["credentialId"], renamed["title"]) == (None, "Home")

    @pytest.mark.parametrize(
        ("body", "says"),
        [
            ({"title": " "}, "'title' must not be empty"),
            ({"modelId": ""}, "'modelId' must not be empty"),
            ({"scope": "content"}, "'scope' is not known here"),
            ({"credentialId": "none"}, "Credential not found. Pick an existing credential."),
        ],
    )
    def test_an_invalid_change_is_refused_with_a_reason(
        self, bakery: TokenSigner, clock: TestClock, body: dict[str, str], says: str
    ) -> None:
        status, answer, _ = send("PUT", f"conversations/{create_conversation(bakery, clock)}", bakery, body)
        assert status == 400
        assert says in answer["error"]

    def test_a_new_conversation_with_a_missing_credential_is_refused(self, bakery: TokenSigner) -> None:
        body = {"scope": "site", "credentialId": "none", "modelId": "m"}
        status, answer, _ = send("POST", "conversations", bakery, body)
        assert (status, answer) == (400, {"error": "Credential not found. Pick an existing credential."})

    def test_a_conversation_may_be_deleted_repeatedly(self, bakery: TokenSigner, clock: TestClock) -> None:
        made = create_conversation(bakery, clock)
        for _ in range(2):
            assert send("DELETE", f"conversations/{made}", bakery)[:2] == (200, {"ok": True})
        for method in ("GET", "PUT"):
            assert send(method, f"conversations/{made}", bakery, {})[:2] == (404, {"error": "Conversation not found"})
        assert send("GET", "conversations", bakery, query={"scope": "site"})[1] == {"conversations": []}

    @pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
    def test_a_conversation_of_another_user_is_not_found(
        self, resources: Resources, bakery: TokenSigner, clock: TestClock, method: str
    ) -> None:
        made = create_conversation(bakery, clock)
        florist = make_tenant(resources, "florist")
        for signer, user in ((bakery, "bob"), (florist, "ada")):
            answer = send(method, f"conversations/{made}", signer, {}, user=user)
            assert answer[:2] == (404, {"error": "Conversation not found"})


class TestDeletingWhileATurnRuns:
    @pytest.fixture
    def stage(self, resources: Resources, deployed: None, monkeypatch: pytest.MonkeyPatch) -> Stage:
        made = Stage(resources, monkeypatch)
        monkeypatch.setattr("fermata.wire.http.dispatch.get_resources", lambda: resources)
        return made

    def test_the_turn_ends_and_new_prompts_are_refused(self, stage: Stage, bakery: TokenSigner) -> None:
        stage.start_turn()
        path = f"conversations/{stage.conversation.id}"
        assert send("DELETE", path, bakery)[0] == 200
        assert stage.event_types()[-1] == "cancelled"
        with pytest.raises(Exception, match="Conversation not found"):
            stage.start_turn()
        assert send("DELETE", path, bakery)[:2] == (200, {"ok": True})

    def test_a_turn_that_was_started_just_before_is_ended_too(
        self, stage: Stage, bakery: TokenSigner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The prompt arrives between the read of the conversation and its deletion."""
        write, started = stage.resources.tables.write_items, list[bool]()

        def meanwhile(*writes: Any) -> None:
            if not started:
                started.append(True)
                stage.start_turn()
            write(*writes)

        monkeypatch.setattr(stage.resources.tables, "write_items", meanwhile)
        assert send("DELETE", f"conversations/{stage.conversation.id}", bakery)[0] == 200
        assert stage.event_types()[-1] == "cancelled"


class TestStreamFunction:
    def send(self, path: str, signer: TokenSigner, method: str = "GET", **claims: Any) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(stream_turns.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://service") as http:
                return await http.request(method, path, headers=signer.bearer_headers(**claims))

        return asyncio.run(send())

    def test_an_image_is_served_as_its_bytes(self, resources: Resources, bakery: TokenSigner) -> None:
        made = create_conversation_with_turns(resources, 1)
        lines = message_views.read_message_page(
            resources, conversation_store.get_conversation(resources, ADA, made), "fermata"
        ).lines
        (url,) = [block["url"] for line in lines for block in line["content"] if block["kind"] == "image"]
        answer = self.send(url, bakery)
        assert (answer.status_code, answer.content) == (200, make_jpeg_header())
        assert answer.headers["content-type"] == "image/jpeg"
        assert answer.headers["cache-control"] == "private, no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert self.send(url + "9", bakery).json() == {"error": "Conversation image not found"}
        assert self.send(url, bakery, "POST").status_code == 405

    def test_an_image_of_another_user_is_not_found(self, resources: Resources, bakery: TokenSigner) -> None:
        url = f"{AI}/conversations/{create_conversation_with_turns(resources, 1)}/messages/turn-1-0/images/1"
        assert self.send(url, bakery).status_code == 200
        assert self.send(url, bakery, user="bob").status_code == 404
