"""Tell the style sheets of the site from those that come with a library."""

import re

from fermata_client.html.tags import name_set

VENDOR_FOLDERS = name_set(
    "vendor vendors node_modules bower_components lib libs third-party third_party thirdparty external plugins packages"
)
LIBRARY_NAMES = name_set(
    "vendor vendors plugin plugins bootstrap bootstrap-grid bootstrap-reboot normalize reset sanitize "
    "modern-normalize font-awesome fontawesome bulma foundation materialize swiper slick animate aos leaflet prism "
    "highlight katex jquery jquery-ui owl.carousel lightbox glightbox fancybox magnific-popup photoswipe select2 "
    "choices flatpickr pico milligram skeleton uikit semantic ionicons boxicons bootstrap-icons remixicon "
    "flaticon themify simple-line-icons line-awesome nice-select odometer venobox owl.theme owl.theme.default "
    "slick-theme icofont lineicons bootstrap-select bootstrap-datepicker splide flickity nprogress toastr "
    "sweetalert2 datatables fullcalendar quill tinymce water mvp purecss wow plyr video-js"
)
LIBRARY_WORDS = name_set(
    "vendor vendors bootstrap jquery fontawesome normalize prism swiper codemirror owl slick select2 datatables "
    "leaflet katex fullcalendar tinymce ckeditor fancybox"
)
"""First words of names that a library's further files have, as `prism-okaidia`."""
OWN_WORDS = name_set("custom override overrides own extend extended extensions patch patches fix fixes tweaks")
"""Words in the names of files that change a library for the site, as `bootstrap-overrides`."""
MAX_LINE_BYTES = 2_000
"""A longer line is in a sheet that a program has written."""

_WORD = re.compile(r"[a-z0-9]+")
_VERSION_OR_BUILD = re.compile(r"[.-](?:min|bundle|all|core|pkgd)(?=[.-]|$)|[-.@]v?\d[\d.]*")
_KEPT_COMMENT = re.compile(rb"\s*(?:@charset[^;]*;\s*)?/\*!(?P<text>.*?)\*/", re.DOTALL)
_LICENSE_WORD = re.compile(rb"licen[sc]e|copyright|\(c\)|\xc2\xa9|\bv\d|\d\.\d|https?:|\bMIT\b", re.IGNORECASE)
_SITE_WORD = re.compile(rb"theme name\s*:", re.IGNORECASE)
"""The head of a site's own sheet in a content system."""
_ADDRESS = re.compile(rb"url\([^)]*+(?:\)|\Z)")


def is_vendor_sheet(path: str, content: bytes) -> bool:
    """Return whether a linked style sheet belongs to a library, judged by folder, name, license comment and layout."""
    *folders, name = path.lower().split("/")
    if any(word in OWN_WORDS for word in _WORD.findall(name)):
        return False
    stem = _VERSION_OR_BUILD.sub("", name.removesuffix(".css"))
    return (
        not VENDOR_FOLDERS.isdisjoint(folders)
        or stem in LIBRARY_NAMES
        or any(_first_word(part) in LIBRARY_WORDS for part in (*folders, stem))
        or ".min." in name
        or _has_license(content)
        or any(len(line) > MAX_LINE_BYTES for line in _ADDRESS.sub(b"", content).split(b"\n"))
    )


def _first_word(name: str) -> str:
    return next(iter(_WORD.findall(name)), "")


def _has_license(content: bytes) -> bool:
    """Return whether the first comment is kept in minified files, and says whose the sheet is or which version."""
    comment = _KEPT_COMMENT.match(content)
    return (
        comment is not None
        and _LICENSE_WORD.search(comment["text"]) is not None
        and _SITE_WORD.search(comment["text"]) is None
    )
