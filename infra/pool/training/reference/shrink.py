"""Smaller ONNX files: weights in 16 bits widened on load, or in 8 bits multiplied as integers.

8 bits here means: each weight column has its own scale, and each frame's activations get theirs when they
are computed. One scale for a whole batch, which is what the usual dynamic quantisation takes, would let a
loud neighbour in the batch change a request's words.
"""

import os

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper

SMALLEST = 512  # elements; below this, saving bytes is not worth a node
TURNED = ".turned"  # suffix of a weight stored as columns rather than rows
# Seven bits of weight against eight of activation: two products always fit the 16-bit sums of processors
# that have no dot-product instruction (255 * 63 * 2 < 32768), so every processor gives the same answer.
WEIGHT_LIMIT = 63


def save(graph: onnx.ModelProto, path: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    onnx.checker.check_model(graph)
    onnx.save(graph, path)


def name_weights(path: str, network: torch.nn.Module) -> None:
    """Gives every initialiser the name of its parameter, so that the file is also a checkpoint."""
    known = {}
    for name, value in network.state_dict().items():
        array = value.detach().numpy()
        known.setdefault((array.shape, array.tobytes()), name)
        if array.ndim == 2:
            known.setdefault((array.T.shape, np.ascontiguousarray(array.T).tobytes()), name + TURNED)
    model = onnx.load(path)
    names = {}
    for initializer in model.graph.initializer:
        array = numpy_helper.to_array(initializer)
        name = known.get((array.shape, array.tobytes()))
        if name and name not in names.values():
            names[initializer.name] = name
    for initializer in model.graph.initializer:
        initializer.name = names.get(initializer.name, initializer.name)
    for node in model.graph.node:
        for index, given in enumerate(node.input):
            node.input[index] = names.get(given, given)
    onnx.save(model, path)


def to_fp16(source: str, target: str) -> None:
    model = onnx.load(source)
    casts = []
    for initializer in model.graph.initializer:
        array = numpy_helper.to_array(initializer)
        if array.dtype != np.float32 or array.size < 16 or array.ndim == 0:
            continue
        name = initializer.name
        initializer.CopyFrom(numpy_helper.from_array(array.astype(np.float16), name + ".half"))
        casts.append(helper.make_node("Cast", [name + ".half"], [name], to=onnx.TensorProto.FLOAT))
    nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(casts + nodes)
    save(model, target)


def quantised(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scale = np.maximum(np.abs(array).max(0), 1e-8) / WEIGHT_LIMIT
    return np.round(array / scale).astype(np.int8), scale.astype(np.float32)


def weights_of(path: str) -> dict[str, np.ndarray]:
    """All weights of a file by name; an 8-bit one holds integers as `.int8` and their scales as `.scale`."""
    return {i.name: numpy_helper.to_array(i) for i in onnx.load(path).graph.initializer}


def to_int8(source: str, target: str, taken: dict[str, np.ndarray] | None = None) -> None:
    """Every product with a constant matrix becomes MatMulInteger; everything else stays as it was. The integers are
    those of `taken`, the weights of another 8-bit file, where that is given."""
    model = onnx.load(source)
    constants = {i.name: i for i in model.graph.initializer}
    shared = {"q_max": np.float32(127), "q_tiny": np.float32(1e-8), "q_zero": np.float32(128), "q_zero8": np.uint8(128)}
    fresh = [numpy_helper.from_array(np.array(value), name) for name, value in shared.items()]
    nodes, dropped = [], set()
    for node in model.graph.node:
        weight = constants.get(node.input[1]) if node.op_type == "MatMul" else None
        array = numpy_helper.to_array(weight) if weight else np.zeros(0)
        if array.ndim != 2 or array.size < SMALLEST:
            nodes.append(node)
            continue
        x, y, name = node.input[0], node.output[0], weight.name
        whole, scale = (taken[f"{name}.int8"], taken[f"{name}.scale"]) if taken else quantised(array)
        fresh += [numpy_helper.from_array(whole, name + ".int8"), numpy_helper.from_array(scale, name + ".scale")]
        dropped.add(name)
        made = [
            ("Abs", [x], "abs", {}),
            ("ReduceMax", [f"{y}.abs"], "peak", {"axes": [-1], "keepdims": 1}),
            ("Max", [f"{y}.peak", "q_tiny"], "top", {}),
            ("Div", [f"{y}.top", "q_max"], "step", {}),
            ("Div", [x, f"{y}.step"], "scaled", {}),
            ("Round", [f"{y}.scaled"], "rounded", {}),
            ("Add", [f"{y}.rounded", "q_zero"], "shifted", {}),
            ("Cast", [f"{y}.shifted"], "bytes", {"to": onnx.TensorProto.UINT8}),
            ("MatMulInteger", [f"{y}.bytes", name + ".int8", "q_zero8"], "sums", {}),
            ("Cast", [f"{y}.sums"], "wide", {"to": onnx.TensorProto.FLOAT}),
            ("Mul", [f"{y}.wide", name + ".scale"], "weighed", {}),
        ]
        nodes += [helper.make_node(op, ins, [f"{y}.{out}"], **kept) for op, ins, out, kept in made]
        nodes.append(helper.make_node("Mul", [f"{y}.weighed", f"{y}.step"], [y]))
    kept = [i for i in model.graph.initializer if i.name not in dropped]
    del model.graph.node[:], model.graph.initializer[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(kept + fresh)
    save(model, target)


def recover(path: str) -> dict[str, torch.Tensor]:
    """The parameters held by a shipped file, under the names the network gives them."""
    state, held = {}, weights_of(path)
    for given, array in held.items():
        name = given.removesuffix(".half").removesuffix(".int8")
        if name.endswith(".scale") and name.removesuffix("scale") + "int8" in held:
            continue
        array = array.astype(np.float32)
        if given.endswith(".int8"):
            array = array * held[f"{name}.scale"]
        turned = name.endswith(TURNED)
        state[name.removesuffix(TURNED)] = torch.from_numpy(array.T.copy() if turned else array.copy())
    return state


def prove_same_weights(path: str, other: str) -> None:
    """The two 8-bit files hold the same network, to the last bit."""
    mine, theirs = weights_of(path), weights_of(other)
    differ = [name for name in theirs if name not in mine or mine[name].tobytes() != theirs[name].tobytes()]
    assert not differ, f"{path} and {other} differ in {differ}"
    print(f"{path}: all {len(theirs)} weights are those of {other}")


def prove_recovery(path: str, network: torch.nn.Module) -> None:
    state = recover(path)
    missing = [name for name, _ in network.named_parameters() if name not in state]
    for name, value in network.named_parameters():
        if name in state and not torch.allclose(state[name], value, rtol=2e-3, atol=1e-4):
            missing.append(name)
    print(f"{path}: every weight comes back" if not missing else f"{path}: not recovered: {missing}")
