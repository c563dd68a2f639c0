"""What comes out: tables, pages and the platforms' files, whatever students put into them."""

import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from attn_course.checks import examine, get
from attn_course.checks.compare import Problem
from attn_course.checks.report import Example
from attn_course.grading.intake.names import Sender
from attn_course.grading.intake.plan import File, Plan
from attn_course.grading.judging.assess import Assessment
from attn_course.grading.rebuilt import Rebuilt, RebuiltCell
from attn_course.grading.reports import csvs, pages, review
from attn_course.grading.reports.grades import Grades, make_grades
from attn_course.grading.reports.gradescope import results_json
from attn_course.grading.reports.write import write_reports
from attn_course.grading.settings import RunSettings
from attn_course.grading.text import clean, slug
from attn_course.grading.verdict import STATUSES, Verdict
from attn_course.sentences import Code, Drawn, say, spoken
from grading.notebooks import course

HTML = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{ 7*7 }}"
EXERCISES = course()["03"].exercises


def verdict(student: str, k: int = 0, status: str = "ok", **fields) -> Verdict:
    exercise = EXERCISES[k]
    points = exercise.points if status == "ok" else 0.0
    given = {"points": points, "detail": {"code": "def f():\n    return 1"}, **fields}
    return Verdict(student, "03", exercise.name, max_points=exercise.points, status=status, **given)


def grades(*rows: Verdict, sandbox: str = "bubblewrap", senders: dict | None = None) -> Grades:
    students = sorted({row.student for row in rows})
    by_student = {student: [r for r in rows if r.student == student] for student in students}
    tasks = [
        Rebuilt(s, "03", tuple(RebuiltCell("check", "", r.exercise) for r in by_student[s]))
        for s in students
    ]
    known = {s: Sender(s) for s in students} | (senders or {})
    plan = Plan(tuple(tasks), (File("ann/a.ipynb", "ann", "graded"),), known, ("03",))
    verdicts = {(s, "03"): found for s, found in by_student.items()}
    return make_grades(plan, verdicts, course(), RunSettings(sandbox=sandbox, seed=4))


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


