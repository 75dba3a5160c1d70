"""Becomes the command it is given, bound to the process that started it: when that one dies, SIGTERM arrives here.

Arguments: the process id of the starter, then the command. Linux only, like what it starts.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1

if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM) != 0:
    sys.exit("prctl: the server would outlive its starter")
# It may have died before the line above.
if os.getppid() != int(sys.argv[1]):
    sys.exit("the starter is gone")
os.execv(sys.argv[2], sys.argv[2:])
