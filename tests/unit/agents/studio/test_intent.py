"""A message of the studio's chat is put into a category by its words, in English and Turkish."""

import pytest

from fermata.agents.studio.intent import classify_intent

NOTHING_OPEN = {"activeModelId": None, "activeLocale": "en", "activeEntryId": None}
ENTRY_OPEN = {"activeModelId": "faq", "activeLocale": "tr", "activeEntryId": "entry-1"}


@pytest.mark.parametrize(
    ("message", "category", "confidence"),
    [
        ("selam", "query", "low"),
        ("hi", "query", "low"),
        ("Initialize the project", "project_operation", "high"),
        ("SETUP", "project_operation", "high"),
        ("projeyi kur", "project_operation", "high"),
        ("merge the pending branch", "branch_operation", "high"),
        ("Bu branchi merge et", "branch_operation", "high"),
        ("onayla", "branch_operation", "high"),
        ("reddet", "branch_operation", "high"),
        ("REDDET", "branch_operation", "high"),
        ("Approve submission 12", "branch_operation", "high"),
        ("yeni model tanımla", "model_operation", "high"),
        ("add field subtitle to blog", "model_operation", "high"),
        ("schema göster", "model_operation", "high"),
        ("add a new faq entry", "content_operation", "high"),
        ("it was edited and translated", "content_operation", "high"),
        ("yazıyı SİL", "content_operation", "high"),
        ("list models", "query", "high"),
        ("nasıl çalışır", "query", "high"),
        ("NASIL ÇALIŞIR", "query", "high"),
        ("tell me a joke about cats please today", "out_of_scope", "low"),
    ],
)
def test_g049_to_g076_a_message_without_anything_open(message: str, category: str, confidence: str) -> None:
    intent = classify_intent(message, NOTHING_OPEN)
    assert (intent.category, intent.confidence, intent.inferred) == (category, confidence, {"locale": "en"})


@pytest.mark.parametrize(
    ("message", "category", "confidence"),
    [
        ("metni sadeleştir", "content_operation", "medium"),
        ("tell me a joke about cats please today", "content_operation", "medium"),
        ("Bu branchi merge et", "branch_operation", "high"),
        ("hi", "query", "low"),
    ],
)
def test_g050_and_g068_a_message_with_a_model_open(message: str, category: str, confidence: str) -> None:
    intent = classify_intent(message, ENTRY_OPEN)
    assert (intent.category, intent.confidence) == (category, confidence)
    assert intent.inferred == {"modelId": "faq", "locale": "tr", "entryId": "entry-1"}


@pytest.mark.parametrize(
    ("message", "category"),
    [
        ("show the definition of faq", "query"),
        ("Kurumsal sayfada ne var", "query"),
        ("our address has moved to another town", "out_of_scope"),
        ("what is the initial value", "query"),
        ("İçerik listele", "content_operation"),
        ("the listener of Alice has neither", "out_of_scope"),
        ("Kurslar ve yazarlar nerede bulunur", "out_of_scope"),
        ("Yeni kurs ekle", "content_operation"),
        ("I need something near our old bakery", "out_of_scope"),
        ("YENİ ALAN EKLE", "model_operation"),
        ("YAZIYI KALDIR", "content_operation"),
        ("KAÇ SAYFA VAR", "query"),
        ("Bunu eklemek istiyorum", "content_operation"),
        ("Değişikliği onaylıyorum", "branch_operation"),
        ("hepsini reddediyorum", "branch_operation"),
    ],
)
def test_parts_of_words_are_no_words_and_both_i_are_one_letter(message: str, category: str) -> None:
    """The original matches parts of words: `init` in `definition` (decision 0405)."""
    assert classify_intent(message, NOTHING_OPEN).category == category


def test_an_intent_has_no_member_that_the_editor_did_not_send() -> None:
    assert classify_intent("list", {}).inferred == {}


def test_a_long_message_is_read_once() -> None:
    assert classify_intent("x " * 100_000, {}).category == "out_of_scope"
