"""The states that network.py keeps, without a server around it: prints one line for each thing that holds."""

import sys
import types

import numpy

stub = types.ModuleType("triton_python_backend_utils")
stub.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1
stub.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2
stub.triton_string_to_numpy = lambda name: {"TYPE_FP32": numpy.float32}[name]
sys.modules["triton_python_backend_utils"] = stub
sys.path.insert(0, sys.argv[1])
import network  # noqa: E402

START, END = 1, 2


class Request:
    def __init__(self, key, flags=0):
        self.key, self.raised = key, flags

    def correlation_id(self):
        return self.key

    def flags(self):
        return self.raised


def make(candidates=2):
    state = {"input_name": "IN", "output_name": "OUT", "data_type": "TYPE_FP32", "dims": ["2"]}
    batching = {"oldest": {"max_candidate_sequences": candidates}, "state": [state]}
    batching["max_sequence_idle_microseconds"] = 1_000_000
    return network.Sequences({"max_batch_size": 4, "sequence_batching": batching}, "")


def gone(sequences, key):
    try:
        sequences.read(Request(key))
    except KeyError:
        return True
    return False


def go(sequences, key, value, flags=0):
    sequences.read(Request(key, flags))
    sequences.write(Request(key, flags), [numpy.full((1, 2), value, dtype=numpy.float32)])


clock = [0.0]
network.time = types.SimpleNamespace(monotonic=lambda: clock[0])

one = make()
assert one.read(Request(1, START))["IN"].tolist() == [[0, 0]]
go(one, 1, 5)
assert one.read(Request(1))["IN"].tolist() == [[5, 5]]
assert one.read(Request(1, START))["IN"].tolist() == [[0, 0]]
print("goes on, and begins again with a START")

go(one, 1, 6, END)
assert gone(one, 1) and gone(one, "1") and not one.kept
print("nothing is left after the END, and nobody goes on from zero")

many = make(candidates=2)
for key in range(10):
    go(many, key, key, START)
    go(many, 0, key)
    many.tidy()
assert list(many.kept) == [7, 8, 9, 0]
assert len(many.kept) == 4 and not gone(many, 0) and gone(many, 1)
print("has room for twice the candidates, and the longest unused make it")

old = make()
go(old, "a", 1, START)
clock[0] += network.GRACE
go(old, "b", 2, START)
old.tidy()
assert list(old.kept) == ["a", "b"]
clock[0] += 1.5
old.tidy()
assert list(old.kept) == ["b"]
print("lets go of who was not heard of for the idle time and a minute")

batch = numpy.arange(4, dtype=numpy.float32).reshape(2, 2)
own = make()
own.read(Request(3, START))
own.write(Request(3, START), [batch[:1]])
batch[:] = 99
assert own.read(Request(3))["IN"].tolist() == [[0, 1]]
print("keeps a copy")
