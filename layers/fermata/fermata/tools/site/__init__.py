"""Tools of the site editor, and the data about a site that the server-side ones answer with."""
