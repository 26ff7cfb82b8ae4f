"""Guess what a message of the studio's chat is about, in English and Turkish. The guess permits nothing."""

import re
from collections.abc import Mapping
from typing import Any, Literal

from fermata.domain.plain_letters import remove_marks
from fermata.domain.value_dataclass import value_dataclass

IntentCategory = Literal[
    "content_operation", "model_operation", "branch_operation", "project_operation", "query", "out_of_scope"
]
IntentConfidence = Literal["high", "medium", "low"]

_CATEGORIES: dict[IntentCategory, tuple[str, ...]] = {
    "project_operation": ("init", "initialize", "setup", "configure", "başlat", "kur", "yapılandır"),
    "branch_operation": (
        "merge",
        "approve",
        "reject",
        "branch",
        "onayla",
        "reddet",
        "birleştir",
        "onaylıyor",
        "reddedi",
    ),
    "model_operation": (
        *("create model", "add model", "new model", "add field", "schema"),
        *("model oluştur", "model tanımla", "yeni model", "field ekle", "alan ekle"),
    ),
    "content_operation": (
        *("add", "create", "edit", "update", "delete", "remove", "translate", "entry"),
        *("ekle", "oluştur", "düzenle", "güncelle", "sil", "kaldır", "çevir", "içerik", "yaz", "değiştir", "kaydet"),
        *("ekliyor", "düzenliyor", "güncelliyor", "kaydedi"),
    ),
    "query": (
        *("list", "show", "what", "how", "how many", "get"),
        *("göster", "ne", "nasıl", "kaç", "al", "listele", "neler var", "listeliyor"),
    ),
}
"""The words of each category. The first category of which a word occurs counts."""
_LONGEST_SHORT_WORD = 4
_ENGLISH_ENDINGS = frozenset(["", "s", "ed", "ing"])
_TURKISH_VERBS = ("kur", "sil", "yaz", "al", "ekle")
_TURKISH_VERB_ENDINGS = frozenset([
    *("", "r", "er", "ar", "ir", "ur", "in", "un", "yin", "mek", "mak", "me", "ma"),
    *("elim", "alim", "yelim", "iver", "dir", "dur"),
])  # fmt: skip
_TURKISH_QUESTIONS = ("ne", "kaç")
_TURKISH_QUESTION_ENDINGS = frozenset(["", "dir", "ler", "mi", "i", "yi", "ye", "den"])
"""Short words have the endings of their own language only: "kurs", "need" and "near" are none of theirs."""
_WORD = re.compile(r"[a-z0-9]+")
_FEWEST_CHARS_FOR_ACTIVE_MODEL = 4
_SHORT_MESSAGE_CHARS = 20
_UI_NAMES = {"activeModelId": "modelId", "activeLocale": "locale", "activeEntryId": "entryId"}


@value_dataclass(frozen=True)
class Intent:
    """What a message is about, how sure that is, and what the user has open (`modelId`, `locale`, `entryId`)."""

    category: IntentCategory
    confidence: IntentConfidence
    inferred: Mapping[str, str]


def classify_intent(message: str, ui_context: Mapping[str, Any]) -> Intent:
    """Return the intent of a message.

    Args:
        message: The user's message.
        ui_context: What the user has open: `activeModelId`, `activeLocale`, `activeEntryId`, each of them optional.
    """
    inferred = {name: str(ui_context[ui]) for ui, name in _UI_NAMES.items() if ui_context.get(ui)}
    words = _WORD.findall(_fold(message))
    for category, phrases in _FOLDED_CATEGORIES.items():
        if any(_contains(words, phrase) for phrase in phrases):
            return Intent(category, "high", inferred)
    if ui_context.get("activeModelId") and len(message) >= _FEWEST_CHARS_FOR_ACTIVE_MODEL:
        return Intent("content_operation", "medium", inferred)
    return Intent("query" if len(message) < _SHORT_MESSAGE_CHARS else "out_of_scope", "low", inferred)


def _fold(text: str) -> str:
    """Return a text in small letters without marks: both Turkish i are one letter, and so are ş and s."""
    return remove_marks(text.replace("İ", "i").replace("ı", "i").lower())


def _contains(words: list[str], phrase: tuple[str, ...]) -> bool:
    """Return whether the words of a phrase follow each other. Words may have endings: `branches`, `modeli`."""
    starts = range(len(words) - len(phrase) + 1)
    return any(all(map(_is_form_of, words[start : start + len(phrase)], phrase)) for start in starts)


def _is_form_of(word: str, base: str) -> bool:
    """Return whether a word is the base, or has an ending. For short bases only usual ones count: not `initial`."""
    if not word.startswith(base):
        return False
    return len(base) > _LONGEST_SHORT_WORD or word[len(base) :] in _SHORT_ENDINGS.get(base, _ENGLISH_ENDINGS)


_FOLDED_CATEGORIES: dict[IntentCategory, tuple[tuple[str, ...], ...]] = {
    category: tuple(tuple(_fold(phrase).split()) for phrase in phrases) for category, phrases in _CATEGORIES.items()
}
_SHORT_ENDINGS = dict.fromkeys(map(_fold, _TURKISH_VERBS), _TURKISH_VERB_ENDINGS) | dict.fromkeys(
    map(_fold, _TURKISH_QUESTIONS), _TURKISH_QUESTION_ENDINGS
)
