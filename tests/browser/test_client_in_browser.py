"""The client in a real browser: reloads, two tabs, no network, lost acknowledgements and uploads."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route

from local.cloud import LocalCloud
from tests.browser.chromium import Chromium
from tests.browser.own_editor_page import count_calls, list_events, note_problems, open_client
from tests.e2e.demo_model_client import (
    Step,
    held_text_step,
    text_step,
    tool_call_step,
)

INSERTIONS = tuple(("insertHtml", {"parentId": "root", "html": f"<p>{word}</p>"}) for word in ("one", "two"))
EDITING: tuple[Step, ...] = (tool_call_step(*INSERTIONS, text="I add two."), text_step("Both are there."))
READING: tuple[Step, ...] = (tool_call_step(("read_document", {})), text_step("I have read it."))
START = """
async ({prompt, conversationId, executor}) => {
  window.turn = await fermata.start({scope: "site", prompt, conversationId, executor: executor && window[executor],
    browserTools: true});
  read(turn).catch(() => {});
  return turn.id;
}
"""
FOLLOW = """
({id, executor}) => {
  window.turn = fermata.follow(id, {scope: "site", executor: executor && window[executor]});
  read(turn).catch(() => {});
}
"""
WILLING = """
() => { window.willing = {
  execute: async call => { calls.push(call.effectKey); return {ok: true, data: {nodeIds: [], html: ""}}; },
}; }
"""
STUCK = """
() => { window.stuck = {
  execute: call => { calls.push(call.effectKey); return new Promise(() => {}); },
}; }
"""
END = "async () => (await turn.result).type"

Prompt = Callable[..., str]


@pytest.fixture
def editor(browser: Chromium, page: Page, cloud: LocalCloud) -> Page:
    """A page with a client, and with an executor that does what it is asked."""
    return browser.run(lambda: open_editor(page, cloud))


def open_editor(page: Page, cloud: LocalCloud) -> Page:
    open_client(page, cloud)
    page.evaluate(WILLING)
    page.evaluate(STUCK)
    return page


def start(page: Page, prompt: str, executor: str | None = "willing") -> str:
    bridge_id: str = page.evaluate(START, {"prompt": prompt, "executor": executor})
    return bridge_id


def follow(page: Page, bridge_id: str, executor: str | None = "willing") -> None:
    page.evaluate(FOLLOW, {"id": bridge_id, "executor": executor})


def wait_for_event(page: Page, event_type: str, count: int = 1) -> None:
    condition = f"() => events.filter(event => event.type === {json.dumps(event_type)}).length >= {count}"
    page.wait_for_function(condition)


def seqs_of(events: list[dict[str, Any]]) -> list[int]:
    return [event["seq"] for event in events]


def is_rising(numbers: list[int]) -> bool:
    return all(first < second for first, second in pairwise(numbers))


def test_a_turn_is_carried_out_and_leaves_no_receipts(editor: Page, new_prompt: Prompt) -> None:
    problems = note_problems(editor)
    start(editor, new_prompt(*EDITING))
    assert editor.evaluate(END) == "done"
    assert count_calls(editor) == 2
    assert is_rising(seqs_of(list_events(editor)))
    assert wait_for_receipts(editor, 0) == 0
    assert [*problems, *editor.evaluate("() => problems")] == []


def wait_for_receipts(page: Page, count: int) -> int:
    """Wait until the browser's store has so many receipts, and return the number."""
    counted: int = page.evaluate(
        """async count => {
          const open = indexedDB.open("fermata-receipts", 1);
          await new Promise(done => { open.onsuccess = done; });
          for (;;) {
            const asked = open.result.transaction("fermata-receipts").objectStore("fermata-receipts").count();
            await new Promise(done => { asked.onsuccess = done; });
            if (asked.result === count) { open.result.close(); return asked.result; }
            await new Promise(next => setTimeout(next, 10));
          }
        }""",
        count,
    )
    return counted


def test_after_a_reload_in_mid_turn_the_turn_goes_on_and_the_open_request_is_carried_out_once(
    editor: Page, cloud: LocalCloud, new_prompt: Prompt
) -> None:
    bridge_id = start(editor, new_prompt(*READING), "stuck")
    wait_for_event(editor, "toolRequest")
    editor.wait_for_function("() => calls.length === 1")
    before = list_events(editor)
    open_editor(editor, cloud)
    follow(editor, bridge_id)
    assert editor.evaluate(END) == "done"
    assert count_calls(editor) == 1
    after = list_events(editor)
    assert seqs_of(after)[: len(before)] == seqs_of(before)
    assert is_rising(seqs_of(after))


