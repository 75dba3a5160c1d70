"""Parses config.pbtxt files with Triton's own schema and writes them again as protobuf does, as a JSON list.

    python3 schema.py PACKAGES FILE...
"""

import importlib.util
import json
import os
import sys

packages, *files = sys.argv[1:]
sys.path.insert(0, packages)

from google.protobuf import text_format  # noqa: E402

# Not by its package, which wants gRPC.
place = os.path.join(packages, "tritonclient/grpc/model_config_pb2.py")
spec = importlib.util.spec_from_file_location("model_config_pb2", place)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)

written = []
for file in files:
    with open(file, encoding="utf-8") as text:
        written.append(text_format.MessageToString(text_format.Parse(text.read(), module.ModelConfig()), as_utf8=True))
json.dump(written, sys.stdout)
