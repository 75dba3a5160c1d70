"""What tritonclient does, called as its documentation calls it."""

import os
import wave

import numpy
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

TOKEN = os.environ["TOKEN"]
ADDRESS = os.environ["EDGE"].removeprefix("http://")
MODEL = "reference-en"
STREAMING = "reference-en-stream"

client = http.InferenceServerClient(ADDRESS, concurrency=4)


def own(token=TOKEN):
    """Headers of a call; the client writes into what it is given."""
    return {"Authorization": f"Bearer {token}"}


def health():
    return {
        "live": client.is_server_live(),
        "ready": client.is_server_ready(),
        "model": client.is_model_ready(MODEL, headers=own()),
        "unknown": client.is_model_ready("nobody", headers=own()),
    }


def metadata():
    return {
        "server": client.get_server_metadata(),
        "model": client.get_model_metadata(MODEL, headers=own()),
        "version": client.get_model_metadata(MODEL, "1", headers=own())["name"],
        "config": client.get_model_config(MODEL, headers=own())["name"],
        "stats": client.get_inference_statistics(MODEL, headers=own())["model_stats"][0]["name"],
    }


def sound(file):
    with wave.open(file) as clip:
        samples = numpy.frombuffer(clip.readframes(clip.getnframes()), dtype="<i2")
    return (samples / 32768).astype(numpy.float32)


def tensors(samples, binary):
    audio = http.InferInput("AUDIO", [1, len(samples)], "FP32")
    audio.set_data_from_numpy(samples[None, :], binary_data=binary)
    length = http.InferInput("AUDIO_LENGTH", [1, 1], "INT32")
    length.set_data_from_numpy(numpy.array([[len(samples)]], dtype=numpy.int32), binary_data=binary)
    return [audio, length]


def letters(log_probs, frames):
    """The best letter of each frame, repetitions and blanks left out."""
    best = log_probs[0, : frames[0, 0]].argmax(axis=1)
    table = "_ 'abcdefghijklmnopqrstuvwxyz"
    kept = [now for before, now in zip([-1, *best], best) if now != before and now != 0]
    return "".join(table[token] for token in kept).strip()


def read(result):
    return {
        "text": letters(result.as_numpy("LOG_PROBS"), result.as_numpy("FRAMES")),
        "id": result.get_response().get("id"),
        "model": result.get_response()["model_name"],
    }


def infer(file, binary_in=True, binary_out=True, packed=None, seconds=None, listed=True):
    samples = sound(file)[: None if seconds is None else int(seconds * 16000)]
    outputs = [http.InferRequestedOutput(name, binary_data=binary_out) for name in ("LOG_PROBS", "FRAMES")]
    result = client.infer(
        MODEL,
        tensors(samples, binary_in),
        outputs=outputs if listed else None,
        request_id="r-1",
        priority=1,
        timeout=30_000_000,
        headers=own(),
        request_compression_algorithm=packed,
        response_compression_algorithm=packed,
    )
    return read(result)


def infer_at_once(file, times):
    samples = sound(file)
    asked = [client.async_infer(MODEL, tensors(samples, True), headers=own()) for _ in range(times)]
    return [read(one.get_result())["text"] for one in asked]


def refused(what):
    """Status and message of what the client raises."""
    samples = numpy.zeros(1600, dtype=numpy.float32)
    wrong = http.InferInput("NOBODY", [1, 1], "FP32")
    wrong.set_data_from_numpy(numpy.zeros((1, 1), dtype=numpy.float32))
    small = tensors(samples, True)
    calls = {
        "no token": lambda: client.infer(MODEL, small),
        "a wrong token": lambda: client.infer(MODEL, small, headers={"Authorization": "Bearer x.y.z"}),
        "an unknown model": lambda: client.infer("nobody", small, headers=own()),
        "an unknown version": lambda: client.infer(MODEL, small, "77", headers=own()),
        "a wrong input": lambda: client.infer(MODEL, [wrong], headers=own()),
        "an unknown output": lambda: client.infer(
            MODEL, small, outputs=[http.InferRequestedOutput("NONE")], headers=own()
        ),
        "a classification": lambda: client.infer(
            MODEL, small, outputs=[http.InferRequestedOutput("LOG_PROBS", class_count=2)], headers=own()
        ),
        "a packed answer": lambda: client.infer(
            "nobody", small, headers=own(), response_compression_algorithm="gzip"
        ),
        "loading a model": lambda: client.load_model(MODEL, headers=own()),
        "unloading a model": lambda: client.unload_model(MODEL, headers=own()),
        "the repository": lambda: client.get_model_repository_index(headers=own()),
        "shared memory": lambda: client.register_system_shared_memory("r", "/k", 8, headers=own()),
        "trace settings": lambda: client.get_trace_settings(headers=own()),
        "log settings": lambda: client.get_log_settings(headers=own()),
    }
    try:
        calls[what]()
    except InferenceServerException as error:
        return {"status": error.status(), "message": error.message(), "text": str(error)}
    return None


