import json

import numpy as np
import triton_python_backend_utils as pb_utils
from transformers import WhisperFeatureExtractor

# Tokens of 20 s of the fastest speech; the decoder has room for 448.
TOKENS_MAX = 192


class TritonPythonModel:
    def initialize(self, args):
        parameters = json.loads(args["model_config"])["parameters"]
        self.prompt = [int(token) for token in parameters["prompt"]["string_value"].split(",")]
        self.end = int(parameters["end"]["string_value"])
        self.extract = WhisperFeatureExtractor(feature_size=128)

    def execute(self, requests):
        return [self.answer(pb_utils.get_input_tensor_by_name(one, "AUDIO").as_numpy()[0]) for one in requests]

    def answer(self, audio):
        features = self.extract(audio, sampling_rate=16000, return_tensors="np").input_features
        frames = features.shape[2]
        numbers = {
            "FEATURE_LENGTH": [frames],
            "STATES_LENGTH": [frames // 2],
            "PROMPT": self.prompt,
            "TOKENS_MAX": [TOKENS_MAX],
            "END": [self.end],
        }
        outputs = [pb_utils.Tensor(name, np.array([values], np.int32)) for name, values in numbers.items()]
        outputs.append(pb_utils.Tensor("FEATURES", features.transpose(0, 2, 1).astype(np.float16)))
        return pb_utils.InferenceResponse(outputs)
