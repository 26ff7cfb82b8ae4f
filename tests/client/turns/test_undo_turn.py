"""A client that takes a turn's edits back, through connections that break."""

import json
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from fermata_client import FermataClient, RequestRefusedError, RetryPolicy, TurnOutcome, fold_events, undo_turn
from fermata_client.cli import main
from fermata_client.service.json_types import Event
from tests.client.scripted_events import UNDONE_BRIDGE, undo_events
from tests.client.scripted_service import DROP_CONNECTION, ServiceScript, serve_script
from tests.waiting import BACKSTOP_SECONDS

QUICK = RetryPolicy(max_failures=5, first_delay=0.001, max_delay=0.01)
WHOLE = fold_events(undo_events(True, False, True))


class Editor:
    """Does what it is asked, and remembers what for."""

    def __init__(self) -> None:
        self.undone: list[str] = []

    def __call__(self, request: Event) -> dict[str, Any]:
        self.undone.append(request["undoes"])
        return {"ok": True, "revision": f"r{len(self.undone)}"}


def run_script(script: ServiceScript, editor: Editor, **options: Any) -> TurnOutcome:
    with serve_script(script) as url, FermataClient(url, "good", stream_idle_timeout=BACKSTOP_SECONDS) as client:
        return undo_turn(client, UNDONE_BRIDGE, executor=editor, retry_policy=QUICK, **options)


def test_an_undo_runs_to_its_end_and_says_what_it_came_to() -> None:
    editor, script = Editor(), ServiceScript(undo_events(True, False, True))
    outcome = run_script(script, editor, revision=lambda: "r9")
    assert outcome.view == WHOLE
    assert editor.undone == [f"{UNDONE_BRIDGE}/{number}/0" for number in (3, 2, 1)]
    assert [answer["revision"] for answer in script.posted_answers] == ["r9"] * 3
    assert outcome.view.undoes == UNDONE_BRIDGE
    assert [badge.is_conflict for badge in outcome.view.tool_calls] == [False, True, False]
    summary = outcome.to_summary()
    assert (summary["status"], summary["undone"], summary["skipped"]) == ("done", 2, 1)


@pytest.mark.parametrize("fault", [DROP_CONNECTION, 503, 429])
def test_an_undo_whose_start_got_lost_is_started_once(fault: int | str) -> None:
    editor, script = Editor(), ServiceScript(undo_events(True, False, True), start_faults=deque([fault]))
    assert run_script(script, editor).view == WHOLE
    assert len(editor.undone) == 3


def test_an_undo_whose_stream_breaks_takes_nothing_back_twice() -> None:
    editor, script = Editor(), ServiceScript(undo_events(True, False, True), end_after_events=deque([2, 2, 3]))
    assert run_script(script, editor).view == WHOLE
    assert len(editor.undone) == 3


def test_an_edit_whose_inverse_is_too_large_to_send_was_made_all_the_same() -> None:
    """So it was with the last form only that is a failure."""
    script = ServiceScript(undo_events(True, True), answer_faults=deque([413, None, 413, 413]))
    with serve_script(script) as url, FermataClient(url, "good") as client:
        undo_turn(client, UNDONE_BRIDGE, executor=lambda _: {"ok": True, "inverse": [1]}, retry_policy=QUICK)
    assert script.result_by_request["r1"] == {"ok": True}
    assert script.result_by_request["r2"]["ok"] is False


def test_nothing_to_undo_is_refused() -> None:
    with pytest.raises(RequestRefusedError) as refused:
        run_script(ServiceScript([], start_faults=deque([409])), Editor())
    assert refused.value.status == 409


def captured_request(act: Callable[[FermataClient], object]) -> httpx.Request:
    """The one request it makes."""
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, json={"entries": [], "bridgeId": "u"})

    with FermataClient("http://here", "good", transport=httpx.MockTransport(answer)) as client:
        act(client)
    [request] = requests
    return request


def test_an_undo_says_how_far_it_goes() -> None:
    request = captured_request(lambda client: client.start_undo_detached("b/1", through="b/2/0", idempotency_key="k"))
    assert request.url.raw_path == b"/admin/api/ai/bridges/b%2F1/undo"
    assert json.loads(request.content) == {"through": "b/2/0"}
    assert (request.headers["idempotency-key"], request.headers["accept"]) == ("k", "application/json")


def test_the_journal_is_read_page_by_page() -> None:
    assert captured_request(lambda client: client.list_journal_entries("b")).url.query == b""
    assert captured_request(lambda client: client.list_journal_entries("b", cursor="7")).url.query == b"cursor=7"


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "page.html"
    path.write_text("<!doctype html>\n<title>T</title>\n<main>\n  <p>a</p>\n</main>\n")
    return path


def test_the_command_says_what_was_undone_and_what_was_not(page: Path) -> None:
    with serve_script(ServiceScript(undo_events(True, False))) as url:
        arguments = ["undo", UNDONE_BRIDGE, str(page), "--url", url, "--token", "good", "--json"]
        result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    lines = result.stderr.splitlines()
    assert f"  ! {UNDONE_BRIDGE}/1/0 stays: it broke" in lines
    assert "1 undone, 1 left unchanged." in lines
    assert json.loads(result.stdout)["undone"] == 1


def test_the_command_fails_when_all_was_left_as_it_is(page: Path) -> None:
    with serve_script(ServiceScript(undo_events(False, False))) as url:
        arguments = ["undo", UNDONE_BRIDGE, str(page), "--url", url, "--token", "good", "--json"]
        result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1
    assert "0 undone, 2 left unchanged." in result.stderr
    assert json.loads(result.stdout)["skipped"] == 2
    assert result.stderr.endswith("\nfermata: Nothing was undone.\n")


def test_the_command_says_when_there_is_nothing_to_undo(page: Path) -> None:
    with serve_script(ServiceScript([], start_faults=deque([409]))) as url:
        result = CliRunner().invoke(main, ["undo", UNDONE_BRIDGE, str(page), "--url", url, "--token", "good"])
    assert result.exit_code == 1
    assert "409" in result.stderr