class Tags(HTMLParser):
    """The elements and attributes of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.links += [value for name, value in attrs if name == "href"]

    def handle_data(self, data):
        self.text += data


def assert_harmless(page: str) -> Tags:
    tags = Tags(page)
    assert not {"script", "img", "iframe", "object"} & set(tags.names)
    assert not [name for name in tags.attributes if name.startswith("on")]
    assert not [link for link in tags.links if ":" in link or link.startswith("/")]
    assert "default-src 'none'" in page
    return tags


def test_grades_csv_has_a_row_for_every_verdict():
    table = csvs.grades_csv(
        grades(verdict("ann"), verdict("ann", 1, "wrong", points=1.25, mistake="no-scale"))
    )
    assert rows_of(table) == [
        {"student": "ann", "chapter": "03", "exercise": "attention_entropy", "points": "2",
         "max_points": "2", "status": "ok", "mistake": "", "message": ""},
        {"student": "ann", "chapter": "03", "exercise": "scaled_dot_product_attention",
         "points": "1.25", "max_points": "4", "status": "wrong", "mistake": "no-scale",
         "message": ""},
    ]  # fmt: skip


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r=", "  =", "＝", "|", "%"])
def test_no_cell_is_taken_for_a_formula(start, tmp_path):
    nasty = f"{start}cmd|' /C calc'!A0"
    sender = Sender(nasty, "moodle", "7")
    row = verdict(nasty, status="wrong", mistake=nasty, cause=nasty)
    write_reports(grades(row, senders={nasty: sender}), tmp_path)
    written = {path.name: path.read_bytes().decode() for path in tmp_path.glob("*.csv")}
    assert written.keys() >= {"grades.csv", "summary.csv", "canvas.csv", "moodle_03.csv"}
    for text in written.values():
        for cells in list(csv.reader(io.StringIO(text)))[1:]:
            for cell in cells:
                assert not cell.lstrip(" ").startswith(
                    ("=", "+", "-", "@", "\t", "\r", "＝", "|", "%")
                )


def test_separators_line_ends_and_quotes_stay_inside_their_cell():
    nasty = 'a";=1,\n=2;"b'
    text = csvs.grades_csv(grades(verdict("ann", status="wrong", cause=nasty)))
    (row,) = rows_of(text)
    assert row["message"] == nasty
    assert all(re.match(r'".*"|.*=2', line) for line in text.splitlines())


def test_summary_csv_adds_up_and_leaves_optional_exercises_out_of_what_is_reachable():
    table = rows_of(
        csvs.summary_csv(grades(*[verdict("ann", k) for k in range(5)], verdict("bob")))
    )
    assert table == [
        {"student": "ann", "chapter_03": "17", "points": "17", "max_points": "15"},
        {"student": "bob", "chapter_03": "2", "points": "2", "max_points": "15"},
    ]


def test_canvas_finds_students_by_its_own_number():
    senders = {"doe 12": Sender("doe 12", "canvas", "12")}
    rows = rows_of(csvs.canvas_csv(grades(verdict("doe 12"), verdict("bob"), senders=senders)))
    title = "03 Scaled dot-product attention"
    assert [(r["Student"].strip(), r["ID"], r["SIS Login ID"], r[title]) for r in rows] == [
        ("Points Possible", "", "", "15"),
        ("bob", "", "bob", "2"),
        ("doe 12", "12", "", "2"),
    ]


def test_moodle_finds_participants_by_number():
    senders = {"Jane Doe 77": Sender("Jane Doe 77", "moodle", "77")}
    (row,) = rows_of(
        csvs.moodle_csv(grades(verdict("Jane Doe 77"), verdict("bob"), senders=senders), "03")
    )
    assert row["Identifier"] == "Participant 77"
    assert row["Full name"] == "Jane Doe"
    assert (row["Grade"], row["Maximum Grade"]) == ("2", "15")
    assert "Last modified (grade)" in row
    assert row["Feedback comments"] == "attention_entropy: ok, 2 of 2"


def test_what_is_the_same_for_several_exercises_is_told_once():
    rows = [verdict("ann", number, "wrong", mistake=None) for number in (0, 1)]
    page = pages.report_page(grades(*rows, verdict("bob", 0, "killed")))
    assert page.count("no known mistake explains it") == 1
    names = [row.exercise for row in rows]
    assert ", ".join(names) in Tags(page).text
    assert "bob" in Tags(page).text


def test_the_line_is_not_told_twice():
    row = verdict("ann", status="forbidden", cause="It uses `F.x` at `F.x(q)`.")
    row.detail["line"] = "F.x(q)"
    assert Tags(pages.feedback_page(grades(row), "ann", "03")).text.count("F.x(q)") == 1


def test_gradescope_s_results(tmp_path):
    write_reports(grades(verdict("ann"), verdict("ann", 3), verdict("bob")), tmp_path)
    results = json.loads((tmp_path / "gradescope" / "ann" / "results.json").read_text())
    assert results["score"] == 4
    first, optional = results["tests"]
    assert first["name"] == "Exercise 3.1: attention_entropy"
    assert (first["score"], first["max_score"], first["status"]) == (2, 2, "passed")
    assert optional["max_score"] == 0


@pytest.mark.parametrize("status", STATUSES)
def test_the_feedback_page_says_what_happened(status):
    parts = {"cause": "Look at the factor.", "notes": ("Divide by something.",)}
    row = verdict("ann", 1, status, mistake="no-scale", **parts)
    row.detail.update(stages=[["scale", False], ["mask", True]])
    tags = assert_harmless(pages.feedback_page(grades(row), "ann", "03"))
    if status == "ok":
        assert "✗" not in tags.text
        return
    for words in ("Exercise 3.2", "Look at the factor.", "no-scale", "Divide by something.",
                  "return 1", "03 Scaled dot-product attention"):  # fmt: skip
        assert words in tags.text
    # what has been ended, or was never judged, has not been looked at
    for words in ("✗ scale", "✓ mask"):
        assert (words in tags.text) == (status in ("wrong", "error"))


def test_everything_of_a_student_s_is_escaped():
    detail = {"code": HTML, "line": f"call({HTML})", "output": HTML, "stages": [[HTML, False]]}
    parts = {"cause": HTML, "problem": say("{it}", it=HTML), "notes": (HTML,), "human": (HTML,)}
    nasty = grades(
        verdict(HTML, status="wrong", mistake=HTML, detail=detail, **parts),
        verdict("twin", status="wrong", mistake=HTML, detail=detail, **parts),
    )
    page = pages.feedback_page(nasty, HTML, "03")
    assert assert_harmless(page).text.count(HTML) == 8  # title, name, and six fields
    assert assert_harmless(pages.report_page(nasty)).text.count(HTML) > 5
    assert "49" not in page


def test_a_student_s_page_has_nothing_of_another_s():
    secret = verdict("bob", 1, "wrong", cause="bobs message", detail={"code": "bobs code"})
    page = pages.feedback_page(grades(verdict("ann"), secret), "ann", "03")
    assert "bob" not in page


def test_the_reports_say_that_there_was_no_sandbox():
    loose = grades(verdict("ann"), sandbox="none")
    assert "without a sandbox" in Tags(pages.report_page(loose)).text
    assert "without a sandbox" in Tags(pages.feedback_page(loose, "ann", "03")).text
    assert "without a sandbox" not in Tags(pages.report_page(grades(verdict("ann")))).text


def test_the_report_counts_the_commonest_mistakes():
    rows = [verdict(f"s{k}", 1, "wrong", mistake="no-scale", cause="A") for k in range(3)]
    rows += [verdict("t", 1, "wrong", mistake="wrong-axis", cause="B"), verdict("u", 1)]
    figures = next(f for f in review.exercise_figures(grades(*rows)) if f.number == "3.2")
    assert figures.mistakes == [("no-scale", 3, "A"), ("wrong-axis", 1, "B")]
    assert figures.counts == {"ok": 1, "wrong": 4}
    assert figures.mean == 4 / 5


def test_the_distribution_counts_those_who_answered():
    rows = [verdict("a", k) for k in (0, 1, 2, 4)] + [
        verdict("b"),
        verdict("c", status="missing", detail={}),
    ]
    figures = review.chapter_figures(grades(*rows), "03")
    assert figures.bins == [0, 1, 0, 0, 0, 0, 0, 0, 0, 1]
    assert (figures.handed_in, figures.mean, figures.median) == (2, 8.5, 8.5)


def test_answers_that_are_the_same_up_to_names_are_grouped():
    one = "def f(x):\n    # mine\n    y = x + 1\n    return y"
    same = "def f(x):\n    z = x + 1\n    return z"
    other = "def f(x):\n    return x + 1"
    rows = [verdict(s, status="wrong", detail={"code": c})
            for s, c in [("a", one), ("b", other), ("c", same)]]  # fmt: skip
    (group,) = review.groups(rows)
    assert group.students == ("a", "c")
    assert group.code == one


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (verdict("ann", status="wrong"), "no known mistake explains it"),
        (verdict("ann", status="killed"), "killed"),
        (verdict("ann", status="timeout"), "time limit"),
        (verdict("ann", status="forbidden"), "does not allow"),
        (verdict("ann", human=("odd",)), "odd"),
        (verdict("ann", status="wrong", mistake="no-scale"), None),
        (verdict("ann"), None),
        (verdict("ann", status="missing", detail={}), None),
    ],
)
def test_what_needs_a_human(row, why):
    found = review.concerns(grades(row, *[verdict(f"s{k}") for k in range(3)]))
    if why is None:
        assert found == []
    else:
        (concern,) = found
        assert (concern.student, concern.exercise) == ("ann", "attention_entropy")
        assert why in " ".join(map(spoken, concern.reasons))


def test_a_broken_file_beside_a_graded_one_needs_a_human():
    table = grades(verdict("ann"))
    table.data["files"].append(
        {"path": "ann/b.ipynb", "student": "ann", "fate": "corrupt", "reason": "empty"}
    )
    (concern,) = review.concerns(table)
    assert (concern.student, *map(spoken, concern.reasons)) == (
        "ann",
        "ann/b.ipynb: corrupt, empty",
    )


def test_code_is_shown_as_code_and_nothing_else_becomes_markup():
    row = verdict("ann", status="wrong", cause="`a <b>` is <i>wrong</i>", mistake="m")
    page = pages.feedback_page(grades(row), "ann", "03")
    assert "<code>a &lt;b&gt;</code> is &lt;i&gt;" in page


def test_a_chapter_that_hardly_anybody_handed_in_is_asked_about():
    rows = [verdict(f"s{k:02d}", status="missing", detail={}) for k in range(19)]
    (concern,) = review.concerns(grades(*rows, verdict("zoe")))
    assert "only 1 of 20 handed this chapter in" in spoken(concern.reasons[0])


def test_reports_of_students_who_are_gone_go_too(tmp_path):
    write_reports(grades(verdict("ann"), verdict("bob")), tmp_path)
    (tmp_path / "feedback" / "mine.txt").write_text("kept")
    write_reports(grades(verdict("ann")), tmp_path)
    assert [path.name for path in (tmp_path / "feedback").iterdir() if path.is_dir()] == ["ann"]
    assert [path.name for path in (tmp_path / "gradescope").iterdir()] == ["ann"]
    assert (tmp_path / "feedback" / "mine.txt").exists()


@pytest.mark.parametrize(
    "name",
    ["../../etc", "/etc/passwd", "..", ".", "", "con", "a/b", "a\\b", "\0", "\ud800", "x" * 400],
)
def test_no_name_leads_out_of_the_results(tmp_path, name):
    write_reports(grades(verdict(name)), tmp_path / "out")
    (page,) = (tmp_path / "out").glob("feedback/*/03.html")
    assert page.parent.parent == tmp_path / "out" / "feedback"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_names_that_differ_in_anything_have_files_that_differ():
    names = ["ann", "Ann", "ANN", "ann ", "an n", "an_n", "an/n", "é", "e\u0301", "..", ".", "con"]
    assert len({slug(name).casefold() for name in names}) == len(names)
    for name in names:
        assert Path(slug(name)).name == slug(name) != ".."


def test_texts_are_cleaned_of_what_cannot_be_written_or_misleads():
    assert clean("a\ud800b\x00c\u202ed\te\n") == "a\ufffdb\ufffdc\ufffdd\te\n"
    assert clean("x" * 30, 20) == "x" * 20 + "…"


def test_what_an_executor_hands_over_can_always_be_written(tmp_path):
    detail = {"code": "\ud800", "output": "\x1b[31m\x00" * 9, 3: ("a", float("nan"))}
    write_reports(grades(verdict("ann", status="wrong", cause="\ud800", detail=detail)), tmp_path)
    assert "\x1b" not in (tmp_path / "feedback" / "ann" / "03.html").read_text()


LOOKED_UP = Example(
    (("query", Code("[[1, 0]]")), ("word", Code("'a: b'")), ("n", Code("3"))),
    Problem("`output` is wrong"),
    (("output", Code("[[0.73]]")),),
    (("output", Code("[[0.66]]")),),
)
ENDLESS = Problem("it did not end: is there a loop?", asks=True)
COUNTED = Problem(say("it is {got}, expected {want}", got=Drawn("0.73"), want=Drawn("0.66")))


@pytest.mark.parametrize(
    ("cause", "example", "expected"),
    [
        ("Right on all 15 probes.", None, "Right on all 15 probes."),
        (
            "There is none.",
            LOOKED_UP,
            "There is none.\nOn inputs drawn for grading: `output` is wrong.",
        ),
        (
            "With 0.73 in it, a hint stays.\nYours: a hint too.",
            None,
            "With 0.73 in it, a hint stays.\nYours: a hint too.",
        ),
        (
            "",
            Example((("x", Code("[[1, 0]]")),), ENDLESS),
            "On inputs drawn for grading: it did not end: is there a loop?",
        ),
        ("", Example((), COUNTED), "it is …, expected …."),
    ],
)
def test_a_student_is_not_told_the_hidden_inputs(cause, example, expected):
    row = judged(cause, example, detail={"output": "hidden 0.123"})
    table = grades(row)
    page = Tags(pages.feedback_page(table, "ann", "03")).text
    (test,) = json.loads(results_json(table, "ann"))["tests"]
    assert expected.replace("`", "") in page
    assert test["output"] == f"wrong. {expected}"
    told = page.replace(str(cause), "")
    for hidden in ("[[1, 0]]", "0.73", "0.66", "0.123", "a: b"):
        assert hidden not in told


def test_the_instructor_is_told_the_example_in_full():
    table = csvs.grades_csv(grades(judged("There is none.", LOOKED_UP)))
    for shown in ("query = [[1, 0]]", "Yours: output = [[0.73]]", "Expected: output = [[0.66]]"):
        assert shown in table


@pytest.mark.parametrize("exercise", [exercise.name for exercise in EXERCISES])
def test_no_message_of_a_known_mistake_tells_inputs_either(exercise):
    entry = get(exercise)
    versions = [v for mistake in entry.mistakes[::5] for v in entry.versions(mistake)[:1]]
    assert versions
    for version in versions:
        report = examine(version, entry, seed=5)
        text = judged(report.cause, report.example).feedback
        assert not re.search(r"= \[|Yours|Expected: ", text), text


def judged(cause, example: Example | None, **fields) -> Verdict:
    """The row of a wrong answer, as the session makes it of an assessment."""
    found = Assessment("wrong", cause, example=example)
    lines = tuple(example.lines()) if example else ()
    parts = {"cause": cause, "problem": found.problem, "example": lines}
    return verdict("ann", status="wrong", **parts, **fields)
