"""Hold whole chat-completions responses as odd servers send them, and what each of them means (decision 0195)."""

import gzip
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fermata.domain.model_io import StreamPart
from fermata.drivers.protocols.response_stream import iter_parts
from fermata.drivers.protocols.thinking_tags import split_thinking_from_parts
from fermata.drivers.transport.connection_interface import ProviderResponse
from fermata.drivers.transport.content_decoding import decode_chunks
from tests.strict import chat
from tests.unit.drivers.recorded_streams import RECORDINGS

DONE = "data: [DONE]\n\n"
CHANNEL = "<|channel|>"
END_MARKS = ("<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<end_of_turn>", "<\uff5cend\u2581of\u2581sentence\uff5c>")
STOP = chat.make_chunk({}, "stop")
CALLS = chat.make_chunk({}, "tool_calls")
PARENT = {"parentId": "root", "html": "<p>x</p>"}


def frame(event: Any) -> str:
    return event if isinstance(event, str) else f"data: {json.dumps(event)}\n\n"


def encode(*events: Any) -> bytes:
    return "".join(map(frame, events)).encode("utf-8", "surrogatepass")


def fragment(arguments: Any = None, name: str | None = None, call_id: str | None = None, index: int = 0) -> Any:
    function = {"name": name, "arguments": arguments}
    call = {"index": index, "id": call_id, "type": "function", "function": function}
    return chat.make_chunk({"tool_calls": [call]})


def call_in_one(arguments: Any) -> bytes:
    return encode(fragment(arguments, "insertHtml", "call_a"), CALLS, DONE)


@dataclass
class Odd:
    """One response and what it means."""

    stream: bytes
    text: str = ""
    reasoning: str = ""
    calls: Sequence[tuple[str, Any]] = ()
    headers: dict[str, str] = field(default_factory=dict)

    def decode(self, size: int) -> list[StreamPart]:
        """Read the response from chunks of this size."""
        recording = RECORDINGS["openai-compatible"]
        pieces = (self.stream[start : start + size] for start in range(0, len(self.stream), size))
        chunks = decode_chunks("Peer", self.headers.get("content-encoding", ""), pieces)
        response = ProviderResponse(200, self.headers, chunks)
        parts = iter_parts("Peer", response, recording.make_accumulator(), "", recording.make_decoder())
        return [*split_thinking_from_parts(parts)]


