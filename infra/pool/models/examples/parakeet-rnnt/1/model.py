import os

import nemo.collections.asr as nemo_asr
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        folder = os.path.join(args["model_repository"], args["model_version"])
        self.model = nemo_asr.models.ASRModel.restore_from(os.path.join(folder, "parakeet-rnnt-0.6b.nemo"))
        self.model.eval()

    def execute(self, requests):
        sounds = [pb_utils.get_input_tensor_by_name(one, "AUDIO").as_numpy()[0] for one in requests]
        found = self.model.transcribe(sounds, batch_size=len(sounds), timestamps=True, verbose=False)
        return [self.answer(one.timestamp["word"]) for one in found]

    def answer(self, words):
        text = " ".join(word["word"] for word in words)
        times = [[word["start"], word["end"]] for word in words]
        return pb_utils.InferenceResponse(
            [
                pb_utils.Tensor("TEXT", np.array([[text.encode()]], dtype=object)),
                pb_utils.Tensor("WORD_TIMES", np.array(times, np.float32).reshape(1, -1, 2)),
            ]
        )
