"""What the openai package for Python does, called as its documentation calls it."""

import base64
import os

import openai

from sound import pieces

MODEL = "reference-en"
EDGE = os.environ["EDGE"]
client = openai.OpenAI(
    api_key=os.environ["TOKEN"],
    base_url=f"{EDGE}/v1",
    # The retired interface would make a wss address out of any other.
    websocket_base_url=f"{EDGE.replace('http', 'ws', 1)}/v1",
    max_retries=0,
)


def models():
    return [model.id for model in client.models.list()]


def transcribe(file, model=MODEL, **options):
    with open(file, "rb") as clip:
        answer = client.audio.transcriptions.create(file=clip, model=model, **options)
    return answer if isinstance(answer, str) else answer.model_dump()


def stream(file):
    with open(file, "rb") as clip:
        return [event.model_dump() for event in client.audio.transcriptions.create(file=clip, model=MODEL, stream=True)]


def speak(file, **options):
    """Speech written to a file as it comes."""
    with client.audio.speech.with_streaming_response.create(**options) as answer:
        answer.stream_to_file(file)
        return answer.headers["content-type"]


def refused(what, file):
    wrong = openai.OpenAI(api_key="x.y.z", base_url=client.base_url, max_retries=0)
    calls = {
        "a wrong token": lambda clip: wrong.audio.transcriptions.create(file=clip, model=MODEL),
        "an unknown model": lambda clip: client.audio.transcriptions.create(file=clip, model="nobody"),
        "no audio": lambda _: client.audio.transcriptions.create(file=("a.wav", b"RIFF"), model=MODEL),
    }
    try:
        with open(file, "rb") as clip:
            calls[what](clip)
    except openai.APIStatusError as error:
        return {"kind": type(error).__name__, "status": error.status_code, "code": error.code, "id": error.request_id}
    return None


def listen(connection, words):
    """Events until so many words were heard, or somebody complained."""
    types, items = [], {}
    for event in connection:
        types.append(event.type)
        if event.type == "error":
            return {"types": types, "error": event.error.model_dump()}
        if event.type.endswith("input_audio_transcription.completed"):
            items[event.item_id] = event.transcript
        if sum(len(text.split()) for text in items.values()) >= words:
            break
    return {"types": types, "text": " ".join(text for text in items.values() if text)}


def realtime(file, words):
    with client.realtime.connect(extra_query={"intent": "transcription"}) as connection:
        connection.session.update(
            session={
                "type": "transcription",
                "audio": {
                    "input": {
                        "format": {"type": "audio/pcm", "rate": 24000},
                        "transcription": {"model": MODEL, "language": "en"},
                    }
                },
            }
        )
        for piece in pieces(file, 24000):
            connection.input_audio_buffer.append(audio=base64.b64encode(piece).decode())
        return listen(connection, words)


def realtime_refused(what):
    connect = {
        "a wrong token": lambda: openai.OpenAI(api_key="x.y.z", base_url=client.base_url).realtime.connect(
            extra_query={"intent": "transcription"}
        ),
        "an unknown model": lambda: client.realtime.connect(extra_query={"intent": "transcription", "model": "nobody"}),
    }[what]
    with connect() as connection:
        return listen(connection, 1)
