"""Messages and items of OpenAI's clients become a transcript, which names its conversation."""

from typing import Any

import pytest

from fermata.client_protocols.openai_transcript import (
    TranscriptCall,
    TranscriptMessage,
    compute_transcript_digest,
    read_chat_transcript,
    read_client_tools,
    read_response_transcript,
)
from fermata.domain.blocks import ImageBlock, TextBlock
from fermata.domain.errors import InvalidRequest
from fermata.domain.run_settings import FileDownloadLimits
from tests.images import make_png_header, to_base64

PNG = f"data:image/png;base64,{to_base64(make_png_header())}"
CALL = {"id": "call_t_0", "type": "function", "function": {"name": "read", "arguments": "{}"}}


def test_a_chat_has_instructions_earlier_messages_and_a_prompt() -> None:
    transcript = read_chat_transcript(
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "One"},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "call_t_0", "content": [{"type": "text", "text": "1"}]},
            {"role": "assistant", "content": "It is one."},
            {"role": "developer", "content": "In German."},
            {"role": "user", "content": [{"type": "text", "text": "Look"}]},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PNG}}]},
        ]
    )
    assert transcript.instructions == "Be brief.\n\nIn German."
    assert transcript.results == ()
    assert [message.role for message in transcript.earlier] == ["user", "assistant", "tool", "assistant"]
    assert transcript.earlier[1].calls == (TranscriptCall("call_t_0", "read", "{}"),)
    text, image = transcript.prompt.to_prompt().content
    assert text == TextBlock(text="Look")
    assert isinstance(image, ImageBlock)


def test_the_results_at_the_end_are_what_a_model_waits_for() -> None:
    said = [
        {"role": "user", "content": "One"},
        {"role": "assistant", "tool_calls": [CALL, CALL]},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
    ]
    assert [result.call_id for result in read_chat_transcript(said).results] == ["a", "b"]
    with pytest.raises(InvalidRequest, match="last message"):
        _ = read_chat_transcript(said[:2]).prompt


def test_the_items_of_one_answer_are_one_message() -> None:
    items: list[Any] = [
        {"role": "user", "content": [{"type": "input_text", "text": "One"}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"},
        {"type": "function_call", "call_id": "c2", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "2"}]},
    ]
    transcript = read_response_transcript(items, "Be brief.")
    asked, answered, *results = transcript.messages
    assert (asked.text, answered.text, [call.call_id for call in answered.calls]) == ("One", "I look.", ["c1", "c2"])
    assert [result.text for result in results] == ["1", "2"]
    assert transcript.instructions == "Be brief."
    assert read_response_transcript("Hello").prompt.text == "Hello"


def digest(*messages: TranscriptMessage, scope: str = "site") -> str:
    return compute_transcript_digest(scope, messages)


def test_a_transcript_is_the_same_however_a_client_writes_it() -> None:
    one = TranscriptMessage("assistant", "Hi. ", calls=(TranscriptCall("c", "read", '{"a":1}'),))
    other = TranscriptMessage("assistant", "Hi.", calls=(TranscriptCall("c", "read", '{ "a": 1 }'),))
    assert digest(one) == digest(other)
    assert digest(one) != digest(one, scope="content")
    assert digest(one) != digest(TranscriptMessage("assistant", "Hi."))
    assert digest(one) != digest(TranscriptMessage("user", "Hi."))


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"role": "nobody", "content": "x"}, "Invalid role"),
        ({"content": "x"}, "Invalid role"),
        ({"role": "user", "content": 7}, "a text or a list"),
        ({"role": "user", "content": ["x"]}, "a text or a list"),
        ({"role": "user", "content": [{"type": "input_video"}]}, "input_video"),
        ({"role": "assistant", "tool_calls": [{"id": "x", "type": "custom"}]}, "no function call"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(message: Any, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        read_chat_transcript([message])


@pytest.mark.parametrize("url", ["http://a.example/x.png", "https://127.0.0.1/x.png", "file:///etc/passwd", "x", None])
def test_an_image_that_is_neither_a_data_url_nor_at_a_public_address_is_refused(url: Any) -> None:
    def read_prompt_with_files() -> None:
        said = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]
        prompt = read_chat_transcript(said).prompt.to_prompt()
        if prompt.download is not None:
            prompt.download(FileDownloadLimits())

    with pytest.raises(InvalidRequest, match="cannot be read"):
        read_prompt_with_files()


def test_a_text_file_is_read_into_the_prompt() -> None:
    file = {"filename": "a.txt", "file_data": "data:text/plain;base64,SGVsbG8="}
    for part in ({"type": "file", "file": file}, {"type": "input_file", **file}):
        (block,) = read_response_transcript([{"role": "user", "content": [part]}]).prompt.to_prompt().content
        assert block == TextBlock(text="Attached file: a.txt\n\nHello")


def test_functions_are_tools_in_both_forms_and_may_be_withheld() -> None:
    function = {"name": "read", "description": "Reads.", "parameters": {"type": "object"}}
    for tool in ({"type": "function", "function": function}, {"type": "function", **function}):
        (read,) = read_client_tools([tool], "auto")
        assert (read.name, read.description, read.parameters) == ("read", "Reads.", {"type": "object"})
        assert read_client_tools([tool], "none") == ()
    assert read_client_tools(None, None) == ()


@pytest.mark.parametrize("tool", [{"type": "web_search"}, {"type": "function", "name": "a b"}, {"type": "function"}])
def test_other_tools_are_refused(tool: Any) -> None:
    with pytest.raises(InvalidRequest):
        read_client_tools([tool], None)


def test_files_of_earlier_messages_are_not_downloaded() -> None:
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in ("https://a.example/x.png", PNG)]
    (message,) = read_chat_transcript(
        [{"role": "user", "content": [{"type": "text", "text": "Look"}, *parts]}]
    ).messages
    text, image = message.without_addresses().to_prompt().content
    assert text == TextBlock(text="Look\n\n[Here was a file that is not part of this conversation.]")
    assert isinstance(image, ImageBlock)
