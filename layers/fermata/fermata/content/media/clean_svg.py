"""Write an SVG anew from what only draws: shapes, texts, colours and filters of an allowed list (decision 0575).

What is not on the list is left out with all that is in it: scripts, handlers of events, links, foreign documents,
animations, pictures, and whatever would be fetched from elsewhere. The parser is Python's expat, which fetches nothing;
a file that declares entities is refused, so that none grows.
"""

import re
import string
from collections.abc import Mapping
from typing import NamedTuple
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from fermata.content.media.svg_names import SVG_ATTRIBUTES, SVG_ELEMENTS, SVG_TEXT_ELEMENTS
from fermata.content.media.svg_parts import MAX_DRAWN, SvgParts
from fermata.domain.check_image_header import ImageTooLargeError, InvalidImageError

SVG_NAMESPACE = "http://www.w3.org/2000/svg"
_XLINK_HREF = "http://www.w3.org/1999/xlink href"
_XML_NAMES = {
    "http://www.w3.org/XML/1998/namespace space": "xml:space",
    "http://www.w3.org/XML/1998/namespace lang": "xml:lang",
}
_MAX_ELEMENTS, _MAX_DEPTH = 20_000, 100
_UNWRAPPED = frozenset({"a", "switch"})
"""What is in them is kept, and they are not."""
_REFERENCE = re.compile(r"#[A-Za-z_][\w.:-]{0,200}")
_ARIA_NAME = re.compile(r"aria-[a-z]{1,40}")
"""All of a name: one from a namespace begins with its address, which may be any text."""
_MEDIA_RULE = "@media"
_NAME_LETTERS = f"{string.ascii_letters}{string.digits}_-"
_BRACKET = re.compile(r"\(")
_MAX_FUNCTION_CHARS, _MAX_FUNCTIONS = 40, 5_000
_FUNCTIONS = frozenset({
    "", "rgb", "rgba", "hsl", "hsla", "matrix", "translate", "translatex", "translatey", "scale", "scalex", "scaley",
    "rotate", "skewx", "skewy", "calc", "min", "max", "clamp", "var", "polygon", "circle", "ellipse", "inset",
    "blur", "brightness", "contrast", "drop-shadow", "grayscale", "hue-rotate", "invert", "opacity", "saturate",
    "sepia", "cubic-bezier", "media", "not", "nth-child", "nth-of-type",
})  # fmt: skip
_LENGTH = re.compile(r"\s*([0-9]{1,7}(?:\.[0-9]{0,9})?)(?:px)?\s*")
_BOX_SIZE = re.compile(r"\s*[-+\d.eE]+[\s,]+[-+\d.eE]+[\s,]+([0-9]{1,7}(?:\.\d*)?)[\s,]+([0-9]{1,7}(?:\.\d*)?)\s*")


class SvgDrawing(NamedTuple):
    """An SVG that only draws, and its size in pixels; 0 where it says none."""

    data: bytes
    width: int
    height: int


def clean_svg(raw: bytes) -> SvgDrawing:
    """Return an SVG without anything but its drawing.

    Args:
        raw: The file as somebody has uploaded it, of at most 1 MB.

    Raises:
        InvalidImageError: It is no SVG, or declares entities.
        ImageTooLargeError: It has too many parts, or draws parts of itself too often.
    """
    writer = _SvgWriter()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartDoctypeDeclHandler = _refuse_declarations
    parser.EntityDeclHandler = _refuse_entity
    parser.StartElementHandler = writer.start
    parser.EndElementHandler = writer.end
    parser.CharacterDataHandler = writer.write_text
    parser.buffer_text = True
    try:
        parser.Parse(raw, True)
    except expat.ExpatError as error:
        raise InvalidImageError(f"is a damaged SVG: {error}") from error
    except (LookupError, ValueError) as error:  # what Python's expat says of an encoding that it cannot read
        raise InvalidImageError("is an SVG in an encoding that is not read; save it in UTF-8") from error
    return writer.finish()


def _refuse_declarations(_name: str, _system: str | None, _public: str | None, has_declarations: int) -> None:
    """Refuse what a document type declares by itself. One that only names a file elsewhere is left out."""
    if has_declarations:
        raise InvalidImageError("is an SVG that declares entities; save it as a plain SVG")


def _refuse_entity(*_: object) -> None:
    raise InvalidImageError("is an SVG that declares entities; save it as a plain SVG")


