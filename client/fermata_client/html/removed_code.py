"""Notice which scripts and style sheets go with content that is replaced or deleted."""

from collections.abc import Iterator

from fermata_client.html.edit_error import EditError
from fermata_client.html.linked_files import is_script, is_stylesheet, link_address
from fermata_client.html.tree import Element, HtmlTree

MAX_LISTED = 5


def check_no_script_within(tree: HtmlTree, element: Element) -> None:
    """Raise `EditError` if there are scripts in an element, which new content could not bring back."""
    if scripts := [inner for inner in _iter_code(tree, element) if is_script(inner)]:
        raise EditError(
            f"In the <{element.tag}> {element.uid} there is code, which HTML cannot bring back: "
            f"{_list_code(scripts)}. Replace the nodes beside it one by one, or delete that code first if it is to go."
        )


def describe_code_within(tree: HtmlTree, element: Element) -> str:
    """Return a sentence that names the code that goes with the content of an element; empty if there is none."""
    code = [*_iter_code(tree, element)]
    return f"This went with it: {_list_code(code)}." if code else ""


def _iter_code(tree: HtmlTree, element: Element) -> Iterator[Element]:
    within = (inner for inner in tree.elements if element.inner_start <= inner.start < element.inner_end)
    return (inner for inner in within if is_script(inner) or is_stylesheet(inner))


def _list_code(code: list[Element]) -> str:
    more = f" and {len(code) - MAX_LISTED} more" if len(code) > MAX_LISTED else ""
    return ", ".join(map(_name_code, code[:MAX_LISTED])) + more


def _name_code(element: Element) -> str:
    address = link_address(element)
    return f"the <{element.tag}> {element.uid}" + (f" ({address})" if address else "")
