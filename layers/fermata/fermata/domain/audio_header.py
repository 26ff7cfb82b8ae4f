"""Recognize the type of an audio file from its first bytes, whatever it is said to be.

What a file says of its length is not read: a file of a kilobyte can say that it lasts for hours (decision 0500).
"""

AUDIO_MIME_TYPES = ("audio/mpeg", "audio/wav", "audio/mp4", "audio/webm", "audio/ogg")
MAX_AUDIO_BYTES = 10_000_000
"""Of all recordings of a prompt together: the function that takes them has little memory."""
MAX_PROMPT_AUDIO = 4
MAX_TRANSCRIPT_CHARACTERS = 200_000
"""Of all recordings of a prompt together. It is the speech of about four hours."""
MIN_AUDIO_BYTES_PER_SECOND = 1000
"""Speech is hardly ever encoded in less: 8 kbit/s."""
_OTHER_NAMES = {
    "audio/mp3": "audio/mpeg",
    "audio/mpeg3": "audio/mpeg",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "audio/m4a": "audio/mp4",
    "audio/x-m4a": "audio/mp4",
    "audio/opus": "audio/ogg",
    "application/ogg": "audio/ogg",
}
_LAYERS = (1, 2)
"""III and II. The first bytes of layer I are also those of a text in UTF-16."""
_EBML = b"\x1a\x45\xdf\xa3"
_MAX_EBML_HEADER_BYTES = 64


def normalize_audio_type(mime_type: str) -> str:
    """Return the name of AUDIO_MIME_TYPES for a type, without its parameters; another type as it is.

    Args:
        mime_type: As a browser or a server names it, like `audio/webm;codecs=opus`.
    """
    name = mime_type.partition(";")[0].strip().lower()
    return _OTHER_NAMES.get(name, name)


def read_audio_type(data: bytes) -> str | None:
    """Return which of AUDIO_MIME_TYPES the data begins as; None for anything else.

    Args:
        data: The file, or its beginning.
    """
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return "audio/wav"
    if data[:4] == b"OggS":
        return "audio/ogg"
    if data[4:8] == b"ftyp":
        return "audio/mp4"
    if data[:4] == _EBML and b"webm" in data[:_MAX_EBML_HEADER_BYTES]:
        return "audio/webm"
    return "audio/mpeg" if data[:3] == b"ID3" or _begins_mpeg_frame(data) else None


def _begins_mpeg_frame(data: bytes) -> bool:
    """Return whether the data begins with the header of a frame of MPEG audio: eleven set bits, and known values."""
    if len(data) < 4 or data[0] != 0xFF or data[1] & 0xE0 != 0xE0:
        return False
    version, layer = data[1] >> 3 & 3, data[1] >> 1 & 3
    bitrate, rate = data[2] >> 4, data[2] >> 2 & 3
    return version != 1 and layer in _LAYERS and bitrate not in (0, 15) and rate != 3
