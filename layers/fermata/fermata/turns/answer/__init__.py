"""Accept the results of tool calls that a browser has run."""
