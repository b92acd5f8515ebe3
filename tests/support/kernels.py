"""Drive a Jupyter kernel of any Python as a notebook does: cells go in, outputs and widget models
come back.
"""

import contextlib
from collections import Counter
from typing import Any, NamedTuple

from jupyter_client import KernelManager
from jupyter_client.kernelspec import KernelSpec

WIDGET = "application/vnd.jupyter.widget-view+json"
HANG = 300  # seconds after which a silent kernel counts as dead


class Ran(NamedTuple):
    """The outputs of one cell."""

    number: int
    outputs: list[dict[str, Any]]

    def text(self):
        """Return what the cell wrote to standard output."""
        return "".join(out["text"] for out in self.outputs if out.get("name") == "stdout")

    def view(self):
        """Return the id of the first widget that the cell shows, if any."""
        return next(
            (
                out["data"][WIDGET]["model_id"]
                for out in self.outputs
                if WIDGET in out.get("data", {})
            ),
            None,
        )


class Kernel:
    """A running kernel, with the state of every widget in ``models``.

    ``heard`` counts the kernel's messages to each widget: a redraw may come after the kernel is
    idle again.
    """

    def __init__(self, client):
        self.client = client
        self.models = {}
        self.heard = Counter()

    def run(self, source):
        """Execute one cell, and fail if it raises an exception."""
        sent = self.client.execute(source, allow_stdin=True)  # as an interactive front end does
        outputs = list(self._until_idle(sent))
        reply = self._reply(sent)
        assert reply["status"] == "ok", "\n".join([source, *reply["traceback"]])
        return Ran(reply["execution_count"], outputs)

    def value(self, expression):
        """Return what ``print(expression)`` prints."""
        return self.run(f"print({expression})").text().rstrip("\n")

    def send(self, slider, index):
        """Tell the kernel that a slider has moved, and return the message's id."""
        data = {"method": "update", "state": {"index": index}, "buffer_paths": []}
        message = self.client.session.msg("comm_msg", {"comm_id": slider, "data": data})
        self.client.shell_channel.send(message)
        return message["header"]["msg_id"]

    def move(self, slider, index, face):
        """Move a slider, and wait until the ``face`` widget below it is drawn again."""
        before = self.heard[face]
        errors = [
            out for out in self._until_idle(self.send(slider, index)) if out.get("name") == "stderr"
        ]
        assert not errors, errors
        self.wait(lambda: self.heard[face] > before)

    def wait(self, ready):
        """Listen to the kernel until a condition holds."""
        while not ready():
            self._listen()

    def children(self, model):
        """Return the ids of the widgets inside a box, in order."""
        return [child.removeprefix("IPY_MODEL_") for child in self.models[model]["children"]]

    def _reply(self, sent):
        # Late replies to requests from the start of the kernel may come first.
        while (message := self.client.get_shell_msg(timeout=HANG))["parent_header"].get(
            "msg_id"
        ) != sent:
            pass
        return message["content"]

    def _listen(self):
        """Take the kernel's next message; changes of widgets count whatever has caused them."""
        message = self.client.get_iopub_msg(timeout=HANG)
        if message["msg_type"] in {"comm_open", "comm_msg"}:
            self._hear(message["content"])
        return message

    def _until_idle(self, sent):
        while True:
            message = self._listen()
            if message["parent_header"].get("msg_id") != sent:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                return
            if kind in {"stream", "display_data", "execute_result"}:
                yield content

    def _hear(self, content):
        # Newer kernels also echo what the page itself has sent ("echo_update"), which is skipped.
        data = content["data"]
        if "state" in data and data.get("method", "update") == "update":
            self.models.setdefault(content["comm_id"], {}).update(data["state"])
            self.heard[content["comm_id"]] += 1


@contextlib.contextmanager
def kernel(python, folder, environment):
    """Start a kernel of this Python in this folder."""
    manager = KernelManager()
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager._kernel_spec = KernelSpec(argv=argv, display_name="", language="python")
    manager.start_kernel(cwd=str(folder), env=environment)
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=HANG)
        yield Kernel(client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
