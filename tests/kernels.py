"""A kernel of any Python, driven as a notebook page drives it: cells go in, outputs and widget models come back."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from jupyter_client import KernelManager
from jupyter_client.kernelspec import KernelSpec

WIDGET = "application/vnd.jupyter.widget-view+json"
HANG = 300  # seconds after which a silent kernel counts as dead; no test measures anything by it


class Ran(NamedTuple):
    """What one cell has put on the page."""

    number: int
    outputs: list[dict[str, Any]]

    def text(self) -> str:
        """Everything written to standard output."""
        return "".join(out["text"] for out in self.outputs if out.get("name") == "stdout")

    def view(self) -> str | None:
        """The widget that the cell shows, if it shows one."""
        views = [out["data"][WIDGET]["model_id"] for out in self.outputs if WIDGET in out.get("data", {})]
        return views[0] if views else None


class Kernel:
    """A running kernel; ``models`` holds the state of every widget, as the page would have it.

    ``heard`` counts the kernel's messages to each: a redraw may come after the kernel is idle again.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.models: dict[str, dict[str, Any]] = {}
        self.heard: Counter[str] = Counter()

    def run(self, source: str) -> Ran:
        """Execute one cell; an exception in it is an error here."""
        sent = self.client.execute(source, allow_stdin=True)  # as a front end does in which somebody can answer
        outputs = list(self._until_idle(sent))
        reply = self._reply(sent)
        assert reply["status"] == "ok", "\n".join([source, *reply["traceback"]])
        return Ran(reply["execution_count"], outputs)

    def value(self, expression: str) -> str:
        """What ``print(expression)`` says."""
        return self.run(f"print({expression})").text().rstrip("\n")

    def send(self, slider: str, index: int) -> str:
        """Tell the kernel that a slider has moved, as the page does; return the message's name."""
        data = {"method": "update", "state": {"index": index}, "buffer_paths": []}
        message = self.client.session.msg("comm_msg", {"comm_id": slider, "data": data})
        self.client.shell_channel.send(message)
        return message["header"]["msg_id"]

    def move(self, slider: str, index: int, face: str) -> None:
        """Move a slider as a reader does, and wait until the face below it is drawn again."""
        before = self.heard[face]
        errors = [out for out in self._until_idle(self.send(slider, index)) if out.get("name") == "stderr"]
        assert not errors, errors
        self.wait(lambda: self.heard[face] > before)

    def wait(self, ready: Callable[[], bool]) -> None:
        """Listen to the kernel until something is so."""
        while not ready():
            self._listen()

    def children(self, model: str) -> list[str]:
        """The widgets inside a box, in order."""
        return [child.removeprefix("IPY_MODEL_") for child in self.models[model]["children"]]

    def _reply(self, sent: str) -> dict[str, Any]:
        # Late answers to the questions asked while the kernel was starting may stand in the queue before it.
        while (message := self.client.get_shell_msg(timeout=HANG))["parent_header"].get("msg_id") != sent:
            pass
        return message["content"]

    def _listen(self) -> dict[str, Any]:
        """Take the kernel's next message. News of a widget count whatever has caused them."""
        message = self.client.get_iopub_msg(timeout=HANG)
        if message["msg_type"] in {"comm_open", "comm_msg"}:
            self._hear(message["content"])
        return message

    def _until_idle(self, sent: str) -> Iterator[dict[str, Any]]:
        while True:
            message = self._listen()
            if message["parent_header"].get("msg_id") != sent:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                return
            if kind in {"stream", "display_data", "execute_result"}:
                yield content

    def _hear(self, content: dict[str, Any]) -> None:
        # Newer kernels also echo what the page itself has sent ("echo_update"); that is no news.
        data = content["data"]
        if "state" in data and data.get("method", "update") == "update":
            self.models.setdefault(content["comm_id"], {}).update(data["state"])
            self.heard[content["comm_id"]] += 1


@contextlib.contextmanager
def kernel(python: Path, folder: Path, environment: dict[str, str]) -> Iterator[Kernel]:
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
