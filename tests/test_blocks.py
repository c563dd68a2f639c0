"""Encoder and decoder blocks: against PyTorch's layers, and by their wiring."""

import pytest
import torch
import torch.nn.functional as F
from oracles import assert_same, gradients, gradients_as_weights, normal, randomise
from torch import nn

from attn_course import blocks, multihead, positions
from attn_course.blocks import DecoderBlock, EncoderBlock, LayerNorm, PreNormBlock, RMSNorm
from attn_course.masks import causal_mask, combine_masks, padding_mask

both_orders = pytest.mark.parametrize("norm", ["post", "pre"])
both_kinds = pytest.mark.parametrize("kind", [EncoderBlock, DecoderBlock])

# --- blocks against PyTorch's layers ------------------------------------------------------


def inputs_for(kind, grad=False):
    """What to call a block with, and PyTorch's layer with: masked for order and padding."""
    x, memory = normal(3, 5, 12, seed=6, grad=grad), normal(3, 6, 12, seed=7, grad=grad)
    padding, memory_padding = (
        padding_mask(torch.tensor([5, 2, 4]), 5),
        padding_mask(torch.tensor([1, 6, 3]), 6),
    )
    causal = causal_mask(5)
    mask = combine_masks(causal, padding=padding)
    if kind is EncoderBlock:
        return (x,), (x, mask), {"src_mask": ~causal, "src_key_padding_mask": ~padding}
    return (
        (x, memory),
        (x, memory, mask, combine_masks(padding=memory_padding)),
        {
            "tgt_mask": ~causal,
            "tgt_key_padding_mask": ~padding,
            "memory_key_padding_mask": ~memory_padding,
        },
    )


@both_kinds
@both_orders
@pytest.mark.parametrize(("activation", "bias"), [("relu", True), ("gelu", False)])
def test_block_equals_torch_with_its_weights(kind, norm, activation, bias):
    theirs = kind.torch_class(
        12, 3, 20, norm_first=norm == "pre", activation=activation, bias=bias,
        layer_norm_eps=1e-3, batch_first=True, dropout=0.0,
    )  # fmt: skip
    randomise(theirs)
    block = kind.from_torch(theirs)
    inputs, arguments, torch_masks = inputs_for(kind, grad=True)
    output, expected = block(*arguments), theirs(*inputs, **torch_masks)
    assert_same(output, expected)
    assert_same(gradients(output, inputs), gradients(expected, inputs))
    assert_same(block.to_torch()(*inputs, **torch_masks), output)


@both_kinds
@both_orders
def test_every_weight_of_a_block_has_torchs_gradient(kind, norm):
    block = randomise(kind(12, 3, 20, norm=norm))
    theirs = block.to_torch()
    inputs, arguments, torch_masks = inputs_for(kind)
    block(*arguments).square().sum().backward()
    theirs(*inputs, **torch_masks).square().sum().backward()
    pairs = block._pairs(gradients_as_weights(theirs))
    assert len(pairs) == len(list(block.parameters()))
    for weight, expected in pairs:
        assert_same(weight.grad, expected)


@both_kinds
@both_orders
def test_a_block_goes_there_and_back(kind, norm):
    block = randomise(kind(12, 3, 20, norm=norm, activation="gelu", dropout_p=0.25)).eval()
    back = kind.from_torch(block.to_torch())
    assert back.state_dict().keys() == block.state_dict().keys()
    for name, weight in block.state_dict().items():
        assert torch.equal(back.state_dict()[name], weight)
    assert str(back) == str(block)
    assert back.feed_forward.activation == "gelu"
    assert back.around_self.order == norm
    assert back.self_attention.dropout_p == 0.25
    assert not back.training


@pytest.mark.parametrize("activation", [nn.ReLU(), nn.GELU(), F.relu, F.gelu])
def test_activations_of_torch_that_we_have(activation):
    theirs = randomise(
        nn.TransformerEncoderLayer(12, 3, 20, 0.0, activation=activation, batch_first=True)
    )
    x = normal(2, 4, 12, seed=8)
    assert_same(EncoderBlock.from_torch(theirs)(x), theirs(x))


@pytest.mark.parametrize("activation", [nn.GELU(approximate="tanh"), F.silu])
def test_activations_of_torch_that_we_have_not(activation):
    theirs = nn.TransformerEncoderLayer(12, 3, 20, activation=activation, batch_first=True)
    with pytest.raises(ValueError, match="neither ReLU nor exact GELU"):
        EncoderBlock.from_torch(theirs)


