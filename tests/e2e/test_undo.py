"""Undo the edits of a page: byte for byte, with reloads, killed functions and other users."""

from pathlib import Path
from typing import Any

import pytest

from fermata_client import HtmlFile, HtmlFileExecutor, RequestRefusedError, fold_events, follow_turn, undo_turn
from local.cloud import LocalCloud
from tests.e2e import turn_checks
from tests.e2e.chat_session import ChatSession, open_http, result_text
from tests.e2e.demo_model_client import Step, text_step, tool_call_step
from tests.e2e.fault_rules import FaultRules
from tests.e2e.stream_reader import Event

PAGE = b"""<!doctype html>
<html lang="en">
<head>
\t<title>Bakery</title>
\t<style>
\t\th1 { color: brown }
\t</style>
</head>
<body>
  <main>
    <h1>Bread</h1>

    <p class="intro">Fresh   every day, in Lower Street, next to the old mill</p>
    <blockquote>The best rolls in town</blockquote>
    <p>Closed on Mondays</p>
  </main>
</body>
</html>
"""
ROUND, ANSWER = "toolRequest", "toolResult"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "bakery.html"
    path.write_bytes(PAGE)
    return path


def node(page: Path, tag: str) -> str:
    """Get the editor's id of the first such element of the original page."""
    element = HtmlFile(page).document.tree.find_first(tag)
    assert element is not None
    return element.uid


def edits(page: Path) -> list[Step]:
    """Make two answers with four edits of different kinds."""
    main, heading, quote = (node(page, tag) for tag in ("main", "h1", "blockquote"))
    return [
        tool_call_step(
            ("insertHtml", {"parentId": main, "html": "<footer><p>Since 1891</p></footer>"}),
            ("applyCss", {"css": "h1 { color: black; margin: 0 } .intro { font-weight: bold }"}),
            text="I begin.",
        ),
        tool_call_step(
            ("replaceNodeHtml", {"nodeId": heading, "html": "Bread &amp; more"}), ("deleteNode", {"nodeId": quote})
        ),
        text_step("Done."),
    ]


class Tab:
    """An editor of the page, without memory of earlier ones."""

    def __init__(self, page: Path) -> None:
        self.executor = HtmlFileExecutor(HtmlFile(page))

    @property
    def parts(self) -> dict[str, Any]:
        return {"executor": self.executor, "snapshot": self.executor.snapshot, "revision": self.revision}

    def revision(self) -> str:
        return self.executor.file.document.revision


@pytest.fixture
def edited(session: ChatSession, page: Path) -> ChatSession:
    """The session after a turn that has made all its edits."""
    outcome = session.run_turn(*edits(page), **Tab(page).parts)
    assert outcome.status == "done"
    assert [badge.state for badge in outcome.view.tool_calls] == ["ok"] * 4
    assert page.read_bytes() != PAGE
    return session


def undo(session: ChatSession, page: Path) -> Any:
    outcome = undo_turn(session.client, session.bridge, **Tab(page).parts)
    session.bridge = str(outcome.view.bridge_id)
    return outcome


def test_the_journal_lists_the_edits_and_an_undo_restores_the_page_byte_for_byte(
    edited: ChatSession, page: Path
) -> None:
    turn = edited.bridge
    listed = edited.client.list_journal_entries(turn)["entries"]
    assert [entry["toolName"] for entry in listed] == ["insertHtml", "applyCss", "replaceNodeHtml", "deleteNode"]
    befores, afters = ([entry[name] for entry in listed] for name in ("revisionBefore", "revisionAfter"))
    assert befores[1:] == afters[:-1]
    after = page.read_bytes()
    outcome = undo(edited, page)
    assert page.read_bytes() == PAGE
    assert outcome.view.undo_report == {"undone": [entry["effectKey"] for entry in listed[::-1]], "skipped": []}
    assert {entry["state"] for entry in edited.client.list_journal_entries(turn)["entries"]} == {"undone"}
    turn_checks.check_turn(edited)
    with pytest.raises(RequestRefusedError, match="nothing to undo"):
        undo_turn(edited.client, turn)
    undo(edited, page)
    assert page.read_bytes() == after
    turn_checks.check_turn(edited)


def test_edits_are_undone_and_redone_byte_for_byte(edited: ChatSession, page: Path) -> None:
    turn, after = edited.bridge, page.read_bytes()
    for _ in range(2):
        edited.bridge = turn
        for expected, state in ((PAGE, "undone"), (after, "applied")):
            assert undo(edited, page).view.undo_report["skipped"] == []
            assert page.read_bytes() == expected
            assert {entry["state"] for entry in edited.client.list_journal_entries(turn)["entries"]} == {state}
    turn_checks.check_turn(edited)


