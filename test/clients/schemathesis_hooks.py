"""What schemathesis cannot generate: recordings, and texts of half a megabyte."""

import io
import wave

import schemathesis
from hypothesis import strategies

RATE = 16_000


def silence() -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as recording:
        recording.setnchannels(1)
        recording.setsampwidth(2)
        recording.setframerate(RATE)
        recording.writeframes(bytes(2 * RATE // 10))
    return file.getvalue()


# A tenth of a second of silence stands for every recording. The edge reads the file and not its type.
TYPES = ["audio/wav", "audio/flac", "audio/mpeg", "audio/ogg"]
schemathesis.openapi.media_type(TYPES[0], strategies.just(silence()), aliases=TYPES[1:])

# Generating a text of this length against its pattern takes half a minute; tests of the edge show the bound.
LONG = 100_000


@schemathesis.hook
def before_load_schema(context, raw_schema):
    drop_long_bounds(raw_schema)


def drop_long_bounds(schema) -> None:
    if isinstance(schema, dict):
        if isinstance(schema.get("maxLength"), int) and schema["maxLength"] >= LONG:
            del schema["maxLength"]
        for value in schema.values():
            drop_long_bounds(value)
    elif isinstance(schema, list):
        for value in schema:
            drop_long_bounds(value)
