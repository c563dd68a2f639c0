"""What a program in the sandbox can see, use and reach, tried from inside."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from attn_course.grading.sandbox import available
from attn_course.grading.sandbox.available import SandboxError
from attn_course.grading.sandbox.edition import edition
from attn_course.grading.sandbox.enclosure import Limits
from attn_course.grading.sandbox.kernel import Kernel, KernelGone, measure
from attn_course.grading.sandbox.processes import tree
from attn_course.grading.sandbox.sandbox import Sandbox
from tests.grading.test_hostile import pytestmark  # noqa: F401 (the same condition)

LOOK = """
import glob, json, os, socket
seen = {"uid": os.getuid(), "env": sorted(os.environ), "root": sorted(os.listdir("/"))}
seen["processes"] = len(glob.glob("/proc/[0-9]*"))
seen["course"] = sorted(os.listdir("/course"))
seen["written"] = []
for place in ("/x", "/course/x", "/usr/x", "/etc/x", "/dev/x", "/tmp/x", "/home/student/x"):
    try:
        open(place, "w").close()
        seen["written"].append(place)
    except OSError:
        pass
try:
    socket.create_connection(("127.0.0.1", 9), timeout=1)
except OSError as error:
    seen["network"] = type(error).__name__
try:
    os.setuid(0)
    seen["root_again"] = os.getuid()
except OSError:
    seen["root_again"] = None
try:
    bytearray(3 * 2**30)
    seen["memory"] = "all of it"
except MemoryError:
    seen["memory"] = "limited"
children = []
try:
    while len(children) < 200:
        pid = os.fork()
        if pid == 0:
            os.pause() if hasattr(os, "pause") else __import__("time").sleep(60)
        children.append(pid)
except OSError:
    pass
for pid in children:
    os.kill(pid, 9)
    os.waitpid(pid, 0)
seen["children"] = len(children)
size = 0
try:
    for k in range(100):
        with open(f"/tmp/{k}", "wb") as file:
            size += file.write(bytes(2**23))
except OSError:
    pass
seen["disk"] = size
print(json.dumps(seen))
"""


@pytest.fixture(scope="module")
def seen():
    import json

    limits = Limits(memory_mb=2048, processes=40, disk_mb=32)
    kernel = Kernel(lambda: Sandbox("bubblewrap", edition("00"), limits), time.monotonic() + 300)
    try:
        assert kernel.run(LOOK.replace("print(json", "raise SystemExit(json"), 120) is False
        yield json.loads(kernel.error["evalue"])
    finally:
        kernel.stop()


def test_it_sees_its_own_files_only(seen):
    assert set(seen["root"]) <= {
        *("bin", "sbin", "lib", "lib32", "lib64", "usr", "etc", "dev", "proc", "tmp", "run"),
        *("home", "course", "course-connection.json"),
        *(Path(p).parts[1] for p in (sys.prefix, sys.base_prefix)),
    }
    assert seen["processes"] < 5
    assert "attn_course" in seen["course"]


def test_it_writes_on_its_own_disk_only_and_not_much(seen):
    assert seen["written"] == ["/tmp/x", "/home/student/x"]
    assert seen["disk"] <= 32 * 2**20


def test_it_has_no_network_no_secrets_and_no_privileges(seen):
    assert seen["network"] == "ConnectionRefusedError" or "Error" in seen["network"]
    assert not {name for name in seen["env"] if "TOKEN" in name or "SECRET" in name}
    assert seen["uid"] != 0
    assert seen["root_again"] is None


def test_its_memory_and_its_processes_are_limited_for_root_too(seen):
    assert seen["memory"] == "limited"
    assert 0 < seen["children"] < 40


def test_a_missing_bubblewrap_is_told_with_the_remedy(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SandboxError, match=r"bwrap is not installed.*--sandbox docker"):
        available.probe("bubblewrap")


def test_a_blocked_bubblewrap_is_told_with_the_remedy(monkeypatch, tmp_path):
    blocked = tmp_path / "bwrap"
    blocked.write_text("#!/bin/sh\necho 'setting up uid map: Permission denied' >&2\nexit 1\n")
    blocked.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SandboxError, match=r"(?s)Permission denied.*AppArmor"):
        available.probe("bubblewrap")


@pytest.mark.parametrize("kind", ["docker", "podman"])
def test_a_container_shuts_out_as_much(monkeypatch, tmp_path, kind):
    ran = []

    class Stopped(Exception):
        pass

    def popen(command, **_):
        ran.append(command)
        raise Stopped

    monkeypatch.setattr(subprocess, "Popen", popen)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: None)
    with pytest.raises(Stopped):
        Sandbox(kind, tmp_path, Limits(memory_mb=1000, processes=50))
    line = " ".join(ran[0])
    for part in ("--network none", "--read-only", "--cap-drop ALL", "--pids-limit 50"):
        assert part in line
    assert "--memory 1000m" in line
    assert f"{tmp_path}:/course:ro" in line


@pytest.fixture
def kernel():
    limits = Limits(memory_mb=2048)
    started = Kernel(lambda: Sandbox("bubblewrap", edition("00"), limits), time.monotonic() + 300)
    yield started
    started.stop()


def test_a_dead_kernel_is_noticed_at_once(kernel):
    with pytest.raises(KernelGone, match="exit code 3"):
        kernel.run("import os; os._exit(3)", 120)


DOCKER = "/run/docker.sock"
HANG_UP = Path(__file__).with_name("hostile").joinpath("socket_links.py").read_text("utf-8")


def test_a_link_in_place_of_a_socket_is_not_followed(kernel, tmp_path):
    """Whoever hangs up and puts links to this machine's sockets there is not called again."""
    assert DOCKER in HANG_UP
    with socket.socket(socket.AF_UNIX) as host:
        host.bind(str(tmp_path / "host"))
        host.listen()
        host.settimeout(2)
        with pytest.raises(KernelGone, match="broke off the line"):
            kernel.run(
                f"{HANG_UP.replace(DOCKER, str(tmp_path / 'host'))}\ndot_products(0, 0)", 120
            )
        with pytest.raises(TimeoutError):
            host.accept()


