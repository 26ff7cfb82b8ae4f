"""Messages in the form of chat clients: what is prepared before they are validated."""

from typing import Any

import pytest

from fermata.domain.ui_messages import INVALID_MESSAGE_TEXT, is_valid_ui_message, prepare_ui_messages, strip_data_url


def test_messages_01_a_file_in_a_data_url_becomes_bare_data() -> None:
    part = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA"}
    [message] = prepare_ui_messages([{"role": "user", "parts": [{"type": "text", "text": "data:x;base64,y"}, part]}])
    assert message["parts"] == [{"type": "text", "text": "data:x;base64,y"}, {**part, "url": "AAAA"}]


@pytest.mark.parametrize(
    ("url", "bare"),
    [
        ("https://files.example/a,b.png", "https://files.example/a,b.png"),
        ("DATA:text/plain;charset=utf-8;BASE64,QUJD", "QUJD"),
        ("data:text/plain,hello", "data:text/plain,hello"),
        ("data:image/png;base64", "data:image/png;base64"),
    ],
)
def test_only_base64_data_is_taken_out_of_an_address(url: str, bare: str) -> None:
    assert strip_data_url(url) == bare


@pytest.mark.parametrize("empty", [{"parts": []}, {"parts": None}, {}])
def test_messages_02_a_message_without_parts_is_dropped_before_it_is_validated(empty: dict[str, Any]) -> None:
    said = {"role": "user", "parts": [{"type": "text", "text": "Hello"}]}
    assert prepare_ui_messages([{"role": "assistant", **empty}, said]) == [said]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "robot", "parts": [{"type": "text", "text": "x"}]},
        {"role": "user", "parts": [{"type": "text"}]},
        {"role": "user", "parts": ["x"]},
        {"role": "user", "parts": "x"},
        {"role": "assistant", "parts": [{"type": "tool-search", "toolCallId": 7, "state": "output-available"}]},
        "x",
    ],
)
def test_messages_03_an_invalid_message_is_reported_without_its_content(message: Any) -> None:
    assert not is_valid_ui_message(message)
    assert INVALID_MESSAGE_TEXT == "A message failed validation."


def test_parts_that_only_clients_know_are_valid() -> None:
    parts = [{"type": "step-start"}, {"type": "data-chart", "data": 1}, {"type": "text", "text": "", "state": "done"}]
    assert is_valid_ui_message({"id": "1", "role": "assistant", "parts": parts})
