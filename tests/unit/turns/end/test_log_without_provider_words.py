"""A provider's words go to the user who asked, and never to the log: there are its code, its status and the ids."""

import json

import pytest

from fermata.aws import observability
from fermata.domain.errors import ProviderError
from tests.unit.turns.stage import Stage

WORDS = "The prompt 'our secret plan' of org-4711 was refused"


@pytest.mark.parametrize("retryable", [True, False])
def test_a_failed_turn_is_logged_by_code(stage: Stage, caplog: pytest.LogCaptureFixture, retryable: bool) -> None:
    def fail() -> None:
        error = ProviderError("provider_request", WORDS, retryable=retryable, status=400)
        error.detail = f"{WORDS} (and more)"
        raise error

    stage.start_turn()
    stage.script_replies(*[[fail]] * 4)
    stage.run_workflow()
    [terminal] = stage.terminal_events()
    assert WORDS in getattr(terminal, "message", ""), "its user reads it"
    lines = [observability.logger.registered_formatter.format(record) for record in caplog.records]
    assert [json.loads(line)["code"] for line in lines if '"ai.chat.failed"' in line] == ["provider_request"]
    assert not [line for line in lines if "secret plan" in line or "4711" in line]
