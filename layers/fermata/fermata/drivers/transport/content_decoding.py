"""Decompress a response body that arrives compressed although identity was asked for (decision 0195)."""

import re
import zlib
from collections.abc import Iterable, Iterator

from fermata.drivers.retry_policy import Failure

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_UNREAD_NAMES = ("br", "zstd", "compress", "x-compress", "dcb", "dcz")
_MIN_JUDGED_BYTES = 12
_PLAIN = re.compile(rb"[\s\xef\xbb\xbf]*(?:data:|event:|id:|retry:|: ?[A-Za-z\n]|\{\s*[\"}]|\[\s*[\[{\]]|<[!?A-Za-z])")
"""Matches the beginning of events, of JSON and of web pages."""


def decode_chunks(label: str, encoding: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the decompressed chunks, each as soon as it can be read.

    Args:
        label: How error messages call the provider.
        encoding: The header `content-encoding`. Some gateways compress without it, so gzip is recognised as well.
        chunks: The body as it arrives.

    Raises:
        ProviderError: The body is not readable, or in an encoding that nobody has asked for.
    """
    name = encoding.strip().lower()
    decompressor = _Decompressor(name)
    for chunk in _refuse_unreadable(label, name, chunks):
        try:
            data = decompressor.decode(chunk)
        except zlib.error as error:
            raise Failure.SERVER_ERROR.to_error(f"{label} stream error: the compression is not readable") from error
        if data:
            yield data


def _refuse_unreadable(label: str, encoding: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Pass the chunks on, unless their beginning is in a compression that is not read (decision 0195).

    The header alone does not say so: it may name what a proxy has undone, or no compression at all.
    """
    iterator = iter(chunks)
    is_suspect = any(part.strip() in _UNREAD_NAMES for part in encoding.split(","))
    beginning = b""
    for chunk in iterator:
        beginning += chunk
        if len(beginning) >= (_MIN_JUDGED_BYTES if is_suspect or "deflate" in encoding else 1):
            break
    is_zstd = beginning.startswith(_ZSTD_MAGIC)
    if is_zstd or (is_suspect and not _PLAIN.match(beginning)):
        name = "zstd" if is_zstd else encoding
        message = f"{label} stream error: the answer is compressed ({name[:20]}), although that was not asked for"
        raise Failure.UNUSABLE_RESPONSE.to_error(message)
    yield beginning
    yield from iterator


class _Decompressor:
    """Decode gzip, zlib and raw deflate data; anything else passes unchanged."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._inflater: zlib._Decompress | None = None
        self._is_plain = False

    def decode(self, chunk: bytes) -> bytes:
        if self._is_plain or not chunk:
            return chunk
        if self._inflater is None:
            window_bits = self._choose_window_bits(chunk)
            if window_bits is None:
                self._is_plain = True
                return chunk
            self._inflater = zlib.decompressobj(window_bits)
        pieces = []
        rest = chunk
        while rest:
            if self._inflater.eof:  # a body may be several members; other bytes behind one are padding
                if not rest.startswith(_GZIP_MAGIC[:1]):
                    break
                self._inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
            pieces.append(self._inflater.decompress(rest))
            rest = self._inflater.unused_data
        return b"".join(pieces)

    def _choose_window_bits(self, chunk: bytes) -> int | None:
        """Judge by the first bytes: a header may name a compression that a proxy has undone already."""
        if chunk.startswith(_GZIP_MAGIC) or chunk == _GZIP_MAGIC[:1]:
            return zlib.MAX_WBITS | 16
        if "deflate" not in self._encoding or _PLAIN.match(chunk):
            return None
        return zlib.MAX_WBITS if chunk[0] & 0x0F == zlib.DEFLATED else -zlib.MAX_WBITS
