"""Set custom properties of a page, for light and for dark screens."""

from dataclasses import dataclass, field

from fermata_client.design_tokens.custom_properties import ROOT_SELECTOR, defining_selectors
from fermata_client.document.html_document import HtmlDocument


@dataclass
class CustomPropertyChanges:
    light: dict[str, str] = field(default_factory=dict)
    dark: dict[str, str] = field(default_factory=dict)

    def apply_to(self, document: HtmlDocument) -> HtmlDocument:
        """Set the properties in the rules that define them; new ones in `:root`."""
        css = "".join(_format_rule(selector, values) for selector, values in self._group_by_rule(document).items())
        if self.dark:
            dark_rule = _format_rule(ROOT_SELECTOR, self.dark, "  ")
            css += f"@media (prefers-color-scheme: dark) {{\n{dark_rule}}}\n"
        return document.put_css(css)[0] if css else document

    def _group_by_rule(self, document: HtmlDocument) -> dict[str, dict[str, str]]:
        selector_by_name = defining_selectors(document)
        values_by_selector: dict[str, dict[str, str]] = {}
        for name, value in self.light.items():
            values_by_selector.setdefault(selector_by_name.get(name, ROOT_SELECTOR), {})[name] = value
        return values_by_selector


def _format_rule(selector: str, values: dict[str, str], indent: str = "") -> str:
    lines = (f"{indent}  {name}: {value};" for name, value in values.items())
    return "\n".join([f"{indent}{selector} {{", *lines, f"{indent}}}", ""])
