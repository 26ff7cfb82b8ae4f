"""Media beside plain images: what is stored of an AVIF, an SVG, a PDF and a video, and which files are refused."""

import struct
from io import BytesIO
from urllib.parse import parse_qs, urlsplit

import pytest
from PIL import Image

from fermata.aws.resources import Resources
from fermata.content.content_model import DEFINITION_LOCALE
from fermata.content.content_space import SpaceKey
from fermata.content.documents.change_document import update_document
from fermata.content.documents.document import DocumentVersion
from fermata.content.media.asset_files import list_asset_files
from fermata.content.media.asset_store import AssetTexts, fetch_asset_file, presign_asset_file, store_asset
from fermata.content.media.avif_header import check_avif_header
from fermata.content.media.blurhash import compute_blurhash
from fermata.content.media.clean_svg import clean_svg
from fermata.content.media.media_kind import MAX_MEDIA_BYTES, detect_media_type
from fermata.content.media.media_room import count_media_bytes
from fermata.content.media.redraw_image import redraw_image
from fermata.content.media.svg_parts import SvgParts
from fermata.content.media.variant_presets import MEDIA_PRESETS, FocalPoint, draw_preset
from fermata.content.working_documents import WorkingDocuments
from fermata.domain.check_image_header import ImageTooLargeError, InvalidImageError
from fermata.domain.errors import InvalidRequest, PayloadTooLarge
from tests.images import make_image, open_image
from tests.unit.content.conftest import ADA

SVG_START = (
    '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="40" height="30px">'
)
PDF = b"%PDF-1.7\n1 0 obj\n<< /OpenAction << /S /JavaScript /JS (app.alert(1)) >> >>\nendobj\n%%EOF\n"


def make_box(kind: bytes, content: bytes = b"") -> bytes:
    return struct.pack(">I", 8 + len(content)) + kind + content


MP4 = make_box(b"ftyp", b"isom" + bytes(4) + b"mp42") + make_box(b"moov") + make_box(b"mdat", b"frames")
WEBM = b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\x82\x84webm" + bytes(20)


def make_svg(inside: str) -> bytes:
    return f"{SVG_START}{inside}</svg>".encode()


def store_file(resources: Resources, space: SpaceKey, raw: bytes, name: str = "file") -> DocumentVersion:
    return store_asset(WorkingDocuments(resources, space, ADA), raw, AssetTexts(name)).version


def read_shared_fields(version: DocumentVersion) -> dict[str, object]:
    assert version.content is not None
    return dict(version.content.get_locale(DEFINITION_LOCALE))


@pytest.mark.parametrize(
    ("raw", "media_type"),
    [
        (make_image(kind="AVIF"), "image/avif"),
        (make_svg(""), "image/svg+xml"),
        (b"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- drawn -->" + make_svg(""), "image/svg+xml"),
        (PDF, "application/pdf"),
        (b"\xef\xbb\xbf\r\n" + PDF, "application/pdf"),
        (MP4, "video/mp4"),
        (MP4.replace(b"isom", b"MSNV"), "video/mp4"),
        (WEBM, "video/webm"),
    ],
)
def test_a_file_is_known_by_its_bytes(raw: bytes, media_type: str) -> None:
    assert detect_media_type(raw) == media_type


@pytest.mark.parametrize(
    "raw",
    [
        b"<!doctype html><svg xmlns='http://www.w3.org/2000/svg'/>",
        make_box(b"ftyp", b"heic" + bytes(4) + b"mif1"),
        make_box(b"ftyp", b"qt  " + bytes(4)) + make_box(b"moov"),
        WEBM.replace(b"webm", b"mkv1"),
        MP4.replace(b"moov", b"free"),
        PDF.replace(b"%%EOF", b""),
        b"<!doctype html><script>alert(1)</script>" + PDF,
        b"MZ" + bytes(100),
    ],
    ids=["html", "heic", "quicktime", "matroska", "cut video", "cut pdf", "html before a pdf", "program"],
)
def test_what_is_no_kind_of_media_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidImageError):
        detect_media_type(raw)


def test_a_file_of_too_many_parts_is_refused_and_costs_as_much_as_it_is_long() -> None:
    with pytest.raises(InvalidImageError, match="parts"):
        detect_media_type(make_box(b"ftyp", b"isom" + bytes(4)) + make_box(b"free") * 10_001)


