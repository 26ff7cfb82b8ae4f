"""Check the alternative texts of an asset: one for each of a few languages, and none longer than people listen to."""

from collections.abc import Iterator
from typing import Any

from fermata.content.content_space import LOCALE_CODE
from fermata.content.validation.content_problem import ContentProblem

ALT_TEXTS_FIELD = "altTexts"
MAX_ALT_TEXTS, MAX_ALT_TEXT_CHARS = 50, 500


def find_alternative_text_problems(texts: Any) -> Iterator[ContentProblem]:
    """Yield what is wrong with the alternative texts of an asset. What is no object at all is none of them.

    Args:
        texts: The field `altTexts`: texts by language.
    """
    if not isinstance(texts, dict):
        return
    if len(texts) > MAX_ALT_TEXTS:
        message = f"{ALT_TEXTS_FIELD} may have at most {MAX_ALT_TEXTS} languages, and has {len(texts)}."
        yield ContentProblem(field=ALT_TEXTS_FIELD, kind="range", message=message)
        return
    for locale, text in texts.items():
        yield from _check_text(locale, text)


def _check_text(locale: str, text: Any) -> Iterator[ContentProblem]:
    if not LOCALE_CODE.fullmatch(locale):
        message = f"{ALT_TEXTS_FIELD} has texts by language tags, such as en or pt-BR. {locale[:40]!r} is none."
        yield ContentProblem(field=ALT_TEXTS_FIELD, kind="locale", message=message)
        return
    path = f"{ALT_TEXTS_FIELD}.{locale}"
    if not isinstance(text, str):
        yield ContentProblem(field=path, kind="type", message=f"{path} has to be a text.")
    elif len(text) > MAX_ALT_TEXT_CHARS:
        message = f"{path} may be at most {MAX_ALT_TEXT_CHARS} characters, and is {len(text)}."
        yield ContentProblem(field=path, kind="range", message=message)
