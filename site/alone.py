"""Run a command, unless another make is at work in this folder: ``python site/alone.py COMMAND``.

Any Python can run this, however old, and say that the book needs another one.
"""

import os
import sys

VERSION = "%d.%d" % sys.version_info[:2]  # noqa: UP031
if not (3, 11) <= sys.version_info[:2] <= (3, 14):
    sys.exit("Python 3.11 to 3.14 is needed, and this one is %s: make PYTHON=python3.12 book names another" % VERSION)  # noqa: UP031
try:
    import ensurepip  # noqa: F401
    import fcntl
except ImportError:
    sys.exit("This Python cannot make an environment: on Debian and Ubuntu, apt install python%s-venv" % VERSION)  # noqa: UP031

lock = os.open(".venv.lock", os.O_CREAT | os.O_RDWR)
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    sys.exit("Another make is at work in this folder: try again when it has ended.")
os.set_inheritable(lock, True)  # the lock ends with the last process of the command, even if that is killed
os.execvp(sys.argv[1], sys.argv[1:])
