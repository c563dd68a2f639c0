import json
from itertools import pairwise

import numpy as np
import pytest
import torch
import traitlets
from torch import nn

from attn_course.attention import attention_entropy
from attn_course.explorers import AttentionViewer
from attn_course.explorers.attention_maps import (
    MAX_WEIGHTS,
    dequantise,
    quantisation_step,
    quantise,
    visible,
)
from attn_course.models import Config, DecoderLM, Encoder, Seq2Seq
from attn_course.multihead import MultiHeadAttention, record_attention

SMALL = Config(d_model=16, num_heads=2, num_layers=3, max_len=16, dropout_p=0.5)
MEGABYTES = 1_000_000


def random_maps(*shape: int, seed: int = 0, sharpness: float = 2.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (sharpness * torch.randn(*shape, generator=generator)).softmax(-1)


def close(got: dict, expected: dict) -> None:
    assert got.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(got[name], values, atol=1e-6, err_msg=name)


# -- packing ------------------------------------------------------------------------------


def test_a_weight_moves_by_no_more_than_the_step_that_is_documented():
    weights = np.concatenate([np.linspace(0, 1, 20_001), np.geomspace(1e-12, 1, 2_000)])
    moved = np.abs(dequantise(quantise(weights)) - weights)
    assert (moved <= quantisation_step(weights)).all()
    assert quantisation_step(1.0) < 0.004  # a linear byte would move small ones that far too
    assert quantisation_step(0.001) < 2e-4


def test_only_what_is_hidden_gets_the_weight_zero():
    weights = np.array([0.0, 1e-30, 1.0, np.nan])
    np.testing.assert_array_equal(quantise(weights), [0, 1, 254, 255])
    np.testing.assert_array_equal(dequantise(quantise(weights))[[0, 2]], [0, 1])
    assert np.isnan(dequantise(quantise(weights))[3])


def test_a_larger_weight_never_gets_a_smaller_code():
    codes = quantise(np.linspace(0, 1, 200_001)).astype(int)
    assert all(a <= b for a, b in pairwise(codes))
    assert set(codes.tolist()) == set(range(255))


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        (" the", "␣the"),
        ("New York", "New York"),
        ("  ", "␣␣"),
        ("\n", "⏎"),
        ("a\tb", "a⇥b"),
        ("", "∅"),
        ("\x00", "\\x00"),
        ("\ud800", "\ufffd"),
        ("می‌خواهم", "می‌خواهم"),
        (7, "7"),
    ],
)
def test_a_token_of_spaces_or_control_characters_can_be_seen(token, shown):
    assert visible(token) == shown


# -- what is taken ------------------------------------------------------------------------


def test_a_list_and_a_tensor_of_the_same_maps_are_the_same():
    maps = random_maps(3, 2, 4, 4)
    tokens = ["the", "cat", "the", "cat"]
    one, other = AttentionViewer(maps, tokens), AttentionViewer(list(maps), tokens)
    assert one.state == other.state
    assert AttentionViewer(maps.tolist(), tokens).state == one.state
    assert AttentionViewer(maps.numpy(), tokens).state == one.state
    assert one.sentences[0]["groups"][0]["rows"] == tokens


def test_the_map_of_each_layer_and_head_is_its_own():
    maps = random_maps(3, 2, 4, 5)
    viewer = AttentionViewer(maps, "abcd", "vwxyz")
    for layer in range(3):
        for head in range(2):
            viewer.layer, viewer.head = layer, head
            numbers, exact = viewer.numbers(), maps[layer, head].numpy()
            assert (np.abs(numbers["weights"] - exact) <= quantisation_step(exact)).all()
            entropies = attention_entropy(maps.double()).mean(-1).flatten()
            np.testing.assert_allclose(numbers["entropy"], entropies, atol=1e-6)


def test_layers_may_have_different_numbers_of_heads():
    maps = [random_maps(1, 3, 3), random_maps(4, 3, 3, seed=1)]
    viewer = AttentionViewer(maps, layer=1, head=3)
    np.testing.assert_allclose(viewer.numbers()["weights"], maps[1][3], atol=0.004)
    viewer.layer = 0  # has one head: its last is shown
    np.testing.assert_allclose(viewer.numbers()["weights"], maps[0][0], atol=0.004)


