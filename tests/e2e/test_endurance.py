"""Long turns and many turns."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from fermata_client import Outcome
from tests.e2e import checks
from tests.e2e.model import calls, says
from tests.e2e.talk import DELETE, DOCUMENTS, INSERT, OK, Talk, snapshot_of

ROUNDS = 200


def test_a_turn_of_200_rounds_finishes(talk: Talk) -> None:
    reader = talk.start(*[calls(DOCUMENTS)] * (ROUNDS - 1), says("At last."), snapshot=snapshot_of("Home"))
    reader.finish(110)
    assert len(talk.requests()) == ROUNDS
    view = checks.sound(talk, reader)
    assert len(view.rounds) == ROUNDS
    assert view.text == "At last."


def test_ten_turns_with_browser_tools_at_once_all_finish(new_talk: Callable[..., Talk]) -> None:
    talks = [new_talk() for _ in range(10)]

    def run(talk: Talk) -> Outcome:
        return talk.run(
            calls(INSERT, DOCUMENTS, DELETE, text="Working."), calls(DELETE), says("Done."), executor=lambda _: OK
        )

    with ThreadPoolExecutor(10) as pool:
        outcomes = list(pool.map(run, talks))
    assert [outcome.status for outcome in outcomes] == ["done"] * 10
    for talk, outcome in zip(talks, outcomes, strict=True):
        assert len(talk.requests()) == 3
        assert checks.sound(talk) == outcome.view