def test_another_kind_of_layer():
    with pytest.raises(ValueError, match=r"DecoderBlock is made from .*TransformerDecoderLayer"):
        DecoderBlock.from_torch(nn.TransformerEncoderLayer(12, 3, batch_first=True))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"activation": "swiglu"}, "SwiGLU"),
        ({"norm_layer": RMSNorm}, "norm"),
        ({"position": positions.RotaryPositions()}, "positions in attention"),
        ({"num_kv_heads": 1}, "shared key heads"),
    ],
)
def test_what_torchs_layer_cannot_express(options, words):
    with pytest.raises(ValueError, match=f"cannot express this block's {words}$"):
        EncoderBlock(12, 3, 20, **options).to_torch()


def test_a_bias_in_the_norms_alone_is_not_lost_in_silence():
    with pytest.raises(ValueError, match="a bias that the other lacks"):
        EncoderBlock(12, 3, 20, bias=False).to_torch()


# kills: a pre-norm block that is post-norm, or that loses options on the way
def test_a_pre_norm_block_is_an_encoder_block_with_its_norms_first():
    block = randomise(PreNormBlock(12, 3, 20, activation="gelu"))
    plain = randomise(EncoderBlock(12, 3, 20, norm="pre", activation="gelu"))
    plain.load_state_dict(block.state_dict())
    _, arguments, _ = inputs_for(EncoderBlock)
    assert_same(block(*arguments), plain(*arguments))
    assert_same(PreNormBlock.from_torch(block.to_torch())(*arguments), plain(*arguments))


@pytest.mark.usefixtures("without_shape_checks")
def test_a_pre_norm_block_cannot_be_made_from_a_post_norm_layer():
    theirs = nn.TransformerEncoderLayer(12, 3, 20, batch_first=True)
    with pytest.raises(ValueError, match="norm='pre', got 'post'"):
        PreNormBlock.from_torch(theirs)


# --- wiring -------------------------------------------------------------------------------


def silence(block, all_but="nothing"):
    """Let every sublayer return zero."""
    for name, parameter in block.named_parameters():
        if ("W_o" in name or "W_2" in name) and all_but not in name:
            nn.init.zeros_(parameter)


@both_kinds
def test_without_its_sublayers_a_pre_norm_block_is_the_identity(kind):
    block = randomise(kind(12, 3, 20, norm="pre"))
    silence(block)
    inputs, _, _ = inputs_for(kind)
    assert torch.equal(block(*inputs), inputs[0])


@both_kinds
def test_without_its_sublayers_a_post_norm_block_is_its_norms(kind):
    block = randomise(kind(12, 3, 20, norm="post"))
    silence(block)
    inputs, _, _ = inputs_for(kind)
    expected = block.around_self.norm(inputs[0])
    if kind is DecoderBlock:
        expected = block.around_cross.norm(expected)
    assert_same(block(*inputs), block.around_feed_forward.norm(expected))


@both_kinds
def test_what_leaves_a_post_norm_block_is_normalised(kind):
    block = kind(12, 3, 20, norm="post").double()
    inputs, _, _ = inputs_for(kind)
    output = block(*(5 * x for x in inputs))
    assert_same(output.mean(-1), torch.zeros(3, 5).double(), 1e-6)
    assert_same(output.var(-1, correction=0), torch.ones(3, 5).double(), 1e-3)


@both_kinds
def test_pre_norm_self_attention_sees_no_scale(kind):
    block = randomise(kind(12, 3, 20, norm="pre"))
    silence(block, all_but="self_attention")
    inputs, _, _ = inputs_for(kind)
    x, *memory = inputs
    added = block(x, *memory) - x
    assert added.abs().max() > 0.1
    # queries, keys and values alike come from what the norm returns
    assert_same(block(10 * x, *memory) - 10 * x, added, 1e-3)


@both_kinds
@both_orders
def test_each_part_has_weights_of_its_own(kind, norm):
    block = kind(12, 3, 20, norm=norm)
    modules = [m for m in block.modules() if isinstance(m, nn.Linear | LayerNorm)]
    sublayers = 2 if kind is EncoderBlock else 3
    assert len(modules) == 4 * (sublayers - 1) + 2 + sublayers
    assert len({id(p) for m in modules for p in m.parameters()}) == 2 * len(modules)