@pytest.mark.parametrize("model", [DecoderLM(9, SMALL), Encoder(9, SMALL)])
def test_a_model_shows_the_weights_that_it_computes_without_dropout(model):
    ids = torch.tensor([[1, 5, 2, 7, 7]])
    model.train()
    frozen = next(module for module in model.modules() if isinstance(module, nn.Dropout)).eval()
    viewer = AttentionViewer.from_model(model, ids, tokens="abcde", layer=2, head=1)
    assert model.training
    assert not frozen.training  # each module is as it was, not all as the first
    with torch.no_grad(), record_attention(model.eval()) as maps:
        model(ids)
    expected = list(maps.values())[2][0, 1]
    np.testing.assert_allclose(viewer.numbers()["weights"], expected, atol=0.004)
    assert viewer.kind == "self"


def test_an_encoder_and_decoder_shows_its_three_kinds_with_the_tokens_of_each_side():
    model = Seq2Seq(9, 8, SMALL).eval()
    source, target = torch.tensor([[1, 2, 3, 4]]), torch.tensor([[5, 6, 7]])
    viewer = AttentionViewer.from_model(
        model, source, target, tokens=["<s>", "x", "y"], key_tokens=["le", "chat", "le", "lit"]
    )
    sides = {g["kind"]: (g["rows"], g["columns"]) for g in viewer.sentences[0]["groups"]}
    ours, theirs = ["<s>", "x", "y"], ["le", "chat", "le", "lit"]
    assert sides == {"encoder": (theirs, theirs), "decoder": (ours, ours), "cross": (ours, theirs)}
    with torch.no_grad(), record_attention(model) as maps:
        model(source, target)
    names = {"encoder": "encoder.blocks.2.self_attention", "decoder": "blocks.2.self_attention"}
    names["cross"] = "blocks.2.cross_attention"
    for kind, name in names.items():
        viewer.kind, viewer.layer, viewer.head = kind, 2, 1
        np.testing.assert_allclose(viewer.numbers()["weights"], maps[name][0, 1], atol=0.004)


def test_padding_is_left_out_of_a_batch_and_nothing_else_is():
    model = Encoder(9, SMALL).eval()
    ids = torch.tensor([[1, 2, 3, 4, 5], [1, 2, 3, 0, 0]])
    padding = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    viewer = AttentionViewer.from_model(model, ids, padding, tokens=[list("abcde"), list("xyz")])
    assert viewer.beside == 1
    numbers = viewer.numbers()
    assert numbers["weights"].shape == (5, 5)
    assert numbers["beside_weights"].shape == (3, 3)
    np.testing.assert_allclose(numbers["beside_weights"].sum(-1), 1, atol=0.02)
    with pytest.raises(traitlets.TraitError, match="no padding"):
        AttentionViewer.from_model(model, ids, tokens=[list("abcde"), list("xyz")])


def test_a_layer_by_itself_is_a_model_too():
    layer = MultiHeadAttention(8, 4)
    x = torch.randn(1, 3, 8, generator=torch.Generator().manual_seed(0))
    viewer = AttentionViewer.from_model(layer, x, x, x, tokens="abc", head=3)
    np.testing.assert_allclose(
        viewer.numbers()["weights"], layer(x, x, x)[1][0, 3].detach(), atol=0.004
    )


def test_modules_of_another_name_are_called_by_it():
    maps = {f"tower.{k}.look": random_maps(1, 2, 3, 3, seed=k) for k in range(2)}
    viewer = AttentionViewer(maps, "abc")
    assert viewer.kind == "tower.*.look"
    assert viewer.sentences[0]["groups"][0]["heads"] == [2, 2]
    towers = {f"{side}.0.self_attention": random_maps(1, 2, 3, 3) for side in ("left", "right")}
    assert AttentionViewer(towers).kind == "right.*.self_attention"  # two of one kind: by name


def test_nothing_of_a_model_is_printed_that_may_differ_elsewhere():
    one, other = (AttentionViewer(random_maps(2, 2, 4, 4, seed=seed)) for seed in (0, 1))
    assert repr(one) == repr(other)
    assert "2 layers of 2 heads, 4 queries by 4 keys" in repr(one)


@pytest.mark.parametrize(
    ("maps", "tokens", "said"),
    [
        (torch.randn(2, 2, 3, 3), None, "between 0 and 1.*before the softmax"),
        (torch.full((1, 1, 2, 2), float("inf")), None, "between 0 and 1"),
        (random_maps(3, 3), None, "maps must have 4 axes.*3, 3"),
        ([random_maps(2, 3, 3), random_maps(2, 4, 4)], None, r"layer 1 has 1 of \(4, 4\)"),
        ([], None, "empty"),
        ({}, None, "empty"),
        ("no maps", None, "must hold numbers"),
        (random_maps(1, 1, 3, 3), list("ab"), "2 tokens for 3 queries"),
        (random_maps(1, 1, 3, 3), list("abcd"), "4 tokens for 3 queries"),
        ({"a": random_maps(2, 1, 3, 3)}, list("abc"), "a list for each of 2 sentences, got 3"),
        (None, list("abc"), "maps that they belong to"),
    ],
)
def test_what_are_no_weights_of_these_tokens_is_refused_with_what_came(maps, tokens, said):
    with pytest.raises(traitlets.TraitError, match=said):
        AttentionViewer(maps, tokens)


