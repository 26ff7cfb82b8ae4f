"""A key is found in whatever spelling a server repeats it, in time that grows with the text."""

import base64
import json
import textwrap
from collections.abc import Callable
from time import process_time
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fermata.domain.blocks import TextBlock
from fermata.domain.model_io import FinishReason, ModelResponse, TextDelta, TokenUsage
from fermata.drivers.error_mapping import error_from_response, error_from_stream
from fermata.drivers.protocols.response_key_redaction import KeyRedactor
from fermata.drivers.secret_veil import REDACTED_KEY, SecretVeil
from fermata.hosts.errors import HostRequest, host_error_from_response
from tests.quick_suite_samples import count_examples

KEY = "sk-ant-api03-Ab/cd+ef_gh==Zz01234567890abcdefghij"
DATA = KEY.encode()


def quote_all(text: str) -> str:
    return quote(text, safe="")


def escape_all(text: str) -> str:
    return "".join(f"\\u{ord(character):04x}" for character in text)


LITERAL_SPELLINGS = {
    "as it is": KEY,
    "upper case": KEY.upper(),
    "lower case": KEY.lower(),
    "hex": DATA.hex(),
    "upper case hex": DATA.hex().upper(),
    "URL-encoded": quote_all(KEY),
    "URL-encoded twice": quote_all(quote_all(KEY)),
    "escaped slashes": KEY.replace("/", "\\/"),
    "base64": base64.b64encode(DATA).decode(),
    "URL-safe base64": base64.urlsafe_b64encode(DATA).decode(),
    "basic authentication": base64.b64encode(b"user:" + DATA).decode(),
    "base64 at another offset": base64.b64encode(b"Bearer " + DATA + b", and more").decode(),
    "base64 at the third offset": base64.b64encode(b"12345678" + DATA).decode(),
}
OTHER_SPELLINGS = {
    "URL-encoded three times": quote_all(quote_all(quote_all(KEY))),
    "JSON escapes": escape_all(KEY),
    "JSON in JSON": json.dumps(json.dumps(escape_all(KEY))),
    "HTML references": "".join(f"&#{ord(character)};" for character in KEY),
    "a hex dump": DATA.hex(" "),
    "hex with colons": DATA.hex(":").upper(),
    "URL-encoded base64": quote_all(base64.b64encode(b"??>" + DATA).decode()),
    "Python escapes": "".join(f"\\x{byte:02x}" for byte in DATA),
    "two lines": f"{KEY[:30]}\n{KEY[30:]}",
    "two lines in JSON": f"{KEY[:30]}\\r\\n{KEY[30:]}",
    "base64 in lines": "\n".join(textwrap.wrap(base64.b64encode(DATA).decode(), 20)),
    "a hex dump in lines": "\n".join(textwrap.wrap(DATA.hex(" ", 2), 40)),
    "bytes of a buffer in JSON": json.dumps(list(DATA)),
    "bytes as in C": ", ".join(f"0x{byte:02X}" for byte in DATA),
    "letters": " ".join(KEY),
    "16 bits a letter": KEY.encode("utf-16-le").decode("latin-1"),
    "16 bits a letter in hex": KEY.encode("utf-16-be").hex(),
    "cut off": KEY[:-4],
    "the second half": KEY[20:],
}
SPELLINGS = LITERAL_SPELLINGS | OTHER_SPELLINGS
PARTS = (KEY[13:40], KEY.lower()[13:40], DATA[13:40].hex(), base64.b64encode(DATA[12:42]).decode()[:30])


