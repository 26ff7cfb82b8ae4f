"""A page as the model reads it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata_client import HtmlDocument
from fermata_client.document.model_view import omit_long_urls, read_document_part
from fermata_client.html.edit_error import EditError
from tests.client.html_strategies import BAKERY


def test_every_element_carries_its_id() -> None:
    document = HtmlDocument.parse(b"<!doctype html>\n<p class=a>x<br>y</p><!-- c -->")
    assert document.read_part(1)["html"] == '<!doctype html>\n<p uid="n1" class=a>x<br uid="n2">y</p><!-- c -->'


def test_styles_stand_apart_and_scripts_are_only_mentioned() -> None:
    document = HtmlDocument.parse(b"<style>\n  .a { b: c }\n</style><script>let x = 1</script><script src=y></script>")
    part = document.read_part(1)
    assert part["html"] == (
        '<style uid="n1">/* see css */</style><script uid="n2">/* 9 bytes, left as they are */</script>'
        '<script uid="n3" src=y></script>'
    )
    assert part["css"] == ".a { b: c }"


def test_a_uid_of_the_page_itself_does_not_mislead() -> None:
    assert HtmlDocument.parse(b"<p uid='n9'>x</p>").read_part(1)["html"] == '<p uid="n1" >x</p>'


def test_node_html_is_the_exact_markup_with_ids() -> None:
    document = HtmlDocument.parse(b"<div>\n  <svg><style>a{}</style></svg>\n</div>")
    assert document.element_html("n2") == '<svg uid="n2"><style uid="n3">a{}</style></svg>'


def test_embedded_data_and_very_long_addresses_are_shortened() -> None:
    data, url = "A" * 5000, "https://example.com/" + "x" * 600
    cleaned = omit_long_urls(f'<img src="data:image/png;base64,{data}"><a href="{url}">l</a>')
    assert "data:image/png;base64,[omitted 5000 chars]" in cleaned.text
    assert "[omitted 460 chars]" in cleaned.text
    assert (cleaned.data_url_count, cleaned.long_url_count) == (1, 1)
    assert len(cleaned.text) < 400


def test_the_demo_page_fits_into_one_part() -> None:
    info = HtmlDocument.parse(BAKERY.read_bytes()).read_part(1)["pageInfo"]
    assert (info["part"], info["totalParts"], info["nextPart"]) == (1, 1, None)
    assert info["totalChars"] == info["returnedChars"]


def test_a_part_that_does_not_exist_is_refused() -> None:
    with pytest.raises(EditError, match="no part 2"):
        read_document_part("<p>x</p>", "", 2)


@given(
    st.text(st.sampled_from('<p>"\\\n é🦀x'), max_size=3000),
    st.text(st.sampled_from('{}"\n .a'), max_size=1500),
    st.integers(1200, 2500),
)
def test_the_parts_together_are_the_whole_and_each_keeps_the_budget(html: str, css: str, budget: int) -> None:
    first = read_document_part(html, css, 1, budget)
    parts = [read_document_part(html, css, number, budget) for number in range(1, first["pageInfo"]["totalParts"] + 1)]
    assert "".join(part["html"] for part in parts) == html
    assert "".join(part["css"] for part in parts) == css
    for number, part in enumerate(parts, 1):
        assert len(json.dumps(part, ensure_ascii=False)) <= budget
        assert part["pageInfo"]["nextPart"] == (number + 1 if number < len(parts) else None)
