"""Hold whole chat-completions responses as odd servers send them, and what each of them means (decision 0195)."""

import gzip
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.strict import chat

DONE = "data: [DONE]\n\n"
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


TEXT = encode(chat.make_chunk({"content": "Alive."}), STOP, chat.usage_chunk(), DONE)
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
}  # fmt: skip
