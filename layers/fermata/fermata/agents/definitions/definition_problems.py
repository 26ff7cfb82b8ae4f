"""Collect what is wrong with the files that define agents, with the file, the line and the path of each problem."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from fermata.domain.value_dataclass import value_dataclass

ItemPath = tuple[str | int, ...]
MAX_SUGGESTED_FROM = 100
MAX_NAME_SUGGESTIONS = 100
MAX_SUGGESTED_CHARS = 100
_FORM_MISTAKES = ("string_type", "literal_error", "dict_type", "model_type")


@value_dataclass(frozen=True)
class SourceDocument:
    """A file that defines agents, as its parser has read it.

    Attributes:
        file: Its name, for messages.
        value: Its content.
        lines: The lines of its members by their paths as `show_path` writes them, from 1; empty if they are unknown.
    """

    file: str
    value: Any
    lines: Mapping[str, int] = field(default_factory=dict)

    def find_line(self, path: ItemPath) -> int:
        """Return the line of a member, or of the nearest one around it; 0 if it is not known."""
        for length in range(len(path), -1, -1):
            if line := self.lines.get(show_path(path[:length])):
                return line
        return 0


class Place(NamedTuple):
    """A member of a file."""

    document: SourceDocument
    path: ItemPath = ()

    def inside(self, *names: str | int) -> "Place":
        """Return the place of a member of this one."""
        return Place(self.document, (*self.path, *names))


@value_dataclass(frozen=True)
class DefinitionProblem:
    """A mistake in a file. A warning does not keep the agents from being pushed."""

    message: str
    file: str = ""
    line: int = 0
    path: str = ""
    is_warning: bool = False

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        severity = "warning" if self.is_warning else "error"
        return {"severity": severity, "file": self.file, "line": self.line, "path": self.path, "message": self.message}


FindAddressProblem = Callable[[str], str]
"""Returns why a service cannot call an address; empty if it may."""


@dataclass
class ProblemList:
    """The problems that were found so far.

    Attributes:
        find_address_problem: Where it is set, what it finds is a warning.
    """

    find_address_problem: FindAddressProblem | None = None
    found: list[DefinitionProblem] = field(default_factory=list)
    error_count: int = 0
    _known: set[DefinitionProblem] = field(default_factory=set)

    def add_error(self, place: Place, message: str) -> None:
        """Add a mistake."""
        self._add(place, message, is_warning=False)

    def add_warning(self, place: Place, message: str) -> None:
        """Add what works, and is probably not what is meant."""
        self._add(place, message, is_warning=True)

    def suggest_name(self, name: str, known: Sequence[str]) -> str:
        """Return a sentence that names what was probably meant; empty if nothing is close, or after many mistakes.

        Args:
            name: What was written.
            known: What can be meant.
        """
        is_too_much = (
            len(self.found) > MAX_NAME_SUGGESTIONS or len(known) > MAX_SUGGESTED_FROM or len(name) > MAX_SUGGESTED_CHARS
        )
        close = [] if is_too_much else get_close_matches(name, known, n=1, cutoff=0.6)
        return f" Do you mean {close[0]!r}?" if close else ""

    def check_model(self, place: Place, model: type[BaseModel], value: Any) -> Any:
        """Return the value as the model, with unknown members refused; None after its mistakes were added.

        A member without a value counts as left out.

        Args:
            place: Where the value is.
            model: What it has to be.
            value: JSON.
        """
        if isinstance(value, Mapping):
            value = {name: member for name, member in value.items() if member is not None}
        try:
            return model.model_validate(value, extra="forbid", by_alias=True, by_name=False)
        except ValidationError as error:
            self._add_mistakes(place, value, error)
            return None

    def _add_mistakes(self, place: Place, value: Any, error: ValidationError) -> None:
        details = error.errors(include_url=False, include_input=False)
        paths = [find_member_path(value, detail["loc"]) for detail in details]
        around = {path[:length] for path in set(paths) for length in range(len(path))}
        reported: set[ItemPath] = set()
        for detail, path in zip(details, paths, strict=True):
            # A value that may have several forms is reported once, and by the mistakes inside of it if there are any.
            is_repeated = path in reported
            reported.add(path)
            if not is_repeated and not (path in around and detail["type"] in _FORM_MISTAKES):
                name = str(detail["loc"][-1]) if detail["loc"] else ""
                self.add_error(place.inside(*path), _describe_mistake(detail["type"], name, detail["msg"]))

    def _add(self, place: Place, message: str, *, is_warning: bool) -> None:
        document, path = place
        problem = DefinitionProblem(message, document.file, document.find_line(path), show_path(path), is_warning)
        if problem not in self._known:
            self._known.add(problem)
            self.found.append(problem)
            self.error_count += not is_warning


def show_path(path: ItemPath) -> str:
    """Return a path as people write it: `agents[0].properties.model`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def find_member_path(value: Any, location: Sequence[str | int]) -> ItemPath:
    """Return the part of a location of pydantic that names members of the value, without the names of types in it.

    Args:
        value: What was validated.
        location: Of the mistake.
    """
    path: ItemPath = ()
    for part in location:
        if (isinstance(value, Mapping) and part in value) or _is_index(value, part):
            value = value[part]
            path = (*path, part)
    return path


def _is_index(value: Any, part: str | int) -> bool:
    return isinstance(value, (list, tuple)) and isinstance(part, int) and 0 <= part < len(value)


def _describe_mistake(kind: str, name: str, message: str) -> str:
    if kind == "missing":
        return f"{name!r} is missing."
    if kind in ("model_type", "dict_type"):
        return "An object is expected here."
    if kind == "tuple_type":
        return "A list is expected here."
    if kind == "extra_forbidden":
        return f"{name!r} is not known here."
    return message.removeprefix("Value error, ").rstrip(".") + "."