def step(samples, sequence, start=False, end=False, headers=None):
    return client.infer(
        STREAMING,
        tensors(samples, True),
        sequence_id=sequence,
        sequence_start=start,
        sequence_end=end,
        headers=headers or own(),
    )


def stream(file, sequence, window=5360, hop=5120):
    """A recording, one window after the other, as one sequence; the letters of all its frames."""
    samples = sound(file)
    starts = list(range(0, max(len(samples) - (window - hop), 1), hop))
    rows = []
    for at in starts:
        result = step(samples[at : at + window], sequence, at == 0, at == starts[-1])
        frames = int(result.as_numpy("FRAMES")[0, 0])
        rows.append(result.as_numpy("LOG_PROBS")[0, :frames])
    joined = numpy.concatenate(rows)
    return {"steps": len(starts), "text": letters(joined[None], numpy.array([[len(joined)]]))}


def streams(file, sequences):
    """Steps of several sequences in turn: none hears what another was told."""
    samples = sound(file)
    window, hop = 5360, 5120
    rows = {sequence: [] for sequence in sequences}
    starts = list(range(0, max(len(samples) - (window - hop), 1), hop))
    for at in starts:
        for sequence in sequences:
            result = step(samples[at : at + window], sequence, at == 0, at == starts[-1])
            frames = int(result.as_numpy("FRAMES")[0, 0])
            rows[sequence].append(result.as_numpy("LOG_PROBS")[0, :frames])
    joined = [numpy.concatenate(one) for one in rows.values()]
    return [letters(one[None], numpy.array([[len(one)]])) for one in joined]


def callers(file, tokens, sequence=1):
    """Steps of several callers in turn, all with one sequence id; the letters that each reads."""
    samples = sound(file)
    window, hop = 5360, 5120
    rows = [[] for _ in tokens]
    starts = list(range(0, max(len(samples) - (window - hop), 1), hop))
    for at in starts:
        for row, token in zip(rows, tokens):
            result = step(samples[at : at + window], sequence, at == 0, at == starts[-1], own(token))
            row.append(result.as_numpy("LOG_PROBS")[0, : int(result.as_numpy("FRAMES")[0, 0])])
    joined = [numpy.concatenate(row) for row in rows]
    return [letters(one[None], numpy.array([[len(one)]])) for one in joined]


def restart(sequence, session=None):
    """START twice, then a step and END, by one token; the refusal of each request but the first."""
    named = {"x-auricle-session": session} if session else {}
    silence = numpy.zeros(5360, dtype=numpy.float32)
    step(silence, sequence, start=True, headers={**own(), **named})
    refusals = []
    for flags in ({"start": True}, {}, {"end": True}):
        try:
            step(silence, sequence, headers={**own(), **named}, **flags)
        except InferenceServerException as error:
            refusals.append({"status": error.status(), "message": error.message()})
    return refusals


def unstarted(sequence):
    try:
        step(numpy.zeros(5360, dtype=numpy.float32), sequence)
    except InferenceServerException as error:
        return {"status": error.status(), "message": error.message()}
    return None


def begin(sequence):
    step(numpy.zeros(5360, dtype=numpy.float32), sequence, start=True)


def abandon(sequence):
    """A START without an END, then a step when the engine would have forgotten it."""
    step(numpy.zeros(5360, dtype=numpy.float32), sequence, start=True)
    return step(numpy.zeros(5360, dtype=numpy.float32), sequence).as_numpy("FRAMES").tolist()


def generate(ending, body):
    """The client has no call for it: what its connection pool sends by hand."""
    answer = client._post(f"v2/models/{MODEL}/{ending}", body, own(), None)
    return {"status": answer.status_code, "type": answer.get("content-type"), "body": answer.read().decode()}
