"""What the deepgram-sdk package for Python does, called as its documentation calls it."""

import os
import threading
import time

from deepgram import DeepgramClient
from deepgram.core.api_error import ApiError
from deepgram.core.events import EventType
from deepgram.environment import DeepgramClientEnvironment
from deepgram.speak.v1.types import SpeakV1Text
from websockets.exceptions import InvalidStatus

from sound import pieces

EDGE = os.environ["EDGE"]
SOCKET = EDGE.replace("http", "ws", 1)
MODEL = "reference-en"
place = DeepgramClientEnvironment(base=EDGE, production=SOCKET, agent=SOCKET, agent_rest=EDGE)
client = DeepgramClient(api_key=os.environ["TOKEN"], environment=place)


def plain(answer):
    return answer.model_dump() if hasattr(answer, "model_dump") else answer


def transcribe(file, model=MODEL, **options):
    with open(file, "rb") as clip:
        return plain(client.listen.v1.media.transcribe_file(request=clip.read(), model=model, **options))


def speak(text, **options):
    return b"".join(client.speak.v1.audio.generate(text=text, **options)).hex()


def speak_live(texts, rate=16000, **options):
    """Speech of each text, flush by flush: types of the messages, and the samples."""
    messages, sound = [], []

    def note(message):
        if isinstance(message, bytes):
            sound.append(message)
        else:
            messages.append(plain(message))

    with client.speak.v1.connect(encoding="linear16", sample_rate=rate, **options) as connection:
        connection.on(EventType.MESSAGE, note)
        listening = threading.Thread(target=connection.start_listening, daemon=True)
        listening.start()
        for text in texts:
            connection.send_text(SpeakV1Text(type="Speak", text=text))
            connection.send_flush()
        connection.send_close()
        listening.join(30)
    return {"types": [message["type"] for message in messages], "sound": b"".join(sound).hex()}


def projects():
    return plain(client.manage.v1.projects.list())


def grant():
    return plain(client.auth.v1.tokens.grant(ttl_seconds=60))


def refused(what):
    wrong = DeepgramClient(api_key="x.y.z", environment=place)
    calls = {
        "a wrong token": lambda: wrong.listen.v1.media.transcribe_file(request=b"RIFF", model=MODEL),
        "an unknown model": lambda: client.listen.v1.media.transcribe_file(request=b"RIFF", model="nobody"),
    }
    try:
        calls[what]()
    except ApiError as error:
        return {"status": error.status_code, "body": plain(error.body)}
    return None


def listen(file, token=None, rate=16000, between=None, **options):
    """A recording sent live; every message that came, and how it ended. Calls `between` after half of it."""
    own = DeepgramClient(access_token=token, environment=place) if token else client
    messages, errors = [], []
    options = {"encoding": "linear16", "sample_rate": rate, "interim_results": True, **options}
    with own.listen.v1.connect(model=MODEL, **options) as connection:
        connection.on(EventType.MESSAGE, lambda message: messages.append(plain(message)))
        connection.on(EventType.ERROR, lambda error: errors.append(str(error)))
        listening = threading.Thread(target=connection.start_listening, daemon=True)
        listening.start()
        sound = list(pieces(file, rate))
        for at, piece in enumerate(sound):
            if between and at == len(sound) // 2:
                between()
            connection.send_media(piece)
        connection.send_keep_alive()
        connection.send_finalize()
        connection.send_close_stream()
        listening.join(timeout=20)
    return {"messages": messages, "errors": errors, "ended": not listening.is_alive()}


def listen_beside(file, other):
    """Two callers of one client object: the second connects again and again until the first was silent for a second."""
    second = []

    def speak():
        began = silent = time.monotonic()
        while silent - began < 1:
            silent = time.monotonic()
            second.append(listen(other))

    return [listen(file, between=speak), *second]


def listen_refused():
    wrong = DeepgramClient(api_key="x.y.z", environment=place)
    try:
        with wrong.listen.v1.connect(model=MODEL):
            pass
    except InvalidStatus as error:
        return {"status": error.response.status_code, "error": error.response.headers.get("dg-error")}
    return None