class _SvgWriter:
    """Writes what is allowed of the elements that a parser reports."""

    def __init__(self) -> None:
        self._written: list[str] = []
        self._open: list[str] = []
        """The elements that are open: their names, or an empty one for one whose content alone is kept."""
        self._left_out = self._count = 0
        self._style: list[str] | None = None
        self._parts = SvgParts()
        self._size = (0, 0)

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take the start of an element."""
        self._count += 1
        if self._count > _MAX_ELEMENTS or len(self._open) + self._left_out > _MAX_DEPTH:
            raise ImageTooLargeError(f"has more than {_MAX_ELEMENTS:,} parts, or is nested deeper than {_MAX_DEPTH}")
        namespace, _, local = name.rpartition(" ")
        is_root = self._count == 1
        if is_root and (namespace, local) != (SVG_NAMESPACE, "svg"):
            raise InvalidImageError("is no SVG: its first element has to be svg, in the namespace of SVG")
        is_known = namespace == SVG_NAMESPACE and local in (SVG_ELEMENTS | _UNWRAPPED)
        if self._left_out or not is_known:
            self._left_out += 1
            return
        self._begin(local, attributes, is_root=is_root)

    def _begin(self, name: str, attributes: Mapping[str, str], *, is_root: bool) -> None:
        kept = dict(_keep_attributes(attributes))
        if is_root:
            self._size = _read_size(attributes)
        is_written = name not in _UNWRAPPED
        self._open.append(name if is_written else "")
        if name == "style":
            self._style = []
        elif is_written:
            self._parts.open(name, kept)
            space = f' xmlns="{SVG_NAMESPACE}"' if is_root else ""
            said = "".join(f" {key}={quoteattr(value)}" for key, value in kept.items())
            self._written.append(f"<{name}{space}{said}>")

    def end(self, _name: str) -> None:
        """Take the end of an element."""
        if self._left_out:
            self._left_out -= 1
            return
        name = self._open.pop()
        if name == "style":
            text, self._style = _cut_comments("".join(self._style or ())), None
            if _is_plain_style(text):
                self._parts.add_style(text)
                self._written.append(f"<style>{escape(text)}</style>")
        elif name:
            self._parts.close()
            self._written.append(f"</{name}>")

    def write_text(self, text: str) -> None:
        """Take text. It is kept where it is shown, and in styles."""
        if self._left_out:
            return
        if self._style is not None:
            self._style.append(text)
        elif self._is_in_text():
            self._parts.add_text(text)
            self._written.append(escape(text))

    def _is_in_text(self) -> bool:
        return next((name for name in reversed(self._open) if name), "") in SVG_TEXT_ELEMENTS

    def finish(self) -> SvgDrawing:
        """Return what was written.

        Raises:
            ImageTooLargeError: It draws parts of itself too often, or in a circle.
        """
        if self._parts.count_drawn() > MAX_DRAWN:
            raise ImageTooLargeError("draws parts of itself too often")
        return SvgDrawing("".join(self._written).encode(), *self._size)


def _keep_attributes(attributes: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the attributes that only draw, those of links by the name that SVG 2 has for them."""
    kept = []
    for given, value in attributes.items():
        name = "href" if given == _XLINK_HREF else _XML_NAMES.get(given, given)
        if name == "href":
            is_kept = _REFERENCE.fullmatch(value) is not None
        elif name not in SVG_ATTRIBUTES and name not in _XML_NAMES.values() and not _ARIA_NAME.fullmatch(name):
            is_kept = False
        else:
            is_kept = _is_plain_style(value)
        if is_kept:
            kept.append((name, value))
    return kept


def _cut_comments(css: str) -> str:
    """Return a style without its comments, as CSS reads them: one that does not end is all of the rest."""
    first, *others = css.split("/*")
    parts = (part.partition("*/") for part in others)
    return " ".join([first, *(rest for _, end, rest in parts if end)])


def _is_plain_style(text: str) -> bool:
    r"""Return whether a text of CSS, or of an attribute, fetches nothing and hides nothing behind escapes.

    Of rules that begin with @, those for dark pages and for print are kept. Functions are those of an allowed list,
    and `url` with a part of the same file.
    """
    if "\\" in text or "@" in text.replace(_MEDIA_RULE, "") or "/*" in text or text.count("(") > _MAX_FUNCTIONS:
        return False
    return all(_is_plain_function(text, found.start()) for found in _BRACKET.finditer(text))


def _is_plain_function(text: str, bracket: int) -> bool:
    """Return whether the function of an opening bracket is one that a drawing needs."""
    before = text[max(0, bracket - _MAX_FUNCTION_CHARS) : bracket]
    name = before[len(before.rstrip(_NAME_LETTERS)) :].lower()
    begin = text[bracket + 1 : bracket + _MAX_FUNCTION_CHARS].lstrip()
    return name in _FUNCTIONS or (name == "url" and begin.startswith(("#", '"#', "'#")))


def _read_size(attributes: Mapping[str, str]) -> tuple[int, int]:
    """Return the size that the first element says, or that of its view box; zeros if it says none."""
    lengths = [_LENGTH.fullmatch(attributes.get(name, "")) for name in ("width", "height")]
    if lengths[0] and lengths[1]:
        return round(float(lengths[0][1])), round(float(lengths[1][1]))
    box = _BOX_SIZE.fullmatch(attributes.get("viewBox", ""))
    return (round(float(box[1])), round(float(box[2]))) if box else (0, 0)
