"""The agent that plans the changes of a site's pages."""
