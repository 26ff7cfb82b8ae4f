"""Tell clients how many prompts they have left, in the headers that their libraries read (decision 0521)."""

_WINDOW_SECONDS = 60
RATE_LIMIT_HEADERS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "RateLimit-Policy")


def build_rate_limit_headers(limit: int, remaining: int, reset_seconds: int) -> dict[str, str]:
    """Return the headers of draft 6 of "RateLimit header fields for HTTP".

    Args:
        limit: The prompts of a minute.
        remaining: How many of them are left.
        reset_seconds: The seconds until all of them are free; of a refusal, until one is.
    """
    values = (limit, remaining, reset_seconds, f"{limit};w={_WINDOW_SECONDS}")
    return dict(zip(RATE_LIMIT_HEADERS, map(str, values), strict=True))
