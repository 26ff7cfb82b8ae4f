"""Conversations over HTTP: listed, shown page by page, changed, deleted."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from fermata.aws.desk import Desk, open_desk
from fermata.conversations import threads, views
from fermata.credentials import keyring
from fermata.words.caller import Caller
from functions.api import app
from functions.stream import app as stream
from tests.callers import Signer, make_tenant
from tests.desk import TestClock
from tests.events import call
from tests.pictures import jpeg
from tests.unit.conversations.messages import Thread, picture, store
from tests.unit.turns.stage import Stage

AI = "/admin/api/ai"
ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset({"ai.chat"}))


@pytest.fixture
def bakery(desk: Desk, deployed: None) -> Signer:
    return make_tenant(desk)


def ask(
    method: str, path: str, signer: Signer, body: Any = None, query: Any = None, **claims: Any
) -> tuple[int, Any, Any]:
    event = call(method, f"{AI}/{path}", signer.bearer(**claims), body) | {"queryStringParameters": query}
    answer = app.handler(event, None)
    return answer["statusCode"], json.loads(answer["body"] or "null"), answer["headers"]


def begin(signer: Signer, clock: TestClock, **members: Any) -> str:
    clock.go_on(1)
    status, body, _ = ask("POST", "conversations", signer, {"scope": "site"} | members)
    assert status == 201
    return str(body["conversation"]["id"])


def filled(desk: Desk, turns: int) -> str:
    made = threads.create(desk, ADA, "site", None, None, "m").id
    thread = Thread()
    for number in range(turns):
        thread.user(f"Prompt {number}", *([picture()] if number == 0 else []))
        thread.model("Ok")
    store(desk, "bakery", made, thread.messages)
    return made


class TestTheList:
    def test_a_first_page_has_the_contracts_shape_and_nothing_else_when_it_is_the_only_one(
        self, bakery: Signer, clock: TestClock
    ) -> None:
        made = [begin(bakery, clock, title=f"Number {number}") for number in range(3)]
        status, body, headers = ask("GET", "conversations", bakery, query={"scope": "site"})
        assert (status, set(body)) == (200, {"conversations"})
        assert [one["id"] for one in body["conversations"]] == made[::-1]
        assert headers["Cache-Control"] == "private, no-store"

    def test_more_of_them_are_a_cursor_away(self, bakery: Signer, clock: TestClock) -> None:
        made = [begin(bakery, clock) for _ in range(5)]
        seen: list[str] = []
        query = {"scope": "site", "limit": "2"}
        for _ in range(3):
            _, body, _ = ask("GET", "conversations", bakery, query=query)
            seen += [one["id"] for one in body["conversations"]]
            query = query | {"cursor": body.get("nextCursor", "")}
        assert seen == made[::-1]
        assert "nextCursor" not in body

    def test_a_page_costs_one_query_and_one_look_at_the_credentials_it_names(
        self, desk: Desk, bakery: Signer, clock: TestClock
    ) -> None:
        mine, removed = (keyring.create(desk, ADA, "anthropic", "apiKey", name, "sk-ant-secret").id for name in "ab")
        for identity in (mine, removed, mine, removed):
            begin(bakery, clock, credentialId=identity, modelId="m")
        begin(bakery, clock)
        keyring.remove(desk, ADA, removed)
        asked: list[str] = []
        open_desk().tables._client.meta.events.register("before-call", lambda model, **_: asked.append(model.name))
        _, body, _ = ask("GET", "conversations", bakery, query={"scope": "site"})
        assert [one["credentialId"] for one in body["conversations"]] == [None, None, mine, None, mine]
        assert [name for name in asked if name != "GetItem"] == ["Query", "BatchGetItem"]

    def test_a_page_costs_one_query_however_many_there_are(self, bakery: Signer, clock: TestClock) -> None:
        asked: list[str] = []
        open_desk().tables._client.meta.events.register("before-call", lambda model, **_: asked.append(model.name))
        for count in (1, 40):
            for _ in range(count):
                begin(bakery, clock)
            ask("GET", "conversations", bakery, query={"scope": "site"})
            asked.clear()
            _, body, _ = ask("GET", "conversations", bakery, query={"scope": "site"})
            assert asked == ["Query"]
        assert len(body["conversations"]) == 41

    @pytest.mark.parametrize("query", [None, {}, {"scope": "shop"}, {"scope": ""}])
    def test_without_a_scope_it_names_the_four(self, bakery: Signer, query: Any) -> None:
        status, body, _ = ask("GET", "conversations", bakery, query=query)
        assert status == 400
        assert "site, content, data, plugin" in body["error"]

    @pytest.mark.parametrize(
        "query", [{"limit": "x"}, {"limit": "501"}, {"limit": "-1"}, {"limit": "²"}, {"cursor": "x"}]
    )
    def test_an_odd_page_is_refused(self, bakery: Signer, query: dict[str, str]) -> None:
        assert ask("GET", "conversations", bakery, query={"scope": "site"} | query)[0] == 400

    def test_listing_needs_its_capability(self, bakery: Signer) -> None:
        assert ask("GET", "conversations", bakery, query={"scope": "site"}, capabilities=())[0] == 403


class TestOne:
    def test_its_newest_messages_come_first_and_the_older_ones_are_a_cursor_away(
        self, desk: Desk, bakery: Signer
    ) -> None:
        made = filled(desk, 10)
        status, body, headers = ask("GET", f"conversations/{made}", bakery, query={"limit": "6"})
        assert (status, headers["Cache-Control"]) == (200, "private, no-store")
        assert [line["position"] for line in body["conversation"]["messages"]] == list(range(14, 20))
        _, older, _ = ask("GET", f"conversations/{made}", bakery, query={"before": body["nextCursor"]})
        assert [line["position"] for line in older["conversation"]["messages"]] == list(range(14))
        assert "nextCursor" not in older

    def test_without_a_page_the_whole_thread_comes_in_the_contracts_shape(self, desk: Desk, bakery: Signer) -> None:
        made = filled(desk, 10)
        _, body, _ = ask("GET", f"conversations/{made}", bakery)
        assert set(body) == {"conversation"}
        assert len(body["conversation"]["messages"]) == 20

    def test_an_instatic_browser_may_say_more_than_we_know(self, desk: Desk, bakery: Signer, clock: TestClock) -> None:
        cms = make_tenant(desk, "cms", dialect="instatic")
        made = begin(cms, clock, surprise=1)
        status, body, _ = ask("PUT", f"conversations/{made}", cms, {"title": "Home", "scope": "content"})
        assert (status, body["conversation"]["title"], body["conversation"]["scope"]) == (200, "Home", "site")

    @pytest.mark.parametrize("query", [{"before": "x"}, {"limit": "1001"}])
    def test_an_odd_page_is_refused(self, desk: Desk, bakery: Signer, query: dict[str, str]) -> None:
        assert ask("GET", f"conversations/{filled(desk, 1)}", bakery, query=query)[0] == 400

    def test_a_title_a_key_and_a_model_can_be_changed(self, desk: Desk, bakery: Signer, clock: TestClock) -> None:
        made = begin(bakery, clock)
        mine = keyring.create(desk, ADA, "anthropic", "apiKey", "Mine", "sk-ant-secret").id
        changes = {"title": " Home ", "credentialId": mine, "modelId": "m2"}
        status, body, _ = ask("PUT", f"conversations/{made}", bakery, changes)
        assert status == 200
        shown = body["conversation"]
        assert (shown["title"], shown["credentialId"], shown["modelId"]) == ("Home", mine, "m2")
        assert "messages" not in shown

    def test_a_credential_that_was_removed_is_none(self, desk: Desk, bakery: Signer, clock: TestClock) -> None:
        mine = keyring.create(desk, ADA, "anthropic", "apiKey", "Mine", "sk-ant-secret").id
        made = begin(bakery, clock, credentialId=mine, modelId="m")
        assert ask("GET", f"conversations/{made}", bakery)[1]["conversation"]["credentialId"] == mine
        keyring.remove(desk, ADA, mine)
        shown = ask("GET", f"conversations/{made}", bakery)[1]["conversation"]
        assert (shown["credentialId"], shown["modelId"]) == (None, "m")
        renamed = ask("PUT", f"conversations/{made}", bakery, {"title": "Home"})[1]["conversation"]
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
    def test_a_change_that_cannot_be_is_told_why(
        self, bakery: Signer, clock: TestClock, body: dict[str, str], says: str
    ) -> None:
        status, answer, _ = ask("PUT", f"conversations/{begin(bakery, clock)}", bakery, body)
        assert status == 400
        assert says in answer["error"]

    def test_a_new_one_with_a_key_that_is_not_there_is_told_so(self, bakery: Signer) -> None:
        body = {"scope": "site", "credentialId": "none", "modelId": "m"}
        status, answer, _ = ask("POST", "conversations", bakery, body)
        assert (status, answer) == (400, {"error": "Credential not found. Pick an existing credential."})

    def test_deleting_is_fine_as_often_as_you_like_and_then_it_is_gone(self, bakery: Signer, clock: TestClock) -> None:
        made = begin(bakery, clock)
        for _ in range(2):
            assert ask("DELETE", f"conversations/{made}", bakery)[:2] == (200, {"ok": True})
        for method in ("GET", "PUT"):
            assert ask(method, f"conversations/{made}", bakery, {})[:2] == (404, {"error": "Conversation not found"})
        assert ask("GET", "conversations", bakery, query={"scope": "site"})[1] == {"conversations": []}

    @pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
    def test_anothers_is_not_found(self, desk: Desk, bakery: Signer, clock: TestClock, method: str) -> None:
        made = begin(bakery, clock)
        florist = make_tenant(desk, "florist")
        for signer, user in ((bakery, "bob"), (florist, "ada")):
            answer = ask(method, f"conversations/{made}", signer, {}, user=user)
            assert answer[:2] == (404, {"error": "Conversation not found"})


class TestDeletingWhileATurnRuns:
    @pytest.fixture
    def stage(self, desk: Desk, deployed: None, monkeypatch: pytest.MonkeyPatch) -> Stage:
        made = Stage(desk, monkeypatch)
        monkeypatch.setattr("fermata.wire.edge.open_desk", lambda: desk)
        return made

    def test_the_turn_ends_and_no_prompt_is_let_in(self, stage: Stage, bakery: Signer) -> None:
        stage.start()
        path = f"conversations/{stage.conversation.id}"
        assert ask("DELETE", path, bakery)[0] == 200
        assert stage.types()[-1] == "cancelled"
        with pytest.raises(Exception, match="Conversation not found"):
            stage.start()
        assert ask("DELETE", path, bakery)[:2] == (200, {"ok": True})

    def test_a_prompt_that_was_let_in_just_before_is_ended_too(
        self, stage: Stage, bakery: Signer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It comes between the look at the conversation and its deletion."""
        write, started = stage.desk.tables.write, list[bool]()

        def meanwhile(*writes: Any) -> None:
            if not started:
                started.append(True)
                stage.start()
            write(*writes)

        monkeypatch.setattr(stage.desk.tables, "write", meanwhile)
        assert ask("DELETE", f"conversations/{stage.conversation.id}", bakery)[0] == 200
        assert stage.types()[-1] == "cancelled"


