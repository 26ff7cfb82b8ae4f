"""The node types a document can be built of (the editor calls them modules), as data."""
