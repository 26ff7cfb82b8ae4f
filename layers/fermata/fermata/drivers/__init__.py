"""Send requests to model providers and read their streams."""
