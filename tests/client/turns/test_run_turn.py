"""`run_turn` with connections that break, requests that fail, and answers that are lost."""

import json
import threading
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from fermata_client import (
    FermataClient,
    RequestRefusedError,
    RetryPolicy,
    TurnLostError,
    TurnOutcome,
    TurnView,
    fold_events,
    follow_turn,
    run_turn,
)
from fermata_client.service.json_types import Event
from tests.client.scripted_events import (
    BRIDGE,
    done_event,
    number_events,
    ready_event,
    text_event,
    three_tool_turn,
    tool_call_event,
    tool_request_event,
    tool_result_event,
)
from tests.client.scripted_service import DROP_CONNECTION, TERMINAL_EVENTS, ServiceScript, serve_script
from tests.waiting import BACKSTOP_SECONDS

COMPLETE_VIEW = fold_events(three_tool_turn())
QUICK = RetryPolicy(max_failures=5, first_delay=0.001, max_delay=0.01)
STREAM_BYTES = sum(len(json.dumps(event, ensure_ascii=False).encode()) + 1 for event in three_tool_turn())


@dataclass
class Browser:
    """A tool executor and event listener that records requests and events."""

    acted: Counter[str] = field(default_factory=Counter)
    seen_events: list[Event] = field(default_factory=list)

    def __call__(self, request: Event) -> dict[str, Any]:
        self.acted[str(request["effectKey"])] += 1
        return {"ok": True, "data": {"n": self.acted.total()}}

    def listen(self, event: Event, view: TurnView) -> None:
        self.seen_events.append(event)

    @property
    def terminals(self) -> list[str]:
        return [event["type"] for event in self.seen_events if event["type"] in TERMINAL_EVENTS]


def run_script(script: ServiceScript, browser: Browser | None = None, **options: Any) -> TurnOutcome:
    browser = browser or Browser()
    with (
        serve_script(script) as url,
        FermataClient(url, "good", stream_idle_timeout=options.pop("silence", BACKSTOP_SECONDS)) as client,
    ):
        return run_turn(
            client,
            "site",
            "change it",
            executor=options.pop("executor", browser),
            on_event=options.pop("on_event", browser.listen),
            retry_policy=options.pop("patience", QUICK),
            **options,
        )


def assert_complete(outcome: TurnOutcome, browser: Browser) -> None:
    """Assert that no event is lost or repeated, and that the turn ends once."""
    assert outcome.view == COMPLETE_VIEW
    assert browser.acted == Counter({"turn/1": 1, "turn/2": 1, "turn/3": 1})
    assert browser.terminals == ["done"]
    seqs = [event["seq"] for event in browser.seen_events]
    assert seqs == sorted(set(seqs))


def test_a_turn_with_three_browser_tools_runs_to_its_end() -> None:
    script, browser = ServiceScript(three_tool_turn()), Browser()
    outcome = run_script(script, browser)
    assert_complete(outcome, browser)
    assert [answer["requestId"] for answer in script.posted_answers] == ["r1", "r2", "r3"]
    assert len(script.stream_starts) == 1
    summary = outcome.to_summary()
    assert (summary["status"], summary["rounds"], summary["browserTools"], summary["serverTools"]) == ("done", 3, 3, 0)