@both_kinds
@both_orders
def test_the_past_of_a_block_does_not_depend_on_its_future(kind, norm):
    block = randomise(kind(12, 3, 20, norm=norm))
    x = normal(1, 5, 12, seed=11, grad=True)
    memory = (normal(1, 6, 12, seed=12),) if kind is DecoderBlock else ()
    output = block(x, *memory, causal_mask(5))
    for t in range(5):
        # a plain sum of what a norm returns would not depend on what it is given
        seen = torch.autograd.grad(output[0, t] @ normal(12, seed=13), x, retain_graph=True)[0]
        assert seen[0].any(dim=-1).tolist() == [s <= t for s in range(5)]


def test_cross_attention_asks_with_x_and_reads_the_memory():
    block = randomise(DecoderBlock(12, 3, 20, norm="pre"))
    x, memory = normal(1, 4, 12, seed=14), normal(1, 6, 12, seed=15)
    with multihead.record_attention(block) as maps:
        block(x, memory, causal_mask(4), padding_mask(torch.tensor([2]), 6)[:, None, None])
    assert maps["self_attention"].shape == (1, 3, 4, 4)
    assert maps["cross_attention"].shape == (1, 3, 4, 6)
    assert (maps["cross_attention"][..., 2:] == 0).all()
    assert (maps["self_attention"][..., ~causal_mask(4)] == 0).all()


@both_orders
def test_a_cached_block_equals_the_whole(norm):
    class ListCache:
        length, key, value = 0, None, None

        def append(self, key, value):
            self.key = key if self.key is None else torch.cat([self.key, key], 2)
            self.value = value if self.value is None else torch.cat([self.value, value], 2)
            self.length = self.key.shape[2]
            return self.key, self.value

    for kind in (EncoderBlock, DecoderBlock):
        block = randomise(kind(12, 3, 20, norm=norm, position=positions.RotaryPositions()))
        x = normal(2, 6, 12, seed=16)
        memory = (normal(2, 3, 12, seed=17),) if kind is DecoderBlock else ()
        cache, parts = ListCache(), []
        for chunk in x.split([2, 3, 1], dim=1):
            mask = causal_mask(chunk.shape[1], cache.length + chunk.shape[1])
            parts.append(block(chunk, *memory, mask, cache=cache))
        assert_same(torch.cat(parts, dim=1), block(x, *memory, causal_mask(6)))


@both_kinds
def test_options_reach_the_parts_they_are_for(kind):
    hook = positions.RotaryPositions()
    block = kind(
        24, 6, 20, norm="pre", norm_layer=RMSNorm, activation="swiglu", dropout_p=0.25,
        bias=False, num_kv_heads=2, position=hook,
    )  # fmt: skip
    assert {name.rsplit(".", 1)[1] for name, _ in block.named_parameters()} == {"weight", "gain"}
    assert isinstance(block.around_feed_forward.norm, RMSNorm)
    assert block.self_attention.position is hook
    assert block.self_attention.num_kv_heads == 2
    if kind is DecoderBlock:
        assert block.cross_attention.num_kv_heads == 2
        assert block.cross_attention.position is None
        assert block.cross_attention.dropout_p == 0.25
    assert block.self_attention.dropout_p == 0.25
    assert block.feed_forward.dropout.p == 0.25
    assert block.around_self.dropout.p == 0.25
    assert block.feed_forward.W_gate is not None


@both_kinds
def test_dropout_of_a_block_in_training_only(kind):
    block, without = randomise(kind(12, 3, 20, dropout_p=0.5)), randomise(kind(12, 3, 20))
    _, arguments, _ = inputs_for(kind)
    assert (block(*arguments) - block(*arguments)).abs().max() > 1e-3
    assert_same(block.eval()(*arguments), without(*arguments))


@both_orders
def test_dropout_of_a_residual_is_on_what_the_sublayer_returns(norm):
    torch.manual_seed(0)
    residual = blocks.Residual(nn.Identity(), norm, dropout_p=0.5)
    x = torch.ones(10, 10, 10)
    out = residual(x, lambda y: y)
    # dropped: x alone; kept: x and twice the sublayer's one
    assert sorted(out.unique().tolist()) == [1.0, 3.0]


@pytest.mark.usefixtures("without_shape_checks")
def test_choices_that_do_not_exist():
    with pytest.raises(ValueError, match="norm='middle' is none of post, pre"):
        EncoderBlock(12, 3, 20, norm="middle")
    with pytest.raises(ValueError, match="activation='tanh' is none of relu, gelu, swiglu"):
        DecoderBlock(12, 3, 20, activation="tanh")


@both_kinds
def test_heads_that_do_not_divide(kind):
    with pytest.raises(ValueError, match="d_model=12 is not divisible by num_heads=5"):
        kind(12, 5, 20)
