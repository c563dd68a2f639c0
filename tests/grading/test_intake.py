"""What an instructor downloads: every layout, every nasty file, and nothing lost."""

import io
import os
import zipfile
from pathlib import Path

import pytest

from attn_course.grading.intake import archives, walking
from attn_course.grading.intake.archives import Refused
from attn_course.grading.intake.collect import Collected, Found, collect
from attn_course.sentences import spoken
from grading.notebooks import encoded, notebook, solved

NOTEBOOK = encoded(notebook("x = 1"))


def put(folder: Path, *names: str, content: bytes = NOTEBOOK) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def zipped(entries: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return file.getvalue()


def by_student(collected: Collected) -> dict[str, list[str]]:
    """The paths of each student, the latest last."""
    found: dict[str, list[str]] = {}
    for one in sorted(collected.found, key=lambda one: one.order):
        found.setdefault(one.student, []).append(one.path)
    return found


def reasons(collected: Collected) -> dict[str, str | None]:
    return {
        found.path: found.entry.refused and spoken(found.entry.refused) for found in collected.found
    }


def refusal(found: Found) -> str:
    with pytest.raises(Refused) as error:
        found.entry.read()
    return str(error.value)


def test_students_folders(tmp_path):
    put(tmp_path, "ann/a.ipynb", "ann/deep/er/b.ipynb", "bob/b.ipynb")
    assert by_student(collect(tmp_path)) == {
        "ann": ["ann/a.ipynb", "ann/deep/er/b.ipynb"],
        "bob": ["bob/b.ipynb"],
    }


@pytest.mark.parametrize(
    ("names", "student", "platform_id"),
    [
        (
            ["doejane_1234_56789_ex.ipynb", "doejane_LATE_1234_60000_ex-1.ipynb"],
            "doejane 1234",
            "1234",
        ),
        (["Jane Doe_77_assignsubmission_file_ex.ipynb"], "Jane Doe 77", "77"),
        (["Jane Doe_77_assignsubmission_file_/ex.ipynb"], "Jane Doe 77", "77"),
        (
            [
                "HW 3_jdoe_attempt_2026-03-01-12-30-45_ex.ipynb",
                "HW 3_jdoe_attempt_2026-03-02-09-00-00_ex.ipynb",
            ],
            "jdoe",
            "",
        ),
        (
            [
                "12-9 - Jane Doe - Mar 1, 2026 1230 PM - ex.ipynb",
                "12-10 - Jane Doe - Mar 1, 2026 100 PM - ex.ipynb",
            ],
            "Jane Doe 12",
            "12",
        ),
        (["12-9 - Jane Doe - Mar 1, 2026 1230 PM/ex.ipynb"], "Jane Doe 12", "12"),
        (
            ["jane_doe_03_scaled_dot_product.ipynb", "jane_doe_03_scaled_dot_product (2).ipynb"],
            "jane_doe",
            "",
        ),
        (["jane.ipynb", "jane (1).ipynb", "jane (10).ipynb"], "jane", ""),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_flat_names_of_the_platforms(tmp_path, names, student, platform_id):
    # written in reverse, so that the files' own times say the opposite
    put(tmp_path, *reversed(names))
    collected = collect(tmp_path)
    assert by_student(collected) == {student: names}
    assert collected.senders[student].platform_id == platform_id


def test_two_students_of_one_name_stay_two(tmp_path):
    put(tmp_path, "Jane Doe_1_assignsubmission_file_/a.ipynb")
    put(tmp_path, "Jane Doe_2_assignsubmission_file_/a.ipynb")
    assert len(by_student(collect(tmp_path))) == 2


def test_names_that_only_look_the_same_stay_two(tmp_path):
    put(tmp_path, "ann/a.ipynb", "an\u200bn/a.ipynb", "a\u0007nn/a.ipynb")
    assert len(by_student(collect(tmp_path))) == 3


def test_nbgrader_s_tree_and_its_time_stamps(tmp_path):
    put(tmp_path, "submitted/ann/03/a.ipynb", "submitted/ann/03 again/a.ipynb")
    put(tmp_path, "source/03/a.ipynb", "gradebook.db")
    put(tmp_path, "submitted/ann/03/timestamp.txt", content=b"2026-03-02 10:00:00 UTC")
    put(tmp_path, "submitted/ann/03 again/timestamp.txt", content=b"2026-03-01 10:00:00 UTC")
    collected = collect(tmp_path)
    assert by_student(collected) == {"ann": ["ann/03 again/a.ipynb", "ann/03/a.ipynb"]}
    assert collected.files == 6


def test_a_folder_around_all_others_is_no_student(tmp_path):
    put(tmp_path, "submissions/ann/a.ipynb", "submissions/bob/a.ipynb")
    assert set(by_student(collect(tmp_path))) == {"ann", "bob"}
    put(tmp_path, "submissions/readme.md")
    assert set(by_student(collect(tmp_path / "submissions"))) == {"ann", "bob"}


def test_flat_files_of_a_platform_in_one_folder(tmp_path):
    put(tmp_path, "all/doe_12_345_a.ipynb", "all/roe_13_346_a.ipynb")
    assert set(by_student(collect(tmp_path))) == {"doe 12", "roe 13"}


def test_one_student_with_a_folder_for_each_chapter_is_one_student(tmp_path):
    put(tmp_path, "ann/03/a.ipynb", "ann/04/a.ipynb")
    assert set(by_student(collect(tmp_path))) == {"ann"}


def test_one_student_s_own_files(tmp_path):
    folder = put(tmp_path / "ann", "03_scaled_dot_product.ipynb", "04_self_attention.ipynb")
    assert set(by_student(collect(folder))) == {"ann"}
    assert set(by_student(collect(folder / "04_self_attention.ipynb"))) == {"04_self_attention"}


def test_a_zip_archive_is_as_good_as_a_folder(tmp_path):
    inner = zipped({"homework/a.ipynb": NOTEBOOK, "__MACOSX/._a.ipynb": b"x"})
    path = tmp_path / "class.zip"
    path.write_bytes(zipped({"ann/a.ipynb": NOTEBOOK, "bob.zip": inner, "cem/hw.zip": inner}))
    collected = collect(path)
    assert by_student(collected) == {
        "ann": ["ann/a.ipynb"],
        "bob": ["bob.zip/homework/a.ipynb"],
        "cem": ["cem/hw.zip/homework/a.ipynb"],
    }
    assert all(found.entry.read() == NOTEBOOK for found in collected.found)
    assert collected.files == 5


@pytest.mark.parametrize("name", ["a.ipynb.txt", "a.json", "a", "a.ipynb (1)", "A.IPYNB"])
def test_notebooks_under_other_names(tmp_path, name):
    put(tmp_path, f"ann/{name}")
    assert set(by_student(collect(tmp_path))) == {"ann"}


def test_other_files_are_listed_and_their_students_known(tmp_path):
    put(tmp_path, "ann/essay.pdf", "ann/.ipynb_checkpoints/a-checkpoint.ipynb")
    put(tmp_path, "ann/data.json", "notes.txt", content=b'{"a": 1}')
    (tmp_path / "bob").mkdir()
    collected = collect(tmp_path)
    assert not collected.found
    assert len(collected.ignored) == 4
    assert set(collected.senders) == {"ann", "bob"}


def test_the_results_may_lie_inside(tmp_path):
    put(tmp_path, "ann/a.ipynb", "out/feedback/x.ipynb")
    assert set(by_student(collect(tmp_path, tmp_path / "out"))) == {"ann"}


def test_links_are_refused_and_not_followed(tmp_path):
    secret = put(tmp_path / "secret", "a.ipynb")
    students = put(tmp_path / "students", "bob/a.ipynb")
    (students / "ann").mkdir()
    (students / "ann" / "a.ipynb").symlink_to(secret / "a.ipynb")
    (students / "cem").symlink_to(secret)
    (students / "cem.ipynb").symlink_to(students / "nowhere")
    assert reasons(collect(students)) == {
        "ann/a.ipynb": "a link, which is not followed",
        "bob/a.ipynb": None,
        "cem": "a link, which is not followed",
        "cem.ipynb": "a link, which is not followed",
    }


def test_a_file_that_becomes_a_link_after_the_walk_is_refused(tmp_path):
    put(tmp_path, "ann/a.ipynb")
    (found,) = collect(tmp_path).found
    path = tmp_path / "ann" / "a.ipynb"
    path.rename(tmp_path / "b.ipynb")
    path.symlink_to(tmp_path / "b.ipynb")
    assert "cannot be read" in refusal(found)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_what_is_no_regular_file_is_not_opened(tmp_path):
    (tmp_path / "ann").mkdir()
    os.mkfifo(tmp_path / "ann" / "a.ipynb")  # opening it would wait for ever
    assert reasons(collect(tmp_path)) == {"ann/a.ipynb": "not a regular file"}


def test_too_large_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "LARGEST_FILE", 1000)
    put(tmp_path, "ann/a.ipynb", content=b" " * 1001)
    put(tmp_path, "bob.zip", content=zipped({"a.ipynb": os.urandom(1001)}))
    ann, bob = collect(tmp_path).found
    assert refusal(ann).startswith("too large: 1,001 bytes")
    assert refusal(bob).startswith("too large: 1,001 bytes")


def test_archive_bombs_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "LARGEST_FILE", 10_000)
    monkeypatch.setattr(archives.Allowance, "of_student", lambda: archives.Allowance(20_000, 5))
    put(tmp_path, "a.zip", content=zipped({"a.ipynb": b"0" * 10_000_000}))
    put(tmp_path, "b/x.zip", content=zipped({f"{k}.ipynb": b"0" * 9_000 for k in range(3)}))
    put(tmp_path, "c/x.zip", content=zipped({f"{k}.ipynb": b"0" for k in range(6)}))
    told = reasons(collect(tmp_path))
    assert told["b/x.zip"] == "an archive bomb: it unpacks to 27,000 bytes"
    assert told["c/x.zip"] == "an archive with 6 files; at most 5 more are read"
    (a,) = [reason for path, reason in told.items() if path.startswith("a.zip")]
    assert "archive bomb" in (a or "")


def test_archives_in_archives_end_somewhere(tmp_path):
    content = zipped({"a.ipynb": NOTEBOOK})
    for _ in range(6):
        content = zipped({"inner.zip": content})
    put(tmp_path, "ann/hw.zip", content=content)
    ((path, reason),) = reasons(collect(tmp_path)).items()
    assert reason == "an archive in an archive in an archive"
    assert path.count("zip") == 4


def test_archives_in_a_student_s_archive_share_its_limits(tmp_path, monkeypatch):
    monkeypatch.setattr(archives.Allowance, "of_student", lambda: archives.Allowance(20_000, 9))
    inner = zipped({f"{k}.ipynb": NOTEBOOK for k in range(3)})
    put(tmp_path, "ann/hw.zip", content=zipped({f"{k}.zip": inner for k in range(3)}))
    put(tmp_path, "bob/hw.zip", content=inner)
    told = reasons(collect(tmp_path))
    assert [path for path, reason in told.items() if reason] == ["ann/hw.zip/2.zip"]
    assert told["ann/hw.zip/2.zip"] == "an archive with 3 files; at most 0 more are read"
    assert len(told) == 3 + 3 + 1 + 3


def test_an_archive_in_an_archive_is_not_unpacked_for_each_of_its_files(tmp_path, monkeypatch):
    unpacked = []
    read = archives.read_member
    monkeypatch.setattr(
        archives, "read_member", lambda source, k: unpacked.append(k) or read(source, k)
    )
    inner = zipped({f"{k}.ipynb": NOTEBOOK for k in range(20)})
    put(tmp_path, "ann/hw.zip", content=zipped({"inner.zip": inner}))
    assert all(found.entry.read() == NOTEBOOK for found in collect(tmp_path).found)
    assert len(unpacked) == 20 + 1


PLATFORMS = {
    "blackboard": "Homework 3_{}_attempt_2026-03-01-12-30-45_{}",
    "canvas": "{}_1234_56789_{}",
    "moodle": "{}_1234_assignsubmission_file_{}",
    "brightspace": "1234-567 - {} - Mar 1, 2026 1230 PM - {}",
}


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("other", PLATFORMS)
def test_nobody_hands_in_for_somebody_else_by_a_file_s_name(tmp_path, platform, other):
    form, disguise = PLATFORMS[platform], PLATFORMS[other].format("ann 1234", "late.ipynb")
    put(tmp_path, form.format("ann", "a.ipynb"), form.format("bob", "b.ipynb"))
    put(tmp_path, form.format("eve", disguise))
    students = [student.split()[0] for student in by_student(collect(tmp_path))]
    assert sorted(students) == ["ann", "bob", "eve"]


def test_an_entry_that_is_larger_than_it_says_is_refused(tmp_path):
    content = zipped({"a.ipynb": b"0" * 5000})
    content = content.replace((5000).to_bytes(4, "little"), (50).to_bytes(4, "little"))
    put(tmp_path, "ann/hw.zip", content=content)
    (found,) = collect(tmp_path).found
    assert "cannot be unpacked" in refusal(found)


@pytest.mark.parametrize(
    "name", ["../../evil.ipynb", "/etc/evil.ipynb", "C:/evil.ipynb", "..\\evil.ipynb"]
)
def test_paths_that_climb_out_of_an_archive(tmp_path, name):
    put(tmp_path, "ann/hw.zip", content=zipped({name: NOTEBOOK, "good.ipynb": NOTEBOOK}))
    put(tmp_path, "bob/b.ipynb")
    collected = collect(tmp_path)
    assert sorted(reason or "" for reason in reasons(collected).values()) == [
        "",
        "",
        "its path leads out of the archive",
    ]
    assert {found.student for found in collected.found} == {"ann", "bob"}
    assert sorted(path.name for path in tmp_path.rglob("*.ipynb")) == ["b.ipynb"]


def test_links_and_secrets_in_an_archive(tmp_path):
    link = zipfile.ZipInfo("link.ipynb")
    link.external_attr = 0o120777 << 16
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(link, "/etc/passwd")
        archive.writestr("locked.ipynb", NOTEBOOK)
    content = file.getvalue()
    at = content.rindex(b"PK\x01\x02") + 8  # the flags of the last entry
    content = content[:at] + b"\x01" + content[at + 1 :]
    put(tmp_path, "ann/hw.zip", content=content)
    assert list(reasons(collect(tmp_path)).values()) == ["a link", "encrypted"]


@pytest.mark.parametrize("name", ["hw.zip", "hw.rar", "hw.tar.gz", "hw.7z"])
def test_archives_that_cannot_be_read_are_somebody_s(tmp_path, name):
    put(tmp_path, f"ann/{name}", content=b"junk")
    ((path, reason),) = reasons(collect(tmp_path)).items()
    assert path == f"ann/{name}"
    assert reason


def test_undecodable_names_are_read_and_can_be_written(tmp_path):
    folder = os.path.join(os.fsencode(tmp_path), b"\xff\xfe")
    os.mkdir(folder)
    with open(os.path.join(folder, b"\xe9.ipynb"), "wb") as file:
        file.write(NOTEBOOK)
    (found,) = collect(tmp_path).found
    assert found.entry.read() == NOTEBOOK
    found.student.encode("utf-8")
    found.path.encode("utf-8")


def test_a_folder_that_cannot_be_opened_is_told(tmp_path, monkeypatch):
    put(tmp_path, "ann/a.ipynb", "bob/b.ipynb")
    scan = os.scandir

    def locked(folder):
        if Path(folder).name == "ann":
            raise PermissionError(13, "Permission denied")
        return scan(folder)

    monkeypatch.setattr(walking.os, "scandir", locked)
    assert reasons(collect(tmp_path)) == {
        "ann": "a folder that cannot be read (Permission denied)",
        "bob/b.ipynb": None,
    }


def test_deep_folders_end_somewhere(tmp_path):
    put(tmp_path, "ann/" + "d/" * 40 + "a.ipynb")
    (found,) = collect(tmp_path).found
    assert found.student == "ann"
    assert "folders deep" in spoken(found.entry.refused or "")


def test_nothing_there_is_said_so(tmp_path):
    with pytest.raises(ValueError, match="no folder, zip archive or notebook"):
        collect(tmp_path / "nowhere")


def test_a_class_on_disk_and_in_a_zip_archive_are_the_same(tmp_path):
    files = {"ann/a.ipynb": encoded(solved("03")), "bob/x/b.ipynb": NOTEBOOK, "cem/c.pdf": b"%PDF"}
    for name, content in files.items():
        put(tmp_path / "folder", name, content=content)
    put(tmp_path, "all.zip", content=zipped(files))
    one, other = collect(tmp_path / "folder"), collect(tmp_path / "all.zip")
    assert by_student(one) == by_student(other)
    assert one.ignored == other.ignored
