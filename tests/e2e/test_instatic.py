"""Browsers of each of Instatic's generations, on the local cloud: cookies, names, stops, pictures, long threads."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fermata.conversations import rows, threads
from fermata.credentials import keyring
from fermata.words.blocks import TextBlock
from fermata.words.caller import Caller
from fermata.words.messages import Message
from local.cloud import LocalCloud
from local.seed import CAPABILITIES, EDITOR, LocalDesk
from tests.callers import Signer, make_tenant
from tests.e2e.model import Model, calls, marker, says, slowly
from tests.local.lab import until
from tests.pictures import base64_of, opened, photo
from tests.unit.instatic.browser import Browser
from tests.unit.instatic.schemas import GENERATIONS, NEWEST

EVERYTHING = (*CAPABILITIES, *EDITOR)
OK = {"ok": True, "data": {"nodeIds": ["n1"]}}


@pytest.fixture(scope="module", params=GENERATIONS)
def generation(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def signer(desk: LocalDesk, generation: str) -> Signer:
    """A tenant whose editors are of this generation."""
    name = f"instatic-{generation.replace('.', '-')}"
    names = "seed" if generation == "0.0.6" else "prefixed"
    return make_tenant(desk, name, dialect="instatic", tool_names=names)


@pytest.fixture(scope="module")
def caller(signer: Signer) -> Caller:
    return Caller(tenant=signer.tenant, user="ada", capabilities=frozenset(EVERYTHING))


@pytest.fixture(scope="module")
def credential(desk: LocalDesk, caller: Caller) -> str:
    return keyring.create(desk, caller, "anthropic", "apiKey", "demo", "demo").id


@pytest.fixture
def browser(cloud: LocalCloud, signer: Signer, generation: str) -> Iterator[Browser]:
    with Browser(cloud.url, generation, signer.token("ada", EVERYTHING), signer.origin) as browser:
        yield browser


@pytest.fixture
def conversation(browser: Browser, credential: str) -> str:
    return browser.begin(credential, "fermata-demo")


@pytest.fixture
def prompt(model: Model) -> Callable[..., str]:
    """A prompt that the model answers with these steps."""

    def tell(*steps: Any) -> str:
        return f"Please. {marker(model.tell(*steps))}"

    return tell


@pytest.fixture
def insert(generation: str) -> str:
    return "insertHtml" if generation == "0.0.6" else "site_insert_html"


def test_a_turn_with_tools_is_carried_out_and_opens_again(
    browser: Browser, conversation: str, prompt: Callable[..., str], insert: str
) -> None:
    given: list[Any] = []
    browser.tools[insert] = lambda value: given.append(value) or OK
    wanted = (insert, {"parentId": "root", "html": "<p>New</p>"})
    run = browser.send(conversation, prompt(calls(wanted, wanted, text="I add two."), says("Done.")))
    assert (run.error, run.is_done, run.dropped) == (None, True, [])
    assert [value["html"] for value in given] == ["<p>New</p>"] * 2
    assert [badge.state for badge in run.badges.values()] == ["ok", "ok"]
    assert run.usage is not None
    assert [message["role"] for message in browser.open(conversation)] == [
        *("user", "assistant", "assistant", "assistant", "tool", "tool", "assistant")
    ]
    assert browser.conversations()[0]["id"] == conversation


def test_what_is_asked_unasked_is_answered(browser: Browser) -> None:
    assert browser.http.get("/mcp/connectors").json() == {"connectors": []}
    with browser.http.stream("GET", "/editor-bridge", params={"scope": "site"}) as bridge:
        assert bridge.status_code == 200
        assert next(bridge.iter_raw()) == b"\n"


def test_the_editor_reads_what_its_model_may_call_by_the_names_it_knows(browser: Browser, insert: str) -> None:
    found = {scope: browser.http.get(f"/tools/{scope}").json()["tools"] for scope in ("site", "content", "plugin")}
    assert [len(tools) for tools in found.values()] == [35, 15, 10]
    tools = {tool["name"]: tool for tool in found["site"]}
    assert tools[insert]["inputSchema"]["required"] == ["parentId", "html"]


def test_a_conversation_is_renamed_switched_and_deleted(browser: Browser, conversation: str) -> None:
    path = f"/conversations/{conversation}"
    changed = browser.http.put(path, json={"title": "Home", "modelId": "fermata-demo-2"})
    assert changed.status_code == 200
    assert (changed.json()["conversation"]["title"], browser.conversations()[0]["title"]) == ("Home", "Home")
    for _ in range(2):
        assert browser.http.delete(path).json() == {"ok": True}
    assert browser.http.get(path).status_code == 404
    assert conversation not in [one["id"] for one in browser.conversations()]


@pytest.mark.parametrize("generation", [NEWEST], indirect=True, scope="module")
class TestTheNewest:
    def test_a_closed_connection_ends_the_turn_and_the_conversation_goes_on(
        self, browser: Browser, conversation: str, prompt: Callable[..., str]
    ) -> None:
        browser.aborts_at = "text"
        browser.send(conversation, prompt(slowly("one two three four five six seven eight nine ten", seconds=15)))

        def is_over() -> bool:
            return "activeTurn" not in browser.http.get(f"/conversations/{conversation}").json()["conversation"]

        assert not is_over()
        until(is_over, "the turn is given up", 12)
        browser.aborts_at = None
        run = browser.send(conversation, prompt(says("Here I am.")))
        assert (run.text, run.is_done, run.dropped) == ("Here I am.", True, [])

    def test_a_picture_is_sent_to_the_model_and_seen_again(
        self, browser: Browser, conversation: str, model: Model, prompt: Callable[..., str], cloud: LocalCloud
    ) -> None:
        asked = prompt(says("Nice."))
        run = browser.send(conversation, asked, base64_of(photo(70, 80)))
        assert (run.text, run.error) == ("Nice.", None)
        content = browser.open(conversation)[0]["content"]
        answer = browser.http.get(cloud.url + content[1]["url"])
        assert (answer.status_code, answer.headers["content-type"]) == (200, "image/jpeg")
        assert opened(answer.content).size == (70, 80)

    def test_a_thread_of_two_thousand_messages_opens_page_by_page_and_goes_on(
        self, browser: Browser, conversation: str, prompt: Callable[..., str], desk: LocalDesk, caller: Caller
    ) -> None:
        made = threads.find(desk, caller, conversation)
        fill(desk, caller, made.id, 2_000)
        seen: list[int] = []
        query: dict[str, str] = {}
        while True:
            answer = browser.http.get(f"/conversations/{conversation}", params=query)
            assert answer.status_code == 200
            assert len(answer.content) < 4_000_000
            page = answer.json()
            seen = [message["position"] for message in page["conversation"]["messages"]] + seen
            if "nextCursor" not in page:
                break
            query = {"before": page["nextCursor"]}
        assert seen == list(range(2_000))
        run = browser.send(conversation, prompt(says("Still here.")))
        assert (run.text, run.error) == ("Still here.", None)


def fill(desk: LocalDesk, caller: Caller, conversation: str, count: int) -> None:
    """Messages of turns that are over."""
    for start in range(0, count, 100):
        messages = [
            Message(
                position=position,
                role="assistant" if position % 2 else "user",
                content=(TextBlock(text=f"{'Answer' if position % 2 else 'Prompt'} {position} " + "x" * 1_500),),
                turn=f"turn{position // 2}",
            )
            for position in range(start, start + 100)
        ]
        desk.tables.write(*[rows.put(desk, caller.tenant, conversation, message) for message in messages])
    table, key = desk.settings.conversations_table, {"pk": rows.partition(caller.tenant, conversation), "sk": "meta"}
    desk.tables._client.update_item(
        TableName=table,
        Key={name: {"S": value} for name, value in key.items()},
        UpdateExpression="SET next_position = :next",
        ExpressionAttributeValues={":next": {"N": str(count)}},
    )


def test_the_purge_runs_where_it_is_deployed(cloud: LocalCloud) -> None:
    assert cloud.invoke("purge", {"v": 1}) == {"purged": 0}