def test_after_a_reload_an_edit_whose_result_was_not_posted_is_answered_from_its_receipt(
    editor: Page, cloud: LocalCloud, new_prompt: Prompt
) -> None:
    editor.route("**/tool-result", lambda route: None)  # it never gets there
    bridge_id = start(editor, new_prompt(tool_call_step(INSERTIONS[0]), text_step("It is there.")))
    editor.wait_for_function("() => calls.length === 1")
    wait_for_receipts(editor, 1)
    editor.unroute("**/tool-result")
    open_editor(editor, cloud)
    follow(editor, bridge_id)
    assert editor.evaluate(END) == "done"
    assert count_calls(editor) == 0
    assert [event["ok"] for event in list_events(editor) if event["type"] == "toolResult"] == [True]


def test_an_edit_that_was_begun_in_a_page_that_died_is_not_done_again(
    editor: Page, cloud: LocalCloud, new_prompt: Prompt
) -> None:
    bridge_id = start(editor, new_prompt(tool_call_step(INSERTIONS[0]), text_step("I look at it.")), "stuck")
    editor.wait_for_function("() => calls.length === 1")
    open_editor(editor, cloud)
    follow(editor, bridge_id)
    assert editor.evaluate(END) == "done"
    assert count_calls(editor) == 0
    (result,) = [event for event in list_events(editor) if event["type"] == "toolResult"]
    assert not result["ok"]
    assert "outcome is unknown" in result["error"]


def test_of_two_tabs_one_executes_and_both_see_all(editor: Page, cloud: LocalCloud, new_prompt: Prompt) -> None:
    other = open_editor(editor.context.new_page(), cloud)
    bridge_id = start(editor, new_prompt(*EDITING))
    follow(other, bridge_id)
    assert [editor.evaluate(END), other.evaluate(END)] == ["done", "done"]
    assert count_calls(editor) + count_calls(other) == 2
    assert 0 in (count_calls(editor), count_calls(other))
    assert seqs_of(list_events(editor)) == seqs_of(list_events(other))


def test_the_other_tab_takes_over_when_the_executing_one_is_closed(
    editor: Page, cloud: LocalCloud, new_prompt: Prompt
) -> None:
    other = open_editor(editor.context.new_page(), cloud)
    bridge_id = start(editor, new_prompt(tool_call_step(INSERTIONS[0]), *READING), "willing")
    editor.evaluate("() => { willing.execute = stuck.execute; }")  # after its edit it reads, and never finishes
    follow(other, bridge_id)
    wait_for_event(other, "toolRequest", 1)
    editor.wait_for_function("() => calls.length >= 1")
    assert count_calls(other) == 0
    keys = editor.evaluate("() => calls")
    editor.close()
    assert other.evaluate(END) == "done"
    calls = other.evaluate("() => calls")
    assert len(calls) == len(set(calls))
    edits = [key for key in (*keys, *calls) if key.split("/")[1] == "1"]
    assert len(edits) == 1