@pytest.mark.parametrize("quarter", [0, 1, 2, 3, 4])
def test_a_stream_cut_at_any_quarter_folds_to_the_whole(quarter: int) -> None:
    script, browser = ServiceScript(three_tool_turn(), cut_after_bytes=deque([STREAM_BYTES * quarter // 4])), Browser()
    assert_complete(run_script(script, browser), browser)


@pytest.mark.parametrize("step", [1, 7, 97, 180])
def test_streams_cut_again_and_again_fold_to_the_whole(step: int) -> None:
    """Cut so early that many connections bring nothing new, and always in the middle of some line."""
    script, browser = ServiceScript(three_tool_turn(), cut_after_bytes=deque([step] * 3 + [step * 9] * 3)), Browser()
    patience = RetryPolicy(max_failures=9, first_delay=0.001, max_delay=0.002)
    assert_complete(run_script(script, browser, patience=patience), browser)


def test_a_reconnect_asks_only_for_what_is_missing() -> None:
    script, browser = ServiceScript(three_tool_turn(), end_after_events=deque([3, 2, 5])), Browser()
    outcome = run_script(script, browser)
    assert_complete(outcome, browser)
    seqs = [event["seq"] for event in three_tool_turn()]
    assert script.stream_starts == [0, seqs[2], seqs[4], seqs[9]]
    assert outcome.reconnect_count == 3


def test_a_log_that_was_rewound_is_read_from_its_beginning_and_gives_one_answer() -> None:
    seen = number_events(ready_event(), text_event("An answer "), text_event("that "), text_event("got lost"))
    restored = number_events(ready_event(), text_event("The answer."), done_event())
    script, browser = ServiceScript(list(seen), restored_events=restored), Browser()
    script.end_after_events.append(len(seen))
    outcome = run_script(script, browser)
    assert script.stream_starts == [0, seen[-1]["seq"], 0]
    assert (outcome.status, outcome.view.text) == ("done", "The answer.")
    assert browser.terminals == ["done"]


def test_a_call_of_a_rewound_log_is_executed_although_another_had_its_key() -> None:
    request = tool_request_event(1, tool_input={"html": "<p>old</p>"}), tool_request_event(2, effect_key="turn/1")
    script = ServiceScript(number_events(ready_event(), *request, tool_result_event(2), done_event()))
    browser = Browser()
    assert run_script(script, browser).status == "done"
    assert browser.acted == {"turn/1": 2}


def test_a_clean_end_without_a_terminal_event_means_reconnect() -> None:
    script, browser = ServiceScript(three_tool_turn(), end_after_events=deque([1] * 18)), Browser()
    assert_complete(run_script(script, browser), browser)


def test_events_written_up_to_three_times_act_once() -> None:
    script, browser = ServiceScript(three_tool_turn(), count_copies=lambda seq: 1 + seq % 3), Browser()
    assert_complete(run_script(script, browser), browser)
    assert len(script.posted_answers) == 3


def test_a_service_that_replays_everything_on_every_connection_acts_once() -> None:
    script, browser = (
        ServiceScript(three_tool_turn(), cut_after_bytes=deque([400, 900, 1300, 1700]), ignores_after=True),
        Browser(),
    )
    assert_complete(run_script(script, browser), browser)


def test_the_same_effect_asked_under_another_request_acts_once_and_answers_both() -> None:
    events = number_events(
        ready_event(),
        tool_call_event(1),
        tool_request_event(1),
        tool_request_event(2, effect_key="turn/1"),
        tool_result_event(1),
        done_event(),
    )
    script, browser = ServiceScript(events), Browser()
    run_script(script, browser)
    assert browser.acted == Counter({"turn/1": 1})
    assert [(answer["requestId"], answer["result"]["data"]) for answer in script.posted_answers] == [
        ("r1", {"n": 1}),
        ("r2", {"n": 1}),
    ]


@pytest.mark.parametrize(
    "faults",
    [[503], [500, 502, 429], [DROP_CONNECTION], [DROP_CONNECTION, 503, DROP_CONNECTION]],
    ids=["503 then 200", "three kinds", "lost response", "lost and refused"],
)
def test_an_answer_is_posted_until_it_is_taken_with_the_same_body(faults: list[int | str]) -> None:
    script, browser = ServiceScript(three_tool_turn(), answer_faults=deque(faults)), Browser()
    assert_complete(run_script(script, browser, snapshot=lambda: {"page": 1}), browser)
    first = script.posted_answers[: len(faults) + 1]
    assert all(body == first[0] for body in first)
    assert first[0]["snapshot"] == {"page": 1}


def test_after_an_answer_to_an_expired_request_the_stream_decides() -> None:
    events = number_events(
        ready_event(), tool_call_event(1), tool_request_event(1), {"type": "error", "message": "Too late."}
    )
    script = ServiceScript(events, answer_faults=deque([404]))
    script.result_by_request["r1"] = None  # the log goes on without an answer
    outcome = run_script(script)
    assert (outcome.status, outcome.error) == ("error", "Too late.")


def test_an_answer_that_another_client_gave_differently_is_accepted() -> None:
    script = ServiceScript(three_tool_turn())
    script.result_by_request["r1"] = {"ok": True, "data": "from another tab"}
    browser = Browser()
    assert run_script(script, browser).status == "done"
    assert browser.acted["turn/1"] == 1


def test_a_result_that_is_too_large_is_answered_with_a_failure_the_model_can_read() -> None:
    script = ServiceScript(three_tool_turn(), answer_faults=deque([413]))
    assert run_script(script).status == "done"
    assert script.result_by_request["r1"]["ok"] is False
    assert "too large" in script.result_by_request["r1"]["error"]


def test_an_answer_without_permission_is_an_error_of_this_side() -> None:
    with pytest.raises(RequestRefusedError, match="403"):
        run_script(ServiceScript(three_tool_turn(), answer_faults=deque([403])))


def test_an_executor_that_raises_answers_with_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    def broken(request: Event) -> dict[str, Any]:
        raise RuntimeError("the page is gone")

    script = ServiceScript(three_tool_turn())
    assert run_script(script, executor=broken).status == "done"
    assert script.result_by_request["r1"] == {"ok": False, "error": "insertHtml failed in the editor: the page is gone"}
    assert "the page is gone" in caplog.text


def test_a_client_without_a_page_says_so_to_the_model() -> None:
    script = ServiceScript(three_tool_turn())
    with serve_script(script) as url, FermataClient(url, "good") as client:
        assert run_turn(client, "site", "change it", retry_policy=QUICK).status == "done"
    assert script.result_by_request["r1"] == {
        "ok": False,
        "error": "insertHtml needs an open page, and this client has none.",
    }


def test_a_slow_reader_loses_nothing() -> None:
    """Thousands of events are written while the reader stands still in the first one."""
    events = number_events(ready_event(), *(text_event(f"{n} ") for n in range(4000)), done_event())
    gate, seen_seqs = threading.Event(), []

    def listen(event: Event, view: TurnView) -> None:
        if event["type"] == "bridgeReady":
            gate.wait(0.3)
        seen_seqs.append(event["seq"])

    outcome = run_script(ServiceScript(events), on_event=listen)
    assert outcome.view.text == "".join(f"{n} " for n in range(4000))
    assert seen_seqs == [event["seq"] for event in events]


def test_a_slow_executor_loses_nothing_of_what_is_said_meanwhile() -> None:
    events = number_events(ready_event(), tool_call_event(1), tool_request_event(1), text_event("after"), done_event())
    script = ServiceScript(events, cut_after_bytes=deque([None]))

    def slow(request: Event) -> dict[str, Any]:
        script.result_by_request["r1"] = {"ok": True}  # somebody else answers, so the log runs on while we still work
        threading.Event().wait(0.2)
        return {"ok": True}

    assert run_script(script, executor=slow).view == fold_events(events)


def test_heartbeats_are_not_events_and_keep_a_quiet_stream_open() -> None:
    script = ServiceScript(three_tool_turn())
    gate = threading.Event()
    script.gates[script.events[3]["seq"]] = gate
    browser = Browser()

    def listen(event: Event, view: TurnView) -> None:
        browser.listen(event, view)
        if event["seq"] == script.events[2]["seq"]:
            threading.Timer(0.6, gate.set).start()

    outcome = run_script(script, browser, on_event=listen, silence=0.3)  # longer silent than a dead connection would be
    assert_complete(outcome, browser)
    assert outcome.reconnect_count == 0


def test_a_dead_connection_is_noticed_by_its_silence() -> None:
    script = ServiceScript(three_tool_turn(), is_silent=True)
    with pytest.raises(TurnLostError, match="stopped sending data"):
        run_script(script, silence=0.05)
    assert len(script.stream_starts) == QUICK.max_failures


def test_a_stream_of_heartbeats_that_always_closes_is_given_up_after_a_bounded_number_of_attempts() -> None:
    script = ServiceScript(three_tool_turn(), sends_only_heartbeats=True)
    with pytest.raises(TurnLostError, match="could not be started in 5 attempts"):
        run_script(script)
    assert len(script.stream_starts) == QUICK.max_failures


def test_progress_renews_the_patience() -> None:
    """More broken connections than may fail in a row, but each brings an event."""
    script, browser = ServiceScript(three_tool_turn(), end_after_events=deque([1] * 18)), Browser()
    assert_complete(run_script(script, browser, patience=RetryPolicy(max_failures=2, first_delay=0.001)), browser)


def test_a_start_whose_response_is_lost_joins_its_own_turn() -> None:
    script, browser = (
        ServiceScript(three_tool_turn(), start_faults=deque([DROP_CONNECTION, 503, DROP_CONNECTION])),
        Browser(),
    )
    assert_complete(run_script(script, browser), browser)
    bodies = [body for _, path, body in script.requests if path.startswith("/chat/")]
    assert len(bodies) == 4
    assert all(body == bodies[0] for body in bodies)


def test_a_busy_conversation_is_reported_at_once() -> None:
    with pytest.raises(RequestRefusedError) as caught:
        run_script(ServiceScript(three_tool_turn(), start_faults=deque([409])))
    assert (caught.value.status, caught.value.retry_after) == (409, 0)


def test_a_held_turn_is_asked_for_instead_of_listened_to() -> None:
    events = number_events(ready_event(), text_event("May I?"), text_event("Thanks."), done_event())
    last_seq = events[1]["seq"]  # the service gives `held` the number of the last event of the turn
    events.insert(2, {"type": "held", "until": "2030-01-01T00:00:00Z", "retryAfter": 7, "seq": last_seq})
    waits: list[float] = []
    states = deque([{"status": "paused", "seq": last_seq}] * 3 + [{"status": "running", "seq": last_seq + 1}])
    script = ServiceScript(events, bridge_states=states)
    outcome = run_script(script, patience=RetryPolicy(max_failures=5, first_delay=0.001, sleep=waits.append))
    assert outcome.view.text == "May I?Thanks."
    assert waits == [7.0, 7.0, 7.0, 7.0]
    assert script.stream_starts == [0, last_seq]


def test_a_held_turn_that_has_moved_on_before_it_is_first_asked_is_listened_to_again() -> None:
    events = number_events(ready_event(), text_event("May I?"), text_event("Thanks."), done_event())
    last_seq = events[1]["seq"]
    events.insert(2, {"type": "held", "until": "2030-01-01T00:00:00Z", "retryAfter": 7, "seq": last_seq})
    waits: list[float] = []
    script = ServiceScript(events, bridge_states=deque([{"status": "paused", "seq": last_seq + 1}]))
    outcome = run_script(script, patience=RetryPolicy(max_failures=5, first_delay=0.001, sleep=waits.append))
    assert outcome.view.text == "May I?Thanks."
    assert waits == [7.0]


def test_a_turn_found_again_does_only_what_is_still_wanted() -> None:
    """A fresh process reads the whole log, in which the first request was answered by the one before it."""
    script, browser = ServiceScript(three_tool_turn()), Browser()
    script.result_by_request["r1"] = {"ok": True}
    with serve_script(script) as url, FermataClient(url, "good") as client:
        outcome = follow_turn(client, BRIDGE, executor=browser, on_event=browser.listen, retry_policy=QUICK)
    assert outcome.view == COMPLETE_VIEW
    assert browser.acted == Counter({"turn/2": 1, "turn/3": 1})


def test_ctrl_c_cancels_the_turn_once_and_waits_for_its_end() -> None:
    script, browser = ServiceScript(three_tool_turn()), Browser()

    def interrupted(request: Event) -> dict[str, Any]:
        browser(request)
        raise KeyboardInterrupt

    outcome = run_script(script, browser, executor=interrupted)
    assert script.cancel_count == 1
    assert (outcome.status, outcome.is_interrupted) == ("cancelled", True)
    assert browser.acted == Counter({"turn/1": 1})
    assert browser.terminals == ["cancelled"]
    assert script.posted_answers == []


def test_ctrl_c_before_the_turn_is_known_finds_it_by_its_key_and_cancels_it() -> None:
    script = ServiceScript(three_tool_turn(), start_faults=deque([DROP_CONNECTION]))
    interrupts = iter([True])

    def sleep(seconds: float) -> None:
        if next(interrupts, False):
            raise KeyboardInterrupt

    outcome = run_script(script, patience=RetryPolicy(max_failures=5, sleep=sleep))
    assert script.cancel_count == 1
    assert outcome.status == "cancelled"


def test_ctrl_c_with_the_service_gone_stops_all_the_same() -> None:
    calls = iter([httpx.Response(201, json={"conversation": {"id": "c"}})])

    def answering(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/conversations"):
            return next(calls)
        raise httpx.ConnectError("gone")

    def sleep(seconds: float) -> None:
        if not slept:
            slept.append(seconds)
            raise KeyboardInterrupt

    slept: list[float] = []
    with FermataClient("http://service", "good", transport=httpx.MockTransport(answering)) as client:
        outcome = run_turn(client, "site", "hello", retry_policy=RetryPolicy(max_failures=3, sleep=sleep))
    assert (outcome.status, outcome.is_interrupted) == ("interrupted", True)


def test_a_refused_token_is_not_tried_twice() -> None:
    script = ServiceScript(three_tool_turn())
    with (
        serve_script(script) as url,
        FermataClient(url, "bad") as client,
        pytest.raises(RequestRefusedError, match=r"Unauthorized \(HTTP 401\)"),
    ):
        run_turn(client, "site", "hello", retry_policy=QUICK)
    assert len(script.requests) == 1
