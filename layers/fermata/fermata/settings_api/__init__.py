"""Serve the settings of a workspace over HTTP: credentials, keys, connectors, agents, tools, webhooks, erasures."""