def test_too_much_for_a_page_is_refused_with_the_number():
    maps = np.broadcast_to(np.float32(1 / 200), (12, 12, 200, 200))
    with pytest.raises(traitlets.TraitError, match=f"5760000 .* {MAX_WEIGHTS}"):
        AttentionViewer(maps)


def test_a_model_without_attention_is_refused():
    with pytest.raises(traitlets.TraitError, match="Linear used no"):
        AttentionViewer.from_model(nn.Linear(2, 2), torch.ones(1, 2))


def test_sentences_with_other_kinds_do_not_stand_beside_each_other():
    with pytest.raises(traitlets.TraitError, match="same kinds"):
        AttentionViewer(random_maps(1, 1, 2, 2), compare=({"look": random_maps(1, 2, 2)},))
    with pytest.raises(traitlets.TraitError, match="packed"):
        AttentionViewer().sentences = [{"name": "no groups"}]


# -- the two sides ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "state"),
    [
        ((1, 1, 1, 1), {}),
        ((2, 3, 4, 7), {"layer": 1, "head": 2, "row": 3, "column": 6}),
        ((2, 2, 128, 128), {"layer": 1, "row": 127, "column": 64, "stretch": False}),
    ],
)
def test_the_browser_reads_the_same_weights(computed, shape, state):
    maps = random_maps(*shape, seed=shape[-1])
    viewer = AttentionViewer(maps, **state)
    numbers = computed(viewer)
    close(numbers, dict(viewer.numbers()))
    exact = maps[viewer.layer, viewer.head].double().numpy()
    assert (np.abs(numbers["weights"] - exact) <= quantisation_step(exact)).all()
    entropies = attention_entropy(maps.double()).mean(-1).flatten()
    np.testing.assert_allclose(numbers["entropy"], entropies, atol=1e-5)


def test_the_browser_reads_two_sentences_hidden_rows_and_nan(computed):
    maps = random_maps(2, 2, 3, 3)
    maps[0, 0, 1] = 0
    other = random_maps(2, 2, 5, 5, seed=3)
    other[0, 0, 2, 2] = float("nan")
    viewer = AttentionViewer(maps, compare=(other,), row=1, beside_row=2, beside_column=2)
    numbers = computed(viewer)
    close(numbers, dict(viewer.numbers()))
    assert numbers["attends"] == [0, 0, 0]
    assert numbers["row_entropy"] == 0
    assert np.isnan(numbers["beside_attends"][2])
    assert np.isnan(numbers["beside_row_entropy"])


@pytest.mark.parametrize(
    "changes",
    [
        {"layer": 2},
        {"head": -1},
        {"head": 4},
        {"row": 11},
        {"column": -1},
        {"beside_column": 99},
        {"sentence": 2},
        {"beside": 2},
        {"kind": "cross"},
    ],
)
def test_both_sides_refuse_places_that_do_not_exist_in_the_same_words(refusals, changes):
    python, browser = refusals(AttentionViewer(), **changes)
    assert python == browser != ""
    assert str(next(iter(changes.values()))) in python


# -- twelve layers of twelve heads over 128 tokens ----------------------------------------


@pytest.fixture(scope="module")
def large() -> AttentionViewer:
    tokens = [f"token{k}" for k in range(128)]
    return AttentionViewer(random_maps(12, 12, 128, 128), tokens)


def test_a_large_model_fits_into_a_message_and_a_page(large):
    assert len(json.dumps(large.get_state())) < 4 * MEGABYTES
    assert len(large.html()) < 4 * MEGABYTES


def test_every_head_of_a_large_model_is_a_key_press_away(large, opened):
    view = opened(large)
    view.page.keyboard.press("Tab")
    view.press("ArrowDown", "End")
    assert "Layer 1, head 11" in view.caption
    assert "of at most 4.9 nats" in view.caption
    assert large.stretch  # from 0 to 1 there would be little to see


# -- in the page --------------------------------------------------------------------------


def test_the_arrow_keys_choose_a_head_then_a_token(opened):
    view = opened(AttentionViewer())
    view.page.keyboard.press("Tab")
    assert "Layer 0, head 0" in view.focused
    view.press("ArrowRight", "ArrowDown")
    assert view.caption.startswith("Layer 1, head 1: “and” (5)")
    view.page.keyboard.press("Tab")
    view.press("ArrowDown", "ArrowRight")
    assert "“the” (6) to “and” (5)" in view.caption
    view.press("Home")
    assert "“the” (6) to “the” (0)" in view.caption  # two tokens, told apart by their places


