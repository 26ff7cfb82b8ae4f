"""Represent the element tree of an HTML page, with the byte position of everything in the source."""

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Attribute:
    name: str
    value: str
    start: int
    end: int


@dataclass(slots=True, eq=False)
class Element:
    """An element from `start` to `end`, its content from `inner_start` to `inner_end`.

    Without an end tag both ends are equal.
    """

    tag: str
    start: int
    name_end: int
    """End of the name in the start tag."""
    inner_start: int
    inner_end: int
    end: int
    parent: "Element | None" = field(default=None, repr=False)
    attributes: tuple[Attribute, ...] = ()
    children: list["Element"] = field(default_factory=list, repr=False)
    has_end_tag: bool = False
    is_void: bool = False
    uid: str = ""
    """Id by which a model names the element; empty until the document assigns one."""

    def attribute_value(self, name: str) -> str | None:
        return next((attribute.value for attribute in self.attributes if attribute.name == name), None)

    @property
    def classes(self) -> list[str]:
        return (self.attribute_value("class") or "").split()

    def ancestors(self) -> Iterator["Element"]:
        """Yield the elements around this one, the parent first."""
        ancestor = self.parent
        while ancestor is not None:
            yield ancestor
            ancestor = ancestor.parent

    def is_within(self, tag: str) -> bool:
        """Return whether an ancestor has this tag."""
        return any(ancestor.tag == tag for ancestor in self.ancestors())


@dataclass(frozen=True)
class HtmlTree:
    root: Element
    """The file itself (`ROOT_TAG`)."""
    elements: list[Element]
    """All elements but the root, in document order."""
    stray_end_tags: list[tuple[int, int]]
    """Start and end of end tags that close no element."""

    def find_first(self, tag: str) -> Element | None:
        return next((element for element in self.elements if element.tag == tag), None)