class TestConnectors:
    def test_there_are_none(self, bakery: Signer) -> None:
        assert ask("GET", "mcp/connectors", bakery)[:2] == (200, {"connectors": []})

    def test_who_may_not_manage_providers_may_not_see_them(self, bakery: Signer) -> None:
        assert ask("GET", "mcp/connectors", bakery, capabilities=("ai.chat",))[0] == 403

    def test_none_can_be_made(self, bakery: Signer) -> None:
        assert ask("POST", "mcp/connectors", bakery, {})[0] == 405


class TestTheStreamDoor:
    def ask(self, path: str, signer: Signer, method: str = "GET", **claims: Any) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(stream.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://service") as http:
                return await http.request(method, path, headers=signer.bearer(**claims))

        return asyncio.run(send())

    def test_a_picture_goes_out_as_its_bytes(self, desk: Desk, bakery: Signer) -> None:
        made = filled(desk, 1)
        lines = views.page(desk, threads.find(desk, ADA, made), "fermata").lines
        (url,) = [block["url"] for line in lines for block in line["content"] if block["kind"] == "image"]
        answer = self.ask(url, bakery)
        assert (answer.status_code, answer.content) == (200, jpeg())
        assert answer.headers["content-type"] == "image/jpeg"
        assert answer.headers["cache-control"] == "private, no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert self.ask(url + "9", bakery).json() == {"error": "Conversation image not found"}
        assert self.ask(url, bakery, "POST").status_code == 405

    def test_a_picture_of_somebody_else_is_not_found(self, desk: Desk, bakery: Signer) -> None:
        url = f"{AI}/conversations/{filled(desk, 1)}/messages/turn-1-0/images/1"
        assert self.ask(url, bakery).status_code == 200
        assert self.ask(url, bakery, user="bob").status_code == 404

    def test_only_an_instatic_editor_has_a_bridge(self, bakery: Signer) -> None:
        assert self.ask(f"{AI}/editor-bridge", bakery).status_code == 404
