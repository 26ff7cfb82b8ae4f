"""A project as files, and projects that are made by chance."""

import json
import random
from typing import Any

from fermata.content.files.canonical_json import format_canonical_json
from fermata.content.files.project_files import FileTree

CONFIG = {
    "domains": ["marketing", "product"],
    "locales": {"default": "en", "supported": ["en", "tr"]},
    "stack": "other",
    "version": 1,
    "workflow": "auto-merge",
}
FAQ = {
    "domain": "marketing",
    "fields": {
        "answer": {"required": True, "type": "markdown"},
        "related": {"model": "faq", "type": "relations"},
        "question": {"label": {"en": "Question"}, "max": 200, "required": True, "type": "string"},
        "tags": {"items": "string", "type": "array"},
    },
    "i18n": True,
    "id": "faq",
    "kind": "collection",
    "name": "Questions",
    "title_field": "question",
}
HERO = {
    "domain": "marketing",
    "fields": {"cta": {"fields": {"href": {"type": "url"}}, "type": "object"}, "title": {"type": "string"}},
    "i18n": False,
    "id": "hero",
    "kind": "singleton",
    "name": "Hero",
}
NOTE = {
    "domain": "product",
    "fields": {
        "release_date": {"type": "date"},
        "slug": {"required": True, "type": "slug"},
        "title": {"required": True, "type": "string"},
        "version": {"type": "number"},
    },
    "i18n": True,
    "id": "note",
    "kind": "document",
    "name": "Notes",
    "title_field": "title",
}
WORDS = {"domain": "product", "i18n": True, "id": "words", "kind": "dictionary", "name": "Words", "title_field": "key"}


def text_of(value: Any) -> str:
    return format_canonical_json(value)


def make_tree() -> FileTree:
    """Return the files of a small project, with something of everything."""
    return {
        ".contentrain/config.json": text_of(CONFIG),
        ".contentrain/context.json": text_of({"lastOperation": {"tool": "import"}, "stats": {"models": 4}}),
        ".contentrain/vocabulary.json": text_of(
            {"terms": {"cart": {"en": "Cart", "tr": "Sepet"}, "shop": {}}, "version": 1}
        ),
        ".contentrain/models/faq.json": text_of(FAQ),
        ".contentrain/models/hero.json": text_of(HERO),
        ".contentrain/models/note.json": text_of(NOTE),
        ".contentrain/models/words.json": text_of(WORDS),
        ".contentrain/content/marketing/faq/en.json": text_of(
            {
                "a1b2c3d4e5f6": {"answer": "Yes.", "question": "Is it fresh?", "tags": ["bread"]},
                "how-long": {"answer": "Two days.", "question": "How long?", "related": ["a1b2c3d4e5f6"]},
            }
        ),
        ".contentrain/content/marketing/faq/tr.json": text_of(
            {"a1b2c3d4e5f6": {"answer": "Evet.", "question": "Taze mi?"}}
        ),
        ".contentrain/meta/faq/en.json": text_of(
            {
                "a1b2c3d4e5f6": {"source": "import", "status": "published", "updated_by": "ada"},
                "how-long": {"status": "draft"},
            }
        ),
        ".contentrain/meta/faq/tr.json": text_of({"a1b2c3d4e5f6": {"status": "draft", "version": "2"}}),
        ".contentrain/content/marketing/hero/data.json": text_of({"cta": {"href": "/shop"}, "title": "Bread"}),
        ".contentrain/meta/hero/en.json": text_of({"source": "human", "status": "published"}),
        ".contentrain/content/product/note/first-bread/en.md": (
            "---\nrelease_date: 2026-03-18\nslug: first-bread\ntitle: First bread\nversion: 1.5\n---\n"
            "\nWe bake.\n\nDaily.\n"
        ),
        ".contentrain/content/product/note/first-bread/tr.md": ('---\nslug: first-bread\ntitle: "İlk: ekmek"\n---\n'),
        ".contentrain/meta/note/first-bread/en.json": text_of({"status": "in_review"}),
        ".contentrain/content/product/words/en.json": text_of({"auth.expired": "Expired", "auth.failed": "Failed"}),
        ".contentrain/content/product/words/tr.json": "{}\n",
    }


TEXTS = [
    "",
    "Bread",
    "yes",
    "12",
    "a: b",
    "- x",
    "naïve",
    "İ ı ş",
    "😀",
    "\u2028",
    "tab\there",
    "# no",
    " lead",
    "x\n\ny\n",
    "---",
    '"q"',
]
NUMBERS = [0, 1, -7, 1.5, 1e-7, 0.00001, 1e21, 123456789012345678, 2.0, -0.25]