def test_an_avif_is_drawn_anew_in_all_sizes_with_a_blurhash(resources: Resources, space: SpaceKey) -> None:
    stored = store_file(resources, space, make_image(700, 30, "AVIF", mode="RGBA"), "bread.avif")
    fields = read_shared_fields(stored)
    assert [file["name"] for file in list_asset_files(stored.content)] == ["original", "small", "thumbnail"]
    assert (fields["mediaType"], fields["format"], fields["width"], fields["source"]) == (
        "image/webp", "webp", 700, "upload",
    )  # fmt: skip
    assert len(str(fields["blurhash"])) == 28
    _, data = fetch_asset_file(resources, space, stored)
    assert open_image(data).size == (700, 30)


def test_an_avif_whose_frames_are_larger_than_its_boxes_say_is_refused_before_it_is_decoded(
    resources: Resources, space: SpaceKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fermata.content.media.redraw_image.decode_image", None)
    bomb = BytesIO()
    Image.new("L", (2100, 2000)).save(bomb, "AVIF", speed=10)
    for said, width, height in ((bomb.getvalue(), 2100, 2000), (make_image(kind="AVIF"), 40, 30)):
        forged = said.replace(struct.pack(">II", width, height), struct.pack(">II", 3, 2))
        assert forged != said
        if width > 40:
            with pytest.raises(PayloadTooLarge, match="2,100 by 2,000 pixels"):
                store_file(resources, space, forged)
        else:
            assert check_avif_header(forged)[1:] == (width, height), "the frames count, not the boxes"


def test_an_avif_that_moves_or_is_cut_off_is_refused() -> None:
    moving = BytesIO()
    frames = [Image.new("RGB", (20, 20), color) for color in ("red", "blue")]
    frames[0].save(moving, "AVIF", save_all=True, append_images=frames[1:])
    with pytest.raises(InvalidImageError, match="moves"):
        check_avif_header(moving.getvalue())
    whole = make_image(kind="AVIF")
    for length in range(0, len(whole), 9):
        with pytest.raises(InvalidImageError):
            redraw_image(whole[:length])


def make_avif(kind: bytes, content: bytes) -> bytes:
    """Make an AVIF of one item, in boxes that say 30 by 20 pixels."""
    entry = make_box(b"infe", struct.pack(">IHH", 2 << 24, 1, 0) + kind + b"\0")
    boxes = (
        make_box(b"iinf", struct.pack(">IH", 0, 1) + entry),
        # version 1, with sizes of 4 bytes; one item in `idat`, of one part
        make_box(b"iloc", struct.pack(">IBBHHHHHII", 1 << 24, 0x44, 0, 1, 1, 1, 0, 1, 0, len(content))),
        make_box(b"idat", content),
        make_box(b"iprp", make_box(b"ipco", make_box(b"ispe", struct.pack(">III", 0, 30, 20)))),
    )
    return make_box(b"ftyp", b"avif" + bytes(4)) + make_box(b"meta", bytes(4) + b"".join(boxes))


@pytest.mark.parametrize("flags", [1, 3, 255])
def test_a_grid_of_an_avif_counts_with_all_its_pixels_whatever_its_flags_say(flags: int) -> None:
    grid = struct.pack(">BBBBII", 0, flags, 1, 1, 9_000, 9_000)
    with pytest.raises(ImageTooLargeError, match="9,000 by 9,000"):
        check_avif_header(make_avif(b"grid", grid))


@pytest.mark.parametrize(("size_bits", "is_taken"), [(5, True), (16, False)])
def test_a_frame_of_an_avif_that_may_say_a_larger_size_than_its_sequence_counts_with_that(
    size_bits: int, is_taken: bool
) -> None:
    """Decoders take what a frame says behind a header that is not reduced, if the bits of a size have room for it."""
    header = f"0001{0:025b}{size_bits - 1:04b}{size_bits - 1:04b}{29:0{size_bits}b}{19:0{size_bits}b}"
    sequence = b"\x08" + int(header.ljust(80, "0"), 2).to_bytes(10, "big")
    if is_taken:
        assert check_avif_header(make_avif(b"av01", sequence))[1:] == (30, 20)
    else:
        with pytest.raises(ImageTooLargeError, match="32,768 by 32,768"):
            check_avif_header(make_avif(b"av01", sequence))


@pytest.mark.parametrize(
    "inside",
    [
        "<script>alert(1)</script>",
        '<rect onclick="alert(1)"/>',
        '<a href="javascript:alert(1)"><rect/></a>',
        '<image href="https://elsewhere.example/x.png"/>',
        '<use xlink:href="https://elsewhere.example/x.svg#a"/>',
        '<rect fill="url(https://elsewhere.example/x)"/>',
        '<rect style="fill:u\\72l(//elsewhere.example/x)"/>',
        "<rect style=\"background:image-set('//elsewhere.example/x' 1x)\"/>",
        "<style>@import '//elsewhere.example/x'</style>",
        '<foreignObject><p xmlns="http://www.w3.org/1999/xhtml"><img src="//elsewhere.example"/></p></foreignObject>',
        '<set attributeName="href" to="javascript:alert(1)"/>',
        '<html:script xmlns:html="http://www.w3.org/1999/xhtml">alert(1)</html:script>',
        '<?xml-stylesheet href="//elsewhere.example/x.css"?>',
        "<metadata>Ada, Camera alert(1)</metadata><!-- alert(1) -->",
        """<g xmlns:z='aria-x="1"' z:onclick="alert`1`"/>""",
        """<g xmlns:z='aria-x="1"&gt;&lt;script&gt;alert`1`&lt;/script&gt;&lt;g' z:id="a"/>""",
        "<style>/* */@/**/import '//elsewhere.example/x'</style>",
        "<style>a{fill:ur/* */l(//elsewhere.example/x)}</style>",
        "<style>a{fill:red} /* alert</style>",
        "<style>@media screen{a{fill:red}}@import '//elsewhere.example/x'</style>",
        "<style>@@mediaimport '//elsewhere.example/x'</style>",
        "<style>@media screen{a{fill:url(//elsewhere.example/x)}}</style>",
    ],
)
def test_an_svg_keeps_nothing_that_runs_or_is_fetched(inside: str) -> None:
    cleaned = clean_svg(make_svg(inside)).data.decode()
    for word in ("alert", "elsewhere", "script", "import", "Camera", "foreignObject", "onclick"):
        assert word not in cleaned


def test_an_svg_keeps_its_drawing() -> None:
    inside = (
        '<defs><linearGradient id="g"><stop offset="0" stop-color="#fff"/></linearGradient></defs>'
        '<style>.b{fill:url(#g)}</style><g transform="translate(1 2)"><path class="b" d="M0 0L9 9Z"/>'
        '<use href="#g" style="fill:rgb(1, 2, 3)"/><a><text>Rye &amp; spelt &lt;</text></a></g>'
    )
    drawing = clean_svg(make_svg(inside))
    again = clean_svg(drawing.data)
    assert again == drawing, "what is clean stays as it is"
    assert (drawing.width, drawing.height) == (40, 30)
    for part in ('<stop offset="0" stop-color="#fff">', ".b{fill:url(#g)}", 'd="M0 0L9 9Z"', "Rye &amp; spelt &lt;"):
        assert part in drawing.data.decode()


def test_a_style_keeps_what_is_beside_its_comments() -> None:
    inside = "<style><![CDATA[/* <![CDATA[ */.a{fill:red}/*/ one /* two */.b>c{fill:url(#g)}/**/]]></style>"
    kept = clean_svg(make_svg(inside)).data.decode()
    assert ".a{fill:red}" in kept
    assert ".b&gt;c{fill:url(#g)}" in kept
    assert not any(word in kept for word in ("/*", "*/", "one", "two"))


def test_a_style_keeps_its_rules_for_dark_pages() -> None:
    style = "<style>#a{fill:black}@media (prefers-color-scheme: dark){#a{fill:white}}@media(max-width:9px){}</style>"
    assert style in clean_svg(make_svg(style)).data.decode()


@pytest.mark.parametrize("encoding", ["utf-7", "shift_jis", "hex", "idna", "no-such-one"])
def test_an_svg_in_an_encoding_that_is_not_read_is_refused(encoding: str) -> None:
    with pytest.raises(InvalidImageError, match="save it in UTF-8"):
        clean_svg(f'<?xml version="1.0" encoding="{encoding}"?>'.encode() + make_svg("<title>+ADw-script+AD4-</title>"))


def test_an_svg_in_an_old_encoding_is_written_in_utf_8() -> None:
    raw = '<?xml version="1.0" encoding="windows-1254"?>' + make_svg("<title>şeker</title>").decode()
    assert "<title>şeker</title>" in clean_svg(raw.encode("cp1254")).data.decode()


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b'<!DOCTYPE svg [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>' + make_svg("<text>&b;</text>"), "entities"),
        (b'<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + make_svg("<text>&x;</text>"), "entities"),
        (make_svg("<text>&x;</text>"), "damaged"),
        (b"<svg/>", "namespace"),
        (make_svg("<g>" * 120 + "</g>" * 120), "deeper"),
        (make_svg("<g/>" * 20_001), "parts"),
        (make_svg('<g id="a"><use href="#a"/></g>'), "too often"),
        (
            make_svg("".join(f'<g id="a{n}">' + f'<use href="#a{n + 1}"/>' * 10 + "</g>" for n in range(6))),
            "too often",
        ),
    ],
    ids=["laughs", "external entity", "unknown entity", "no namespace", "deep", "many", "circle", "laughs by use"],
)
def test_an_svg_that_grows_is_refused(raw: bytes, error: str) -> None:
    with pytest.raises(InvalidImageError, match=error):
        clean_svg(raw)


