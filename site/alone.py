"""Run a command, unless another make is at work in this folder: ``python site/alone.py COMMAND``.

Any Python can run this, however old. Where there is no environment yet, it says which Python can
make one.
"""

import fcntl
import os
import sys

VERSION = ".".join(map(str, sys.version_info[:2]))
if not os.path.exists(".venv/bin/python"):
    if not (3, 11) <= sys.version_info[:2] <= (3, 14):
        sys.exit(
            "Python 3.11 to 3.14 is needed, not "
            + VERSION
            + ": name another one, as in make PYTHON=python3.12 book"
        )
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        sys.exit(
            "This Python cannot make an environment: on Debian and Ubuntu, apt install python"
            + VERSION
            + "-venv"
        )

try:
    lock = os.open(".venv.lock", os.O_CREAT | os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    sys.exit("Another make is at work in this folder: try again when it has ended.")
except OSError as error:
    sys.exit("This folder must be writable: " + str(error))
os.set_inheritable(
    lock, True
)  # the lock ends with the last process of the command, even if that is killed
os.execvp(sys.argv[1], sys.argv[1:])
