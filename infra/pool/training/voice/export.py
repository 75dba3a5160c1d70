"""Writes voice-en from a checkpoint and proves that it says what the network says.

    python3 export.py --network work/network.pt --repository ../../models/repository

Matrices are kept in 8 bits, one scale a column, and everything else that is large in 16; both are widened when the model
is loaded, so any processor runs it. Needs flite for the bands of its excitation.
"""

import argparse
import os

import numpy as np
import onnx
import onnxruntime
import teacher
import torch
from onnx import helper, numpy_helper
from texts import SYMBOLS
from voice import Speech, load, numbers

OPSET, MODEL = 17, "voice-en"
LIMIT = 127
SMALLEST = 2048
EXAMPLES = ["the quick brown fox, jumps over the lazy dog.", "yes.", "is it going to rain tomorrow afternoon in the north?"]
# A small difference may move the end of a phone by a frame, and the sound behind it.
LONGER = 0.03


def export(speech: Speech, path: str) -> None:
    names = ["TEXT", "VOICE", "RATE", "PITCH"]
    example = (numbers(f" {EXAMPLES[0]}"), torch.tensor([[0]], dtype=torch.int32), torch.tensor([[1.0]]), torch.tensor([[1.0]]))
    torch.onnx.export(
        speech,
        example,
        path,
        input_names=names,
        output_names=["AUDIO"],
        dynamic_axes={
            "TEXT": {0: "batch", 1: "symbols"},
            "VOICE": {0: "batch"},
            "RATE": {0: "batch"},
            "PITCH": {0: "batch"},
            "AUDIO": {0: "batch", 1: "samples"},
        },
        opset_version=OPSET,
        dynamo=False,
    )


def shrink(path: str) -> None:
    model = onnx.load(path)
    graph = model.graph
    matrices = {node.input[1] for node in graph.node if node.op_type == "MatMul"}
    matrices |= {node.input[1] for node in graph.node if node.op_type == "Gemm"}
    fresh, wide = [], []
    for initializer in graph.initializer:
        array, name = numpy_helper.to_array(initializer), initializer.name
        if array.dtype != np.float32 or array.size < SMALLEST:
            fresh.append(initializer)
        elif name in matrices and "vocoder" not in name and not is_wave(array):
            rows = 1 if any(n.op_type == "Gemm" and n.input[1] == name and transposed(n) for n in graph.node) else 0
            scale = np.maximum(np.abs(array).max(rows, keepdims=True), 1e-8) / LIMIT
            fresh.append(numpy_helper.from_array(np.round(array / scale).astype(np.int8), f"{name}.int8"))
            fresh.append(numpy_helper.from_array(scale.astype(np.float32), f"{name}.scale"))
            wide.append(helper.make_node("Cast", [f"{name}.int8"], [f"{name}.wide"], to=onnx.TensorProto.FLOAT))
            wide.append(helper.make_node("Mul", [f"{name}.wide", f"{name}.scale"], [name]))
        else:
            fresh.append(numpy_helper.from_array(array.astype(np.float16), f"{name}.half"))
            wide.append(helper.make_node("Cast", [f"{name}.half"], [name], to=onnx.TensorProto.FLOAT))
    nodes = wide + list(graph.node)
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(fresh)
    model.ir_version = 8  # what the oldest server we support reads
    model.producer_name = "auricle"
    onnx.checker.check_model(model)
    onnx.save(model, path)


def is_wave(array: np.ndarray) -> bool:
    """The matrices of the vocoder: Fourier transforms, the curve of the cepstrum."""
    return array.shape in ((160, 514), (514, 512), (25, 514))


def transposed(node: onnx.NodeProto) -> bool:
    return any(attribute.name == "transB" and attribute.i == 1 for attribute in node.attribute)


def prove(path: str, speech: Speech) -> None:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    for voice, rate, pitch in ((0, 1.0, 1.0), (1, 1.0, 0.8), (0, 1.5, 1.0)):
        for example in EXAMPLES:
            which = torch.tensor([[voice]], dtype=torch.int32)
            given = (numbers(f" {example}"), which, torch.tensor([[rate]]), torch.tensor([[pitch]]))
            said = session.run(None, {k: v.numpy() for k, v in zip(("TEXT", "VOICE", "RATE", "PITCH"), given)})[0]
            again = session.run(None, {k: v.numpy() for k, v in zip(("TEXT", "VOICE", "RATE", "PITCH"), given)})[0]
            with torch.no_grad():
                wanted = speech(*given).numpy()
            assert np.array_equal(said, again), "the same text sounded different"
            assert abs(said.size - wanted.size) <= max(480, LONGER * wanted.size), (example, said.size, wanted.size)
            loud = [float(np.sqrt((sound**2).mean())) for sound in (said, wanted)]
            assert abs(loud[0] - loud[1]) < 0.1 * loud[1], (example, loud)
            print(f"voice {voice}, rate {rate}: {said.size} samples, {wanted.size} of the network")


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--network", default="work/network.pt")
    options.add_argument("--repository", default="../../models/repository")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    flite = teacher.Teacher("slt")
    flite.say("hello")
    speech = load(chosen.network, torch.from_numpy(flite.filters()))
    path = f"{chosen.repository}/{MODEL}/1/model.onnx"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    export(speech, path)
    shrink(path)
    prove(path, speech)
    print(f"{path}: {os.path.getsize(path)} bytes, symbols {SYMBOLS!r}")


if __name__ == "__main__":
    main()
