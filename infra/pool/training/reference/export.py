"""Writes the model repository's ONNX files from a checkpoint and proves what it promises.

    python3 export.py --language en --network work/en.pt --repository ../../models/repository
    python3 export.py --language en --recover --repository ../../models/repository

The second form reads the weights back from the shipped files and writes again what a live stream needs: the
features, and the network for one chunk with its caches. Proved every time: a short utterance gives the same alone
and padded in a batch; chunk by chunk gives the same as whole, from the features and from the sound; both 8-bit
files hold the same weights; the weights come back from the shipped file.
"""

import argparse
import functools
import os
import pathlib
import shutil

import numpy as np
import onnx
import onnxruntime
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import shrink
from languages import ALL, Language, language
from network import CHUNK, FLOOR, HOP, MELS, RATE, WINDOW, Network

OPSET = 17
CACHES = ["FIRST", "SECOND", "KEYS", "VALUES", "GATES", "SEEN"]
# A stream's sound comes in windows: the samples of the features of one chunk. The next one begins where the
# first feature behind them does.
STREAM_HOP = 4 * CHUNK * HOP  # 320 ms
STREAM_WINDOW = STREAM_HOP - HOP + WINDOW  # 335 ms


class Preprocess(nn.Module):
    """AUDIO arrives ragged: every request's samples end to end, and where each one ends."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.frontend = network.frontend

    def forward(self, audio: Tensor, length: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        ends = offsets.reshape(-1).long()
        starts = torch.cat([torch.zeros_like(ends[:1]), ends[:-1]])
        lengths = torch.minimum(length.reshape(-1).long(), ends - starts).clamp(min=0)
        longest = lengths.max().clamp(min=WINDOW)
        audio = F.pad(audio, (0, 1))  # so that no sound at all has a sample, too
        at = torch.arange(longest)[None, :]
        place = (starts[:, None] + at).clamp(max=audio.shape[0] - 1)
        sound = audio[place] * (at < lengths[:, None]).float()
        power = self.frontend.power(sound)
        mels = torch.log(power @ self.frontend.filters + FLOOR)
        features = (mels - self.frontend.mean) * self.frontend.scale
        # Loudness of the frame against -45 dB below full scale; a monitor's estimate, not a decision.
        decibel = 10 * torch.log10(power.sum(2) * (2 / (WINDOW * WINDOW * 0.375)) + 1e-9)
        # Less than one window is no feature: the end of a stream may have nothing left to say.
        counts = ((lengths - WINDOW + HOP).clamp(min=0) // HOP)[:, None].int()
        return features, counts, torch.sigmoid((decibel + 45) / 4)


class Inference(nn.Module):
    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, features: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
        logits, frames, _ = self.network(features, length.reshape(-1).long())
        return logits, frames[:, None].int()


class Step(nn.Module):
    """One chunk of a live stream; the caches go in and come out, and the server keeps them between chunks."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, features: Tensor, length: Tensor, *caches: Tensor) -> tuple[Tensor, ...]:
        frames = (length + 3) // 4
        logits, after = self.network.step(features, frames, list(caches))
        return (logits, frames, *after)


class Postprocess(nn.Module):
    def forward(self, logits: Tensor, frames: Tensor) -> tuple[Tensor, Tensor]:
        return logits.log_softmax(-1), frames + 0


def export(module: nn.Module, inputs: tuple, path: str, names: list[str], outputs: list[str], axes: dict) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    torch.onnx.export(
        module.eval(),
        inputs,
        path,
        input_names=names,
        output_names=outputs,
        dynamic_axes=axes,
        opset_version=OPSET,
        dynamo=False,
    )
    graph = onnx.load(path)
    graph.ir_version = 8  # what the oldest server we support reads
    graph.producer_name = "auricle"
    onnx.save(graph, path)


