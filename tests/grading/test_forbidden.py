"""Ready-made versions are found by what they are, own functions of the same name are not."""

import pytest

from attn_course.checks import exercises, get
from attn_course.checks.ruled_out import called
from attn_course.grading.intake.notebook import read_notebook
from attn_course.grading.intake.rebuild import rebuild
from attn_course.grading.judging import forbidden
from attn_course.grading.judging.so_far import Ran, SoFar
from attn_course.grading.student_code import imports
from tests.grading.notebooks import FORMS, course, encoded, solved

FORBIDDEN = {
    "softmax": [
        "import torch\ndef softmax(s, dim):\n    return torch.softmax(s, dim)",
        "def softmax(s, dim):\n    return s.softmax(dim)",
        "from torch.nn.functional import softmax as soft\ndef softmax(s, dim):\n    return soft(s)",
        "import torch.nn as nn\ndef softmax(s, dim):\n    return nn.Softmax(dim)(s)",
        "def softmax(s, dim):\n    return getattr(s, 'log_softmax')(dim).exp()",
        "from attn_course.attention import softmax",
        "import attn_course\nsoftmax = attn_course.attention.softmax",
        "import torch\ndef softmax(s, dim):\n    return torch.ｓoftmax(s, dim)",
        "def softmax(s, dim):\n    from concurrent.futures import ThreadPoolExecutor as Pool",
        "import threading as t",
        "import torch\nuse = torch.softmax\ndef made():\n    return use\nsoftmax = made()",
        "def softmax(s):\n    return s.exp()\nimport threading\nthreading.Thread().start()",
        "def make():\n    global softmax\n    softmax = torch.softmax\nmake()",
        "if True:\n    from torch import softmax",
        "def softmax(s):\n    pass\nsoftmax.__code__ = (lambda s: s.softmax(-1)).__code__",
        "kept = {}\nkept['one'] = torch.softmax\ndef softmax(s):\n    return kept['one'](s)",
        "import torch\ndef softmax(s, dim):\n    return -torch.nn.functional.cross_entropy(s, dim)",
        "from torch.nn.functional import scaled_dot_product_attention as one",
        "from scipy.special import softmax as one",
        "import operator\nf = operator.attrgetter('softmax')",
        "import asyncio\nf = asyncio.new_event_loop().run_in_executor",
        "import os\npid = os.fork()",
        "from torch._C import DisableTorchFunction",
        "import torch\nunit = torch.jit.CompilationUnit('def f(x): return x')",
        "from torch import jit",
        "f = s" + ".T" * 2000 + ".softmax",
        "f = s" + "(1)" * 2000 + "\ng = s.softmax",
    ],
    "layer_norm": ["import torch.nn.functional as F\nf = lambda x: F.group_norm(x, 1)"],
    "scaled_dot_product_attention": [
        "import torch.nn.functional as F\nf = F.scaled_dot_product_attention",
        "from torch import nn\nf = nn.MultiheadAttention(4, 2)",
    ],
    "softmax_gradient": [
        "def f(s):\n    s.sum().backward()",
        "from torch.autograd.forward_ad import make_dual",
        "import torch\nf = torch._softmax_backward_data",
    ],
    "MultiHeadAttention": ["from torch.nn import TransformerEncoderLayer as Layer"],
    "run_rnn": ["import torch\nnet = torch.nn.RNN(3, 4)"],
}
ALLOWED = {
    "softmax": [
        "def softmax(s, dim):\n    return s.exp() / s.exp().sum(dim)",
        "def other(s):\n    return softmax(s, -1)",
        "# torch.softmax would do\ndef softmax(s, dim):\n    'not torch.softmax(s)'",
        "class A:\n    def go(self):\n        return self.softmax()",
        "def softmax(s):\n    return s.exp()\nassert softmax(s) == s.softmax(-1)",
        "from torch.nn.functional import softmax as theirs\ndef softmax(s):\n    return s.exp()",
        "def softmax(s):\n    one = s\ndef test(s):\n    one = s.softmax(-1)\ntest(softmax)",
        "import torch\nwanted = torch.softmax(x)\nsoftmax = torch.exp\nprint(softmax(x) - wanted)",
        "class Table:\n    pass\ndef softmax(s):\n    Table.softmax = s.exp()",
        "from math import exp\nfork, jit, overrides = 1, 2, 3\nimport os.path, asyncio",
    ],
    "scaled_dot_product_attention": ["def f(q, k):\n    return (q @ k.mT).softmax(-1)"],
    "dot_products": ["import threading"],
    "SelfAttention": ["from attn_course.attention import scaled_dot_product_attention as f"],
    "softmax_gradient": ["def f(s):\n    return s.softmax(-1).grad_fn"],
}


