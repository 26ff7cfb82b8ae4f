"""JSON Schemas of tool inputs: build them, coerce arguments to them, and describe what does not fit."""
