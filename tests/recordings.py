"""Beginnings of recordings of each known type. Nothing here decodes audio, so a few bytes are a recording."""

import base64

WAV = b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00" + b"\x00" * 40
MP3 = b"\xff\xfb\x90\x64" + b"\x00" * 60
TAGGED_MP3 = b"ID3\x04\x00\x00\x00\x00\x00\x00" + MP3
OGG = b"OggS\x00\x02" + b"\x00" * 40
WEBM = b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\x82\x84webm" + b"\x00" * 40
M4A = b"\x00\x00\x00\x20ftypM4A \x00\x00\x00\x00" + b"\x00" * 40
RECORDINGS = {
    "audio/wav": WAV,
    "audio/mpeg": MP3,
    "audio/ogg": OGG,
    "audio/webm": WEBM,
    "audio/mp4": M4A,
}


def encode_recording(raw: bytes) -> str:
    """Return a recording as base64."""
    return base64.b64encode(raw).decode()