def test_a_tab_reloaded_in_the_middle_of_an_undo_continues_it(edited: ChatSession, page: Path) -> None:
    edited.bridge = str(edited.client.start_undo_detached(edited.bridge)["bridgeId"])
    reader = edited.open_reader()
    request = reader.wait_for_event(ROUND)
    edited.answer_request(request, Tab(page).executor(request))
    reader.wait_for_event(ROUND, 2)
    reader.drop_connection()
    outcome = follow_turn(edited.client, edited.bridge, **Tab(page).parts)
    assert page.read_bytes() == PAGE
    assert outcome.view.undo_report is not None
    assert len(outcome.view.undo_report["undone"]) == 4
    turn_checks.check_turn(edited)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("commit", "skip"), [(ROUND, 0), (ROUND, 2), (ANSWER, 1), ("REMOVE claim", 0)])
def test_a_function_killed_in_the_middle_of_an_undo_changes_nothing(
    edited: ChatSession, page: Path, faults: FaultRules, when: str, commit: str, skip: int
) -> None:
    with faults.expect_fault("dynamodb.TransactWriteItems", "exit", when=when, contains=commit, skip=skip):
        outcome = undo(edited, page)
    assert outcome.status == "done"
    assert page.read_bytes() == PAGE
    assert len(outcome.view.undo_report["undone"]) == 4
    view = turn_checks.check_turn(edited)
    assert view == outcome.view


def test_a_change_by_another_user_stays_and_the_rest_is_undone(edited: ChatSession, page: Path) -> None:
    by_hand = page.read_bytes().replace(b"Bread &amp; more", b"Bread &amp; rolls")
    page.write_bytes(by_hand)
    outcome = undo(edited, page)
    assert page.read_bytes() == PAGE.replace(b"Bread", b"Bread &amp; rolls")
    [skipped] = outcome.view.undo_report["skipped"]
    assert skipped["effectKey"].endswith("/2/0")
    assert len(outcome.view.undo_report["undone"]) == 3
    turn_checks.check_turn(edited)
    edited.run_turn(text_step("I see."))
    sent_messages = str(edited.model_requests()[-1]["body"]["messages"])
    assert "The user took edits of yours back" in sent_messages
    assert "Still there: replaceNodeHtml" in sent_messages


def test_an_edit_of_an_outdated_revision_is_a_conflict_for_the_model(session: ChatSession, page: Path) -> None:
    """The page is edited between the model's answer and the tool's run."""
    tab, heading = Tab(page), node(page, "h1")
    by_hand = PAGE.replace(b"Closed on Mondays", b"Open on Mondays")

    def late(request: Event) -> dict[str, Any]:
        page.write_bytes(by_hand)
        return tab.executor(request)

    steps = [tool_call_step(("replaceNodeHtml", {"nodeId": heading, "html": "Rolls"})), text_step("I see.")]
    revision = tab.revision()
    outcome = session.run_turn(*steps, **tab.parts | {"executor": late})
    [badge] = outcome.view.tool_calls
    assert badge.is_conflict
    assert page.read_bytes() == by_hand
    read = result_text(session.tool_results()[0])
    assert f"planned on revision {revision}" in read
    assert "Open on Mondays" in read
    assert "Read the document again" in read
    turn_checks.check_turn(session)


def test_an_undo_can_be_cancelled_and_completed_later(edited: ChatSession, page: Path) -> None:
    turn, tab = edited.bridge, Tab(page)
    edited.bridge = str(edited.client.start_undo_detached(turn)["bridgeId"])
    reader = edited.open_reader()
    request = reader.wait_for_event(ROUND)
    edited.answer_request(request, tab.executor(request))
    reader.wait_for_event(ROUND, 2)
    assert edited.cancel_turn().json()["status"] == "cancelled"
    report = reader.wait_for_end()[-1]["report"]
    assert (len(report["undone"]), len(report["skipped"])) == (1, 3)
    turn_checks.check_turn(edited, reader, ends="cancelled")
    edited.bridge = turn
    assert undo(edited, page).status == "done"
    assert page.read_bytes() == PAGE


def test_no_other_user_reads_the_journal_or_undoes_edits(edited: ChatSession, cloud: LocalCloud, stranger: str) -> None:
    """Neither another tenant's user nor another user of the tenant does."""
    for token in (stranger, cloud.sign_token(sub="eve", capabilities=["ai.chat", "ai.tools.write"])):
        with open_http(cloud, token) as bare:
            assert bare.get(f"/bridges/{edited.bridge}/journal").status_code == 404
            assert bare.post(f"/bridges/{edited.bridge}/undo").status_code == 404


def test_a_prompt_and_a_second_undo_get_a_conflict_during_an_undo(edited: ChatSession, page: Path) -> None:
    turn = edited.bridge
    undoing = str(edited.client.start_undo_detached(turn, idempotency_key="once")["bridgeId"])
    assert edited.client.start_undo_detached(turn, idempotency_key="once")["bridgeId"] == undoing
    with pytest.raises(RequestRefusedError) as refused:
        edited.client.start_undo_detached(turn)
    assert refused.value.status == 409
    with pytest.raises(RequestRefusedError) as refused:
        edited.client.start_turn_detached("site", "Now!", conversation_id=edited.conversation)
    assert refused.value.status == 409
    edited.bridge = undoing
    outcome = follow_turn(edited.client, undoing, **Tab(page).parts)
    assert outcome.view == fold_events(edited.open_reader().wait_for_end())
    assert page.read_bytes() == PAGE
    turn_checks.check_turn(edited)
