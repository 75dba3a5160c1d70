"""Unpacks the parts of a wheel that start with the given names, checking every file against the wheel's RECORD.

Arguments: the wheel, the folder, the beginnings of the names. Prints what was unpacked as JSON: name to bytes.
"""

import base64
import csv
import hashlib
import json
import os
import sys
import zipfile

wheel, folder, *wanted = sys.argv[1:]
sizes = {}
with zipfile.ZipFile(wheel) as archive:
    record = next(name for name in archive.namelist() if name.endswith(".dist-info/RECORD"))
    for name, digest, _ in csv.reader(archive.read(record).decode("utf-8").splitlines()):
        if not name.startswith(tuple(wanted)):
            continue
        content = archive.read(name)
        kind, _, expected = digest.partition("=")
        actual = base64.urlsafe_b64encode(hashlib.new(kind, content).digest()).rstrip(b"=").decode("ascii")
        if actual != expected:
            sys.exit(f"{name} is not what the wheel's RECORD says")
        target = os.path.join(folder, name)
        if os.path.commonpath([os.path.realpath(target), os.path.realpath(folder)]) != os.path.realpath(folder):
            sys.exit(f"{name} would leave the folder")
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(content)
        sizes[name] = len(content)
if not sizes:
    sys.exit("the wheel has none of the files wanted")
print(json.dumps(sizes))
