"""The OpenAPI document, generated from the operations and their models."""
