"""A template engine finds what it reads first at the start of the file, also after an edit."""

import pytest

from fermata_client import HtmlDocument
from fermata_client.html.edit_error import EditError
from fermata_client.html.parser import parse_html
from fermata_client.html.template_preamble import preamble_end
from fermata_client.tools.registry import WRITE_TOOLS

PREAMBLES = [
    "---\nlayout: default\n---\n",
    "---\ntitle: <b>Hi</b>\n---\n",
    "---\r\nlayout: default\r\n---\r\n",
    "---\n---\n",
    "+++\ntitle = 'x'\n+++\n",
    "\ufeff---\na: b\n---\n",
    "<?php get_header(); ?>\n",
    '<?php echo "<b>x</b>"; ?>\n',
    "<?php\n$a = 1 > 0;\n?>\n<?php include 'x'; ?>\n",
    '<?xml version="1.0"?>\n',
    "<%@ page language='java' %>\n<%- include('header') %>\n",
    '<!--#include virtual="header.html" -->\n',
    '{% load static %}\n{# a note #}\n{% include "header.html" %}\n',
    "{%- assign a = 1 -%}\n",
    "{% comment %}<h1>no</h1>{% endcomment %}\n",
    "{{> header}}\n",
    '{\n  "title": "<b>Hi</b>",\n  "menu": {\n    "a": 1\n  }\n}\n',
    '<%inherit file="base.html"/>\n<%page args="a"/>\n',
    '<#ftl output_format="HTML">\n<#import "l.ftl" as l>\n',
    '<cfset a = 1>\n<cfinclude template="header.cfm">\n',
    "#parse('header.vm')\n#set($a = [1, (2)])\n",
    '{{ template "header" . }}\n',
    '@page\n@model Foo\n@{\n    Layout = "_L";\n}\n',
    "@php\n$x = '<p>';\n@endphp\n",
    "<!-- a note --><!doctype html>\n",
    "---\na: b\n---\n<!doctype html>\n",
]


@pytest.mark.parametrize("preamble", PREAMBLES)
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("applyCss", {"css": "p { top: 0 }"}),
        ("renamePage", {"pageId": "index", "title": "New"}),
        ("write_code_asset", {"path": "a.css", "type": "style", "content": "a {}"}),
        ("write_code_asset", {"path": "a.js", "type": "script", "content": "1"}),
        ("set_color_tokens", {"tokens": [{"slug": "brand", "lightValue": "#123456"}]}),
        ("insertHtml", {"parentId": "document", "html": "<p>new</p>", "index": 0}),
        ("insertHtml", {"parentId": "document", "html": "<p>new</p>"}),
        ("replaceNodeHtml", {"nodeId": "document", "html": "<p>new</p>"}),
    ],
)
def test_nothing_goes_before_it(preamble: str, tool: str, arguments: dict[str, object]) -> None:
    source = (preamble + "<h1>Hi</h1>\n").encode()
    edited, _ = WRITE_TOOLS[tool](HtmlDocument.parse(source), arguments)
    assert edited.source != source
    assert edited.source.startswith(preamble.rstrip("\r\n").encode())
    assert [element.tag for element in HtmlDocument.parse(source).tree.elements] == ["h1"]


@pytest.mark.parametrize(
    "start", ["<h1>Hi</h1>", "-- a --", "--- a", "{{ title }}", "{% if a %}<p>{% endif %}", "text"]
)
def test_content_is_no_preamble(start: str) -> None:
    assert preamble_end(start.encode()) == 0


EXTENDS = ['{% extends "base.html" %}\n{% load x %}\n', "{% layout 'a' %}\n", "@extends('a')\n", "{{#extends 'a'}}\n"]


@pytest.mark.parametrize("extends", EXTENDS)
def test_what_fills_another_template_gets_its_styles_within_a_block(extends: str) -> None:
    source = extends + "{% block content %}\n  <h1>Hi</h1>\n{% endblock %}\n"
    edited, _ = WRITE_TOOLS["applyCss"](HtmlDocument.parse(source.encode()), {"css": "p { top: 0 }"})
    style = "  <style>\n    p { top: 0 }\n  </style>\n"
    assert edited.source.decode() == source.replace("  <h1>", style + "  <h1>")


@pytest.mark.parametrize("end", ["<?php get_footer(); ?>", "{% endblock %}", "<%- include('f') %>", "@endsection"])
def test_what_a_template_engine_reads_last_stays_last(end: str) -> None:
    source = f"<?php get_header(); ?>\n<h1>Hi</h1>\n{end}\n"
    arguments = {"parentId": "document", "html": "<p>new</p>"}
    edited, _ = WRITE_TOOLS["insertHtml"](HtmlDocument.parse(source.encode()), arguments)
    assert edited.source.decode() == source.replace("</h1>\n", "</h1>\n<p>new</p>\n")


def test_the_block_for_the_head_is_preferred() -> None:
    source = (
        '{% extends "base.html" %}\n{% block title %}A{% endblock %}\n'
        "{% block extrahead %}{{ block.super }}\n<script src=\"{% url 'x' %}\"></script>\n{% endblock %}\n"
        "{% block extrastyle %}{{ block.super }}{% endblock %}\n{% block content %}<p>a</p>{% endblock %}\n"
    )
    edited, _ = WRITE_TOOLS["applyCss"](HtmlDocument.parse(source.encode()), {"css": "p { top: 0 }"})
    before, style, after = edited.source.decode().partition("<style>")
    assert before.endswith("{% block extrastyle %}{{ block.super }}\n")
    assert style
    assert after.split("</style>\n")[1].startswith("{% endblock %}")
    written = {"path": "a.js", "type": "script", "content": "1"}
    edited, _ = WRITE_TOOLS["write_code_asset"](HtmlDocument.parse(source.encode()), written)
    assert b'></script>\n<script src="a.js" defer></script>\n{% endblock %}' in edited.source


