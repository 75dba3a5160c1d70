import json
import os

import numpy as np
import triton_python_backend_utils as pb_utils
from faster_whisper import WhisperModel


class TritonPythonModel:
    def initialize(self, args):
        parameters = json.loads(args["model_config"])["parameters"]
        folder = os.path.join(args["model_repository"], args["model_version"], "weights")
        self.language = parameters["language"]["string_value"]
        self.model = WhisperModel(folder, device="auto", compute_type="auto")

    def execute(self, requests):
        return [self.answer(pb_utils.get_input_tensor_by_name(one, "AUDIO").as_numpy()[0]) for one in requests]

    def answer(self, audio):
        segments, _ = self.model.transcribe(audio, language=self.language, beam_size=1, word_timestamps=True)
        # TEXT and the lists beside it count words between white space.
        words = [word for segment in segments for word in segment.words if word.word.strip()]
        text = " ".join("".join(word.word.split()) for word in words)
        times = np.array([[word.start, word.end] for word in words], np.float32)
        confidence = np.array([word.probability for word in words], np.float32)
        return pb_utils.InferenceResponse(
            [
                pb_utils.Tensor("TEXT", np.array([[text.encode()]], dtype=object)),
                pb_utils.Tensor("WORD_TIMES", times.reshape(1, -1, 2)),
                pb_utils.Tensor("WORD_CONFIDENCE", confidence.reshape(1, -1)),
            ]
        )
