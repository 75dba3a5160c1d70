"""Takes a time that is known beforehand: Y = X after `batch_ms` for each execution and `item_ms` for each item in it.

What is measured with it is the server around the network: queues, batches, priorities.
"""

import json
import time

import numpy
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        given = json.loads(args["model_config"]).get("parameters", {})
        self.batch = float(given.get("batch_ms", {}).get("string_value", 0)) / 1000
        self.item = float(given.get("item_ms", {}).get("string_value", 0)) / 1000

    def execute(self, requests):
        arrays = [pb_utils.get_input_tensor_by_name(request, "X").as_numpy() for request in requests]
        time.sleep(self.batch + self.item * sum(len(array) for array in arrays))
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", numpy.ascontiguousarray(array))]) for array in arrays]