def test_the_title_of_another_template_is_not_set_here() -> None:
    page = HtmlDocument.parse(b'{% extends "a" %}\n{% block title %}A{% endblock %}{% block b %}<p>x</p>{% endblock %}')
    with pytest.raises(EditError, match="fills blocks of another template"):
        WRITE_TOOLS["renamePage"](page, {"pageId": "index", "title": "New"})


CODE_IN_TAGS = [
    '{% static "a/b.svg" %}',
    "{{ url_for('x', name=\"y>z\") }}",
    '{{ "style.css" | asset_url }}',
    '<?php echo $x["a>b"]; ?>',
    '<%= link("a") %>',
]


@pytest.mark.parametrize("code", CODE_IN_TAGS)
def test_quotes_and_brackets_in_template_code_do_not_end_an_attribute(code: str) -> None:
    page = HtmlDocument.parse(f'<a href="{code}" class="x">\n<b>c</b></a>\n<p {code} id=d>e</p>\n'.encode())
    link, _, paragraph = page.tree.elements
    assert [(own.name, own.value) for own in link.attributes] == [("href", code), ("class", "x")]
    assert (paragraph.attribute_value("id"), paragraph.parent is page.tree.root) == ("d", True)
    edited, _ = WRITE_TOOLS["updateNodeProps"](page, {"nodeId": link.uid, "patch": {"title": "y", "id": "z"}})
    assert edited.source == page.source.replace(b'class="x"', b'class="x" title="y" id="z"')


def test_template_code_right_after_a_tag_name_is_no_part_of_it() -> None:
    page = HtmlDocument.parse(b'<ul{{ attrs }}>\n<li{% if a %} class="x"{% endif %}>a</li>\n</ul>\n')
    assert [element.tag for element in page.tree.elements] == ["ul", "li"]
    edited, _ = WRITE_TOOLS["updateNodeProps"](page, {"nodeId": "n2", "patch": {"title": "y"}})
    assert edited.source == page.source.replace(b"{% endif %}", b'{% endif %} title="y"')


@pytest.mark.parametrize(
    "hidden",
    ["{# <div> #}", "{% comment %}<div>{% endcomment %}", "{{!-- <div> {{x}} --}}", "{% if a <b %}", "{{ a < b }}"],
)
def test_markup_within_template_code_is_no_element(hidden: str) -> None:
    page = HtmlDocument.parse(f"<main>\n{hidden}\n<p>a</p>\n</main>\n".encode())
    assert [element.tag for element in page.tree.elements][-2:] == ["main", "p"]
    edited, _ = WRITE_TOOLS["deleteNode"](page, {"nodeId": page.tree.elements[-1].uid})
    assert edited.source == f"<main>\n{hidden}\n</main>\n".encode()


def test_template_code_in_an_attribute_is_written_as_it_is() -> None:
    page = HtmlDocument.parse(b'<img src="a.png">\n')
    patch = {"src": '{% static "c&d.png" %}?a=1&b="'}
    edited, _ = WRITE_TOOLS["updateNodeProps"](page, {"nodeId": "n1", "patch": patch})
    assert edited.source == b'<img src="{% static "c&d.png" %}?a=1&amp;b=&quot;">\n'


@pytest.mark.parametrize("piece", ["{% ", "{{ ", "{# ", "{{!-- ", "{% comment %}"])
def test_template_code_that_never_ends_is_read_once(piece: str) -> None:
    assert parse_html(piece.encode() * 50_000).elements == []


@pytest.mark.parametrize(
    "blocks",
    [
        "{% block title %}A{% endblock %}\n{% block content %}\n{{ body }}\n{% endblock %}\n",
        "{% block main %}{% if a %}<p>b</p>{% endif %}{% endblock %}\n",
        "{% block nav %}<p>a</p>{% endblock %}\n{% block body %}{% block b %}<p>b</p>{% endblock %}{% endblock %}\n",
        "{% macro m() %}<p>a</p>{% endmacro %}\n{% block body %}\n  <p>b</p>\n{% endblock %}\n",
    ],
)
def test_styles_of_a_file_without_a_block_for_them_begin_its_content(blocks: str) -> None:
    source = '{% extends "a.html" %}\n' + blocks
    edited, _ = WRITE_TOOLS["applyCss"](HtmlDocument.parse(source.encode()), {"css": "p { top: 0 }"})
    before, _, _ = edited.source.decode().partition("<style>")
    assert [before.rstrip().endswith(f"{{% block {name} %}}") for name in ("content", "main", "body")].count(True) == 1


@pytest.mark.parametrize(
    "blocks", ["", "{% macro m() %}<p>a</p>{% endmacro %}\n", "{% block title %}A{% endblock %}\n"]
)
def test_a_style_that_no_block_would_show_is_refused(blocks: str) -> None:
    page = HtmlDocument.parse(b'{% extends "a.html" %}\n' + blocks.encode())
    with pytest.raises(EditError, match="has none that a style"):
        WRITE_TOOLS["applyCss"](page, {"css": "p { top: 0 }"})


def test_a_style_goes_to_the_end_of_the_inner_block_for_styles() -> None:
    source = b'{% extends "a" %}\n{% block head %}{{ super() }}{% block css %}{% endblock %}{% endblock head %}\n'
    edited, _ = WRITE_TOOLS["applyCss"](HtmlDocument.parse(source), {"css": "p { top: 0 }"})
    assert edited.source.index(b"css %}") < edited.source.index(b"<style>") < edited.source.index(b"endblock")
