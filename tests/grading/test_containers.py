"""Docker and Podman, where one of them and its image is there: what bubblewrap does, they do."""

import contextlib
import random
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from attn_course.grading.judging.execute import execute
from attn_course.grading.sandbox.available import CONTAINERS, image
from attn_course.grading.sandbox.relay import Relay
from tests.grading import test_hostile
from tests.grading.hostile_cases import CASES
from tests.grading.test_execute import HONEST_LOSS, RIGHT, notebook

WORKING = [kind for kind in CONTAINERS if test_hostile.works(kind)]
REASON = f"neither docker nor podman works here with an image {image()!r}"

needs_container = pytest.mark.skipif(not WORKING, reason=REASON)


@pytest.fixture
def settings():
    return replace(test_hostile.SETTINGS, sandbox=WORKING[0])


@pytest.mark.slow
@needs_container
def test_right_answers_get_all_points_in_a_container(settings):
    made = execute(notebook("01", RIGHT), settings)
    assert [verdict.status for verdict in made] == ["ok"] * len(RIGHT)


@pytest.mark.slow
@needs_container
def test_a_loop_in_a_container_ends_at_its_limit(settings):
    loop = {"dot_products": "while True: pass", "cross_entropy": HONEST_LOSS}
    made = execute(notebook("00", loop), replace(settings, timeout=20))
    assert [verdict.status for verdict in made] == ["timeout", "ok"]
    left = subprocess.run(
        [settings.sandbox, "ps", "--filter", "name=attn-course-", "--quiet"],
        capture_output=True,
        check=True,
    )
    assert not left.stdout


@pytest.mark.slow
@needs_container
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_hostile_submissions_gain_nothing_in_a_container(path, settings):
    test_hostile.judge(path, settings)


def echo(place: Path) -> socket.socket:
    """A socket that gives back what comes, as it comes."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(place))
    listening.listen()

    def serve():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with connection:
                    for data in iter(partial(connection.recv, 65536), b""):
                        connection.sendall(data)

    threading.Thread(target=serve, daemon=True).start()
    return listening


@pytest.fixture
def program(tmp_path):
    """Stands in for `docker exec -i NAME`: runs the rest of its arguments."""
    program = tmp_path / "exec"
    program.write_text(f'#!/bin/sh\nshift\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    return program


def test_a_connection_goes_through_pipes_to_a_socket_and_back(program, tmp_path):
    sent = random.Random(0).randbytes(300_000)
    relay = Relay([str(program)], {tmp_path / "here": str(tmp_path / "there")})
    with echo(tmp_path / "there"), socket.socket(socket.AF_UNIX) as end:
        end.settimeout(60)
        end.connect(str(tmp_path / "here"))
        sending = threading.Thread(target=lambda: (end.sendall(sent), end.shutdown(socket.SHUT_WR)))
        sending.start()
        assert b"".join(iter(partial(end.recv, 65536), b"")) == sent
        sending.join()
    relay.close()


def test_a_closed_relay_cuts_its_lines_and_takes_no_more(program, tmp_path):
    relay = Relay([str(program)], {tmp_path / "here": str(tmp_path / "there")})
    with echo(tmp_path / "there"), socket.socket(socket.AF_UNIX) as end:
        end.settimeout(60)
        end.connect(str(tmp_path / "here"))
        end.sendall(b"still open")
        assert end.recv(100) == b"still open"
        relay.close()
        assert end.recv(100) == b""
    with socket.socket(socket.AF_UNIX) as late, pytest.raises(OSError, match="refused"):
        late.connect(str(tmp_path / "here"))


def test_nobody_at_the_other_end_hangs_up(program, tmp_path):
    relay = Relay([str(program)], {tmp_path / "here": str(tmp_path / "nowhere")})
    with socket.socket(socket.AF_UNIX) as end:
        end.settimeout(60)
        end.connect(str(tmp_path / "here"))
        assert end.recv(100) == b""
    relay.close()