def pairs(table):
    return [(name, source) for name, sources in table.items() for source in sources]


@pytest.mark.parametrize(("name", "source"), pairs(FORBIDDEN))
def test_ready_made_versions_are_found_with_their_line(name, source):
    use = forbidden.find(get(name), source)
    assert use is not None
    assert use.line in source
    assert use.line


@pytest.mark.parametrize(("name", "source"), pairs(ALLOWED))
def test_own_functions_and_what_is_allowed_are_not(name, source):
    assert forbidden.find(get(name), source) is None


def test_what_has_been_judged_may_be_built_on():
    source = "from attn_course.recurrent import rnn_step"
    assert forbidden.find(get("run_rnn"), source) is not None
    assert forbidden.find(get("run_rnn"), source, released=["rnn_step"]) is None


@pytest.mark.parametrize("name", exercises())
def test_what_a_task_says_no_to_is_ruled_out_as_data_and_nothing_else(name):
    exercise = get(name)
    assert bool(exercise.rules_out) == ("no " in exercise.may_use), exercise.may_use


def test_what_was_called_counts_by_any_name():
    assert called(get("cross_entropy"), ["nll_loss_forward", "exp"]) == ["nll_loss_forward"]
    assert called(get("dot_products"), ["nll_loss_forward"]) == []


def test_code_that_looks_where_it_should_not_is_left_to_a_human():
    assert forbidden.suspicious("import gc\neval('1')") == ["eval", "gc"]
    assert forbidden.suspicious("from threading import Thread\ngetattr(a, b + c)") == [
        "getattr",
        "threading",
    ]
    assert forbidden.suspicious("def f(a):\n    return getattr(a, 'sum')()") == []
    assert forbidden.suspicious("from torch._C import a\nos.fork()") == ["_C", "fork"]
    assert forbidden.suspicious("fork = 1\nprint(fork)") == []
    assert forbidden.suspicious("not python (") == []


GIVEN = "from attn_course.blocks import DecoderBlock, LayerNorm"


@pytest.mark.parametrize("line", [GIVEN, "from attn_course.blocks import (\n    DecoderBlock,\n)"])
def test_a_line_that_the_course_s_own_cell_has_is_nobody_s_fault(line):
    done = SoFar(given=imports(GIVEN))
    done.helpers.append(f"{line}\ndef norm(x):\n    return x")
    answer = "class DecoderBlock:\n    forward = norm"
    assert done.forbidden_use("DecoderBlock", answer) is None
    assert done.forbidden_use("DecoderBlock", f"{line}\n{answer}") is None
    use = done.forbidden_use("DecoderBlock", f"# the answer\n{line}")
    assert (use.name, use.number) == ("DecoderBlock", 2)


@pytest.mark.parametrize("form", FORMS)
def test_no_solution_in_any_form_is_taken_for_a_forbidden_one(form):
    for chapter, scaffold in course().items():
        nb = read_notebook(encoded(FORMS[form](solved(chapter))))
        rebuilt = rebuild("anna", nb, scaffold)
        setup = (cell.source for cell in rebuilt.cells if cell.kind == "setup")
        done = SoFar(given=frozenset().union(*map(imports, setup)))
        for cell in rebuilt.cells:
            if cell.kind == "answer":
                done.ran[cell.exercise] = Ran(cell.source)
            if cell.kind in ("helper", "answer"):
                done.helpers.append(cell.source)
            if cell.kind == "check":
                assert done.forbidden_use(cell.exercise, done.ran[cell.exercise].source) is None
                done.verdicts[cell.exercise] = None


def test_helpers_count_as_far_as_the_answer_calls_them():
    helper = "def theirs(s):\n    return s.softmax(-1)\ndef mine(s):\n    return s.exp()"
    by_mine = "def softmax(s):\n    return mine(s)"
    assert forbidden.find(get("softmax"), by_mine, helpers=[helper]) is None
    use = forbidden.find(get("softmax"), by_mine.replace("mine", "theirs"), helpers=[helper])
    assert (use.name, use.number, use.line) == ("softmax", 2, "return s.softmax(-1)")
    spoilt = forbidden.find(get("softmax"), "def softmax(", helpers=[helper])
    assert spoilt is not None
