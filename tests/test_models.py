"""The three families: equal to PyTorch's stacks, causal, blind to padding, cached as uncached."""

import pytest
import torch
from torch import nn

from attn_course.blocks import EncoderBlock
from attn_course.models import Config, DecoderLM, Encoder, Seq2Seq, TokenEmbedding, count_parameters

POSITIONS = ["none", "sinusoidal", "learned", "rope", "alibi", "relative"]


def config(**sizes):
    settings = {"d_model": 16, "num_heads": 4, "num_layers": 3, "max_len": 32}
    return Config(**(settings | sizes))


def ids(*shape, vocab=11, seed=0):
    return torch.randint(vocab, shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_encoder_is_pytorchs_own_stack(norm):
    torch.manual_seed(0)
    model = Encoder(11, config(norm=norm)).double().eval()
    layers = [block.to_torch() for block in model.stack.blocks]
    reference = nn.TransformerEncoder(layers[0], 3, enable_nested_tensor=False)
    reference.layers = nn.ModuleList(layers)
    x, padding = ids(2, 6), torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    features = reference(model.stack.embedding(x), src_key_padding_mask=~padding)
    expected = model.head(model.stack.final_norm(features))
    torch.testing.assert_close(model(x, padding)[padding], expected[padding], rtol=0, atol=1e-10)


@pytest.mark.parametrize("position", POSITIONS)
def test_a_language_model_does_not_see_the_future(position):
    torch.manual_seed(0)
    model = DecoderLM(11, config(position=position)).double()
    embedded = []

    def keep(_module, _args, output):
        embedded.append(output)
        output.retain_grad()

    model.stack.embedding.table.register_forward_hook(keep)
    model(ids(2, 7))[:, 3].square().sum().backward()
    reached = embedded[0].grad.abs().sum((0, 2)) > 0
    assert reached.tolist() == [True] * 4 + [False] * 3


@pytest.mark.parametrize("position", POSITIONS)
def test_uneven_chunks_through_the_cache_give_the_same_logits(position):
    torch.manual_seed(0)
    model = DecoderLM(11, config(position=position, num_kv_heads=2)).double().eval()
    x, caches, parts = ids(2, 9), model.new_caches(), []
    for chunk in x.split([2, 3, 1, 2, 1], dim=1):
        parts.append(model(chunk, caches))
    torch.testing.assert_close(torch.cat(parts, 1), model(x), rtol=0, atol=1e-12)


@pytest.mark.parametrize("position", POSITIONS)
def test_padding_changes_nothing(position):
    torch.manual_seed(0)
    x, padding = ids(2, 7), torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
    for num_classes in (None, 3):
        model = Encoder(11, config(position=position), num_classes=num_classes).double().eval()
        padded, alone = model(x, padding)[1], model(x[1:, :4])[0]
        torch.testing.assert_close(padded if num_classes else padded[:4], alone)
    model = Seq2Seq(11, 5, config(position=position)).double().eval()
    target = ids(2, 3, vocab=5)
    torch.testing.assert_close(model(x, target, padding)[1:], model(x[1:, :4], target[1:]))


def test_the_decoder_reads_the_source_and_not_its_own_future():
    torch.manual_seed(0)
    model = Seq2Seq(11, 5, config()).double().eval()
    source, target = ids(2, 6), ids(2, 5, vocab=5)
    base = model(source, target)
    other = target.clone()
    other[:, 3] = (other[:, 3] + 1) % 5
    changed = (model(source, other) - base).abs().sum((0, 2)) > 1e-9
    assert changed.tolist() == [False] * 3 + [True] * 2
    assert (model(ids(2, 6, seed=5), target) - base).abs().min() > 0


def test_order_is_unknown_without_positions_and_known_with_them():
    x, swapped = torch.tensor([[1, 2, 3]]), torch.tensor([[3, 2, 1]])
    for position in POSITIONS:
        torch.manual_seed(0)
        model = Encoder(11, config(position=position), num_classes=4).double().eval()
        if position == "relative":  # it begins at zero, and would say nothing yet
            for block in model.stack.blocks:
                nn.init.normal_(block.self_attention.position.table)
        same = torch.allclose(model(x), model(swapped))
        # distance alone is symmetric: three tokens reversed look alike to ALiBi
        assert same == (position in ("none", "alibi"))


def test_the_embedding_begins_with_variance_one():
    torch.manual_seed(0)
    embedding = TokenEmbedding(2000, config(d_model=64, position="none"))
    assert embedding(torch.arange(2000)[None]).var().item() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("position", POSITIONS)
def test_sinusoids_are_built_only_where_they_are_added(position):
    embedding = TokenEmbedding(11, config(position=position))
    assert (embedding.sines is not None) == (position == "sinusoidal")


def test_sinusoids_go_on_past_the_table_and_learned_positions_do_not():
    model = DecoderLM(11, config(position="sinusoidal", max_len=4)).eval()
    assert model(ids(1, 9)).shape == (1, 9, 11)
    longer = DecoderLM(11, config(position="sinusoidal", max_len=64)).eval()
    longer.load_state_dict(model.state_dict())
    torch.testing.assert_close(model(ids(1, 9)), longer(ids(1, 9)))
    with pytest.raises(ValueError, match="0 … 3 learned"):
        DecoderLM(11, config(position="learned", max_len=4))(ids(1, 9))


def test_tying_shares_one_matrix():
    tied, free = DecoderLM(11, config()), DecoderLM(11, config(), tied=False)
    assert tied.head.weight is tied.stack.embedding.table.weight
    assert count_parameters(free) - count_parameters(tied) == 11 * 16


def test_layers_are_their_own_and_all_of_them_learn():
    torch.manual_seed(0)
    for model in (
        DecoderLM(11, config(position="learned")),
        Encoder(11, config(activation="swiglu"), num_classes=3),
    ):
        model(ids(2, 32)).square().sum().backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.abs().sum() > 0 or name.endswith("W_k.bias"), name
    sizes = [count_parameters(DecoderLM(11, config(num_layers=n))) for n in (1, 2, 3)]
    assert (
        sizes[2] - sizes[1]
        == sizes[1] - sizes[0]
        == count_parameters(EncoderBlock(16, 4, 64, norm="pre"))
    )


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"position": "spiral"}, "spiral"),
        ({"num_layers": 0}, "num_layers"),
        ({"num_heads": 5}, "possible are"),
        ({"norm": "middle"}, "middle"),
    ],
)
@pytest.mark.usefixtures("without_shape_checks")
def test_impossible_settings_are_errors(sizes, words):
    with pytest.raises(ValueError, match=words):
        DecoderLM(11, config(**sizes))
