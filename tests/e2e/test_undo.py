"""A page is edited and the edits are taken back: byte for byte, through reloads, killed functions and other people."""

from pathlib import Path
from typing import Any

import pytest

from fermata_client import HtmlFile, HtmlFileExecutor, Refused, fold_all, follow_turn, undo_turn
from local.cloud import LocalCloud
from tests.e2e import checks
from tests.e2e.faults import Faults
from tests.e2e.model import Step, calls, says
from tests.e2e.reader import Event
from tests.e2e.talk import Talk, http, said

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
    """The id by which the editor knows the first such element of the page as it is at first."""
    element = HtmlFile(page).document.page.first(tag)
    assert element is not None
    return element.uid


def edits(page: Path) -> list[Step]:
    """Two replies with four edits, each of another kind."""
    main, heading, quote = (node(page, tag) for tag in ("main", "h1", "blockquote"))
    return [
        calls(
            ("insertHtml", {"parentId": main, "html": "<footer><p>Since 1891</p></footer>"}),
            ("applyCss", {"css": "h1 { color: black; margin: 0 } .intro { font-weight: bold }"}),
            text="I begin.",
        ),
        calls(("replaceNodeHtml", {"nodeId": heading, "html": "Bread &amp; more"}), ("deleteNode", {"nodeId": quote})),
        says("Done."),
    ]


class Tab:
    """An editor on the page; a new one remembers nothing of the one before."""

    def __init__(self, page: Path) -> None:
        self.executor = HtmlFileExecutor(HtmlFile(page))

    @property
    def parts(self) -> dict[str, Any]:
        return {"executor": self.executor, "snapshot": self.executor.snapshot, "revision": self.revision}

    def revision(self) -> str:
        return self.executor.file.document.revision


@pytest.fixture
def edited(talk: Talk, page: Path) -> Talk:
    """A turn that has made all its edits."""
    outcome = talk.run(*edits(page), **Tab(page).parts)
    assert outcome.status == "done"
    assert [badge.state for badge in outcome.view.tools] == ["ok"] * 4
    assert page.read_bytes() != PAGE
    return talk


def undo(talk: Talk, page: Path) -> Any:
    outcome = undo_turn(talk.client, talk.bridge, **Tab(page).parts)
    talk.bridge = str(outcome.view.bridge_id)
    return outcome


def test_the_journal_lists_the_edits_and_an_undo_gives_the_page_back_byte_for_byte(edited: Talk, page: Path) -> None:
    turn = edited.bridge
    listed = edited.client.journal(turn)["entries"]
    assert [entry["toolName"] for entry in listed] == ["insertHtml", "applyCss", "replaceNodeHtml", "deleteNode"]
    befores, afters = ([entry[name] for entry in listed] for name in ("revisionBefore", "revisionAfter"))
    assert befores[1:] == afters[:-1]
    after = page.read_bytes()
    outcome = undo(edited, page)
    assert page.read_bytes() == PAGE
    assert outcome.view.report == {"undone": [entry["effectKey"] for entry in listed[::-1]], "skipped": []}
    assert {entry["state"] for entry in edited.client.journal(turn)["entries"]} == {"undone"}
    checks.sound(edited)
    with pytest.raises(Refused, match="nothing to undo"):
        undo_turn(edited.client, turn)
    undo(edited, page)
    assert page.read_bytes() == after
    checks.sound(edited)


def test_edits_go_to_and_fro_byte_for_byte(edited: Talk, page: Path) -> None:
    turn, after = edited.bridge, page.read_bytes()
    for _ in range(2):
        edited.bridge = turn
        for expected, state in ((PAGE, "undone"), (after, "applied")):
            assert undo(edited, page).view.report["skipped"] == []
            assert page.read_bytes() == expected
            assert {entry["state"] for entry in edited.client.journal(turn)["entries"]} == {state}
    checks.sound(edited)


def test_a_tab_that_is_reloaded_in_the_middle_of_an_undo_goes_on(edited: Talk, page: Path) -> None:
    edited.bridge = str(edited.client.undo_detached(edited.bridge)["bridgeId"])
    reader = edited.reader()
    request = reader.wait(ROUND)
    edited.answer(request, Tab(page).executor(request))
    reader.wait(ROUND, 2)
    reader.cut()
    outcome = follow_turn(edited.client, edited.bridge, **Tab(page).parts)
    assert page.read_bytes() == PAGE
    assert outcome.view.report is not None
    assert len(outcome.view.report["undone"]) == 4
    checks.sound(edited)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("commit", "skip"), [(ROUND, 0), (ROUND, 2), (ANSWER, 1), ("REMOVE claim", 0)])