TEXT = encode(chat.make_chunk({"content": "Alive."}), STOP, chat.usage_chunk(), DONE)
WHOLE = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Alive."}, "finish_reason": "stop"}]}
HEARTBEATS = (
    b"data: ping\n\n",
    b"data: \n\n",
    b"data: null\n\n",
    b"data: []\n\n",
    b"data: {}\n\n",
    b"data: 1\n\n",
    b'data: "keepalive"\n\n',
    b"data: [[], null]\n\n",
    b"event: ping\ndata: ping\n\n",
    b": OPENROUTER PROCESSING\n\n",
)
ODD_STREAMS = {
    "the last chunk holds the whole message": Odd(
        encode(
            *chat.text_chunks("Hello ", "there."),
            {"choices": [{"message": {"role": "assistant", "content": "Hello there."}, "finish_reason": "stop"}]},
            DONE,
        ),
        "Hello there.",
    ),
    "the last chunk holds the whole message, of which a part was not streamed": Odd(
        encode(
            *chat.text_chunks("Hello "),
            {"choices": [{"index": 0, "message": {"content": "Hello there."}, "finish_reason": "stop"}]},
            DONE,
        ),
        "Hello there.",
    ),
    "the whole message repeats the calls": Odd(
        encode(
            fragment(json.dumps(PARENT), "insertHtml", "call_a"),
            {
                "choices": [
                    {
                        "message": {
                            "content": None,
                            "tool_calls": [
                                {"id": "call_a", "function": {"name": "insertHtml", "arguments": json.dumps(PARENT)}}
                            ],
                        },
                        "finish_reason": "tool_calls",
                    }
                ]
            },
            DONE,
        ),
        calls=[("insertHtml", PARENT)],
    ),
    "the last delta repeats the whole text": Odd(
        encode(*chat.text_chunks("Hello ", "there."), chat.make_chunk({"content": "Hello there."}, "stop"), DONE),
        "Hello there.",
    ),
    "text in parts that wrap it": Odd(
        encode(
            chat.make_chunk({"content": [{"type": "text", "text": {"value": "Hello "}}]}),
            chat.make_chunk({"content": {"type": "text", "text": {"value": "there", "annotations": []}}}),
            chat.make_chunk({"content": {"value": "."}}),
            STOP,
            DONE,
        ),
        "Hello there.",
    ),
    "a list in place of a stream": Odd(
        json.dumps([*chat.text_chunks("Al", "ive."), STOP], indent=1).encode(), "Alive."
    ),
    "a list of chunks in an event": Odd(encode([*chat.text_chunks("Al", "ive.")], [STOP], DONE), "Alive."),
    "arguments in a list of pieces": Odd(
        encode(fragment(['{"a":', " 1}"], "insertHtml", "call_a"), CALLS, DONE), calls=[("insertHtml", {"a": 1})]
    ),
    "arguments that are no object": Odd(
        encode(fragment([{"a": 1}], "insertHtml", "call_a"), CALLS, DONE), calls=[("insertHtml", [{"a": 1}])]
    ),
    "an error that says nothing in each chunk": Odd(
        encode(
            chat.make_chunk({"content": "Alive."}) | {"error": {"code": 0, "message": ""}},
            STOP | {"error": {"code": None, "message": None}},
            DONE,
        ),
        "Alive.",
    ),
    "success as a code with words": Odd(
        encode({"code": 0, "msg": "success", "choices": []}, {"code": 200, "message": "OK"}) + TEXT, "Alive."
    ),
    "choices that are counted from 1": Odd(
        encode({"choices": [{"index": 1, "delta": {"content": "Alive."}, "finish_reason": "stop"}]}, DONE), "Alive."
    ),
    "indexes of choices as text": Odd(
        encode({"choices": [{"index": "0", "delta": {"content": "Alive."}, "finish_reason": "stop"}]}, DONE), "Alive."
    ),
    "the field twice in each line": Odd(TEXT.replace(b"data: ", b"data: data: "), "Alive."),
    "blanks before each field": Odd(TEXT.replace(b"data: ", b" data: "), "Alive."),
    "the marker as JSON, and no reason for the end": Odd(
        encode(chat.make_chunk({"content": "Alive."}), '"[DONE]"').replace(b'"[DONE]"', b'data: "[DONE]"\n\n'), "Alive."
    ),
    "reasoning in parts": Odd(
        encode(
            chat.make_chunk({"reasoning_content": [{"type": "text", "text": "Hm."}]}),
            chat.make_chunk({"content": "Alive."}),
            STOP,
            DONE,
        ),
        "Alive.",
        "Hm.",
    ),
    "the name of a tool in pieces": Odd(
        encode(
            fragment(None, "insert", "call_a"),
            fragment("", "Ht"),
            fragment(None, "ml", "call_a"),
            fragment(json.dumps(PARENT)),
            CALLS,
            DONE,
        ),
        calls=[("insertHtml", PARENT)],
    ),
    "the name of a tool so far in each piece": Odd(
        encode(
            fragment(None, "insert", "call_a"),
            fragment(None, "insertHtml", "call_a"),
            fragment(json.dumps(PARENT), "insertHtml", "call_a"),
            CALLS,
            DONE,
        ),
        calls=[("insertHtml", PARENT)],
    ),
    "names in pieces of two calls": Odd(
        encode(
            fragment(None, "insert", "call_a"),
            fragment(None, "read_", "call_b", 1),
            fragment("{", "Html"),
            fragment(None, "page", None, 1),
            fragment('"a": 1}'),
            fragment("{}", None, None, 1),
            CALLS,
            DONE,
        ),
        calls=[("insertHtml", {"a": 1}), ("read_page", {})],
    ),
    "an event that is broken over lines": Odd(
        b"data: " + json.dumps(chat.make_chunk({"content": "Hello: there."}), indent=1).encode() + b"\n\n"
        b"id: 7\ndata: " + json.dumps(STOP, indent=1).encode() + b"\n\n" + DONE.encode(),
        "Hello: there.",
    ),
    "thinking between tags": Odd(
        encode(
            chat.make_chunk({"content": "<think>\nThe user says"}),
            chat.make_chunk({"content": " hi.\n</think>\n\nHello!"}),
            STOP,
            DONE,
        ),
        "Hello!",
        "The user says hi.\n",
    ),
    "thinking between tags that are cut anywhere": Odd(
        encode(*(chat.make_chunk({"content": piece}) for piece in "\n<think>Hm.</think>\n\nHello!"), STOP, DONE),
        "Hello!",
        "Hm.",
    ),
    "thinking behind text": Odd(
        encode(chat.make_chunk({"content": "Sure. <think>Hm.</think> Done."}), STOP, DONE), "Sure. Done.", "Hm."
    ),
    "a tag that is quoted": Odd(
        encode(chat.make_chunk({"content": "Write `<think>` first, `</think>` last."}), STOP, DONE),
        "Write `<think>` first, `</think>` last.",
    ),
    "a tag that nothing closes": Odd(
        encode(chat.make_chunk({"content": "Use <think> tags."}), STOP, DONE), "Use <think> tags.", "tags."
    ),
    "text with brackets that are no tags": Odd(
        encode(*(chat.make_chunk({"content": piece}) for piece in ("a <", "b> c [", "d] <th")), STOP, DONE),
        "a <b> c [d] <th",
    ),
    "gzip although identity was asked": Odd(gzip.compress(TEXT), "Alive.", headers={"content-encoding": "gzip"}),
    "gzip in several members": Odd(
        gzip.compress(TEXT[:40]) + gzip.compress(TEXT[40:]), "Alive.", headers={"content-encoding": "gzip"}
    ),
    "gzip that no header names": Odd(gzip.compress(TEXT), "Alive."),
    "a header names gzip, but a proxy has undone it": Odd(TEXT, "Alive.", headers={"content-encoding": "gzip"}),
    "deflate": Odd(zlib.compress(TEXT), "Alive.", headers={"content-encoding": "deflate"}),
    "events that end with one line end": Odd(TEXT.replace(b"\n\n", b"\n"), "Alive."),
    "named events that end with one line end": Odd(
        TEXT.replace(b"\n\n", b"\n").replace(b"data", b"event: chunk\ndata"), "Alive."
    ),
    **{
        f"heartbeat {beat!r}": Odd(beat + TEXT.replace(DONE.encode(), beat) + DONE.encode(), "Alive.")
        for beat in HEARTBEATS
    },
    "halves of one character in two chunks": Odd(
        encode(
            chat.make_chunk({"content": "Hi \ud83d"}),
            chat.make_chunk({"content": "\ude00 ok"}),
            fragment('{"html": "<p>\ud83d', "insertHtml", "call_e"),
            fragment('\ude00</p>"}'),
            CALLS,
            DONE,
        ),
        "Hi 😀 ok",
        calls=[("insertHtml", {"html": "<p>😀</p>"})],
    ),
    "raw line ends and tabs in arguments": Odd(
        call_in_one('{"parentId":"root","html":"<p>a</p>\n\t<p>b</p>"}'),
        calls=[("insertHtml", {"parentId": "root", "html": "<p>a</p>\n\t<p>b</p>"})],
    ),
    "line ends written as two characters between members": Odd(
        call_in_one('{\\n  "parentId": "root",\\n\\t"html": "a\\nb"\\n}'),
        calls=[("insertHtml", {"parentId": "root", "html": "a\nb"})],
    ),
    "the object twice": Odd(call_in_one(json.dumps(PARENT) * 2), calls=[("insertHtml", PARENT)]),
    "an empty object in front": Odd(call_in_one("{}" + json.dumps(PARENT)), calls=[("insertHtml", PARENT)]),
    "an empty object in front, in a fragment of its own": Odd(
        encode(fragment("{}", "insertHtml", "call_a"), fragment(json.dumps(PARENT)), CALLS, DONE),
        calls=[("insertHtml", PARENT)],
    ),
    "all arguments as a string": Odd(call_in_one(json.dumps(json.dumps(PARENT))), calls=[("insertHtml", PARENT)]),
    "all arguments as a string twice": Odd(
        call_in_one(json.dumps(json.dumps(json.dumps(PARENT)))), calls=[("insertHtml", PARENT)]
    ),
    "all quotation marks escaped": Odd(
        call_in_one(json.dumps(json.dumps(PARENT))[1:-1]), calls=[("insertHtml", PARENT)]
    ),
    "a Markdown fence around the arguments": Odd(
        call_in_one(f"```json\n{json.dumps(PARENT)}\n```"), calls=[("insertHtml", PARENT)]
    ),
    "a comma too many and a bracket too many": Odd(
        call_in_one('{"parentId": "root", "html": "<p>x</p>",}}'), calls=[("insertHtml", PARENT)]
    ),
    "no arguments as null": Odd(call_in_one("null"), calls=[("insertHtml", None)]),
    "arguments as an object": Odd(call_in_one(PARENT), calls=[("insertHtml", PARENT)]),
    "a last fragment repeats all arguments as a string": Odd(
        encode(
            fragment('{"parentId":"root",', "insertHtml", "call_a"),
            fragment('"html":"<p>x</p>"}', call_id="call_a"),
            fragment(json.dumps(json.dumps(PARENT)), "insertHtml", "call_a"),
            CALLS,
            DONE,
        ),
        calls=[("insertHtml", PARENT)],
    ),
    "a last fragment repeats all arguments": Odd(
        encode(
            fragment('{"parentId":"root",', "insertHtml", "call_a"),
            fragment('"html":"<p>x</p>"}'),
            fragment(json.dumps(PARENT)),
            CALLS,
            DONE,
        ),
        calls=[("insertHtml", PARENT)],
    ),
    "a last fragment holds all arguments, of which a part came before": Odd(
        encode(
            fragment('{"parentId": "root", ', "insertHtml", "call_a"), fragment(json.dumps(PARENT)), CALLS, DONE
        ),
        calls=[("insertHtml", PARENT)],
    ),
    "two calls with one index and one id": Odd(
        encode(
            fragment('{"a": 1}', "insertHtml", "call_a"), fragment('{"a": 2}', "insertHtml", "call_a"), CALLS, DONE
        ),
        calls=[("insertHtml", {"a": 1}), ("insertHtml", {"a": 2})],
    ),
    "two calls of two tools with one index and one id": Odd(
        encode(fragment("{}", "read_document", "call_a"), fragment('{"a": 2}', "insertHtml", "call_a"), CALLS, DONE),
        calls=[("read_document", {}), ("insertHtml", {"a": 2})],
    ),
    "every fragment repeats id and name": Odd(
        encode(*(fragment(piece, "insertHtml", "call_a") for piece in ('{"a"', ': {"b": 1}', "}")), CALLS, DONE),
        calls=[("insertHtml", {"a": {"b": 1}})],
    ),
    "every fragment repeats the name, and none has an id": Odd(
        encode(*(fragment(piece, "insertHtml") for piece in ('{"a"', ': {"b": 1}', "}")), CALLS, DONE),
        calls=[("insertHtml", {"a": {"b": 1}})],
    ),
    "every fragment repeats id and name, in arguments full of brackets": Odd(
        encode(
            *(fragment(piece, "insertHtml", "call_a") for piece in ('{"css": "a {', "b: c}", '{x \\', '" }', '"}')),
            CALLS,
            DONE,
        ),
        calls=[("insertHtml", {"css": 'a {b: c}{x " }'})],
    ),
    "two calls of one tool with one index and no ids": Odd(
        encode(fragment('{"a": 1}', "insertHtml"), fragment('{"a": 2}', "insertHtml"), CALLS, DONE),
        calls=[("insertHtml", {"a": 1}), ("insertHtml", {"a": 2})],
    ),
    "a call with an id, and one of another tool without": Odd(
        encode(fragment('{"a": 1}', "insertHtml", "call_a"), fragment("{}", "read_document"), CALLS, DONE),
        calls=[("insertHtml", {"a": 1}), ("read_document", {})],
    ),
    "an id that comes late": Odd(
        encode(fragment('{"a":', "insertHtml"), fragment(" 1}", call_id="call_a"), CALLS, DONE),
        calls=[("insertHtml", {"a": 1})],
    ),
    "arguments before the name": Odd(
        encode(fragment('{"a":', call_id="call_a"), fragment(" 1}", "insertHtml", "call_a"), CALLS, DONE),
        calls=[("insertHtml", {"a": 1})],
    ),
    "the member that tool_calls replaced": Odd(
        encode(
            chat.make_chunk({"function_call": {"name": "insertHtml", "arguments": ""}}),
            *(chat.make_chunk({"function_call": {"arguments": piece}}) for piece in ('{"a":', " 1}")),
            chat.make_chunk({}, "function_call"),
            DONE,
        ),
        calls=[("insertHtml", {"a": 1})],
    ),
    "several calls in one, as OpenAI's models write them": Odd(
        encode(
            fragment(
                json.dumps({
                    "tool_uses": [
                        {"recipient_name": "functions.read_document", "parameters": {}},
                        {"recipient_name": "functions.insertHtml", "parameters": json.dumps(PARENT)},
                    ]
                }),
                "multi_tool_use.parallel",
                "call_a",
            ),
            CALLS,
            DONE,
        ),
        calls=[("functions.read_document", {}), ("functions.insertHtml", PARENT)],
    ),
    **{
        f"a call within a call of {name!r}": Odd(
            encode(fragment(json.dumps({"name": "insertHtml", member: value}), name, "call_a"), CALLS, DONE),
            calls=[("insertHtml", PARENT)],
        )
        for name, member, value in (
            ("tool_call", "arguments", PARENT),
            ("functions", "parameters", json.dumps(PARENT)),
            ("", "arguments", PARENT),
        )
    },
    "a call of a template's name that describes no other": Odd(
        encode(fragment('{"name": "a", "b": 1}', "tool_call", "call_a"), CALLS, DONE),
        calls=[("tool_call", {"name": "a", "b": 1})],
    ),
    "two events on one line": Odd(TEXT.replace(b"\n\n", b"", 1), "Alive."),
    "two events on one line, the second without its field": Odd(TEXT.replace(b"\n\ndata: {", b"{", 1), "Alive."),
    "the marker of the end behind the last event": Odd(TEXT.replace(b"\n\ndata: [DONE]", b"[DONE]"), "Alive."),
    "a byte order mark": Odd(b"\xef\xbb\xbf" + TEXT, "Alive."),
    "a stream that is called JSON": Odd(TEXT, "Alive.", headers={"content-type": "application/json"}),
    "blank lines before the first event": Odd(b"\r\n\n" + TEXT, "Alive."),
    **{
        f"one JSON value that is called {media_type}": Odd(
            b"\xef\xbb\xbf\n" + json.dumps(WHOLE, indent=2).encode(), "Alive.", headers={"content-type": media_type}
        )
        for media_type in ("application/json; charset=utf-8", "text/event-stream", "text/plain")
    },
    "lines of JSON instead of events": Odd(
        b"".join(
            json.dumps(event).encode() + b"\n" for event in (chat.make_chunk({"content": "Alive."}), STOP)
        ),
        "Alive.",
    ),
    "gzip with padding behind it": Odd(
        gzip.compress(TEXT) + b"\0" * 600, "Alive.", headers={"content-encoding": "gzip"}
    ),
    "gzip that is cut off behind the end": Odd(
        gzip.compress(TEXT)[:-6], "Alive.", headers={"content-encoding": "gzip"}
    ),
    "thinking between several tags": Odd(
        encode(chat.make_chunk({"content": "<think>A.</think>One.<think>B.</think> Two."}), STOP, DONE),
        "One.Two.",
        "A.B.",
    ),
    "a tag within a span of code": Odd(
        encode(*(chat.make_chunk({"content": piece}) for piece in "Write `a <think> b` first.\nOk."), STOP, DONE),
        "Write `a <think> b` first.\nOk.",
    ),
    "a tag in a fence that comes in pieces": Odd(
        encode(
            *(chat.make_chunk({"content": piece}) for piece in ("See:\n``", "`", "`html\n<think>", "x</think>\n````")),
            STOP,
            DONE,
        ),
        "See:\n````html\n<think>x</think>\n````",
    ),
    "a tag behind a lonely backtick": Odd(
        encode(chat.make_chunk({"content": "A ` here.\n<think>Hm.</think>\nDone."}), STOP, DONE),
        "A ` here.\nDone.",
        "Hm.",
    ),
    "reasoning in details only": Odd(
        encode(
            *(
                chat.make_chunk({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": text}]})
                for text in ("Let ", "me see.")
            ),
            chat.make_chunk({"content": "Hello."}),
            STOP,
            DONE,
        ),
        "Hello.",
        "Let me see.",
    ),
    **{
        f"reasoning in the member {name}": Odd(
            encode(chat.make_chunk({name: "Hm."}), chat.make_chunk({"content": "Hello."}), STOP, DONE), "Hello.", "Hm."
        )
        for name in ("thinking", "reasoning_text")
    },
    "the same reasoning in three members": Odd(
        encode(
            chat.make_chunk({
                "reasoning": "Hm.",
                "reasoning_content": "Hm.",
                "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "Hm."}],
            }),
            chat.make_chunk({"content": "Hello."}),
            STOP,
            DONE,
        ),
        "Hello.",
        "Hm.",
    ),
    "content in parts": Odd(
        encode(
            chat.make_chunk({
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "H"}]},
                    {"type": "thinking", "thinking": "m."},
                    {"type": "text", "text": "Hel"},
                    {"type": "image_url", "image_url": {"url": "x"}},
                    "lo.",
                ],
                "annotations": [{"type": "url_citation"}],
            }),
            STOP,
            DONE,
        ),
        "Hello.",
        "Hm.",
    ),
    "an answer that is spoken": Odd(
        encode(
            *(chat.make_chunk({"content": None, "audio": {"transcript": text}}) for text in ("Hel", "lo.")),
            STOP,
            DONE,
        ),
        "Hello.",
    ),
    "two fragments of one call in one chunk": Odd(
        encode(
            chat.make_chunk({
                "tool_calls": [
                    {"index": 0, "id": "call_a", "function": {"name": "insertHtml", "arguments": ""}},
                    {"index": 0, "function": {"arguments": '{"a":'}},
                ]
            }),
            fragment(" 1}"),
            CALLS,
            DONE,
        ),
        calls=[("insertHtml", {"a": 1})],
    ),
    "fragments of two calls alternate, told apart by their ids only": Odd(
        encode(
            fragment('{"a":', "insertHtml", "call_a"),
            fragment('{"b":', "read_document", "call_b"),
            fragment(" 1}", call_id="call_a"),
            fragment(" 2}", call_id="call_b"),
            CALLS,
            DONE,
        ),
        calls=[("insertHtml", {"a": 1}), ("read_document", {"b": 2})],
    ),
    "fragments of two calls alternate, told apart by indexes in quotation marks": Odd(
        encode(
            *(
                chat.make_chunk({"tool_calls": [call]})
                for call in (
                    {"index": "0", "id": "call_a", "function": {"name": "insertHtml", "arguments": '{"a":'}},
                    {"index": "1", "id": "call_b", "function": {"name": "read_document", "arguments": '{"b":'}},
                    {"index": "0", "function": {"arguments": " 1}"}},
                    {"index": "1", "function": {"arguments": " 2}"}},
                )
            ),
            CALLS,
            DONE,
        ),
        calls=[("insertHtml", {"a": 1}), ("read_document", {"b": 2})],
    ),
    "every fragment has an id of its own": Odd(
        encode(
            fragment("", "insertHtml", "call_a"),
            *(fragment(piece, call_id=f"call_{number}") for number, piece in enumerate(('{"a": "{', '"', "}"))),
            CALLS,
            DONE,
        ),
        calls=[("insertHtml", {"a": "{"})],
    ),
    "every fragment has an id of its own, and the name": Odd(
        encode(
            *(fragment(piece, "insertHtml", f"call_{number}") for number, piece in enumerate(('{"a": ', "1", "}"))),
            CALLS,
            DONE,
        ),
        calls=[("insertHtml", {"a": 1})],
    ),
    "every fragment holds all arguments so far": Odd(
        encode(*(fragment(piece, "insertHtml", "call_a") for piece in ('{"a"', '{"a": {"b"', '{"a": {"b": 1}}')), DONE),
        calls=[("insertHtml", {"a": {"b": 1}})],
    ),
    "a call outside of a list": Odd(
        encode(
            chat.make_chunk({"tool_calls": {"id": "call_a", "function": {"name": "insertHtml", "arguments": "{}"}}}),
            CALLS,
            DONE,
        ),
        calls=[("insertHtml", {})],
    ),
    "every delta holds the whole text so far": Odd(
        encode(*(chat.make_chunk({"content": text}) for text in ("I", "I read", "I read it.", "I read it.")), STOP),
        "I read it.",
    ),
    "every delta holds the whole reasoning so far": Odd(
        encode(
            *(chat.make_chunk({"reasoning_content": text}) for text in ("Let me", "Let me see", "Let me see it.")),
            chat.make_chunk({"content": "Done."}),
            STOP,
            DONE,
        ),
        "Done.",
        "Let me see it.",
    ),
    "two deltas, of which the second holds the whole text": Odd(
        encode(*(chat.make_chunk({"content": text}) for text in ("I read the page.", "I read the page. Done.")), STOP),
        "I read the page. Done.",
    ),
    "a piece that begins like the piece before it": Odd(
        encode(*(chat.make_chunk({"content": text}) for text in ("1", "10", " and ", "1")), STOP, DONE), "110 and 1"
    ),
    "a piece that begins like the piece before it, before calls": Odd(
        encode(
            *(chat.make_chunk({"content": text}) for text in ("go", "gogo")),
            fragment("{}", "insertHtml", "call_a"),
            CALLS,
            DONE,
        ),
        "gogogo",
        calls=[("insertHtml", {})],
    ),
    "equal pieces": Odd(encode(*(chat.make_chunk({"content": "----------------"}) for _ in range(3)), STOP), "-" * 48),
    "an error behind the end": Odd(
        encode(
            chat.make_chunk({"content": "Alive."}), STOP, {"error": {"message": "no usage known", "code": 500}}, DONE
        ),
        "Alive.",
    ),
    **{
        f"thinking between the tags {opening}": Odd(
            encode(*(chat.make_chunk({"content": piece}) for piece in f"{opening}Hm.{closing}\nHello!"), STOP, DONE),
            "Hello!",
            "Hm.",
        )
        for opening, closing in (
            ("<seed:think>", "</seed:think>"),
            ("\u25c1think\u25b7", "\u25c1/think\u25b7"),
            ("[THINK]", "[/THINK]"),
            ("<reasoning>", "</reasoning>"),
        )
    },
    **{
        f"plain text although the header names {name}": Odd(TEXT, "Alive.", headers={"content-encoding": name})
        for name in ("br", "zstd", "utf-8", "none", "gzip, identity", "deflate")
    },
    "the rest of a call under the next index": Odd(
        encode(fragment('{"a": {"b": 1}', "insertHtml", "call_a"), fragment("}", index=1), CALLS, DONE),
        calls=[("insertHtml", {"a": {"b": 1}})],
    ),
    "arguments under the name of their schema": Odd(
        encode(
            chat.make_chunk({
                "tool_calls": [
                    {"index": 0, "id": "call_a", "function": {"name": "insertHtml", "parameters": PARENT}},
                    {"index": 1, "id": "call_b", "name": "insertHtml", "input": json.dumps(PARENT)},
                ]
            }),
            CALLS,
            DONE,
        ),
        calls=[("insertHtml", PARENT), ("insertHtml", PARENT)],
    ),
    "text beside the delta": Odd(
        encode(*({"choices": [{"index": 0, "text": text}]} for text in ("Hel", "lo.")), STOP, DONE), "Hello."
    ),
    "every chunk has a finish reason": Odd(
        encode(
            chat.make_chunk({"reasoning_content": "Hm."}, "stop"),
            *(chat.make_chunk({"content": text}, "stop") for text in ("Hel", "lo.")),
            fragment("{}", "insertHtml") | {"finish_reason": "stop"},
            STOP,
            DONE,
        ),
        "Hello.",
        "Hm.",
        calls=[("insertHtml", {})],
    ),
    "an answer beside that of another choice": Odd(
        encode(
            chat.make_chunk({"content": "Hello."}),
            {"choices": [{"index": 1, "delta": {"content": "Other."}, "finish_reason": "length"}]},
            STOP,
            DONE,
        ),
        "Hello.",
    ),
    "two calls with one index, whose fragments have empty ids": Odd(
        encode(
            fragment("", "insertHtml", "call_a"),
            *(fragment(piece, call_id="") for piece in ('{"a":', " 1}")),
            fragment("", "insertHtml", "call_b"),
            fragment('{"a": 2}', "", ""),
            CALLS,
            DONE,
        ),
        calls=[("insertHtml", {"a": 1}), ("insertHtml", {"a": 2})],
    ),
    "two calls with the id null, in quotation marks": Odd(
        encode(fragment("{}", "insertHtml", "null"), fragment("{}", "insertHtml", "null", 1), CALLS, DONE),
        calls=[("insertHtml", {}), ("insertHtml", {})],
    ),
    "every chunk holds the delta and the whole message": Odd(
        encode(
            *(
                {"choices": [{"delta": {"content": delta}, "message": {"content": whole}, "finish_reason": reason}]}
                for delta, whole, reason in (("Hel", "Hel", None), ("lo", "Hello", None), (".", "Hello.", "stop"))
            ),
            DONE,
        ),
        "Hello.",
    ),
    "numbers that JSON does not have, and raw tabs": Odd(
        b'data: {"choices":[{"delta":{"content":"Hel\tlo."},"logprobs":{"content":[{"logprob":-Infinity}]}}]}\n\n'
        + encode(STOP, DONE),
        "Hel\tlo.",
    ),
    "thinking in a channel": Odd(
        encode(
            *(
                chat.make_chunk({"content": piece})
                for piece in f"{CHANNEL}analysis<|message|>Hm.<|end|><|start|>assistant{CHANNEL}final<|message|>Hello."
            ),
            STOP,
            DONE,
        ),
        "Hello.",
        "Hm.",
    ),
    "words between two channels": Odd(
        encode(
            chat.make_chunk({"content": "<|start|>assistant<|channel|>analysis<|message|>Hm.<|end|><|start|>assist"}),
            chat.make_chunk({"content": "ant<|channel|>commentary<|message|>Wait.<|end|> Done.<|return|>"}),
            STOP,
            DONE,
        ),
        "Wait. Done.",
        "Hm.",
    ),
    "thinking in a channel of another template": Odd(
        encode(chat.make_chunk({"content": "<|channel>thought\nHm.<channel|>Hello.<end_of_turn>"}), STOP, DONE),
        "Hello.",
        "Hm.",
    ),
    **{
        f"the mark of the end {mark}": Odd(
            encode(*(chat.make_chunk({"content": piece}) for piece in ("Hello.", mark[:4], mark[4:])), STOP, DONE),
            "Hello.",
        )
        for mark in END_MARKS
    },
    "a mark of the end that is quoted, and a tag of HTML": Odd(
        encode(chat.make_chunk({"content": "Write `<|im_end|>` or <s>old</s>."}), STOP, DONE),
        "Write `<|im_end|>` or <s>old</s>.",
    ),
    "text behind a mark of the end": Odd(
        encode(chat.make_chunk({"content": "Hello.<|im_end|>\nMore."}), STOP, DONE), "Hello.\nMore."
    ),
    **{
        f"thinking between {opening} and {closing}": Odd(
            encode(*chat.text_chunks(*opening, "Hm.", *closing, "Hello."), STOP, DONE),
            "Hello.",
            "Hm.",
        )
        for opening, closing in (
            ("<think time=1>", "</think>"),
            ('<think effort="high">', "</think >"),
            ("<reasoning\n>", "</reasoning>"),
        )
    },
    "an empty element of thinking": Odd(
        encode(*chat.text_chunks("<think", " />", "\n\nHello."), STOP, DONE), "Hello."
    ),
    "attributes of thinking that are quoted, too long or never closed": Odd(
        encode(chat.make_chunk({"content": f"`<think a=1>`, <think {'a' * 99}>x</b>, <think b"}), STOP, DONE),
        f"`<think a=1>`, <think {'a' * 99}>x</b>, <think b",
    ),
    "deltas that are texts": Odd(
        encode(*({"choices": [{"index": 0, "delta": text}]} for text in ("Hel", "lo.")), STOP, DONE), "Hello."
    ),
    "a message that is a text": Odd(
        encode({"choices": [{"index": 0, "message": "Hello.", "finish_reason": "stop"}]}, DONE), "Hello."
    ),
    "choices that are one object": Odd(
        encode({"choices": {"index": 0, "delta": {"content": "Hello."}, "finish_reason": "stop"}}, DONE), "Hello."
    ),
    **{
        f"chunks wrapped in {name}": Odd(encode(*map(wrap, (*chat.text_chunks("Hel", "lo."), STOP)), DONE), "Hello.")
        for name, wrap in {
            "data": lambda chunk: {"data": chunk},
            "data beside a code": lambda chunk: {"code": 0, "message": "success", "error": None, "data": chunk},
            "a list": lambda chunk: {"data": [chunk]},
            "result": lambda chunk: {"result": chunk},
            "a JSON text": lambda chunk: {"event": "message", "data": json.dumps(chunk)},
        }.items()
    },
    "data beside the chunk": Odd(
        encode(*(chunk | {"data": {"error": "none"}} for chunk in chat.text_chunks("Hel", "lo.")), STOP, DONE), "Hello."
    ),
}  # fmt: skip