# kills: forty maps in one line, each too small to be seen or met
def test_many_heads_take_several_lines_and_the_arrow_keys_go_through_them(opened):
    view = opened(AttentionViewer([random_maps(40, 4, 4), random_maps(23, 4, 4)]))
    view.page.keyboard.press("Tab")
    chosen = "[...attnCourseViews].map(({ state }) => [state.layer, state.head])[0]"
    view.press("ArrowRight", "ArrowDown")
    layer, below = view.page.evaluate(chosen)
    across = below - 1
    assert layer == 0
    assert 4 < across < 20
    last = across * (39 // across)
    for keys, expected in [
        (["ArrowUp", "ArrowUp"], [0, 1]),
        (["End"], [0, 39]),
        (["ArrowRight"], [0, 39]),
        (["ArrowDown"], [1, 39 - last]),
        (["ArrowUp"], [0, 39]),
        (["Home", *["ArrowDown"] * (last // across + 1)], [1, 0]),
        ([*["ArrowDown"] * 9, "End"], [1, 22]),
    ]:
        view.press(*keys)
        assert view.page.evaluate(chosen) == expected
    place = "[...attnCourseViews][0].surfaces[0].area"
    x, y = view.page.evaluate(
        f"[{place}.left + 1.5 * {place}.wide, {place}.top + 1.5 * {place}.high]"
    )
    view.root.locator("canvas").first.click(position={"x": x, "y": y})
    view.settle()
    assert view.page.evaluate(chosen) == [0, across + 1]


def test_the_pointer_chooses_a_row_and_a_column(opened):
    view = opened(AttentionViewer(torch.eye(2)[None, None], ["left", "right"]))
    box = view.root.locator("canvas[aria-label^='attention weights:']").bounding_box()
    view.page.mouse.move(box["x"] + 0.6 * box["height"], box["y"] + 0.7 * box["height"])
    view.settle()
    assert "“right” (1) attends most to “right” (1) 1," in view.caption


def test_a_second_sentence_stands_beside_the_first_and_goes_again(opened):
    view = opened(AttentionViewer())
    assert view.root.get_by_role("group").count() == 1
    view.root.get_by_label("beside it").select_option(index=2)
    view.settle()
    assert view.root.get_by_role("group").count() == 2
    assert view.caption.count("Layer 0, head 0") == 2
    view.root.get_by_label("beside it").select_option(index=0)
    view.settle()
    assert view.root.get_by_role("group").count() == 1


def test_kinds_of_attention_are_chosen_by_name_and_keep_what_is_looked_at(opened):
    model = Seq2Seq(9, 8, SMALL)
    source, target = torch.tensor([[1, 2, 3, 4, 5]]), torch.tensor([[5, 6]])
    viewer = AttentionViewer.from_model(
        model, source, target, tokens="xy", key_tokens="abcde", row=0, column=4
    )
    view = opened(viewer)
    assert "“x” (0) to “e” (4)" in view.caption
    view.root.locator("select").first.select_option("decoder's self-attention")
    view.settle()
    assert "“x” (0) to “y” (1)" in view.caption  # there is no fifth: the last
    assert view.message == ""


def test_tokens_of_any_script_and_length_are_read_out_by_place(opened):
    tokens = ["猫", "من", "👩‍👩‍👧", "Donaudampfschifffahrtsgesellschaft", "猫", "\n"]
    viewer = AttentionViewer(random_maps(1, 2, 6, 6), tokens, column=4, row=3)
    assert viewer.png()[:4] == b"\x89PNG"
    view = opened(viewer, width=380)
    assert "“猫” (4)" in view.caption
    assert "“Donaudampfschifffahrtsg…” (3)" in view.caption
    rows = view.table()
    assert [row[0] for row in rows if row[0].startswith("“⏎")][:1] == ["“⏎” (5)"]


def test_the_table_has_every_heads_entropy_and_the_weights_in_full(opened):
    maps = random_maps(2, 2, 3, 3)
    rows = opened(AttentionViewer(maps, "abc")).table()
    entropy = attention_entropy(maps[1, 0].double()).mean().item()
    found = next(row for row in rows if row[:2] == ["1", "0"])
    assert float(found[2]) == pytest.approx(entropy, abs=1e-4)
    whole = [[float(cell) for cell in row[1:]] for row in rows[-3:]]
    np.testing.assert_allclose(whole, maps[0, 0], atol=0.004)