def test_a_function_killed_in_the_middle_of_an_undo_changes_nothing(
    edited: Talk, page: Path, faults: Faults, when: str, commit: str, skip: int
) -> None:
    with faults.once("dynamodb.TransactWriteItems", "exit", when=when, contains=commit, skip=skip):
        outcome = undo(edited, page)
    assert outcome.status == "done"
    assert page.read_bytes() == PAGE
    assert len(outcome.view.report["undone"]) == 4
    view = checks.sound(edited)
    assert view == outcome.view


def test_what_somebody_else_changed_stays_and_the_rest_is_taken_back(edited: Talk, page: Path) -> None:
    by_hand = page.read_bytes().replace(b"Bread &amp; more", b"Bread &amp; rolls")
    page.write_bytes(by_hand)
    outcome = undo(edited, page)
    assert page.read_bytes() == PAGE.replace(b"Bread", b"Bread &amp; rolls")
    [skipped] = outcome.view.report["skipped"]
    assert skipped["effectKey"].endswith("/2/0")
    assert len(outcome.view.report["undone"]) == 3
    checks.sound(edited)
    edited.run(says("I see."))
    told = str(edited.requests()[-1]["body"]["messages"])
    assert "The user took edits of yours back" in told
    assert "Still there: replaceNodeHtml" in told


def test_an_edit_that_comes_too_late_is_a_conflict_the_model_reads(talk: Talk, page: Path) -> None:
    """Somebody edits between the model's reply and the editor's work."""
    tab, heading = Tab(page), node(page, "h1")
    by_hand = PAGE.replace(b"Closed on Mondays", b"Open on Mondays")

    def late(request: Event) -> dict[str, Any]:
        page.write_bytes(by_hand)
        return tab.executor(request)

    steps = [calls(("replaceNodeHtml", {"nodeId": heading, "html": "Rolls"})), says("I see.")]
    revision = tab.revision()
    outcome = talk.run(*steps, **tab.parts | {"executor": late})
    [badge] = outcome.view.tools
    assert badge.conflict
    assert page.read_bytes() == by_hand
    read = said(talk.results()[0])
    assert f"planned on revision {revision}" in read
    assert "Open on Mondays" in read
    assert "Read the document again" in read
    checks.sound(talk)


def test_an_undo_can_be_cancelled_and_the_rest_is_taken_back_later(edited: Talk, page: Path) -> None:
    turn, tab = edited.bridge, Tab(page)
    edited.bridge = str(edited.client.undo_detached(turn)["bridgeId"])
    reader = edited.reader()
    request = reader.wait(ROUND)
    edited.answer(request, tab.executor(request))
    reader.wait(ROUND, 2)
    assert edited.cancel().json()["status"] == "cancelled"
    report = reader.finish()[-1]["report"]
    assert (len(report["undone"]), len(report["skipped"])) == (1, 3)
    checks.sound(edited, reader, ends="cancelled")
    edited.bridge = turn
    assert undo(edited, page).status == "done"
    assert page.read_bytes() == PAGE


def test_nobody_else_sees_the_journal_or_undoes_anything(edited: Talk, cloud: LocalCloud, stranger: str) -> None:
    """Not another tenant, and not another user."""
    for token in (stranger, cloud.sign(sub="eve", capabilities=["ai.chat", "ai.tools.write"])):
        with http(cloud, token) as bare:
            assert bare.get(f"/bridges/{edited.bridge}/journal").status_code == 404
            assert bare.post(f"/bridges/{edited.bridge}/undo").status_code == 404


def test_a_prompt_and_a_second_undo_wait_for_the_first(edited: Talk, page: Path) -> None:
    turn = edited.bridge
    undoing = str(edited.client.undo_detached(turn, idempotency_key="once")["bridgeId"])
    assert edited.client.undo_detached(turn, idempotency_key="once")["bridgeId"] == undoing
    with pytest.raises(Refused) as refused:
        edited.client.undo_detached(turn)
    assert refused.value.status == 409
    with pytest.raises(Refused) as refused:
        edited.client.start_detached("site", "Now!", conversation_id=edited.conversation)
    assert refused.value.status == 409
    edited.bridge = undoing
    outcome = follow_turn(edited.client, undoing, **Tab(page).parts)
    assert outcome.view == fold_all(edited.reader().finish())
    assert page.read_bytes() == PAGE
    checks.sound(edited)
