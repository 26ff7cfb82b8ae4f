"""The HTTP API: requests and responses, authentication, operations, the OpenAPI document, and renderers of events."""
