"""Tell the style sheets of the site from those that come with a library."""

import re

from fermata_client.html.tags import name_set

VENDOR_FOLDERS = name_set(
    "vendor vendors node_modules bower_components lib libs third-party third_party thirdparty external plugins packages"
)
LIBRARY_NAMES = name_set(
    "vendor vendors plugin plugins bootstrap bootstrap-grid bootstrap-reboot normalize reset sanitize modern- "
    "normalize font-awesome fontawesome bulma foundation materialize swiper slick animate aos leaflet prism "
    "highlight katex jquery jquery-ui owl.carousel lightbox glightbox fancybox magnific-popup photoswipe select2 "
    "choices flatpickr pico milligram skeleton uikit semantic ionicons boxicons bootstrap-icons remixicon "
    "flaticon themify simple-line-icons line-awesome nice-select odometer venobox owl.theme owl.theme.default "
    "slick-theme icofont lineicons bootstrap-select bootstrap-datepicker splide flickity nprogress toastr "
    "sweetalert2 datatables fullcalendar quill tinymce water mvp purecss wow plyr video-js"
)
MAX_LINE_BYTES = 2_000
"""A longer line is in a sheet that a program has written."""

_VERSION_OR_BUILD = re.compile(r"[.-](?:min|bundle|all|core|pkgd)(?=[.-]|$)|[-.@]v?\d[\d.]*")
_LICENSE = re.compile(rb"\s*(?:@charset[^;]*;\s*)?/\*!")


def is_vendor_sheet(path: str, content: bytes) -> bool:
    """Return whether a linked style sheet belongs to a library, judged by folder, name, license comment and layout."""
    *folders, name = path.lower().split("/")
    stem = _VERSION_OR_BUILD.sub("", name.removesuffix(".css"))
    return (
        not VENDOR_FOLDERS.isdisjoint(folders)
        or ".min." in name
        or stem in LIBRARY_NAMES
        or _LICENSE.match(content) is not None
        or any(len(line) > MAX_LINE_BYTES for line in content.split(b"\n"))
    )