SEND = """
kernel = get_ipython().kernel
sockets = {{"stdin": kernel.stdin_socket, "iopub": kernel.iopub_thread.socket}}
ident = kernel.get_parent("shell")["header"]["session"].encode()
for _ in range(2000):
    message = [ident, b"<IDS|MSG>", b"x", b"{{}}", b"{{}}", b"{{}}", {content}]
    sockets["{channel}"].send_multipart(message)
import time; time.sleep(600)
"""


@pytest.mark.parametrize("channel", ["stdin", "iopub"])
def test_what_fits_into_no_message_ends_the_kernel(kernel, channel):
    with pytest.raises(KernelGone, match="more than fits into a message"):
        kernel.run(SEND.format(channel=channel, content="b' ' * 200_000_000"), 120)


@pytest.mark.parametrize(
    "parts",
    [
        [b"x", b"{}", b"{}", b"{}", b"[]," * 1_500_000],
        [b"x", b"[" * 1_000_000, b"{}", b"{}", b"{}"],
        [b"x"],
    ],
)
def test_what_would_be_large_when_read_is_not_read(parts):
    with pytest.raises(ValueError):  # noqa: PT011 (whoever sent it is told nothing)
        measure(parts)
    measure([b"x", b"{}", b"{}", b"{}", b"A" * 1_000_000])


def test_memory_is_watched_also_while_nobody_waits_for_the_kernel(kernel):
    kernel.execute_cell_input(
        "import os, time\nfor _ in range(8):\n"
        "    if os.fork() == 0:\n        held = bytearray(b'x' * 4 * 10**8); time.sleep(600)\n"
    )
    end = time.monotonic() + 60
    while kernel.gone is None and time.monotonic() < end:
        time.sleep(0.1)  # as long as a judge computes
    assert "more than 2048 MB" in str(kernel.gone)


def test_memory_and_threads_of_descendants_count():
    sleeper = subprocess.Popen([sys.executable, "-c", "x = b'x' * 2**26; input()"], stdin=-1)
    try:
        assert tree(os.getpid()).tasks() >= 2
        assert tree(os.getpid()).memory_mb(0) > 10
    finally:
        sleeper.kill()
        sleeper.wait()
        sleeper.stdin.close()
