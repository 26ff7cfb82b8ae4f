"""Define what is wrong with a value: where, how badly, and what to do."""

from typing import Literal

from fermata.domain.base import DomainModel

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


def is_valid(problems: list[ContentProblem]) -> bool:
    """Return whether nothing keeps the content from being written."""
    return not any(problem.severity == "error" for problem in problems)
