"""Runs the ONNX network beside this file inside Triton's Python backend.

The same batching as Triton's ONNX Runtime backend: requests are joined into one execution, ragged inputs end to end with
the offsets that `batch_input` asks for, and the outputs are cut back. A batch that fails is tried again one request at a
time, so that a request that the network cannot digest does not take its neighbours with it.

The states of a sequence model (`state` in its configuration) are kept here, by correlation id: this backend never writes
implicit state back. See `Sequences`.
"""

import collections
import json
import os
import time

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


# How much longer than Triton a state is kept, in seconds: a request may have waited for this instance meanwhile.
GRACE = 60


class Sequences:
    """States by correlation id.

    Triton hands over START and END, but not that it has given a sequence up for being idle. What is left of such a one
    goes when this instance has more states than Triton gives it sequences at a time (twice as many, the longest unused
    first), or with the next request once nothing was heard of it for the idle time and a minute more. A request whose
    state is gone is refused; it never goes on from zero.
    """

    def __init__(self, config, folder):
        batching = config.get("sequence_batching", {})
        states = batching.get("state", [])
        self.inputs = [one["input_name"] for one in states]
        self.outputs = [one["output_name"] for one in states]
        self.batched = config["max_batch_size"] > 0
        self.initial = [self.first(one, folder) for one in states]
        slots = batching.get("oldest", {}).get("max_candidate_sequences", 0) or max(1, config["max_batch_size"])
        self.most = 2 * slots
        self.idle = batching.get("max_sequence_idle_microseconds", 1_000_000) / 1e6 + GRACE
        # The longest unused first.
        self.kept = collections.OrderedDict()

    def first(self, one, folder):
        given = one.get("initial_state", [])
        dims = given[0]["dims"] if given else [max(1, int(dim)) for dim in one["dims"]]
        dims = [int(dim) for dim in dims]
        kind = pb_utils.triton_string_to_numpy(one["data_type"])
        if given and "data_file" in given[0]:
            array = numpy.fromfile(os.path.join(folder, "initial_state", given[0]["data_file"]), dtype=kind)
            return array.reshape(([1] if self.batched else []) + dims)
        return numpy.zeros(([1] if self.batched else []) + dims, dtype=kind)

    def read(self, request):
        if request.flags() & pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START:
            self.kept[request.correlation_id()] = (time.monotonic(), self.initial)
        found = self.kept.get(request.correlation_id())
        if found is None:
            raise KeyError("the state of the sequence is gone: it must begin again")
        return dict(zip(self.inputs, found[1]))

    def write(self, request, arrays):
        if request.flags() & pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END:
            self.kept.pop(request.correlation_id(), None)
            return
        # A copy: a window would keep the states of the whole batch alive.
        self.kept[request.correlation_id()] = (time.monotonic(), [numpy.array(array) for array in arrays])
        self.kept.move_to_end(request.correlation_id())

    def tidy(self):
        oldest = time.monotonic() - self.idle
        while self.kept:
            key, (used, _) = next(iter(self.kept.items()))
            if used > oldest and len(self.kept) <= self.most:
                return
            del self.kept[key]


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
        batching = config.get("sequence_batching", {})
        self.sequences = Sequences(config, args["model_repository"]) if batching.get("state") else None
        # Triton adds them to each request as further inputs.
        self.controls = [one["name"] for one in batching.get("control_input", [])]
        self.sequential = "sequence_batching" in config
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
        # The direct strategy fills the rows of a batch that nobody uses with requests of nobody.
        real = [one for one in requests if not self.sequential or one.correlation_id() not in (0, "")]
        answers = dict(zip(map(id, real), self.compute(real)))
        if self.sequences:
            self.sequences.tidy()
        return [answers.get(id(one)) or pb_utils.InferenceResponse([]) for one in requests]

    def compute(self, requests):
        if not requests:
            return []
        try:
            return self.run(requests, [self.read(request) for request in requests])
        except Exception as error:
            if len(requests) == 1:
                return [pb_utils.InferenceResponse(error=pb_utils.TritonError(f"the network failed: {error}"))]
        return [self.compute([request])[0] for request in requests]

    def read(self, request):
        tensors = {}
        for name, one in self.inputs.items():
            array = pb_utils.get_input_tensor_by_name(request, name).as_numpy()
            if one["data_type"] == "TYPE_STRING":
                texts = [text.decode("utf-8") for text in array.reshape(-1)]
                array = numpy.array(texts, dtype=numpy.object_).reshape(array.shape)
            tensors[name] = array
        for name in self.controls:
            tensors[name] = pb_utils.get_input_tensor_by_name(request, name).as_numpy()
        return tensors

    def run(self, requests, given):
        wanted = [name for name in self.outputs if any(name in one.requested_output_names() for one in requests)]
        kept = self.sequences.outputs if self.sequences else []
        asked = wanted + [name for name in kept if name not in wanted]
        feeds = self.join(given)
        if self.sequences:
            feeds.update(self.gather([self.sequences.read(request) for request in requests]))
        results = dict(zip(asked, self.session.run(asked, feeds)))
        # Without batching Triton hands over one request at a time.
        sizes = [len(next(iter(tensors.values()))) for tensors in given] if self.batched else [None]
        ends = numpy.cumsum(sizes) if self.batched else [None]
        for name, array in results.items():
            if self.batched and len(array) != ends[-1]:
                raise ValueError(f"output '{name}' has {len(array)} items for a batch of {ends[-1]}")
        if self.sequences:
            for row, request in enumerate(requests):
                cut = slice(row, row + 1) if self.batched else slice(None)
                self.sequences.write(request, [results[name][cut] for name in kept])
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

    @staticmethod
    def gather(states):
        if len(states) == 1:
            return states[0]
        return {name: numpy.concatenate([one[name] for one in states]) for name in states[0]}

    def join(self, given):
        feeds = {}
        for name in self.controls:
            parts = [tensors[name] for tensors in given]
            feeds[name] = parts[0] if len(parts) == 1 else numpy.concatenate(parts)
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
