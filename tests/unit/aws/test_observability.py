"""Log structured lines, emit metrics as EMF, and keep log keys per invocation and thread."""

import json
import threading
from typing import Any

import pytest

from fermata.aws import observability


def read_lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_metrics_are_one_emf_line_without_the_tenant_as_a_dimension(capsys: pytest.CaptureFixture[str]) -> None:
    observability.emit_metrics({"TurnsEnded": 1, "Errors": 0}, {"how": "done"}, tenant="bakery")
    [line] = read_lines(capsys)
    [directive] = line["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "Fermata"
    assert [sorted(dimensions) for dimensions in directive["Dimensions"]] == [["how", "service"]]
    assert line["tenant"] == "bakery"
    assert line["TurnsEnded"] == [1.0]


def test_an_undeclared_metric_is_an_error() -> None:
    with pytest.raises(KeyError):
        observability.emit_metrics({"Surprises": 1})


def test_a_line_is_an_event_with_keys(caplog: pytest.LogCaptureFixture) -> None:
    observability.log_event("turn.ended", turn="1", how="done")
    [record] = caplog.records
    assert (record.msg, record.__dict__["turn"], record.__dict__["how"]) == ("turn.ended", "1", "done")


def test_keys_are_dropped_when_the_next_invocation_begins() -> None:
    observability.reset_log_keys(request_id="one", turn="1")
    observability.add_log_keys(round=2)
    assert observability.logger.thread_safe_get_current_keys() == {"request_id": "one", "turn": "1", "round": 2}
    observability.reset_log_keys(request_id="two")
    assert observability.logger.thread_safe_get_current_keys() == {"request_id": "two"}
    observability.reset_log_keys()


def test_each_thread_has_its_own_keys() -> None:
    observability.reset_log_keys(request_id="mine")
    seen: list[dict[str, Any]] = []
    other = threading.Thread(target=lambda: seen.append(observability.logger.thread_safe_get_current_keys()))
    other.start()
    other.join()
    assert "request_id" not in seen[0]
    observability.reset_log_keys()


def test_an_exception_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError("a bug")
    except ValueError:
        observability.log_exception("turn.recovery_failed", turn="1")
    assert "a bug" in caplog.text
    assert "Traceback" in caplog.text


def test_without_an_xray_daemon_a_handler_is_not_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    def handler(event: dict[str, Any], _context: Any) -> Any:
        return event

    monkeypatch.delenv("AWS_XRAY_DAEMON_ADDRESS", raising=False)
    assert observability.trace_handler(handler) is handler