def nest_patterns(attribute: str, element: str, depth: int = 6, count: int = 10) -> str:
    """Return parts of a file, each of which draws the next ten times."""
    rects = "".join(
        f'<{element} id="a{n}">' + f'<rect {attribute}="url(#a{n + 1})"/>' * count + f"</{element}>"
        for n in range(depth)
    )
    return f'<defs>{rects}</defs><rect {attribute}="url(#a0)"/>'


GROWING = {
    "patterns": nest_patterns("fill", "pattern"),
    "strokes": nest_patterns("stroke", "pattern"),
    "masks": nest_patterns("mask", "mask"),
    "clip paths": nest_patterns("clip-path", "clipPath"),
    "markers": nest_patterns("marker-start", "marker"),
    "filters": nest_patterns("filter", "filter"),
    "itself": '<pattern id="a"><rect fill="url(#a)"/></pattern>',
    "each other": '<mask id="a"><g mask="url(#b)"/></mask><mask id="b"><g mask="URL( \'#a\' )"/></mask>',
    "by href": '<pattern id="a" href="#b"/><pattern id="b" href="#a"/>',
    "styles": "<style>.a,g>.b:not(.c){stroke:red;fill:url(#p)}</style>"
    + '<pattern id="p"><rect class="x b"/></pattern>',
    "dark pages": "<style>@media print{rect{mask:url(#p)}}</style>" + '<mask id="p"><rect/></mask>',
    "style attributes": '<pattern id="p"><g style="stroke:red; fill : url(#p) none"/></pattern>',
    "variables": '<pattern id="p"><g style="--a:url(#p);fill:var(--a)"/></pattern>',
    "inherited fills": '<pattern id="p">' + "<rect/>" * 400 + '</pattern><g fill="url(#p)">' + "<rect/>" * 400 + "</g>",
    "fills of uses": '<pattern id="p">' + "<rect/>" * 400 + '</pattern><g id="t">' + "<rect/>" * 400 + "</g>"
    '<use href="#t" fill="url(#p)"/>',
    "inherited masks": '<mask id="p">' + "<rect/>" * 400 + '</mask><g mask="url(#p)">'
    + '<rect mask="inherit"/>' * 400 + "</g>",
    "points": '<marker id="m">' + "<rect/>" * 400 + '</marker><path marker-mid="url(#m)" d="M' + "1 2 " * 400 + '"/>',
    "long paths": '<path id="p" d="M' + "1 2 " * 2_500 + '"/>' + '<use href="#p"/>' * 1_100,
    "rules in rules": "<style>.a{.b{fill:red}mask:url(#p)}</style>" + '<mask id="p"><rect/></mask>',
    "letters": '<text id="t" xml:space="preserve">' + "a " * 500 + "</text>" + '<use href="#t"/>' * 100,
    "closed points": '<marker id="m">' + "<rect/>" * 400 + '</marker><path marker-mid="url(#m)" d="M0 0' + "z" * 400
    + '"/>',
    "fills of markers": '<pattern id="p">' + "<rect/>" * 60 + '</pattern><marker id="m">'
    + '<rect fill="context-fill"/>' * 60 + '</marker><path fill="url(#p)" marker-mid="url(#m)" d="M'
    + "1 2 " * 60 + '"/>',
    "many masks": "".join(f'<mask id="m{n}" mask="url(#m{n + 1})"><rect/></mask>' for n in range(240)),
    "many classes": "".join(
        f'<style>.c{n}{{mask:url(#m{n + 1})}}</style><mask id="m{n}"><rect class="c{n}"/></mask>' for n in range(120)
    ),
}  # fmt: skip
MASKED_BY_STYLES = [
    ".q:not(.a .b){mask:url(#m)}",
    ".q:not([id='a .b']){mask:url(#m)}",
    "[class='q é .b']{mask:url(#m)}",
    ".é{mask:url(#m)}",
    ".q{mask:url(#m);.b{.c{fill:red}}}",
    ".q{@media print{mask:url(#m)}}",
    ".q{--x:' .b{';mask:url(#m)}",
    ".q{mask:url(#%6D)}",
    ".q{mask:url('#\tm ')}",
    ".q{--e:;--x:var(--e,';') url(#m);mask:var(--x)}",
]


