"""The site editor's tools: what they take, what they are for, and how the catalogue is read from the snapshot."""
