"""Hold the input schemas of the studio's tools, as their clients know them."""

from typing import Any

STUDIO_INPUT_SCHEMAS: dict[str, dict[str, Any]] = {
    "list_models": {"type": "object", "properties": {}, "additionalProperties": False},
    "get_content": {
        "type": "object",
        "properties": {
            "model": {"type": "string", "description": "model id"},
            "locale": {"type": "string", "description": "defaults to the UI locale"},
        },
        "additionalProperties": False,
        "required": ["model"],
    },
    "save_content": {
        "type": "object",
        "properties": {
            "model": {"type": "string", "description": "model id"},
            "locale": {"type": "string", "description": "defaults to the UI locale"},
            "data": {
                "type": "object",
                "description": "only changed fields; collection: {entryId:{...}}, "
                "singleton: {...}, dictionary: {key:text}",
            },
            "slug": {"type": "string", "description": "document only"},
            "body": {"type": "string", "description": "markdown, document only"},
        },
        "additionalProperties": False,
        "required": ["model", "data"],
    },
    "delete_content": {
        "type": "object",
        "properties": {
            "model": {"type": "string", "description": "model id"},
            "locale": {"type": "string", "description": "defaults to the UI locale"},
            "entryIds": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        },
        "additionalProperties": False,
        "required": ["model", "entryIds"],
    },
    "save_model": {
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "kebab-case", "pattern": "^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$"},
            "name": {"type": "string"},
            "kind": {"type": "string", "enum": ["singleton", "collection", "document", "dictionary"]},
            "domain": {"type": "string"},
            "i18n": {"type": "boolean"},
            "description": {"type": "string"},
            "fields": {
                "type": "object",
                "description": "field id -> definition "
                "{type,required,unique,min,max,pattern,options,model,items,fields,default,accept,description}",
            },
        },
        "additionalProperties": False,
        "required": ["id", "name", "kind", "domain"],
    },
    "validate": {
        "type": "object",
        "properties": {"model": {"type": "string"}, "locale": {"type": "string"}},
        "additionalProperties": False,
    },
    "list_branches": {"type": "object", "properties": {}, "additionalProperties": False},
    "merge_branch": {
        "type": "object",
        "properties": {"branch": {"type": "string", "description": "cr/...", "pattern": "^cr/"}},
        "additionalProperties": False,
        "required": ["branch"],
    },
    "reject_branch": {
        "type": "object",
        "properties": {"branch": {"type": "string", "pattern": "^cr/"}},
        "additionalProperties": False,
        "required": ["branch"],
    },
    "init_project": {
        "type": "object",
        "properties": {
            "stack": {"type": "string"},
            "locales": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "domains": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "models": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "string"},
                        "name": {"type": "string"},
                        "kind": {"type": "string", "enum": ["singleton", "collection", "document", "dictionary"]},
                        "domain": {"type": "string"},
                        "i18n": {"type": "boolean"},
                        "fields": {
                            "type": "object",
                            "description": "field id -> "
                            "definition "
                            "{type,required,unique,min,max,pattern,options,model,items,fields,default,accept,description}",
                        },
                    },
                    "required": ["id", "name", "kind", "domain"],
                },
            },
        },
        "additionalProperties": False,
        "required": ["stack", "locales", "domains"],
    },
    "copy_locale": {
        "type": "object",
        "properties": {"model": {"type": "string"}, "from": {"type": "string"}, "to": {"type": "string"}},
        "additionalProperties": False,
        "required": ["model", "from", "to"],
    },
    "brain_query": {
        "type": "object",
        "properties": {
            "model": {"type": "string", "description": "model id"},
            "locale": {"type": "string", "description": "defaults to the UI locale"},
            "entryId": {"type": "string"},
        },
        "additionalProperties": False,
        "required": ["model"],
    },
    "brain_search": {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "model": {"type": "string"},
            "limit": {"type": "integer", "default": 10, "minimum": 1, "maximum": 50},
        },
        "additionalProperties": False,
        "required": ["query"],
    },
    "search_media": {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "type": {"type": "string", "description": "MIME prefix"},
            "limit": {"type": "integer", "default": 10, "minimum": 1, "maximum": 20},
        },
        "additionalProperties": False,
    },
    "upload_media": {
        "type": "object",
        "properties": {
            "url": {"type": "string", "format": "uri"},
            "alt": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "variants": {
                "type": "string",
                "description": "preset",
                "enum": ["hero-image", "avatar", "gallery", "icon", "logo"],
            },
        },
        "additionalProperties": False,
        "required": ["url"],
    },
    "get_media": {
        "type": "object",
        "properties": {"assetId": {"type": "string"}},
        "additionalProperties": False,
        "required": ["assetId"],
    },
    "update_status": {
        "type": "object",
        "properties": {
            "model": {"type": "string"},
            "locale": {"type": "string"},
            "entryIds": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "status": {"type": "string", "enum": ["draft", "published", "archived"]},
        },
        "additionalProperties": False,
        "required": ["model", "entryIds", "status"],
    },
    "update_media": {
        "type": "object",
        "properties": {
            "assetId": {"type": "string"},
            "alt": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "focalPoint": {
                "type": "object",
                "properties": {
                    "x": {"type": "number", "minimum": 0, "maximum": 1},
                    "y": {"type": "number", "minimum": 0, "maximum": 1},
                },
                "required": ["x", "y"],
            },
        },
        "additionalProperties": False,
        "required": ["assetId"],
    },
    "delete_media": {
        "type": "object",
        "properties": {"assetId": {"type": "string"}},
        "additionalProperties": False,
        "required": ["assetId"],
    },
    "branch_health": {"type": "object", "properties": {}, "additionalProperties": False},
    "relation_expand": {
        "type": "object",
        "properties": {
            "model": {"type": "string"},
            "entryId": {"type": "string", "description": "id, or slug for documents"},
            "locale": {"type": "string"},
            "direction": {"type": "string", "enum": ["forward", "reverse", "both"], "default": "both"},
            "depth": {"type": "integer", "default": 1, "minimum": 1, "maximum": 2},
        },
        "additionalProperties": False,
        "required": ["model", "entryId"],
    },
    "vocabulary": {
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["read", "update"], "default": "read"},
            "terms": {
                "type": "object",
                "description": "term slug -> {locale:text}, null removes the term",
                "additionalProperties": {
                    "anyOf": [{"type": "object", "additionalProperties": {"type": "string"}}, {"type": "null"}]
                },
            },
        },
        "additionalProperties": False,
    },
    "add_locale": {
        "type": "object",
        "properties": {
            "locale": {"type": "string", "pattern": "^[a-z]{2}(?:-[A-Z]{2})?$"},
            "copyFrom": {"type": "string", "description": "optional source locale"},
        },
        "additionalProperties": False,
        "required": ["locale"],
    },
    "delete_model": {
        "type": "object",
        "properties": {"model": {"type": "string"}, "confirm": {"type": "boolean", "description": "must be true"}},
        "additionalProperties": False,
        "required": ["model"],
    },
    "brain_analyze": {
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": ["seo_audit", "locale_parity", "stale_content", "quality_score", "full"]}
        },
        "additionalProperties": False,
        "required": ["type"],
    },
    "validate_schema": {"type": "object", "properties": {}, "additionalProperties": False},
    "list_submissions": {
        "type": "object",
        "properties": {
            "modelId": {"type": "string"},
            "status": {"type": "string", "enum": ["pending", "approved", "rejected", "spam"], "default": "pending"},
            "limit": {"type": "integer", "default": 20, "minimum": 1, "maximum": 100},
        },
        "additionalProperties": False,
        "required": ["modelId"],
    },
    "approve_submission": {
        "type": "object",
        "properties": {"submissionId": {"type": "string"}},
        "additionalProperties": False,
        "required": ["submissionId"],
    },
    "reject_submission": {
        "type": "object",
        "properties": {"submissionId": {"type": "string"}},
        "additionalProperties": False,
        "required": ["submissionId"],
    },
}