@pytest.mark.parametrize("inside", GROWING.values(), ids=GROWING)
def test_an_svg_whose_parts_draw_each_other_without_end_is_refused(inside: str) -> None:
    with pytest.raises(ImageTooLargeError, match="too often"):
        clean_svg(make_svg(inside))


@pytest.mark.parametrize("style", MASKED_BY_STYLES)
def test_a_style_masks_all_that_browsers_take_it_to_mean(style: str) -> None:
    masked = '<mask id="m">' + "<path/>" * 400 + "</mask>" + '<rect class="q é .b"/>' * 400
    with pytest.raises(ImageTooLargeError, match="too often"):
        clean_svg(make_svg(f"<style>{style}</style>{masked}"))


def test_an_svg_of_a_program_for_drawing_is_kept() -> None:
    """Gradients and clip paths by classes, as programs write them, for some thousand shapes."""
    gradients = "".join(
        f'<linearGradient id="g{n}" href="#g0"><stop offset="0"/><stop offset="1"/></linearGradient>' for n in range(50)
    )
    styles = "".join(f".c{n}{{fill:url(#g{n});clip-path:url(#k)}}" for n in range(50))
    shapes = "".join(f'<g clip-path="url(#k)"><path class="c{n % 50}" d="M0 0L9 9"/></g>' for n in range(3_000))
    arrows = '<marker id="m"><path d="M0 0"/></marker>' + '<path marker-end="url(#m)" d="M0 0L9 9"/>' * 500
    inside = f'<defs><style>{styles}</style>{gradients}<clipPath id="k"><rect/></clipPath></defs>{shapes}{arrows}'
    assert clean_svg(make_svg(inside)).data.count(b"<path") == 3_501


