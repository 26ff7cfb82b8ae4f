"""Serve clients of other protocols: the AI SDK's, AG-UI's, OpenAI's, MCP, the CMS agent's own, the studio's."""
