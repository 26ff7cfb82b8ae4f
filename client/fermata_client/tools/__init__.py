"""The browser tools of a site, carried out on an HTML document."""