def test_rules_of_a_style_are_measured_once_for_all_elements_that_they_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = list[str]()
    real = SvgParts._measure_targets

    def count(parts: SvgParts, targets: tuple[str, ...], chain: int) -> int:
        measured.extend(one for one in targets if one)
        return real(parts, targets, chain)

    monkeypatch.setattr(SvgParts, "_measure_targets", count)
    rules = "<style>" + ".a{fill:url(#p)}" * 50 + "</style>"
    clean_svg(make_svg(f'{rules}<linearGradient id="p"/>' + '<g class="a a"/>' * 500))
    assert len(measured) == 50


def test_a_document_type_that_names_a_file_elsewhere_is_left_out() -> None:
    doctype = b'<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">'
    assert b"DOCTYPE" not in clean_svg(doctype + make_svg("<g/>")).data


@pytest.mark.parametrize(
    ("raw", "media_type", "is_saved"),
    [
        (make_svg("<rect/>"), "image/svg+xml", True),
        (PDF, "application/pdf", True),
        (MP4, "video/mp4", False),
        (WEBM, "video/webm", False),
        (make_image(), "image/jpeg", False),
    ],
    ids=["svg", "pdf", "mp4", "webm", "jpeg"],
)
def test_what_may_hold_scripts_is_saved_by_who_opens_it(
    resources: Resources, space: SpaceKey, raw: bytes, media_type: str, is_saved: bool
) -> None:
    stored = store_file(resources, space, raw)
    assert read_shared_fields(stored)["mediaType"] == media_type
    query = parse_qs(urlsplit(presign_asset_file(resources, space, stored)).query)
    assert query.get("response-content-disposition", []) == ["attachment"] * is_saved
    file, *_ = files = list_asset_files(stored.content)
    forged = update_document(
        resources,
        space,
        stored.key,
        ADA,
        lambda content: content.with_fields(
            DEFINITION_LOCALE,
            {"files": [{**file, "name": name, "mediaType": "text/html"} for name in ("original", "forged")]},
        ),
    ).version
    assert list_asset_files(forged.content)[: len(files)] == files, "What was stored is not written anew."
    assert "attachment" in presign_asset_file(resources, space, forged, "forged"), "whatever people write into it"