def export_preprocess(network: Network, path: str) -> None:
    example = (
        torch.randn(40000),
        torch.tensor([[16000], [24000]], dtype=torch.int32),
        torch.tensor([16000.0, 40000.0]),
    )
    axes = {
        "AUDIO": {0: "samples"},
        "AUDIO_LENGTH": {0: "batch"},
        "AUDIO_OFFSETS": {0: "batch"},
        "FEATURES": {0: "batch", 1: "steps"},
        "FEATURE_LENGTH": {0: "batch"},
        "SPEECH": {0: "batch", 1: "steps"},
    }
    names = ["AUDIO", "AUDIO_LENGTH", "AUDIO_OFFSETS"]
    export(Preprocess(network), example, path, names, ["FEATURES", "FEATURE_LENGTH", "SPEECH"], axes)


def export_inference(network: Network, path: str) -> None:
    example = (torch.randn(2, 203, MELS), torch.tensor([[203], [150]], dtype=torch.int32))
    axes = {
        "FEATURES": {0: "batch", 1: "steps"},
        "FEATURE_LENGTH": {0: "batch"},
        "LOGITS": {0: "batch", 1: "frames"},
        "FRAMES": {0: "batch"},
    }
    export(Inference(network), example, path, ["FEATURES", "FEATURE_LENGTH"], ["LOGITS", "FRAMES"], axes)
    shrink.name_weights(path, network)


def export_stream(network: Network, path: str) -> None:
    names = ["FEATURES", "FEATURE_LENGTH", *CACHES]
    outputs = ["LOGITS", "FRAMES", *(f"{name}_NEXT" for name in CACHES)]
    length = torch.full((2, 1), 4 * CHUNK - 5, dtype=torch.int32)
    example = (torch.randn(2, 4 * CHUNK - 5, MELS), length, *network.first_caches(2))
    axes = {name: {0: "batch"} for name in names + outputs}
    axes["FEATURES"][1] = "steps"
    export(Step(network), example, path, names, outputs, axes)
    shrink.name_weights(path, network)


def export_postprocess(path: str) -> None:
    axes = {name: {0: "batch", 1: "frames", 2: "tokens"} for name in ("LOGITS", "LOG_PROBS")} | {
        name: {0: "batch"} for name in ("FRAMES_IN", "FRAMES")
    }
    example = (torch.randn(2, 50, 29), torch.tensor([[50], [40]], dtype=torch.int32))
    export(Postprocess(), example, path, ["LOGITS", "FRAMES_IN"], ["LOG_PROBS", "FRAMES"], axes)


@functools.cache
def open_session(path: str) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def run(path: str, **inputs) -> list[Tensor]:
    return [torch.from_numpy(out) for out in open_session(path).run(None, {k: v.numpy() for k, v in inputs.items()})]


def preprocess(path: str, sounds: list[Tensor]) -> tuple[Tensor, Tensor]:
    lengths = torch.tensor([[len(sound)] for sound in sounds], dtype=torch.int32)
    offsets = lengths.cumsum(0).flatten().float()
    return tuple(run(path, AUDIO=torch.cat(sounds), AUDIO_LENGTH=lengths, AUDIO_OFFSETS=offsets)[:2])


def prove_padding(path: str, tolerance: float) -> None:
    """The short item of a batch must not hear its neighbour or the padding."""
    torch.manual_seed(1)
    features = torch.randn(2, 531, MELS)
    lengths = torch.tensor([[531], [267]], dtype=torch.int32)
    together = run(path, FEATURES=features, FEATURE_LENGTH=lengths)
    alone = run(path, FEATURES=features[1:, :267], FEATURE_LENGTH=lengths[1:])
    count = int(alone[1])
    apart = (together[0][1, :count] - alone[0][0, :count]).abs().max().item()
    assert count == int(together[1][1]) == (267 + 3) // 4 and apart <= tolerance, f"{path}: padding changes {apart}"
    print(f"{path}: a padded item differs by {apart:.2g}")


