"""Runs Triton and ends it, with everything it started, when told to or when its own starter dies, however that dies.

Arguments: the starter's process id, seconds from SIGTERM to SIGKILL, the name that shared memory begins with, the
command. Leads a process group of its own. A model's process that Triton was just starting outlives it otherwise, and
so does shared memory when Triton is killed. A model's process that dies ends Triton, too: Triton would go on to say that
it is ready, and fail every request of that model. Linux only, like Triton.
"""

import ctypes
import os
import signal
import subprocess
import sys

PR_SET_PDEATHSIG = 1
SHARED = "/dev/shm"
# Distance of two looks at the models' processes.
LOOK_SECONDS = 1

starter, seconds, region, *command = sys.argv[1:]


def bind(to):
    """When the process that started this one dies, `to` arrives here."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, to) != 0:
        sys.exit("prctl: the server would outlive its starter")


def processes():
    """Number and the fields of its `stat` behind the name, of every process."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                yield int(name), file.read().rpartition(")")[2].split()
        except OSError:
            continue


def others():
    """The other living processes of this group."""
    for pid, fields in processes():
        if int(fields[2]) == os.getpgrp() and fields[0] != "Z" and pid != os.getpid():
            yield pid


def dead():
    """Children of the server that did not end in order; it collects the others, and never these."""
    return {pid for pid, fields in processes() if int(fields[1]) == server.pid and fields[0] == "Z" and fields[-1] != "0"}


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
before = set()
broken = False
while True:
    try:
        code = server.wait(LOOK_SECONDS)
        break
    except subprocess.TimeoutExpired:
        now = dead()
        # One look may fall between the end of a process and its collection.
        if now & before and not broken:
            broken = True
            print("a model's process died: Triton is ended", file=sys.stderr, flush=True)
            stop()
        before = now
for process in others():
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass
for name in os.listdir(SHARED) if os.path.isdir(SHARED) else []:
    if name.startswith(region):
        os.unlink(os.path.join(SHARED, name))
sys.exit(1 if broken else code if code >= 0 else 128 - code)