def test_ten_seconds_without_a_network_lose_no_event(
    editor: Page, cloud: LocalCloud, new_prompt: Prompt, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    start(editor, new_prompt(held_text_step("One two three four five six.", gate)))
    wait_for_event(editor, "text")
    editor.context.set_offline(True)
    editor.wait_for_function("() => turn.connection === 'offline'")
    gate.write_text("")
    editor.context.set_offline(False)
    assert editor.evaluate(END) == "done"
    events = list_events(editor)
    assert is_rising(seqs_of(events))
    assert "".join(event["text"] for event in events if event["type"] == "text") == "One two three four five six."


def test_a_result_that_was_made_without_a_network_is_posted_when_it_is_back(
    editor: Page, cloud: LocalCloud, new_prompt: Prompt
) -> None:
    editor.evaluate("() => { willing.execute = async call => { calls.push(call); await gate; return {ok: true}; }; }")
    editor.evaluate("() => { window.gate = new Promise(open => { window.openGate = open; }); }")
    start(editor, new_prompt(tool_call_step(INSERTIONS[0]), text_step("It is there.")))
    editor.wait_for_function("() => calls.length === 1")
    editor.context.set_offline(True)
    editor.evaluate("() => openGate()")
    editor.wait_for_function("() => turn.connection === 'offline'")
    editor.context.set_offline(False)
    assert editor.evaluate(END) == "done"
    assert count_calls(editor) == 1
    assert [event["ok"] for event in list_events(editor) if event["type"] == "toolResult"] == [True]


def test_a_result_whose_acknowledgement_was_lost_is_posted_again(editor: Page, new_prompt: Prompt) -> None:
    statuses: list[int] = []

    def lose_first(route: Route) -> None:
        response = route.fetch()
        statuses.append(response.status)
        if len(statuses) == 1:
            route.abort()
        else:
            route.fulfill(response=response)

    editor.route("**/tool-result", lose_first)
    start(editor, new_prompt(*EDITING))
    assert editor.evaluate(END) == "done"
    assert count_calls(editor) == 2
    assert len(statuses) >= 2
    assert set(statuses) == {200}


def test_connections_that_are_killed_again_and_again_lose_no_event(editor: Page, new_prompt: Prompt) -> None:
    attempts: list[str] = []

    def kill_every_other(route: Route) -> None:
        attempts.append(route.request.url)
        if len(attempts) % 2:
            route.abort()
        else:
            route.continue_()

    editor.route("**/events?*", kill_every_other)
    editor.evaluate("() => { window.fermata = newClient({wait: () => new Promise(next => setTimeout(next, 5))}); }")
    bridge_id = start(editor, new_prompt(*EDITING), None)
    editor.evaluate("() => turn.detach()")
    editor.evaluate("() => events.splice(0)")
    follow(editor, bridge_id)
    assert editor.evaluate(END) == "done"
    assert count_calls(editor) == 2
    assert len(attempts) >= 2
    assert is_rising(seqs_of(list_events(editor)))


def test_large_snapshots_and_pictures_go_through_uploads(editor: Page, new_prompt: Prompt) -> None:
    uploads: list[str] = []
    editor.on("request", lambda request: uploads.append(request.url) if request.method == "PUT" else None)
    ended = editor.evaluate(
        """async ({prompt}) => {
          const canvas = Object.assign(document.createElement("canvas"), {width: 900, height: 900});
          const pixels = new ImageData(900, 900);
          for (let at = 0; at < pixels.data.length; at += 65536) {
            crypto.getRandomValues(pixels.data.subarray(at, at + 65536));
          }
          canvas.getContext("2d").putImageData(pixels, 0, 0);
          const picture = await new Promise(done => canvas.toBlob(done, "image/png"));
          const snapshot = {page: {id: "p", title: "P", rootNodeId: "root"}, rest: "x".repeat(5_000_000)};
          const turn = await fermata.start({scope: "site", prompt, images: [picture], snapshot});
          return [(await turn.result).type, picture.size > 1_000_000];
        }""",
        {"prompt": new_prompt(text_step("I see."))},
    )
    assert ended == ["done", True]
    assert len(uploads) == 2


def test_the_fetch_for_other_clients_uploads_in_the_page_of_another_editor(
    editor: Page, cloud: LocalCloud, new_prompt: Prompt
) -> None:
    types = editor.evaluate(
        """async ({url, token, prompt}) => {
          const {uploadingFetch} = await import("@fermata/client/uploading-fetch");
          window.fetch = uploadingFetch();
          const headers = {authorization: `Bearer ${token}`, "content-type": "application/json"};
          const post = (path, body) =>
            fetch(`${url}/admin/api/ai${path}`, {method: "POST", headers, body: JSON.stringify(body)});
          const {conversation} = await (await post("/conversations", {scope: "site"})).json();
          const snapshot = {page: {id: "p", title: "P", rootNodeId: "root"}, rest: "x".repeat(5_000_000)};
          const answer = await post("/chat/site", {conversationId: conversation.id, prompt, snapshot});
          const lines = (await answer.text()).split("\\n").filter(line => line.trim());
          return lines.map(line => JSON.parse(line).type);
        }""",
        {"url": cloud.url, "token": cloud.token, "prompt": new_prompt(text_step("I see."))},
    )
    assert (types[0], types[-1]) == ("bridgeReady", "done")


STORE_RECEIPT = """
async () => {
  const {indexedDbReceipts} = await import("@fermata/client");
  const {put} = IDBObjectStore.prototype;
  let transaction;
  IDBObjectStore.prototype.put = function (...given) {
    const request = put.apply(this, given);
    transaction = request.transaction;
    return request;
  };
  await indexedDbReceipts().set("turn-1 a", {call: "x", at: 1});
  IDBObjectStore.prototype.put = put;
  try {
    transaction.objectStore("fermata-receipts");
    return "a closed tab takes it back";
  } catch {
    return "kept";
  }
}
"""


def test_a_receipt_is_stored_when_no_closing_of_the_tab_takes_it_back(editor: Page) -> None:
    assert editor.evaluate(STORE_RECEIPT) == "kept"
