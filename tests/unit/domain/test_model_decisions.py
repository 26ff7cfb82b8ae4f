"""Questions with fixed answers: what is read from a model's answer."""

from typing import Any

import pytest
from pydantic import ValidationError

from fermata.domain.model_decisions import DecisionQuestion, read_decision

CHOICE = {"choice": "Which?", "options": ["a", "b"]}
SCORE = {"score": "How good?", "levels": ["bad", "fair", "good"]}
NOTHING_CHOSEN = {"choice": None, "confidence": None, "probabilities": None}


@pytest.mark.parametrize(
    ("question", "answer", "decision"),
    [
        pytest.param(CHOICE, {"choice": "c"}, NOTHING_CHOSEN, id="decide-01: no option"),
        pytest.param(CHOICE, {"choice": "c", "confidence": 0.9}, NOTHING_CHOSEN, id="no option, whatever is claimed"),
        pytest.param(CHOICE, {"choice": ["a"]}, NOTHING_CHOSEN, id="a list is no option"),
        pytest.param(CHOICE, None, NOTHING_CHOSEN, id="no answer"),
        pytest.param(
            CHOICE,
            {"choice": "b", "probabilities": {"a": 0.2, "b": 0.8}},
            {"choice": "b", "confidence": 0.8, "probabilities": {"a": 0.2, "b": 0.8}},
            id="the share of the chosen option is the confidence",
        ),
        pytest.param(
            CHOICE,
            {"choice": "a", "confidence": 7},
            {"choice": "a", "confidence": None, "probabilities": None},
            id="a confidence is between 0 and 1",
        ),
        pytest.param(
            {"yesno": "True?"},
            {"probability": 0.3},
            {"answer": False, "probability": 0.3, "confidence": 0.7},
            id="decide-02: less than half is a no",
        ),
        pytest.param(
            {"yesno": "True?"},
            {"probability": 0.5, "confidence": 0.1},
            {"answer": True, "probability": 0.5, "confidence": 0.1},
            id="the provider's confidence counts",
        ),
        pytest.param(
            {"yesno": "True?"},
            {"probability": 1.5},
            {"answer": None, "probability": None, "confidence": None},
            id="no probability",
        ),
        pytest.param(
            SCORE,
            {"level": "fair", "confidence": 0.6},
            {"level": "fair", "index": 1, "score": 0.5, "confidence": 0.6, "probabilities": None},
            id="a level has a place",
        ),
        pytest.param(
            SCORE,
            {"level": "good", "probabilities": {"bad": 0, "fair": 0.5, "good": 0.5}},
            {
                "level": "good",
                "index": 2,
                "score": 0.75,
                "confidence": 0.5,
                "probabilities": {"bad": 0, "fair": 0.5, "good": 0.5},
            },
            id="the score is the mean of the levels",
        ),
        pytest.param(
            SCORE,
            {"level": "great"},
            {"level": None, "index": None, "score": None, "confidence": None, "probabilities": None},
            id="no level",
        ),
    ],
)
def test_an_answer_is_read_in_the_terms_of_its_question(
    question: dict[str, Any], answer: Any, decision: dict[str, Any]
) -> None:
    assert read_decision(DecisionQuestion.from_wire(question), answer) == decision


@pytest.mark.parametrize(
    "question",
    [
        {},
        {"choice": "x", "options": None},
        {"choice": "x", "options": ["a"]},
        {"choice": "x", "options": ["a", "a"]},
        {"choice": "x", "options": [str(number) for number in range(256)]},
        {"choice": "x"},
        {"yesno": "x", "options": ["a", "b"]},
        {"yesno": "x", "choice": "y", "options": ["a", "b"]},
        {"score": "x", "levels": [str(number) for number in range(11)]},
        {"score": "x", "options": ["a", "b"]},
    ],
)
def test_a_question_has_one_kind_and_its_own_members(question: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        DecisionQuestion.from_wire(question)
