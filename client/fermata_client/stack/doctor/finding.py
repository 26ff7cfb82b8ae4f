"""Define what an examination finds."""

from dataclasses import dataclass
from functools import cache
from typing import Literal

FindingLevel = Literal["ok", "note", "problem"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. A problem keeps the deployment from working; a note should be known before it."""

    level: FindingLevel
    subject: str
    text: str
    """Whole sentences: what is there, what it means, and what to do."""


@cache
def get_aws_errors() -> tuple[type[Exception], ...]:
    """Return what boto3 raises instead of a response. The client installs without it."""
    from botocore.exceptions import BotoCoreError, ClientError

    return BotoCoreError, ClientError


def describe_aws_error(error: Exception) -> str:
    """Return an error of AWS as one sentence, without the name of boto3's method."""
    text = " ".join(str(error).split())
    reason = text.rpartition(" operation:")[2].strip().rstrip(".")
    if reason:
        return reason
    code = getattr(error, "response", {}).get("Error", {}).get("Code", type(error).__name__)
    return f"AWS answered {code}"
