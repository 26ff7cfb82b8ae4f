"""What was written to the log."""

from typing import Any

import pytest


def pop_audit_records(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """The lines of the audit since somebody looked last."""
    found = [vars(record) for record in caplog.records if getattr(record, "audit", False)]
    caplog.clear()
    return found


def get_warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.levelname in ("WARNING", "ERROR")]
