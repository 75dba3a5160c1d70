"""Runs functions of the module named on the command line: one JSON line in, one out, until the input ends."""

import importlib
import json
import sys
import traceback

module = importlib.import_module(sys.argv[1])
# A client that prints must not end up between the answers.
answers, sys.stdout = sys.stdout, sys.stderr

for line in sys.stdin:
    asked = json.loads(line)
    try:
        said = {"value": getattr(module, asked["name"])(**asked["given"])}
    except Exception as error:
        said = {"raised": f"{type(error).__name__}: {error}\n{traceback.format_exc()}"}
    # Times and the like are told as text.
    answers.write(json.dumps(said, default=str) + "\n")
    answers.flush()
