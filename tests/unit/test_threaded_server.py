"""Servers of tests print the errors of their handlers, and nothing about clients that left."""

import pytest

from tests.threaded_server import ThreadedServer


@pytest.mark.parametrize(
    ("error", "is_printed"), [(ConnectionResetError(), False), (BrokenPipeError(), False), (ValueError("wrong"), True)]
)
def test_only_a_closed_connection_is_passed_over(
    error: Exception, is_printed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with ThreadedServer(("127.0.0.1", 0), object, bind_and_activate=False) as server:  # type: ignore[arg-type]  # never called
        try:
            raise error
        except type(error):
            server.handle_error(None, ("127.0.0.1", 1))
    assert (type(error).__name__ in capsys.readouterr().err) is is_printed
