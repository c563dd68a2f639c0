"""A JupyterLab as `attn-course lab` starts it, with settings of its own."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

from lab_driver import LOAD_MS

ADDRESS = re.compile(r"(http://127\.0\.0\.1:\d+)/lab\S*\?token=(\w+)")
OPTIONS = [
    "--no-browser",
    "--ip=127.0.0.1",
    "--port=0",
    "--LabApp.expose_app_in_browser=True",
]


@contextmanager
def serving(folder: Path, home: Path) -> Iterator[tuple[str, str]]:
    """Serve `folder`, which also keeps the progress; yields the address and the token."""
    # JupyterLab's question about news would lie over the notebook.
    answer = home / "settings/@jupyterlab/apputils-extension/notification.jupyterlab-settings"
    answer.parent.mkdir(parents=True)
    answer.write_text('{"fetchNews": "false", "checkForUpdates": false}')
    environment = os.environ | {
        "ATTN_COURSE_PROGRESS": str(folder / "progress.json"),
        # Neither the settings nor the open tabs of the person who runs this.
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
    }
    command = [sys.executable, "-m", "attn_course", "lab", *OPTIONS]
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield _printed_address(process)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()


def _printed_address(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Wait for JupyterLab's address; its output is read to the end, so that it never blocks."""
    lines: Queue[str | None] = Queue()
    assert process.stdout is not None
    Thread(target=_read, args=(process.stdout, lines), daemon=True).start()
    seen = []
    while True:
        try:
            line = lines.get(timeout=LOAD_MS / 1000)
        except Empty:
            line = None
        if line is None:
            raise RuntimeError("JupyterLab printed no address:\n" + "".join(seen))
        seen.append(line)
        found = ADDRESS.search(line)
        if found:
            return found[1], found[2]


def _read(stream, lines: Queue) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)
