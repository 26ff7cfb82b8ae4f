"""HTTP requests from API Gateway or an ASGI server: reading, routing, dispatch, error responses."""
