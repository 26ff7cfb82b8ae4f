"""Ask a model questions with fixed answers, and read what it answers (decision 0367).

Three kinds of question exist: a choice among options, yes or no, and a level of a scale. An answer outside of a
question's terms is no answer: all of its members are None.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from fermata.domain.base import DomainModel

RESERVED_QUESTION_ID = "usage"
MAX_OPTIONS = 255
MAX_LEVELS = 10
_NAME = Annotated[str, StringConstraints(min_length=1, max_length=200)]
_QuestionText = Annotated[str, StringConstraints(min_length=1, max_length=10_000)]


def _ensure_distinct(names: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if names is not None and len(set(names)) < len(names):
        raise ValueError("The names have to be different.")
    return names


class DecisionQuestion(DomainModel):
    """One question: `choice` with `options`, `yesno`, or `score` with `levels`, the lowest first."""

    choice: _QuestionText | None = None
    options: Annotated[
        tuple[_NAME, ...] | None, Field(min_length=2, max_length=MAX_OPTIONS), AfterValidator(_ensure_distinct)
    ] = None
    yesno: _QuestionText | None = None
    criteria: str | None = None
    score: _QuestionText | None = None
    levels: Annotated[
        tuple[_NAME, ...] | None, Field(min_length=2, max_length=MAX_LEVELS), AfterValidator(_ensure_distinct)
    ] = None

    @model_validator(mode="after")
    def _check_kind(self) -> "DecisionQuestion":
        kinds = [text for text in (self.choice, self.yesno, self.score) if text is not None]
        if len(kinds) != 1:
            raise ValueError("A question is exactly one of choice, yesno and score.")
        if (self.choice is None) != (self.options is None) or (self.score is None) != (self.levels is None):
            raise ValueError("A choice needs options, a score needs levels, and no other question has them.")
        return self

    @property
    def text(self) -> str:
        """What is asked."""
        text = self.choice or self.yesno or self.score or ""
        return f"{text}\n{self.criteria}" if self.criteria else text

    @property
    def names(self) -> tuple[str, ...]:
        """The names among which an answer is; of a question for yes or no there are none."""
        return self.options or self.levels or ()

    def build_answer_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of what the model writes about the question."""
        share = {"type": "number", "minimum": 0, "maximum": 1}
        if self.yesno is not None:
            members: dict[str, Any] = {"probability": share | {"description": "How likely the answer is yes."}}
        else:
            member = "choice" if self.choice is not None else "level"
            listed = "One of: " + ", ".join(map(repr, self.names))
            members = {member: {"type": "string", "description": listed}, "confidence": share}
        return {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}


def read_decision(question: DecisionQuestion, answer: Any) -> dict[str, Any]:
    """Return the answer to a question in its terms.

    Args:
        question: What was asked.
        answer: What the model wrote, or an evaluation of it: a name or a probability, with `confidence` and
            `probabilities` where they are known.
    """
    given = answer if isinstance(answer, Mapping) else {"choice": answer, "level": answer, "answer": answer}
    if question.yesno is not None:
        return _read_yes_or_no(given)
    name = given.get("choice") if question.choice is not None else given.get("level")
    index = question.names.index(name) if isinstance(name, str) and name in question.names else None
    probabilities = _read_probabilities(question.names, given.get("probabilities"))
    confidence = _read_share(given.get("confidence"))
    if index is not None and confidence is None and probabilities is not None:
        confidence = probabilities[question.names[index]]
    found = index is not None
    rest = {"confidence": confidence if found else None, "probabilities": probabilities if found else None}
    if question.choice is not None:
        return {"choice": name if found else None, **rest}
    return {"level": name if found else None, "index": index, "score": _score(question, index, probabilities), **rest}


def _score(question: DecisionQuestion, index: int | None, probabilities: Mapping[str, float] | None) -> float | None:
    """Return the place on the scale from 0 to 1: of the level, or the mean of the levels if their shares are known."""
    if index is None:
        return None
    steps = len(question.names) - 1
    if probabilities is None:
        return index / steps
    return round(sum(place * probabilities[name] for place, name in enumerate(question.names)) / steps, 6)


def _read_yes_or_no(given: Mapping[str, Any]) -> dict[str, Any]:
    probability = _read_share(given.get("probability"))
    answer = given.get("answer")
    if probability is None and not isinstance(answer, bool):
        return {"answer": None, "probability": None, "confidence": None}
    confidence = _read_share(given.get("confidence"))
    if probability is None:
        if confidence is not None:
            probability = _round(confidence if answer else 1 - confidence)
        return {"answer": answer, "probability": probability, "confidence": confidence}
    own_confidence = _round(max(probability, 1 - probability))
    is_yes = probability >= 0.5
    return {
        "answer": is_yes,
        "probability": probability,
        "confidence": own_confidence if confidence is None else confidence,
    }


def _round(share: float) -> float:
    return round(share, 6)


def _read_share(value: Any) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return value if is_number and 0 <= value <= 1 else None


def _read_probabilities(names: tuple[str, ...], value: Any) -> dict[str, float] | None:
    """Return the share of each name, if there is one of every name and nothing else."""
    if not isinstance(value, Mapping) or set(value) != set(names):
        return None
    shares = {name: _read_share(value[name]) for name in names}
    return (
        None if any(share is None for share in shares.values()) else {n: s for n, s in shares.items() if s is not None}
    )
