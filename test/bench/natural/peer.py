"""Transcribes recordings with faster-whisper as its README says, greedy, 8 bits, one thread: MODEL FILE... on stdin."""
import json
import sys
import time

from faster_whisper import WhisperModel

model, *files = sys.stdin.read().split("\n")
whisper = WhisperModel(model, device="cpu", compute_type="int8", cpu_threads=1)
texts, began = [], time.process_time()
for file in files:
    segments, _ = whisper.transcribe(file, beam_size=1, language="en")
    texts.append("".join(segment.text for segment in segments))
print(json.dumps({"texts": texts, "seconds": time.process_time() - began}))
