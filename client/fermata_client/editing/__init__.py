"""An editor's tools, carried out on a page and the files beside it."""
