"""Writes the model repository's ONNX files from a checkpoint and proves what it promises.

    python3 export.py --network work/network.pt --repository ../repository
    python3 export.py --recover --repository ../repository

The second form reads the weights back from the shipped 16-bit file and writes the graph of a live stream only,
for one chunk with its caches. Proved every time: a short utterance gives the same alone and padded in a batch;
chunk by chunk gives the same as whole; the weights come back from the shipped file.
"""

import argparse
import os

import onnx
import onnxruntime
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import shrink
from network import CHUNK, HOP, MELS, TOKENS, WINDOW, Network

OPSET = 17
CACHES = ["FIRST", "SECOND", "KEYS", "VALUES", "GATES", "SEEN"]


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
        at = torch.arange(longest)[None, :]
        place = (starts[:, None] + at).clamp(max=audio.shape[0] - 1)
        sound = audio[place] * (at < lengths[:, None]).float()
        power = self.frontend.power(sound)
        mels = torch.log(power.transpose(1, 2) @ self.frontend.filters + 1e-6)
        features = (mels - self.frontend.mean) * self.frontend.scale
        # Loudness of the frame against -45 dB below full scale; a monitor's estimate, not a decision.
        decibel = 10 * torch.log10(power.sum(1) * (2 / (WINDOW * WINDOW * 0.375)) + 1e-9)
        counts = ((lengths - WINDOW).clamp(min=0) // HOP + 1)[:, None].int()
        return features, counts, torch.sigmoid((decibel + 45) / 4)


class Inference(nn.Module):
    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, features: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
        logits, frames, _ = self.network(features, length.reshape(-1).long())
        return logits, frames[:, None].int()


class Step(nn.Module):
    """One chunk of a live stream; the caches go in and come out, so the server keeps nothing of its own."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, features: Tensor, frames: Tensor, *caches: Tensor) -> tuple[Tensor, ...]:
        logits, after = self.network.step(features, frames, list(caches))
        return (logits, *after)


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
    names = ["FEATURES", "FRAMES", *CACHES]
    outputs = ["LOGITS", *(f"{name}_NEXT" for name in CACHES)]
    example = (torch.randn(2, 4 * CHUNK, MELS), torch.full((2, 1), float(CHUNK)), *network.first_caches(2))
    axes = {name: {0: "batch"} for name in names + outputs}
    export(Step(network), example, path, names, outputs, axes)
    shrink.name_weights(path, network)


def export_postprocess(path: str) -> None:
    axes = {name: {0: "batch", 1: "frames"} for name in ("LOGITS", "LOG_PROBS")} | {
        name: {0: "batch"} for name in ("FRAMES_IN", "FRAMES")
    }
    example = (torch.randn(2, 50, len(TOKENS)), torch.tensor([[50], [40]], dtype=torch.int32))
    export(Postprocess(), example, path, ["LOGITS", "FRAMES_IN"], ["LOG_PROBS", "FRAMES"], axes)


def run(path: str, **inputs) -> list[Tensor]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return [torch.from_numpy(out) for out in session.run(None, {k: v.numpy() for k, v in inputs.items()})]


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


def prove_stream(whole: str, step: str, tolerance: float) -> None:
    torch.manual_seed(2)
    steps = 1203
    features = torch.randn(1, steps, MELS)
    expected = run(whole, FEATURES=features, FEATURE_LENGTH=torch.tensor([[steps]], dtype=torch.int32))[0]
    session = onnxruntime.InferenceSession(step, providers=["CPUExecutionProvider"])
    caches = {name: cache.numpy() for name, cache in zip(CACHES, first_caches())}
    pieces = []
    for start in range(0, steps, 4 * CHUNK):
        piece = features[:, start : start + 4 * CHUNK]
        frames = (piece.shape[1] + 3) // 4
        piece = F.pad(piece, (0, 0, 0, 4 * CHUNK - piece.shape[1]))
        given = {"FEATURES": piece.numpy(), "FRAMES": torch.full((1, 1), float(frames)).numpy(), **caches}
        logits, *after = session.run(None, given)
        caches = dict(zip(CACHES, after))
        pieces.append(torch.from_numpy(logits[:, :frames]))
    apart = (torch.cat(pieces, 1) - expected).abs().max().item()
    assert apart <= tolerance, f"{step}: chunk by chunk differs by {apart}"
    print(f"{step}: chunk by chunk differs from whole by {apart:.2g}")


def first_caches() -> list[Tensor]:
    return Network().first_caches(1)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--network", help="the checkpoint; without it an untrained network is written")
    options.add_argument("--repository", default="../repository")
    options.add_argument(
        "--recover", action="store_true", help="only write the graph of a stream, from the shipped weights"
    )
    options.add_argument("--work", default="work/export")
    chosen = options.parse_args()
    torch.manual_seed(17)
    network = Network().eval()
    if chosen.network:
        network.load_state_dict(torch.load(chosen.network, map_location="cpu", weights_only=True))
    work = lambda name: f"{chosen.work}/{name}.onnx"
    shipped = lambda name: f"{chosen.repository}/{name}/1/model.onnx"
    if chosen.recover:
        network.load_state_dict(
            shrink.recover(shipped("asr_inference_fp16")) | dict(network.named_buffers()), strict=False
        )
        with torch.no_grad():
            export_stream(network, work("step"))
        prove_stream(shipped("asr_inference_fp16"), work("step"), 2e-3)
        return
    with torch.no_grad():
        export_inference(network, work("whole"))
        export_stream(network, work("step"))
        export_preprocess(network, shipped("vad_preprocess"))
        export_postprocess(shipped("nlp_postprocess"))
    shrink.to_fp16(work("whole"), shipped("asr_inference_fp16"))
    shrink.to_int8(work("whole"), shipped("asr_inference"))
    shrink.to_fp16(work("step"), work("step_fp16"))
    shrink.to_int8(work("step"), work("step_int8"))
    for path in (work("whole"), shipped("asr_inference_fp16"), shipped("asr_inference")):
        prove_padding(path, 2e-3)
    for whole, step in (("whole", "step"), ("asr_inference_fp16", "step_fp16"), ("asr_inference", "step_int8")):
        prove_stream(work(whole) if whole == "whole" else shipped(whole), work(step), 2e-3)
    shrink.prove_recovery(shipped("asr_inference_fp16"), network)
    total = 0
    for name in ("vad_preprocess", "asr_inference", "asr_inference_fp16", "nlp_postprocess"):
        total += os.path.getsize(shipped(name))
        print(f"{name} {os.path.getsize(shipped(name)):,} bytes")
    assert total <= 18_000_000, f"{total:,} bytes are more than the repository may hold"


if __name__ == "__main__":
    main()
