"""Put what is said in the recordings of a prompt into its text, before anything is stored (decision 0500).

A file is sent to a provider once for a conversation: its transcript is kept as long as a prompt may wait, under the
conversation and the digest of the file, in the partition of the user's Idempotency-Keys and in the folder of what
prompts of the conversation bring. Both go when the conversation or the user is erased (decision 0538). The row is there
before the request, so that of two prompts with one file at once the second has to wait.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress

from fermata.aws import uploads
from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Item, ItemKey, Put
from fermata.aws.resources import Resources
from fermata.domain.audio_header import MAX_AUDIO_BYTES, MAX_PROMPT_AUDIO, MAX_TRANSCRIPT_CHARACTERS, read_audio_type
from fermata.domain.blocks import AudioBlock, Block, TextBlock
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, InvalidRequest, PayloadTooLarge, Unprocessable
from fermata.domain.use_limits import CallerLimits
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.audio_transcription import AudioFile
from fermata.limits.count_use import count_upload
from fermata.turns.generate.transcribe_recording import TRANSCRIPTION_SECONDS, Transcriber, transcribe_recording
from fermata.turns.start.idempotency import build_transcript_prefix, idempotency_partition

KEPT_TRANSCRIPT_SECONDS = 8 * 86_400
"""How long a transcript is kept for the same file sent again. A queued prompt starts without the provider."""
_CLAIM_SECONDS = int(TRANSCRIPTION_SECONDS) + 30
NO_SPEECH_MESSAGE = "No speech was recognized in the recording. Record it again, or write what you want."


@value_dataclass(frozen=True)
class PromptTranscripts:
    """Transcribes the recordings of one prompt.

    Attributes:
        scope: As which the ledger lists the requests.
        conversation: The id of the prompt's conversation.
        folder: Where transcripts are kept.
        limits: Each request counts as an upload of these.
        find_transcriber: Returns the model; it is called if there is a recording.
    """

    resources: Resources
    caller: Caller
    scope: str
    conversation: str
    folder: str
    limits: CallerLimits
    find_transcriber: Callable[[], Transcriber]

    def add_to(self, content: Sequence[Block]) -> tuple[Block, ...]:
        """Return the content with the transcripts in its text, and each recording inline.

        Raises:
            InvalidRequest, PayloadTooLarge: A recording cannot be read, or is too large.
            Unprocessable: The model cannot hear, or there is no speech, or too much of it.
            Conflict: The same file is being transcribed for another request.
            ApiError: As `transcribe_recording`, and as `fetch_upload`.
        """
        recordings = [block for block in content if block.kind == "audio"]
        if not recordings:
            return tuple(content)
        if len(recordings) > MAX_PROMPT_AUDIO or sum(map(_get_audio_size, recordings)) > MAX_AUDIO_BYTES:
            raise PayloadTooLarge(
                f"A prompt may have {MAX_PROMPT_AUDIO} recordings with {MAX_AUDIO_BYTES:,} bytes together. Send a "
                "shorter one."
            )
        transcriber = self.find_transcriber()
        files = [self._open(block, number) for number, block in enumerate(recordings, 1)]
        texts = [self._transcribe_once(transcriber, file) for file in files]
        audio = [
            AudioBlock(mime_type=file.mime_type, data=base64.b64encode(file.data).decode(), size=len(file.data))
            for file in files
        ]
        others = [block for block in content if block.kind not in ("audio", "text")]
        written = "\n\n".join(block.text for block in content if block.kind == "text")
        return (TextBlock(text=_join_texts(written, texts)), *others, *audio)

    def _open(self, block: AudioBlock, number: int) -> AudioFile:
        if block.blob:
            upload = uploads.parse_upload_ref(block.blob, "audio")
            data = uploads.fetch_upload(self.resources, self.caller, upload)
        else:
            data = base64.b64decode(block.data or "")
        if read_audio_type(data) != block.mime_type:
            raise InvalidRequest(f"The recording {number} of the prompt does not hold the {block.mime_type} it says.")
        return AudioFile(data, block.mime_type)

    def _transcribe_once(self, transcriber: Transcriber, file: AudioFile) -> str:
        """Return the transcript that is kept of a file, or let it be made."""
        key = self._build_key(transcriber, file)
        row = self.resources.tables.get_item_by_key(key)
        kept = self._read_kept(row)
        if kept is not None:
            return kept
        claim = self._claim(key, row)
        try:
            count_upload(self.resources, self.caller, self.limits, claim["claim"], 0)
            text = transcribe_recording(self.resources, self.caller, self.scope, transcriber, file)
        except BaseException:
            self._replace(key, claim, {**claim, "ttl": 0})
            raise
        self._keep(key, claim, text)
        return text

    def _build_key(self, transcriber: Transcriber, file: AudioFile) -> ItemKey:
        choice = transcriber.choice
        digest = hashlib.sha256(file.data).hexdigest()
        identity = [digest, choice.provider, choice.credential_id, choice.model, dict(transcriber.options)]
        name = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        partition = idempotency_partition(self.caller.tenant, self.caller.user)
        return ItemKey(
            self.resources.settings.bridges_table, partition, build_transcript_prefix(self.conversation) + name
        )

    def _read_kept(self, row: Item | None) -> str | None:
        """Return the transcript of a row; None if it has none, or if the bucket has it no more.

        Raises:
            Conflict: It is being made.
        """
        if row is None or row["ttl"] <= self.resources.clock.time():
            return None
        if "blob" not in row:
            raise Conflict("This recording is being transcribed. Send the same request again.", retry_after=2)
        found = self.resources.blobs.find_json(row["blob"])
        return None if found is None else str(found["transcript"])

    def _claim(self, key: ItemKey, row: Item | None) -> Item:
        """Write that the transcript is being made.

        Raises:
            Conflict: Another request was faster.
        """
        ttl = int(self.resources.clock.time()) + _CLAIM_SECONDS
        item: Item = {"pk": key.pk, "sk": key.sk, "v": 1, "claim": new_id(), "ttl": ttl}
        condition = "claim = :was" if row else "attribute_not_exists(pk)"
        values = {":was": row["claim"]} if row else {}
        try:
            self.resources.tables.write_items(Put(key.table, item, condition=condition, values=values))
        except ConditionFailed:
            raise Conflict("This recording is being transcribed. Send the same request again.", retry_after=2) from None
        return item

    def _keep(self, key: ItemKey, claim: Item, text: str) -> None:
        blob = self.resources.blobs.put_json(self.folder, {"transcript": text})
        ttl = int(self.resources.clock.time()) + KEPT_TRANSCRIPT_SECONDS
        self._replace(key, claim, {**claim, "blob": blob, "ttl": ttl})

    def _replace(self, key: ItemKey, claim: Item, item: Item) -> None:
        put = Put(key.table, item, condition="claim = :claim", values={":claim": claim["claim"]})
        with suppress(ConditionFailed):  # it took so long that another request has taken over
            self.resources.tables.write_items(put)


def _get_audio_size(block: AudioBlock) -> int:
    return uploads.parse_upload_ref(block.blob, "audio").size if block.blob else len(block.data or "") * 3 // 4


def _join_texts(written: str, transcripts: Sequence[str]) -> str:
    """Return what the model reads: a transcript alone is as if it had been typed."""
    if sum(map(len, transcripts)) > MAX_TRANSCRIPT_CHARACTERS:
        raise Unprocessable(
            f"More than {MAX_TRANSCRIPT_CHARACTERS:,} characters are said in the recording. Send a shorter one."
        )
    if not written and not any(transcripts):
        raise Unprocessable(NO_SPEECH_MESSAGE)
    if not written and len(transcripts) == 1:
        return transcripts[0]
    named = [
        f"Transcript of the recording{f' {number}' if len(transcripts) > 1 else ''}:\n\n{text or '(no speech)'}"
        for number, text in enumerate(transcripts, 1)
    ]
    return "\n\n".join(filter(None, (written, *named)))
