"""`make demo` with a key that is wrong or cannot be tried says so at once."""

import socket

import pytest

from local import demo
from local.check_real_key import RealModelUnavailableError, check_real_key
from tests.fixed_response_server import run_fixed_response_server


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_not_accepted_is_one_sentence(status: int) -> None:
    with run_fixed_response_server() as server:
        server.status = status
        with pytest.raises(RealModelUnavailableError, match=rf"does not accept the ANTHROPIC_API_KEY \({status}\)"):
            check_real_key("sk-wrong", server.url)


@pytest.mark.parametrize("status", [200, 429, 529])
def test_a_key_is_used_where_the_provider_answers_otherwise(status: int) -> None:
    with run_fixed_response_server() as server:
        server.status = status
        check_real_key("sk-good", server.url)
        assert server.request_count == 1


def test_without_a_key_nothing_is_asked() -> None:
    check_real_key(None, "http://127.0.0.1:9")
    check_real_key("", "http://127.0.0.1:9")


def test_without_a_network_it_ends_with_a_sentence() -> None:
    with pytest.raises(RealModelUnavailableError, match=r"does not answer.*Check the network"):
        check_real_key("sk-good", "http://127.0.0.1:9")


def test_a_provider_that_never_answers_is_left_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("local.check_real_key.DEADLINE_SECONDS", 0.1)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(RealModelUnavailableError, match="does not answer"),
    ):
        check_real_key("sk-good", f"http://127.0.0.1:{silent.getsockname()[1]}")


@pytest.mark.parametrize("key", ["sk\nx", "sk x", "clé"])
def test_what_is_no_key_is_not_sent(key: str) -> None:
    with run_fixed_response_server() as server:
        with pytest.raises(RealModelUnavailableError, match="characters that no key contains"):
            check_real_key(key, server.url)
        assert server.request_count == 0


def test_the_demo_starts_no_cloud_with_such_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk x")
    monkeypatch.setattr(demo, "LocalCloud", None)
    monkeypatch.setattr(demo, "install_stop_signals", lambda: None)
    with pytest.raises(SystemExit) as ended:
        demo.main()
    assert "ANTHROPIC_API_KEY has characters" in str(ended.value.code)