class Stream:
    """One live stream: what a server with implicit state does."""

    def __init__(self, session: onnxruntime.InferenceSession) -> None:
        self.session = session
        sizes = {given.name: given.shape[1:] for given in session.get_inputs()}
        self.caches = {name: np.zeros((1, *sizes[name]), np.float32) for name in CACHES}

    def hear(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        given = {"FEATURES": features.numpy(), "FEATURE_LENGTH": lengths.numpy(), **self.caches}
        logits, frames, *after = self.session.run(None, given)
        self.caches = dict(zip(CACHES, after))
        return torch.from_numpy(logits), torch.from_numpy(frames)


def prove_stream(whole: str, step: str, tolerance: float) -> None:
    """Two utterances of different length and age in one batch, chunk by chunk, against each as a whole."""
    torch.manual_seed(2)
    lengths, late = [1203, 807], 10
    features = [torch.randn(1, length, MELS) for length in lengths]
    one = lambda length: torch.tensor([[length]], dtype=torch.int32)
    expected = [run(whole, FEATURES=f, FEATURE_LENGTH=one(f.shape[1]))[0][0] for f in features]
    session = open_session(step)
    stream, joined, pieces = Stream(session), False, [[], []]
    for number in range(-(-lengths[0] // (4 * CHUNK))):
        if number == late:
            fresh = Stream(session).caches
            stream.caches = {name: np.concatenate([stream.caches[name], fresh[name]]) for name in CACHES}
            joined = True
        starts = [number * 4 * CHUNK, (number - late) * 4 * CHUNK][: 1 + joined]
        heard = [f[:, start : start + 4 * CHUNK] for f, start in zip(features, starts)]
        longest = max(piece.shape[1] for piece in heard)
        padded = torch.cat([F.pad(piece, (0, 0, 0, longest - piece.shape[1])) for piece in heard])
        counted = torch.cat([one(piece.shape[1]) for piece in heard])
        logits, frames = stream.hear(padded, counted)
        for item in range(len(heard)):
            pieces[item].append(logits[item, : int(frames[item])])
    apart = [(torch.cat(p) - e).abs().max().item() for p, e in zip(pieces, expected)]
    assert max(apart) <= tolerance, f"{step}: chunk by chunk differs by {apart}"
    print(f"{step}: chunk by chunk differs from whole by {max(apart):.2g}")


def prove_sound(preprocess_path: str, whole: str, step: str, tolerance: float) -> None:
    """Sound in windows gives the frames and probabilities of the whole sound, whatever is left for the last window."""
    torch.manual_seed(3)
    time = torch.arange(200_000) / RATE
    sound = 0.3 * torch.sin(900 * time * time.sin()) * (3 * time).sin() + 0.01 * torch.randn(len(time))
    session, most = open_session(step), 0.0
    for left in (0, 100, 239, 240, 399, 400, 401, 559, 560, 2000, 5119):
        # The last full window ends `left` samples before the end of the sound, or is all of it but the overlap.
        samples = 6 * STREAM_HOP + left
        features, count = preprocess(preprocess_path, [sound[:samples]])
        logits, frames = run(whole, FEATURES=features, FEATURE_LENGTH=count)
        stream, pieces = Stream(session), []
        for start in range(0, samples, STREAM_HOP):
            window = sound[start : min(samples, start + STREAM_WINDOW)]
            scores, heard = stream.hear(*preprocess(preprocess_path, [window]))
            pieces.append(scores[0, : int(heard)])
        streamed = torch.cat(pieces)
        assert len(streamed) == int(frames), f"{samples} samples: {len(streamed)} frames, not {int(frames)}"
        most = max(most, (streamed.softmax(-1) - logits[0].softmax(-1)).abs().max().item())
    empty, none = preprocess(preprocess_path, [sound[:0]])
    scores, heard = Stream(session).hear(empty, none)
    assert int(heard) == 0 and bool(scores.isfinite().all()), "no sound must be no frames"
    assert most <= tolerance, f"{step}: sound in windows differs by {most}"
    print(f"{step}: probabilities of sound in windows differ from whole by {most:.2g}")


def files_of(language: Language) -> dict[str, str]:
    """The models of a language by what they are: `whole` for recordings, `step` for streams, `half` in 16 bits."""
    if language.name == "en":
        return {"whole": "asr_inference", "step": "asr_stream", "half": "asr_inference_fp16"}
    whole = f"asr_inference_{language.name}"
    found = {"whole": whole, "step": f"asr_stream_{language.name}"}
    return found | ({"half": f"{whole}_fp16"} if language.name == "zh" else {})


def export_shared(network: Network, shipped) -> None:
    """Features and scores, which all languages have in common; English sets the normalisation."""
    export_preprocess(network, shipped("vad_preprocess"))
    # Streams run the same network as a model of its own, apart from the batches of recordings.
    os.makedirs(os.path.dirname(shipped("vad_preprocess_stream")), exist_ok=True)
    shutil.copyfile(shipped("vad_preprocess"), shipped("vad_preprocess_stream"))
    export_postprocess(shipped("nlp_postprocess"))


def export_8_bits(work, shipped, files: dict[str, str]) -> None:
    whole, step = shipped(files["whole"]), shipped(files["step"])
    if os.path.exists(work("whole")):
        shrink.to_int8(work("whole"), whole)
        prove_padding(whole, 2e-3)
    shrink.to_int8(work("step"), step, shrink.weights_of(whole))
    shrink.prove_same_weights(step, whole)
    prove_stream(whole, step, 0)


def export_16_bits(work, shipped, files: dict[str, str], network: Network) -> None:
    """Weights in 16 bits, as the checkpoint has them: widened on load, so every sum is that of 32 bits."""
    shrink.to_fp16(work("whole"), shipped(files["whole"]))
    shrink.to_fp16(work("step"), shipped(files["step"]))
    prove_padding(shipped(files["whole"]), 2e-3)
    prove_stream(shipped(files["whole"]), shipped(files["step"]), 2e-3)
    shrink.prove_recovery(shipped(files["whole"]), network)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--language", choices=ALL, default="en")
    options.add_argument("--network", help="the checkpoint; without it an untrained network is written")
    options.add_argument("--repository", default="../../models/repository")
    options.add_argument(
        "--recover", action="store_true", help="only write what a live stream needs, from the shipped weights"
    )
    options.add_argument("--work", default="work/export")
    chosen = options.parse_args()
    torch.manual_seed(17)
    spoken = language(chosen.language)
    network = Network(len(spoken.tokens), spoken.width, spoken.depth).eval()
    if chosen.network:
        network.load_state_dict(torch.load(chosen.network, map_location="cpu", weights_only=True))
    work = lambda name: f"{chosen.work}/{spoken.name}/{name}.onnx"
    shipped = lambda name: f"{chosen.repository}/{name}/1/model.onnx"
    files = files_of(spoken)
    shutil.rmtree(f"{chosen.work}/{spoken.name}", ignore_errors=True)
    if chosen.recover:
        state = shrink.recover(shipped(files["whole"])) | shrink.recover(shipped("vad_preprocess"))
        state["frontend.basis"] = network.frontend.basis
        network.load_state_dict({name: state[name] for name in network.state_dict()})
    with torch.no_grad():
        if not chosen.recover:
            export_inference(network, work("whole"))
        export_stream(network, work("step"))
        if spoken.name == "en":
            export_shared(network, shipped)
    if spoken.name == "yue":  # for CPU pools, in 32 bits
        export_16_bits(work, shipped, files, network)
    else:
        export_8_bits(work, shipped, files)
        prove_sound(shipped("vad_preprocess_stream"), shipped(files["whole"]), shipped(files["step"]), 0)
    if "half" in files and not chosen.recover:
        shrink.to_fp16(work("whole"), shipped(files["half"]))
        prove_padding(shipped(files["half"]), 2e-3)
        shrink.prove_recovery(shipped(files["half"]), network)
    if spoken.name != "en":
        write_tokens(spoken, f"{chosen.repository}/reference-{spoken.name}")
    total = sum(file.stat().st_size for file in pathlib.Path(chosen.repository).rglob("*") if file.is_file())
    for name in files.values():
        print(f"{name} {os.path.getsize(shipped(name)):,} bytes")
    # The weights of a language lie there twice, for streams too: a model's folder stands on its own.
    assert total <= 60_000_000, f"{total:,} bytes are more than the repository may hold"


def write_tokens(spoken: Language, folder: str) -> None:
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/tokens.txt", "w", encoding="utf-8") as file:
        file.write("\n".join("<space>" if token == " " else token for token in spoken.tokens) + "\n")


if __name__ == "__main__":
    main()
