"""Test browsers of each generation of Instatic on the local cloud: cookies, names, aborts, images, paging."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fermata.conversations import conversation_store, message_store
from fermata.credentials import credential_store
from fermata.domain.blocks import TextBlock
from fermata.domain.caller import Caller
from fermata.domain.messages import Message
from local.cloud import LocalCloud
from local.seed import CAPABILITIES, EDITOR_CAPABILITIES, LocalResources
from tests.e2e.demo_model_client import DemoModelClient, script_marker, text_step, tool_call_step, unfinished_text_step
from tests.images import make_image, open_image, to_base64
from tests.tenant_tokens import TokenSigner, make_tenant
from tests.tool_contract import TOOL_CONTRACT
from tests.unit.instatic.browser import Browser
from tests.unit.instatic.schemas import GENERATIONS, NEWEST
from tests.waiting import wait_until

EVERYTHING = (*CAPABILITIES, *EDITOR_CAPABILITIES)
OK = {"ok": True, "data": {"nodeIds": ["n1"]}}


@pytest.fixture(scope="module", params=GENERATIONS)
def generation(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def signer(resources: LocalResources, generation: str) -> TokenSigner:
    """A tenant whose editors are of this generation."""
    name = f"instatic-{generation.replace('.', '-')}"
    names = "seed" if generation == "0.0.6" else "prefixed"
    return make_tenant(resources, name, dialect="instatic", tool_names=names)


@pytest.fixture(scope="module")
def caller(signer: TokenSigner) -> Caller:
    return Caller(tenant=signer.tenant, user="ada", capabilities=frozenset(EVERYTHING))


@pytest.fixture(scope="module")
def credential(resources: LocalResources, caller: Caller) -> str:
    return credential_store.create_credential(resources, caller, "anthropic", "apiKey", "demo", "demo").id


@pytest.fixture
def browser(cloud: LocalCloud, signer: TokenSigner, generation: str) -> Iterator[Browser]:
    with Browser(cloud.url, generation, signer.sign_token("ada", EVERYTHING), signer.origin) as browser:
        yield browser


@pytest.fixture
def conversation(browser: Browser, credential: str) -> str:
    return browser.create_conversation(credential, "fermata-demo")


@pytest.fixture
def prompt(model: DemoModelClient) -> Callable[..., str]:
    """Make prompts that the model answers with these steps."""

    def set_script(*steps: Any) -> str:
        return f"Please. {script_marker(model.add_script(*steps))}"

    return set_script


@pytest.fixture
def insert(generation: str) -> str:
    return "insertHtml" if generation == "0.0.6" else "site_insert_html"


def test_a_turn_with_tools_runs_and_can_be_reopened(
    browser: Browser, conversation: str, prompt: Callable[..., str], insert: str
) -> None:
    given: list[Any] = []
    browser.tools[insert] = lambda value: given.append(value) or OK
    wanted = (insert, {"parentId": "root", "html": "<p>New</p>"})
    run = browser.send_prompt(
        conversation, prompt(tool_call_step(wanted, wanted, text="I add two."), text_step("Done."))
    )
    assert (run.error, run.is_done, run.dropped) == (None, True, [])
    assert [value["html"] for value in given] == ["<p>New</p>"] * 2
    assert [badge.state for badge in run.badges.values()] == ["ok", "ok"]
    assert run.usage is not None
    assert [message["role"] for message in browser.load_messages(conversation)] == [
        *("user", "assistant", "assistant", "assistant", "tool", "tool", "assistant")
    ]
    assert browser.list_conversations()[0]["id"] == conversation


def test_background_requests_of_the_editor_are_answered(browser: Browser) -> None:
    assert browser.http.get("/mcp/connectors").json() == {"connectors": []}
    assert browser.http.get("/editor-bridge", params={"scope": "site"}).status_code == 403


def test_the_editor_lists_tools_by_the_names_of_its_generation(browser: Browser, insert: str) -> None:
    found = {scope: browser.http.get(f"/tools/{scope}").json()["tools"] for scope in ("site", "content", "plugin")}
    assert {scope: len(tools) for scope, tools in found.items()} == {
        scope: len(contract) for scope, contract in TOOL_CONTRACT.items()
    }
    tools = {tool["name"]: tool for tool in found["site"]}
    assert tools[insert]["inputSchema"]["required"] == ["parentId", "html"]


def test_a_conversation_is_renamed_switched_and_deleted(browser: Browser, conversation: str) -> None:
    path = f"/conversations/{conversation}"
    changed = browser.http.put(path, json={"title": "Home", "modelId": "fermata-demo-2"})
    assert changed.status_code == 200
    assert (changed.json()["conversation"]["title"], browser.list_conversations()[0]["title"]) == ("Home", "Home")
    for _ in range(2):
        assert browser.http.delete(path).json() == {"ok": True}
    assert browser.http.get(path).status_code == 404
    assert conversation not in [one["id"] for one in browser.list_conversations()]


@pytest.mark.parametrize("generation", [NEWEST], indirect=True, scope="module")
class TestTheNewest:
    def test_a_closed_connection_ends_the_turn_and_the_conversation_goes_on(
        self, browser: Browser, conversation: str, prompt: Callable[..., str]
    ) -> None:
        browser.aborts_at = "text"
        browser.send_prompt(
            conversation, prompt(unfinished_text_step("one two three four five six seven eight nine ten", after=8))
        )

        def is_over() -> bool:
            return "activeTurn" not in browser.http.get(f"/conversations/{conversation}").json()["conversation"]

        wait_until(is_over, "the turn is given up")
        browser.aborts_at = None
        run = browser.send_prompt(conversation, prompt(text_step("Here I am.")))
        assert (run.text, run.is_done, run.dropped) == ("Here I am.", True, [])

    def test_an_image_is_sent_to_the_model_and_can_be_viewed(
        self, browser: Browser, conversation: str, model: DemoModelClient, prompt: Callable[..., str], cloud: LocalCloud
    ) -> None:
        asked = prompt(text_step("Nice."))
        run = browser.send_prompt(conversation, asked, to_base64(make_image(70, 80)))
        assert (run.text, run.error) == ("Nice.", None)
        content = browser.load_messages(conversation)[0]["content"]
        answer = browser.http.get(cloud.url + content[1]["url"])
        assert (answer.status_code, answer.headers["content-type"]) == (200, "image/jpeg")
        assert open_image(answer.content).size == (70, 80)

    def test_a_conversation_of_two_thousand_messages_is_paged_and_continues(
        self, browser: Browser, conversation: str, prompt: Callable[..., str], resources: LocalResources, caller: Caller
    ) -> None:
        made = conversation_store.get_conversation(resources, caller, conversation)
        fill(resources, caller, made.id, 2_000)
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
        run = browser.send_prompt(conversation, prompt(text_step("Still here.")))
        assert (run.text, run.error) == ("Still here.", None)


def fill(resources: LocalResources, caller: Caller, conversation: str, count: int) -> None:
    """Store messages of ended turns."""
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
        resources.tables.write_items(
            *[message_store.build_message_put(resources, caller.tenant, conversation, message) for message in messages]
        )
    table, key = (
        resources.settings.conversations_table,
        {"pk": message_store.conversation_partition(caller.tenant, conversation), "sk": "meta"},
    )
    resources.tables._client.update_item(
        TableName=table,
        Key={name: {"S": value} for name, value in key.items()},
        UpdateExpression="SET next_position = :next",
        ExpressionAttributeValues={":next": {"N": str(count)}},
    )


def test_the_deployed_purge_runs(cloud: LocalCloud) -> None:
    answer = cloud.invoke_function("purge", {"v": 1})
    assert {name: answer[name] for name in ("jobs", "purged")} == {"jobs": 0, "purged": 0}


@pytest.mark.parametrize("size", [7_000_000, 12_000_000], ids=["7 MB", "12 MB"])
def test_the_turn_goes_on_when_a_screenshot_is_larger_than_the_platform_takes(
    browser: Browser, conversation: str, prompt: Callable[..., str], insert: str, size: int
) -> None:
    """The call ends at once, and not after the 90 seconds for which the model would wait."""
    picture = {"mimeType": "image/png", "data": "A" * size}
    browser.tools[insert] = lambda _: {"ok": True, "data": {"nodeIds": ["n1"]}, "images": [picture]}
    call = (insert, {"parentId": "root", "html": "<p>One</p>"})
    run = browser.send_prompt(conversation, prompt(tool_call_step(call), text_step("Done.")))
    assert (run.text, run.is_done, run.error, run.dropped) == ("Done.", True, None, [])
    assert [badge.state for badge in run.badges.values()] == ["ok"]
