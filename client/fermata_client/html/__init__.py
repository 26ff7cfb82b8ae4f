"""HTML as bytes with positions: parse it, sanitize it, and compute the splices of an edit."""
