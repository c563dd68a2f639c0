"""Reading a notebook that anybody may have saved, cut, or made up."""

import json

import pytest

from attn_course.grading.intake.archives import Refused
from attn_course.grading.intake.notebook import read_notebook
from attn_course.sentences import spoken
from grading.notebooks import FORMS, code_of, encoded, notebook, solved


@pytest.mark.parametrize("form", ["colab", "vscode", "nbformat 3", "nbformat 4.0"])
def test_every_form_holds_the_same_code(form):
    nb = solved("03")
    read = read_notebook(encoded(FORMS[form](nb)))
    assert list(read.code) == code_of(nb)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_odd_encodings(encoding):
    text = json.dumps(notebook("x = '√d_k'"), ensure_ascii=False)
    assert read_notebook(text.encode(encoding)).code == ("x = '√d_k'",)


def test_bytes_that_are_no_utf_8_are_read_and_noted():
    read = read_notebook(json.dumps(notebook("x = 'é'"), ensure_ascii=False).encode("latin-1"))
    assert read.code == ("x = 'é'",)
    assert "Latin-1" in spoken(read.notes[0])


def test_lines_without_their_ends_are_put_together():
    nb = notebook("")
    nb["cells"][0]["source"] = ["def f():", "    return 1"]
    assert read_notebook(encoded(nb)).code == ("def f():\n    return 1",)


def test_windows_line_ends_and_lone_surrogates():
    content = json.dumps(notebook("x = 1\r\ny = '\ud800'")).encode()
    assert read_notebook(content).code == ("x = 1\ny = '?'",)


def test_huge_outputs_are_no_hindrance():
    nb = notebook("x = 1")
    nb["cells"][0]["outputs"] = [{"output_type": "stream", "text": "spam\n" * 5_000_000}]
    assert read_notebook(encoded(nb)).code == ("x = 1",)


def test_cells_that_are_none_are_left_out_and_counted():
    nb = notebook("x = 1")
    nb["cells"] += [None, "cell", {"cell_type": "code", "source": 3}, {"source": "y"}]
    read = read_notebook(encoded(nb))
    assert read.code == ("x = 1",)
    assert tuple(map(spoken, read.notes)) == ("4 of 5 cells cannot be read",)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b" \n\t", "empty"),
        (b"PK\x03\x04rest", "zip archive"),
        (b"%PDF-1.4", "no JSON"),
        (b"<html>Your session has expired</html>", "no JSON"),
        (b"[]", "JSON, but no object"),
        (b"{}", "without cells"),
        (b'{"cells": 3}', "without cells"),
        (b'{"cells": [', "truncated"),
        (encoded(solved("03"))[:5000], "truncated after"),
        (b'{"cells": [}]}', "broken JSON at character 11"),
        (b'{"a":' + b"[" * 100_000, "nested too deeply"),
        (b'{"cells": [' + b"[]," * 9_000_000 + b"[]]}", "small parts"),
        (encoded(notebook(*["x = 1"] * 6000)), "too much code: 6000 cells"),
        (encoded(notebook("x" * 3_000_000)), "too much code"),
        (b'{"cells": [], "n": ' + b"9" * 10_000 + b"}", "not a notebook"),
    ],
    ids=lambda value: value if isinstance(value, str) else ascii(value[:12]),
)
def test_what_is_no_notebook_is_refused_with_the_reason(content, reason):
    with pytest.raises(Refused, match=reason):
        read_notebook(content)
