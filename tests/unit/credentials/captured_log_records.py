"""Read log records that a test has caused."""

from typing import Any

import pytest


def pop_audit_records(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """Return the audit records since the last call."""
    records = [vars(record) for record in caplog.records if getattr(record, "audit", False)]
    caplog.clear()
    return records


def get_warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.levelname in ("WARNING", "ERROR")]