def test_a_video_is_stored_as_it_is_counts_and_is_stored_once(resources: Resources, space: SpaceKey) -> None:
    first = store_file(resources, space, MP4, "loaf.mp4")
    assert fetch_asset_file(resources, space, first, "thumbnail") == ("video/mp4", MP4)
    assert "width" not in read_shared_fields(first)
    assert store_file(resources, space, MP4).id == first.id
    assert count_media_bytes(resources, space.tenant) == len(MP4)


def test_a_preset_of_what_is_not_made_of_pixels_adds_nothing(resources: Resources, space: SpaceKey) -> None:
    documents = WorkingDocuments(resources, space, ADA)
    for preset in ("", "avatar"):
        stored = store_asset(documents, PDF, AssetTexts("menu.pdf"), preset=preset)
        assert [file["name"] for file in list_asset_files(stored.version.content)] == ["original"]


@pytest.mark.parametrize(
    ("raw", "media_type"), [(make_svg(""), "image/svg+xml"), (PDF, "application/pdf")], ids=["svg", "pdf"]
)
def test_a_file_that_is_too_large_for_its_kind_says_how_large_it_may_be(
    resources: Resources, space: SpaceKey, monkeypatch: pytest.MonkeyPatch, raw: bytes, media_type: str
) -> None:
    monkeypatch.setitem(MAX_MEDIA_BYTES, media_type, 20)
    with pytest.raises(PayloadTooLarge, match="at most 20 are taken"):
        store_file(resources, space, raw)


def test_a_hostile_svg_leaves_nothing(resources: Resources, space: SpaceKey) -> None:
    with pytest.raises(InvalidRequest, match="entities"):
        store_file(resources, space, b'<!DOCTYPE svg [<!ENTITY a "b">]>' + make_svg(""))
    assert resources.blobs.list_versions(f"{space.folder}/media") == []


def test_a_blurhash_is_that_of_another_encoder() -> None:
    """The value is that of the package blurhash 1.1.5 for the same pixels."""
    waves = [Image.linear_gradient("L"), Image.radial_gradient("L"), Image.new("L", (256, 256), 80)]
    image = Image.merge("RGB", [wave.resize((640, 480)) for wave in waves])
    assert compute_blurhash(image) == "LyHV2uoeg]ox2rWpfjW:yQj@fjj@"


def test_a_cut_keeps_the_focal_point() -> None:
    raw = make_image(400, 100, "PNG")

    def is_red(focus: FocalPoint) -> bool:
        drawn = open_image(draw_preset(raw, MEDIA_PRESETS["icon"], focus)[0].data)
        return drawn.convert("RGB").getpixel((5, 5)) == (255, 0, 0)

    assert is_red(FocalPoint(0.0, 0.5))
    assert not is_red(FocalPoint.parse({"x": 1, "y": 0.5}))
    assert FocalPoint.parse({"x": 7, "y": "a"}) == FocalPoint.parse(None) == FocalPoint(0.5, 0.5)
