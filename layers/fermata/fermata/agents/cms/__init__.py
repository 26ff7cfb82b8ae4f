"""Define the agent that works on a content space with the tools of the CMS."""
