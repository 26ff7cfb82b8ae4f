"""Models of response bodies, for the OpenAPI document (wire/openapi/document.py).

Handlers build their responses without these classes, so that no function has to load them (decision 0026). A model is
in the module of the same name as its operation's. A member whose default is None is left out of a response when it has
no value; one without a default is always there.
"""