def make_value(chance: random.Random, depth: int = 0) -> Any:
    kinds = ["text", "text", "number", "flag"] + (["list", "map"] if depth < 3 else [])
    kind = chance.choice(kinds)
    if kind == "text":
        return chance.choice(TEXTS)
    if kind == "number":
        return json.loads(text_of(chance.choice(NUMBERS)))
    if kind == "flag":
        return chance.random() < 0.5
    size = chance.randrange(4)
    if kind == "list":
        return [make_value(chance, depth + 1) for _ in range(size)]
    return {f"m{chance.randrange(20)}": make_value(chance, depth + 1) for _ in range(size)}


def make_fields(chance: random.Random) -> dict[str, Any]:
    return {
        chance.choice(["size", "no", "a b", "x.y", "İ", "title"]): make_value(chance)
        for _ in range(chance.randrange(5))
    }


def make_record(chance: random.Random) -> dict[str, Any]:
    status = chance.choice(["draft", "published", "archived", "in_review", "rejected"])
    return {"status": status} | ({"source": "agent", "version": chance.randrange(9)} if chance.random() < 0.5 else {})


def make_random_tree(seed: int) -> FileTree:
    """Return files of models without rules, whose content is anything that JSON can say."""
    chance = random.Random(seed)
    supported = chance.sample(["en", "tr", "de", "pt-BR"], chance.randrange(1, 4))
    files = {
        ".contentrain/config.json": text_of(
            {"locales": {"default": chance.choice(supported), "supported": supported}, "other": make_value(chance)}
        )
    }
    default = json.loads(files[".contentrain/config.json"])["locales"]["default"]
    for number, kind in enumerate(["collection", "singleton", "dictionary", "document"] * 2):
        translated = number < 4
        model = {"domain": chance.choice(["a", "b-c"]), "i18n": translated, "id": f"m{number}", "kind": kind}
        if kind != "dictionary":
            model["fields"] = {"plain": {"order": 1.5, "type": "string"}}
        if chance.random() < 0.3:
            model["content_path"] = f"src/content-{number}"
        strategy = chance.choice(["file", "suffix", "directory"])
        if chance.random() < 0.5:
            model["locale_strategy"] = strategy
        else:
            strategy = "file"
        files[f".contentrain/models/m{number}.json"] = text_of(model)
        folder = model.get("content_path") or f".contentrain/content/{model['domain']}/{model['id']}"
        for locale in supported if translated else ["data"]:
            record_name = locale if translated else default
            if chance.random() < 0.3:
                continue
            if kind == "document":
                for slug in chance.sample(["first", "second", "third-" + "x" * 50], 2):
                    names = {"file": f"{slug}/{locale}", "suffix": f"{slug}.{locale}", "directory": f"{locale}/{slug}"}
                    name = names[strategy] if translated else slug
                    fields = "".join(
                        f"{key}: {json.dumps(chance.choice(['yes', '1', 'a: b']))}\n" for key in ("other", "title")
                    )
                    body = chance.choice(["", "\nText\n", "\n\n  Indented\n\n\n", "\n---\nno: fields\n---\n"])
                    files[f"{folder}/{name}.md"] = f"---\n{fields}---\n{body}"
                    if chance.random() < 0.6:
                        files[f".contentrain/meta/m{number}/{slug}/{record_name}.json"] = text_of(make_record(chance))
                continue
            names = {"file": locale, "suffix": f"m{number}.{locale}", "directory": f"{locale}/m{number}"}
            path = f"{folder}/{names[strategy] if translated else 'data'}.json"
            if kind == "dictionary":
                files[path] = text_of({f"k.{chance.randrange(9)}": chance.choice(TEXTS) for _ in range(3)})
            elif kind == "singleton":
                files[path] = text_of(make_fields(chance))
            else:
                files[path] = text_of({f"e{chance.randrange(6)}": make_fields(chance) for _ in range(3)})
            names_of_entries = list(json.loads(files[path]))
            if chance.random() < 0.6 and names_of_entries:
                own = make_record(chance)
                records = {name: make_record(chance) for name in names_of_entries}
                files[f".contentrain/meta/m{number}/{record_name}.json"] = text_of(
                    records if kind == "collection" else own
                )
    return files
