"""Define what is wrong with a value: where, how badly, and what to do."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from fermata.domain.base import DomainModel

MAX_CONTENT_PROBLEMS = 100
"""Of each severity that are listed at once: nobody reads more, and a short list of values may have a million."""
_MAX_CHOICES_CHARS = 500

ProblemSeverity = Literal["error", "warning"]
ProblemKind = Literal[
    "required",
    "type",
    "secret",
    "slug",
    "date",
    "datetime",
    "percent",
    "email",
    "url",
    "color",
    "phone",
    "accept",
    "range",
    "count",
    "pattern",
    "bad_pattern",
    "options",
    "unique",
    "relation_shape",
    "relation_target",
    "array",
    "depth",
    "locale",
    "section",
    "size",
]


class ContentProblem(DomainModel):
    """A problem of a value. Errors keep content from being written; warnings do not.

    Attributes:
        field: The path of the value: `title`, `images[1]`, `links[0].label`.
        kind: What is wrong, for programs.
        message: What is wrong, for people and models.
    """

    field: str
    severity: ProblemSeverity = "error"
    kind: ProblemKind
    message: str


def limit_problems(problems: Iterable[ContentProblem]) -> Iterator[ContentProblem]:
    """Yield problems up to the limit of their severity. After so many errors, nothing more is looked for."""
    left = {"error": MAX_CONTENT_PROBLEMS, "warning": MAX_CONTENT_PROBLEMS}
    for problem in problems:
        if left[problem.severity]:
            left[problem.severity] -= 1
            yield problem
        if not left["error"]:
            return


def name_choices(choices: Sequence[str]) -> str:
    """Return what may be chosen, for messages, as far as anybody reads it."""
    shown, chars = list[str](), 0
    for choice in choices:
        chars += len(choice) + 2
        if shown and chars > _MAX_CHOICES_CHARS:
            return f"{', '.join(shown)} and {len(choices) - len(shown)} more"
        shown.append(choice[:_MAX_CHOICES_CHARS])
    return ", ".join(shown)


def is_valid(problems: list[ContentProblem]) -> bool:
    """Return whether nothing keeps the content from being written."""
    return not any(problem.severity == "error" for problem in problems)
