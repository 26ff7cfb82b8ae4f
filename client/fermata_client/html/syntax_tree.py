"""Parse HTML or CSS with tree-sitter, for a limited time."""

import time

from tree_sitter import Language, Parser, Tree

from fermata_client.html.edit_error import EditError

MAX_PARSE_SECONDS = 2.0
"""Processor time for one text. Two megabytes of any real page take less than one second."""
CHUNK_BYTES = 65_536


def parse_syntax(language: Language, source: bytes, advice: str) -> Tree:
    """Parse any bytes. Twice as many errors take more than twice as long, so parsing may be stopped (decision 0269).

    Args:
        advice: the sentence of the error.

    Raises:
        EditError: it takes too long.
    """
    deadline = time.thread_time() + MAX_PARSE_SECONDS

    def read_chunk(offset: int, _point: object) -> bytes:
        return source[offset : offset + CHUNK_BYTES]

    def is_late(_offset: int, _has_error: bool) -> bool:
        return time.thread_time() > deadline

    try:
        return Parser(language).parse(read_chunk, progress_callback=is_late)
    except ValueError as error:  # what the library raises for a parse that was stopped
        raise EditError(advice) from error
