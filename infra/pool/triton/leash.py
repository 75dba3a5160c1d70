"""Runs Triton and ends it, with everything it started, when told to or when its own starter dies, however that dies.

Arguments: the starter's process id, seconds from SIGTERM to SIGKILL, the name that shared memory begins with, the
command. Leads a process group of its own. A model's process that Triton was just starting outlives it otherwise, and
so does shared memory when Triton is killed. Linux only, like Triton.
"""

import ctypes
import os
import signal
import subprocess
import sys

PR_SET_PDEATHSIG = 1
SHARED = "/dev/shm"

starter, seconds, region, *command = sys.argv[1:]


def bind(to):
    """When the process that started this one dies, `to` arrives here."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, to) != 0:
        sys.exit("prctl: the server would outlive its starter")


def others():
    """The other living processes of this group."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == os.getpgrp() and fields[0] != "Z" and int(name) != os.getpid():
            yield int(name)


bind(signal.SIGTERM)
# It may have died before the line above.
if os.getppid() != int(starter):
    sys.exit("the starter is gone")
server = subprocess.Popen(command, preexec_fn=lambda: bind(signal.SIGKILL))


def stop(*_):
    server.terminate()
    signal.alarm(int(seconds))


signal.signal(signal.SIGALRM, lambda *_: server.kill())
signal.signal(signal.SIGTERM, stop)
code = server.wait()
for process in others():
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass
for name in os.listdir(SHARED) if os.path.isdir(SHARED) else []:
    if name.startswith(region):
        os.unlink(os.path.join(SHARED, name))
sys.exit(code if code >= 0 else 128 - code)