def is_hidden(text: str) -> bool:
    return REDACTED_KEY in text and not any(part.lower() in text.lower() for part in PARTS)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_spelling_is_veiled_and_the_words_around_it_stay(spelling: str) -> None:
    veiled = SecretVeil(KEY).veil_text(f"Incorrect key: {SPELLINGS[spelling]} was sent.")
    assert is_hidden(veiled)
    assert veiled.startswith("Incorrect key: ")
    assert veiled.endswith(" was sent.")


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_error_of_a_provider_or_host_shows_a_spelling(spelling: str) -> None:
    words = f"Bad key {SPELLINGS[spelling]}!"
    error = error_from_response("Peer", 400, {}, json.dumps({"error": {"message": words}}).encode(), KEY)
    assert is_hidden(error.message)
    assert is_hidden(error.detail)
    assert is_hidden(error_from_stream("Peer", {"message": words}, KEY).message)
    request = HostRequest("cms.example", "GET", "tables", KEY)
    assert is_hidden(str(host_error_from_response(request, 401, json.dumps({"error": words}).encode())))


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize("spelling", LITERAL_SPELLINGS)
def test_no_answer_streams_or_stores_a_spelling(spelling: str, size: int) -> None:
    text = f"The header was {LITERAL_SPELLINGS[spelling]}, you see."
    response = ModelResponse(blocks=(TextBlock(text=text),), stop=FinishReason.END, tokens=TokenUsage())
    deltas = [TextDelta(text=text[at : at + size]) for at in range(0, len(text), size)]
    redactor = KeyRedactor(KEY)
    parts = [part for given in (*deltas, response) for part in redactor.redact_part(given)]
    streamed = "".join(part.text for part in parts if isinstance(part, TextDelta))
    assert is_hidden(streamed)
    assert streamed.endswith(" you see.")
    [block] = parts[-1].blocks if isinstance(parts[-1], ModelResponse) else ()
    assert isinstance(block, TextBlock)
    assert block.text == streamed


@settings(max_examples=count_examples(60), deadline=None)
@given(
    key=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=12, max_size=60),
    before=st.binary(max_size=5),
    after=st.binary(max_size=5),
)
def test_any_key_is_found_in_base64_wherever_it_stands(key: str, before: bytes, after: bytes) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        assert REDACTED_KEY in SecretVeil(key).veil_text(encode(before + key.encode() + after).decode())


def test_text_without_the_key_is_unchanged() -> None:
    text = "The context window of sk-ant models is 200000 tokens: %41%42 \\u0041 c2stYW50 736b2d616e74."
    assert SecretVeil(KEY).veil_text(text) == text


def test_short_keys_are_words_and_stay() -> None:
    assert SecretVeil("key").veil_text("The key is missing.") == "The key is missing."


def test_of_a_long_token_the_end_is_veiled_in_every_spelling() -> None:
    token = f"{'h' * 200}.{'p' * 300}.{KEY}"
    assert is_hidden(SecretVeil(token).veil_text(quote_all(quote_all(token))))
    assert SecretVeil(token).veil_text(f"<{token}>") == f"<{REDACTED_KEY}>"


HOSTILE_UNITS = [KEY[:-1], "\\", "%25", "%2525", "sk-ant-", "a0 ", "&#0", "&#", DATA.hex()[:-1], "c2st"]


def make_hostile_text(unit: str) -> Callable[[int], str]:
    return lambda size: (unit * size)[:size]


@pytest.mark.parametrize("unit", HOSTILE_UNITS)
def test_the_time_grows_with_the_text(unit: str) -> None:
    """The ratio of doubled texts is compared; a pattern that goes back over its text would quadruple."""
    veil, make = SecretVeil(KEY), make_hostile_text(unit)
    veil.veil_text(make(1000))

    def measure(size: int) -> float:
        text, times = make(size), []
        for _ in range(3):
            begun = process_time()
            veil.veil_text(text)
            times.append(process_time() - begun)
        return min(times)

    assert measure(200_000) < 4 * measure(100_000) + 0.05


def test_many_keys_cost_as_much_as_each_alone() -> None:
    keys = [f"sk-tenant-{number:04d}-{'x' * 30}" for number in range(40)]
    text = " ".join(keys) * 3
    assert SecretVeil(*keys).veil_text(text).count(REDACTED_KEY) == 120
