"""An HTML page as bytes with positions: read it, find its elements, say where an edit goes."""
