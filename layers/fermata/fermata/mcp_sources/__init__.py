"""Ask MCP servers: list their tools when a turn starts, call them in its rounds, and end its sessions."""
