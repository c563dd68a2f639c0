"""Ready-made versions are found by what they are, own functions of the same name are not."""

import pytest

from attn_course.checks import exercises, get
from attn_course.grading import forbidden

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
    ],
    "scaled_dot_product_attention": [
        "import torch.nn.functional as F\nf = F.scaled_dot_product_attention",
        "from torch import nn\nf = nn.MultiheadAttention(4, 2)",
    ],
    "softmax_gradient": ["def f(s):\n    s.sum().backward()"],
    "run_rnn": ["import torch\nnet = torch.nn.RNN(3, 4)"],
}
ALLOWED = {
    "softmax": [
        "def softmax(s, dim):\n    return s.exp() / s.exp().sum(dim)",
        "def other(s):\n    return softmax(s, -1)",
        "# torch.softmax would do\ndef softmax(s, dim):\n    'not torch.softmax(s)'",
        "class A:\n    def go(self):\n        return self.softmax()",
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
def test_every_no_of_a_task_is_understood(name):
    exercise = get(name)
    said = exercise.may_use.count("no ")
    assert len(forbidden.phrases(exercise)) == said, exercise.may_use


def test_what_was_called_counts_by_any_name():
    assert forbidden.called(get("cross_entropy"), ["nll_loss_forward", "exp"]) == [
        "nll_loss_forward"
    ]
    assert forbidden.called(get("dot_products"), ["nll_loss_forward"]) == []


def test_code_that_looks_where_it_should_not_is_left_to_a_human():
    assert forbidden.suspicious("import gc\neval('1')") == ["eval", "gc"]
    assert forbidden.suspicious("from threading import Thread\ngetattr(a, b + c)") == [
        "getattr",
        "threading",
    ]
    assert forbidden.suspicious("def f(a):\n    return getattr(a, 'sum')()") == []
    assert forbidden.suspicious("not python (") == []
