"""A solution that a chapter holds itself agrees with the package's own function.

The chapter holds one where the package's function can do more than the learner is asked for.
"""

import ast
from typing import Any

import pytest
import torch
from checks.answers_ch03_repaired_attention import faulty
from hypothesis import given
from hypothesis import strategies as st

from attn_course import masks
from attn_course.attention import scaled_dot_product_attention
from attn_course.authoring.blanks import solved, stubbed
from attn_course.authoring.layout import Course
from attn_course.authoring.source import Cell, ChapterSource, read_chapter
from attn_course.blocks import EncoderBlock
from attn_course.checks import examine, get
from attn_course.experiments.ch07_views import with_torchs_weights

CHAPTERS = [read_chapter(path) for path in Course.here().sources()]
HELD = [
    pytest.param(chapter, cell, id=cell.name)
    for chapter in CHAPTERS
    for cell in chapter.named("answer").values()
    if not cell.module
]


def function_in(chapter: ChapterSource, cell: Cell, code: str) -> Any:
    """What the code defines, with the chapter's imports and its earlier answers at hand."""
    namespace: dict[str, Any] = {}
    shared = [c for c in chapter.cells if c.kind == "code" and c.part in ("exercises", "both")]
    for other in (c for c in shared if c.role == "plain"):
        for node in ast.parse(other.text).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                exec(compile(ast.Module([node], []), other.where, "exec"), namespace)
    for earlier in chapter.named("answer").values():
        if earlier.name == cell.name:
            break
        if not earlier.module:
            exec(compile(solved(earlier.text, earlier.where), earlier.where, "exec"), namespace)
    exec(compile(code, cell.where, "exec"), namespace)
    return namespace[cell.name]


def held(name: str) -> tuple[ChapterSource, Cell]:
    found = [param.values for param in HELD if param.id == name]
    assert found, f"no chapter holds a solution of {name}"
    return found[0]


@pytest.mark.parametrize(("chapter", "cell"), HELD)
def test_it_agrees_with_the_reference_on_other_probes_than_the_build_tries(chapter, cell):
    solution = function_in(chapter, cell, solved(cell.text, cell.where))
    for seed in range(1, 4):
        report = examine(solution, get(cell.name), seed)
        assert report.passed, report.message
        assert not report.remarks


@pytest.mark.parametrize("name", ["scaled_dot_product_attention", "repaired_attention"])
@given(
    sizes=st.tuples(*[st.integers(1, 4)] * 4),
    leading=st.lists(st.integers(1, 3), max_size=2),
    masked=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_attention_agrees_at_any_shape_and_mask(name, sizes, leading, masked, seed):
    chapter, cell = held(name)
    solution = function_in(chapter, cell, solved(cell.text, cell.where))
    rng = torch.Generator().manual_seed(seed)
    n_query, n_key, d_k, d_v = sizes
    query, key, value = (
        torch.randn(*leading, n, d, generator=rng, dtype=torch.float64)
        for n, d in ((n_query, d_k), (n_key, d_k), (n_key, d_v))
    )
    # with few keys, rows without any are frequent
    mask = torch.rand(n_query, n_key, generator=rng) < 0.5 if masked else None
    for actual, expected in zip(
        solution(query, key, value, mask),
        scaled_dot_product_attention(query, key, value, mask),
        strict=True,
    ):
        torch.testing.assert_close(actual, expected)


@given(sizes=st.tuples(st.integers(1, 6), st.integers(0, 4)), b=st.integers(1, 4), data=st.data())
def test_masks_agree_at_any_size(sizes, b, data):
    names = ("causal_mask", "padding_mask", "combine_masks")
    causal_mask, padding_mask, combine_masks = (
        function_in(chapter, cell, solved(cell.text, cell.where))
        for chapter, cell in map(held, names)
    )
    n_query, more = sizes
    n_key = n_query + more
    lengths = torch.tensor(data.draw(st.lists(st.integers(0, n_key), min_size=b, max_size=b)))
    causal, padding = causal_mask(n_query, n_key), padding_mask(lengths, n_key)
    assert torch.equal(causal, masks.causal_mask(n_query, n_key))
    assert torch.equal(padding, masks.padding_mask(lengths, n_key))
    for given_masks in ((), (causal,), (None, causal, combine_masks(causal))):
        for given_padding in (None, padding):
            found = combine_masks(*given_masks, padding=given_padding)
            expected = masks.combine_masks(*given_masks, padding=given_padding)
            assert (found is None) == (expected is None)
            assert found is None or torch.equal(found, expected)


# kills: a faulty version that is right, or whose faults hide each other from the check
def test_the_attention_to_be_repaired_starts_with_the_first_of_its_faults():
    chapter, cell = held("repaired_attention")
    stub = function_in(chapter, cell, stubbed(cell.text, cell.name, cell.where))
    query, key, value = (torch.ones(2, 3) for _ in range(3))
    output, weights = stub(query.clone(), key, value)  # it runs
    assert output.shape == (2, 3)
    assert weights.shape == (2, 2)
    report = examine(stub, get("repaired_attention"))
    assert report.mistake == "query-altered"
    # the very version whose faults tests/checks/answers_ch03_repaired_attention.py mends in turn
    for case in get("repaired_attention").cases():
        if case.stage.call is None:
            query, *others = case.args
            found, mended_nowhere = stub(query.clone(), *others), faulty(query.clone(), *others)
            torch.testing.assert_close(found, mended_nowhere, equal_nan=True)


@pytest.mark.parametrize(("name", "norm"), [("EncoderBlock", "post"), ("PreNormBlock", "pre")])
@given(b=st.integers(1, 3), n=st.integers(1, 5), heads=st.integers(1, 3), seed=st.integers(0, 1000))
def test_blocks_agree_with_the_packages_at_any_shape_and_mask(name, norm, b, n, heads, seed):
    chapter, cell = held(name)
    torch.manual_seed(seed)
    made = function_in(chapter, cell, solved(cell.text, cell.where))
    yours = made(4 * heads, heads, 7).double()
    theirs = yours_as_torchs(yours, norm)
    x, mask = torch.randn(b, n, 4 * heads).double(), masks.causal_mask(n)
    ours = EncoderBlock.from_torch(theirs)
    torch.testing.assert_close(yours(x, mask), ours(x, mask))
    torch.testing.assert_close(yours(x), ours(x))


def yours_as_torchs(block: Any, norm: str) -> torch.nn.TransformerEncoderLayer:
    """PyTorch's layer, with drawn weights that the block gets too."""
    d_model, d_ff = block.feed_forward.W_1.in_features, block.feed_forward.W_1.out_features
    layer = torch.nn.TransformerEncoderLayer(
        d_model,
        block.self_attention.num_heads,
        d_ff,
        dropout=0.0,
        norm_first=norm == "pre",
        batch_first=True,
    ).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn_like(parameter))
        with_torchs_weights(block, layer)
    return layer
