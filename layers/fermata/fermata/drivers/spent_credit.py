"""Recognise that the account of an API key has no credit left (decision 0266).

Providers report it with any status: 400 (Anthropic), 401, 402 (DeepSeek, OpenRouter), 403 (xAI), 429 (OpenAI). Only its
code, or else its words, tell it from a bad request, a wrong key or a rate limit.
"""

import re
from collections.abc import Iterable

_CODES = frozenset({
    "accountoverdueerror", "arrearage", "billing_error", "billing_hard_limit_reached", "billing_not_active",
    "budget_exceeded", "credits_exhausted", "creditserror", "exceeded_current_quota_error", "insufficient_balance",
    "insufficient_credits", "insufficient_funds", "insufficient_quota", "insufficient_user_quota", "payment_required",
    "pre_consume_token_quota_failed", "terminal_quota_exhausted",
})  # fmt: skip
"""Codes and types of errors, in lower case."""
_WORDS = re.compile(
    r"credit balance|insufficient[ _](?:\w{1,20} ){0,4}(?:balance|credits?|funds)|insufficient[ _]quota|"
    r"\b(?:out of|no|all available|more|purchase|exhausted) (?:\w{1,20} ){0,2}credits?\b(?! ?card)|"
    r"credits? (?:have been |has been |are |is |were )?(?:exhausted|depleted|used up|expired)|"
    r"spend(?:ing)?[ _-](?:limit|cap)|billing (?:hard )?limit|hard billing limit|budget has been exceeded|"
    r"(?:specified|monthly) (?:api )?usage limits?\b|payment required|in arrears|overdue (?:balance|payment|bill)|"
    r"account is not active|negative balance|"
    r"\u4f59\u989d\u4e0d\u8db3|\u989d\u5ea6\u4e0d\u8db3|\u6b20\u8d39",
    re.I,
)
"""Matches what servers say of spent credit; the last three are Chinese."""
_PASSING = re.compile(
    r"\b(?:per|a|each)[ _-](?:second|minute|hour)|\b[RT]P[MS]\b|try again in|resets? (?:in|after)|rate[ _-]?limit", re.I
)
"""Matches what says that a limit passes by itself soon."""


def is_credit_spent(names: Iterable[str], words: str) -> bool:
    """Return whether an error says that there is no credit left.

    Args:
        names: The error's code and type.
        words: What it says.
    """
    if any(name.lower() in _CODES for name in names):
        return True
    return _WORDS.search(words) is not None and _PASSING.search(words) is None
