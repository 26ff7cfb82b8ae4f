"""Test long turns and many turns."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from fermata_client import TurnOutcome
from tests.e2e import turn_checks
from tests.e2e.chat_session import (
    DELETE_CALL,
    DOCUMENTS_CALL,
    INSERT_CALL,
    OK_RESULT,
    ChatSession,
    make_snapshot,
)
from tests.e2e.demo_model_client import text_step, tool_call_step
from tests.waiting import BACKSTOP_SECONDS

ROUNDS = 200


def test_a_turn_of_200_rounds_finishes(session: ChatSession) -> None:
    reader = session.start_turn(
        *[tool_call_step(DOCUMENTS_CALL)] * (ROUNDS - 1), text_step("At last."), snapshot=make_snapshot("Home")
    )
    reader.wait_for_end(5 * BACKSTOP_SECONDS)
    assert len(session.model_requests()) == ROUNDS
    view = turn_checks.check_turn(session, reader)
    assert len(view.rounds) == ROUNDS
    assert view.text == "At last."


def test_ten_concurrent_turns_with_browser_tools_all_finish(new_session: Callable[..., ChatSession]) -> None:
    sessions = [new_session() for _ in range(10)]

    def run(session: ChatSession) -> TurnOutcome:
        return session.run_turn(
            tool_call_step(INSERT_CALL, DOCUMENTS_CALL, DELETE_CALL, text="Working."),
            tool_call_step(DELETE_CALL),
            text_step("Done."),
            executor=lambda _: OK_RESULT,
        )

    with ThreadPoolExecutor(10) as pool:
        outcomes = list(pool.map(run, sessions))
    assert [outcome.status for outcome in outcomes] == ["done"] * 10
    for session, outcome in zip(sessions, outcomes, strict=True):
        assert len(session.model_requests()) == 3
        assert turn_checks.check_turn(session) == outcome.view
