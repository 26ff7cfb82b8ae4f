"""Check the API key of a real model before a cloud is started for it."""

import threading
from urllib.parse import urlsplit

import httpx

from fermata.drivers.registry import get_provider

PROVIDER = "anthropic"
DEADLINE_SECONDS = 8.0
"""For the whole request, also for looking up the address, which has no time-out of its own."""
DEMO_MODEL_HINT = "Without ANTHROPIC_API_KEY the demo uses a local model."


class RealModelUnavailableError(Exception):
    """The provider does not accept the key, or cannot be reached. The message says which."""


def check_real_key(key: str | None, url: str | None = None) -> None:
    """Ask the provider for its models with the key; without a key nothing is asked.

    Raises:
        RealModelUnavailableError: it refuses the key, or does not answer within `DEADLINE_SECONDS`.
    """
    if not key:
        return
    base_url = url or get_provider(PROVIDER).default_url or ""
    host = urlsplit(base_url).netloc
    if not key.isascii() or not key.isprintable() or " " in key:
        raise RealModelUnavailableError(f"ANTHROPIC_API_KEY has characters that no key contains. {DEMO_MODEL_HINT}")
    outcome = _request_within_deadline(f"{base_url.rstrip('/')}/v1/models?limit=1", key)
    if not isinstance(outcome, httpx.Response):
        reason = f": {outcome}" if outcome else f" within {DEADLINE_SECONDS:.0f} seconds"
        raise RealModelUnavailableError(f"{host} does not answer{reason}. Check the network. {DEMO_MODEL_HINT}")
    if outcome.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        raise RealModelUnavailableError(
            f"{host} does not accept the ANTHROPIC_API_KEY ({outcome.status_code}). {DEMO_MODEL_HINT}"
        )


def _request_within_deadline(url: str, key: str) -> httpx.Response | httpx.TransportError | None:
    """Return the response or the error; None if there is neither yet."""
    outcomes: list[httpx.Response | httpx.TransportError] = []

    def request() -> None:
        headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
        try:
            outcomes.append(httpx.get(url, headers=headers, timeout=DEADLINE_SECONDS))
        except httpx.TransportError as error:
            outcomes.append(error)

    thread = threading.Thread(target=request, daemon=True)
    thread.start()
    thread.join(DEADLINE_SECONDS)
    return outcomes[0] if outcomes else None
