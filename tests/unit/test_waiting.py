"""Tests wait as long as it takes on a busy machine."""

import httpx

from tests.waiting import BACKSTOP_SECONDS


def test_a_call_of_httpx_without_a_limit_of_its_own_has_that_of_tests() -> None:
    with httpx.Client() as client:
        assert client.timeout == httpx.Timeout(BACKSTOP_SECONDS)
