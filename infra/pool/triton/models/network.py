"""Runs the ONNX network beside this file inside Triton's Python backend.

The same batching as Triton's ONNX Runtime backend: requests are joined into one execution, ragged inputs end to end with
the offsets that `batch_input` asks for, and the outputs are cut back. A batch that fails is tried again one request at a
time, so that a request that the network cannot digest does not take its neighbours with it.
"""

import json
import os

import numpy
import onnxruntime
import triton_python_backend_utils as pb_utils

TYPES = {
    "TYPE_BOOL": "tensor(bool)",
    "TYPE_UINT8": "tensor(uint8)",
    "TYPE_UINT16": "tensor(uint16)",
    "TYPE_UINT32": "tensor(uint32)",
    "TYPE_UINT64": "tensor(uint64)",
    "TYPE_INT8": "tensor(int8)",
    "TYPE_INT16": "tensor(int16)",
    "TYPE_INT32": "tensor(int32)",
    "TYPE_INT64": "tensor(int64)",
    "TYPE_FP16": "tensor(float16)",
    "TYPE_FP32": "tensor(float)",
    "TYPE_FP64": "tensor(double)",
    "TYPE_STRING": "tensor(string)",
}

# What each kind of batch input says about a source: one number per request, as in Triton's own backends.
COUNTS = {
    "BATCH_ELEMENT_COUNT": lambda counts: counts,
    "BATCH_ACCUMULATED_ELEMENT_COUNT": lambda counts: numpy.cumsum(counts),
    "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO": lambda counts: numpy.concatenate([[0], numpy.cumsum(counts)]),
    "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE": lambda counts: numpy.zeros(max(counts)),
}
WIDTHS = {"TYPE_FP32": numpy.float32, "TYPE_INT32": numpy.int32}
# The largest count that each type holds exactly; a rounded offset would cut into the neighbour's data.
EXACT = {"TYPE_FP32": 2**24, "TYPE_INT32": 2**31 - 1}


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        given = config.get("parameters", {})
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(given.get("intra_op_thread_count", {}).get("string_value", 1))
        options.inter_op_num_threads = int(given.get("inter_op_thread_count", {}).get("string_value", 1))
        # Every model is a process of its own: a thread that waits must sleep, not spin.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_session_config_entry("session.inter_op.allow_spinning", "0")
        # A network that fails on one request reports it in the answer; the same on the console would quote the request.
        options.log_severity_level = 4
        file = os.path.join(args["model_repository"], args["model_version"], "model.onnx")
        self.session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        self.batched = config["max_batch_size"] > 0
        self.inputs = {one["name"]: one for one in config["input"]}
        self.outputs = {one["name"]: one for one in config["output"]}
        self.derived = config.get("batch_input", [])
        self.check(config)

    def check(self, config):
        for known, listed in ((self.inputs, self.session.get_inputs()), (self.outputs, self.session.get_outputs())):
            found = {one.name: one.type for one in listed}
            for name, one in known.items():
                if found.get(name) != TYPES.get(one["data_type"]):
                    raise pb_utils.TritonModelException(
                        f"'{name}' is {one['data_type']} in the configuration, {found.get(name)} in the network"
                    )
        for one in self.derived:
            if one["kind"] not in COUNTS:
                raise pb_utils.TritonModelException(f"batch_input kind {one['kind']} is not supported here")
        if config.get("batch_output"):
            raise pb_utils.TritonModelException("batch_output is not supported here")

    def execute(self, requests):
        try:
            return self.run(requests, [self.read(request) for request in requests])
        except Exception as error:
            if len(requests) == 1:
                return [pb_utils.InferenceResponse(error=pb_utils.TritonError(f"the network failed: {error}"))]
        return [self.execute([request])[0] for request in requests]

    def read(self, request):
        tensors = {}
        for name, one in self.inputs.items():
            array = pb_utils.get_input_tensor_by_name(request, name).as_numpy()
            if one["data_type"] == "TYPE_STRING":
                texts = [text.decode("utf-8") for text in array.reshape(-1)]
                array = numpy.array(texts, dtype=numpy.object_).reshape(array.shape)
            tensors[name] = array
        return tensors

    def run(self, requests, given):
        wanted = [name for name in self.outputs if any(name in one.requested_output_names() for one in requests)]
        results = dict(zip(wanted, self.session.run(wanted, self.join(given))))
        # Without batching Triton hands over one request at a time.
        sizes = [len(next(iter(tensors.values()))) for tensors in given] if self.batched else [None]
        ends = numpy.cumsum(sizes) if self.batched else [None]
        for name, array in results.items():
            if self.batched and len(array) != ends[-1]:
                raise ValueError(f"output '{name}' has {len(array)} items for a batch of {ends[-1]}")
        responses = []
        for request, size, end in zip(requests, sizes, ends):
            own = [name for name in wanted if name in request.requested_output_names()]
            cut = slice(None) if end is None else slice(end - size, end)
            responses.append(pb_utils.InferenceResponse([self.write(name, results[name][cut]) for name in own]))
        return responses

    def write(self, name, array):
        if self.outputs[name]["data_type"] == "TYPE_STRING":
            texts = [text.encode("utf-8") for text in array.reshape(-1)]
            array = numpy.array(texts, dtype=numpy.object_).reshape(array.shape)
        return pb_utils.Tensor(name, numpy.ascontiguousarray(array))

    def join(self, given):
        feeds = {}
        for name, one in self.inputs.items():
            parts = [tensors[name] for tensors in given]
            if self.batched and one.get("allow_ragged_batch"):
                parts = [part.reshape(-1) for part in parts]
            feeds[name] = parts[0] if len(parts) == 1 else numpy.concatenate(parts)
        for one in self.derived:
            counts = [int(tensors[one["source_input"][0]].size) for tensors in given]
            values = COUNTS[one["kind"]](counts)
            if max(values, default=0) > EXACT[one["data_type"]]:
                raise ValueError(f"{one['target_name'][0]} does not fit {one['data_type']}")
            feeds[one["target_name"][0]] = numpy.asarray(values, dtype=WIDTHS[one["data_type"]])
        return feeds
