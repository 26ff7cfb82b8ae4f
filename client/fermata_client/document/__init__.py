"""An HTML page with the style sheets and scripts it loads: in memory, on disk, and as the service sees it."""
