"""The recurrent step by hand, against PyTorch's own layers; and the baselines built on them."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from attn_course.attention import scaled_dot_product_attention
from attn_course.recurrent import (
    RecurrentLM,
    RecurrentSeq2Seq,
    RNNCell,
    gradient_by_distance,
    rnn_step,
    run_rnn,
)
from attn_course.tasks import START, copy_task, shift_right
from attn_course.training import fit

SIZES = st.integers(1, 5)


@pytest.fixture(autouse=True)
def _seeded():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def torch_rnn(W_x, W_h, b):
    """PyTorch's fused layer with our weights; it stores them (out, in) and has two biases."""
    d_in, d_h = W_x.shape
    layer = nn.RNN(d_in, d_h, batch_first=True, dtype=W_x.dtype)
    with torch.no_grad():
        layer.weight_ih_l0.copy_(W_x.T)
        layer.weight_hh_l0.copy_(W_h.T)
        layer.bias_ih_l0.copy_(b)
        layer.bias_hh_l0.zero_()
    return layer


def weights(d_in, d_h, generator):
    shapes = ((d_in, d_h), (d_h, d_h), (d_h,))
    return [torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes]


# kills: no tanh, no bias, x and h exchanged, a transposed weight (d_in and d_h differ)
def test_step_by_hand():
    x, h = torch.tensor([[1.0, -2.0]]), torch.tensor([[0.5, 0.0, 1.0]])
    W_x = torch.tensor([[0.1, 0.2, 0.3], [0.4, 0.0, -0.1]])
    W_h = torch.tensor([[0.0, 1.0, 0.0], [5.0, 5.0, 5.0], [0.2, 0.0, -0.4]])
    b = torch.tensor([0.1, -0.1, 0.0])
    # 0.1 − 0.8 + 0.2 + 0.1, 0.2 + 0.5 − 0.1, 0.3 + 0.2 − 0.4
    expected = torch.tensor([[-0.4, 0.6, 0.1]]).tanh()
    torch.testing.assert_close(rnn_step(x, h, W_x, W_h, b), expected)


# kills: a start from zeros, h0 among the states, the last state left out, time running backwards
@given(SIZES, SIZES, SIZES, SIZES, st.integers(0, 100))
def test_run_equals_the_fused_layer(b, n, d_in, d_h, seed):
    generator = torch.Generator().manual_seed(seed)
    W_x, W_h, bias = weights(d_in, d_h, generator)
    inputs = torch.randn(b, n, d_in, generator=generator, dtype=torch.float64)
    h0 = torch.randn(b, d_h, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        expected, _ = torch_rnn(W_x, W_h, bias)(inputs, h0[None])
    torch.testing.assert_close(run_rnn(inputs, h0, W_x, W_h, bias), expected)


def test_run_refuses_to_read_nothing():
    W_x, W_h, b = weights(2, 3, torch.Generator())
    with pytest.raises(ValueError, match=r"\(4, 0, 2\)"):
        run_rnn(torch.zeros(4, 0, 2).double(), torch.zeros(4, 3).double(), W_x, W_h, b)


def decaying(inputs):
    """Outputs y_t = Σ_s 0.5^(t − s) x_s: the gradient halves with each step of distance."""
    states, state = [], torch.zeros_like(inputs[:, 0])
    for x in inputs.unbind(dim=1):
        state = 0.5 * state + x
        states.append(state)
    return torch.stack(states, dim=1)


# kills: distances counted from the front, squared or summed norms, a sum over the batch
def test_gradient_by_distance_of_a_known_decay():
    found = gradient_by_distance(decaying, torch.randn(3, 4, 9, generator=torch.Generator()))
    # each of the 9 features gets 0.5^k: the norm over them is 3 · 0.5^k
    torch.testing.assert_close(found, torch.tensor([3.0, 1.5, 0.75, 0.375]))


# kills: the norm of the batch's mean gradient in place of the mean of the norms
def test_gradient_by_distance_averages_norms():
    inputs = torch.tensor([[[1.0]], [[-1.0]]])
    found = gradient_by_distance(lambda x: 3 * x.abs(), inputs)
    torch.testing.assert_close(found, torch.tensor([3.0]))


# kills: backward(), which leaves gradients in the caller's model and inputs
def test_gradient_by_distance_leaves_no_trace():
    cell = RNNCell(2, 3)
    inputs = torch.randn(2, 5, 2)
    before = inputs.clone()
    gradient_by_distance(cell.run, inputs)
    assert not inputs.requires_grad
    assert torch.equal(inputs, before)
    assert all(parameter.grad is None for parameter in cell.parameters())


def test_attention_does_not_forget_with_distance():
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(8, 40, 6, generator=generator)
    W_x, W_h, b = (w.float() for w in weights(6, 6, generator))
    recurrent = gradient_by_distance(
        lambda x: run_rnn(x, x.new_zeros(8, 6), W_x, 0.3 * W_h, b), inputs
    )
    attending = gradient_by_distance(lambda x: scaled_dot_product_attention(x, x, x)[0], inputs)
    assert recurrent[39] < 1e-3 * recurrent[1]
    assert attending[39] > 0.1 * attending[1]


# kills: a cell whose weights are not parameters, or which leaves out one of them
def test_cell_is_the_function_with_weights():
    cell = RNNCell(3, 4)
    x, h = torch.randn(2, 3), torch.randn(2, 4)
    assert torch.equal(cell(x, h), rnn_step(x, h, cell.W_x, cell.W_h, cell.b))
    assert {name for name, _ in cell.named_parameters()} == {"W_x", "W_h", "b"}
    inputs = torch.randn(2, 6, 3)
    with torch.no_grad():
        expected, _ = torch_rnn(cell.W_x, cell.W_h, cell.b)(inputs)
        torch.testing.assert_close(cell.run(inputs), expected)


def test_cell_starts_within_the_stated_bounds():
    cell = RNNCell(400, 100)
    for parameter in cell.parameters():
        assert 0.09 < parameter.abs().max() <= 0.1


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_language_model_reads_only_the_past(kind):
    model = RecurrentLM(11, 6, kind=kind, num_layers=2)
    tokens = torch.randint(11, (2, 7))
    changed = tokens.clone()
    changed[:, 4] = (changed[:, 4] + 1) % 11
    with torch.no_grad():
        difference = (model(tokens) - model(changed)).abs().amax(dim=(0, 2))
    assert (difference[:4] == 0).all()
    assert (difference[4:] > 0).all()


# kills: a state that is not handed on
@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_language_model_in_pieces_equals_the_whole(kind):
    model = RecurrentLM(11, 6, kind=kind, num_layers=2)
    tokens = torch.randint(11, (2, 7))
    with torch.no_grad():
        first, state = model.step(tokens[:, :3], None)
        second, _ = model.step(tokens[:, 3:], state)
        torch.testing.assert_close(torch.cat([first, second], dim=1), model(tokens))


def test_tied_weights_are_one_tensor_and_start_small():
    model = RecurrentLM(500, 64, tied=True)
    assert model.W_out.weight is model.embedding.weight
    untied = RecurrentLM(500, 64)
    assert untied.W_out.weight is not untied.embedding.weight
    assert 0.9 < model.embedding.weight.std() * 8 < 1.1


def test_dropout_acts_in_training_only():
    model = RecurrentLM(5, 16, dropout_p=0.5)
    tokens = torch.randint(5, (2, 4))
    assert not torch.equal(model(tokens), model(tokens))
    model.eval()
    assert torch.equal(model(tokens), model(tokens))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: RecurrentLM(5, 4, kind="grru"), "grru.*'rnn', 'gru', 'lstm'"),
        (lambda: RecurrentLM(0, 4), "vocab_size=0"),
        (lambda: RNNCell(3, 0), "d_h=0"),
        (lambda: RecurrentSeq2Seq(5, 5, 4, attention=True, d_attention=0), "d_attention=0"),
    ],
)
@pytest.mark.usefixtures("without_shape_checks")
def test_wrong_sizes_are_named(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_fixed_state_sees_the_source_through_the_last_state_only(kind):
    model = RecurrentSeq2Seq(7, 9, 6, attention=False, kind=kind)
    source, target = torch.randint(7, (2, 5)), torch.randint(9, (2, 3))
    logits, alignment = model(source, target)
    assert logits.shape == (2, 3, 9)
    assert alignment is None
    _, last = model.encode(source)
    decoded, _ = model.decoder(model.target_embedding(target), last)
    torch.testing.assert_close(logits, model.W_out(decoded))


# kills: attention over the decoder's own states, and a context that is thrown away
def test_attention_looks_at_every_source_state():
    model = RecurrentSeq2Seq(7, 9, 6, attention=True, d_attention=5)
    states = torch.randn(2, 4, 6, requires_grad=True)
    start = torch.zeros(1, 2, 6)
    logits, alignment, _ = model._decode(torch.randint(9, (2, 3)), states, start)
    assert alignment.shape == (2, 3, 4)
    torch.testing.assert_close(alignment.sum(dim=-1), torch.ones(2, 3))
    (gradient,) = torch.autograd.grad(logits.sum(), states)
    assert (gradient.abs().amax(dim=-1) > 0).all()


# kills: generation that is fed with the truth, or that forgets the state between two tokens
@pytest.mark.parametrize("attention", [False, True])
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_generation_reads_back_its_own_output(kind, attention):
    model = RecurrentSeq2Seq(7, 9, 16, attention=attention, kind=kind)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)  # decided enough for the tokens to differ
        model.W_out.bias.zero_()
    source = torch.randint(7, (3, 5))
    written, alignment = model.generate(source, 6, START)
    logits, expected = model(source, shift_right(written))
    assert torch.equal(written, logits.argmax(dim=-1))
    assert len(set(written.flatten().tolist())) > 1
    assert not written.requires_grad
    if attention:
        torch.testing.assert_close(alignment, expected)
    else:
        assert alignment is None


# kills: a last state taken after the padding, padded keys that are looked at
@pytest.mark.parametrize("score", ["additive", "dot"])
@pytest.mark.parametrize("kind", ["gru", "lstm"])
@pytest.mark.parametrize("attention", [False, True])
def test_a_padded_source_counts_as_if_it_stood_alone(kind, attention, score):
    model = RecurrentSeq2Seq(7, 9, 6, attention=attention, kind=kind, score=score)
    source, target = torch.randint(7, (3, 5)), torch.randint(9, (3, 4))
    lengths = torch.tensor([2, 5, 3])
    logits, alignment = model(source, target, lengths)
    written, _ = model.generate(source, 4, START, lengths)
    for row, length in enumerate(lengths.tolist()):
        alone, alignment_alone = model(source[row : row + 1, :length], target[row : row + 1])
        torch.testing.assert_close(logits[row], alone[0])
        written_alone, _ = model.generate(source[row : row + 1, :length], 4, START)
        assert torch.equal(written[row], written_alone[0])
        if attention:
            torch.testing.assert_close(alignment[row, :, :length], alignment_alone[0])
            assert (alignment[row, :, length:] == 0).all()


def test_generation_needs_a_length():
    with pytest.raises(ValueError, match="n_target=0"):
        RecurrentSeq2Seq(7, 9, 6, attention=False).generate(torch.zeros(1, 2).long(), 0, START)


def test_looking_back_copies_what_a_fixed_state_forgets():
    task = copy_task(12)
    test = task.test_set(100)
    accuracy = {}
    for attention in (False, True):
        torch.manual_seed(0)
        model = RecurrentSeq2Seq(9, 9, 32, attention=attention, d_attention=16)

        def loss(model, batch):
            logits, _ = model(batch.inputs, shift_right(batch.targets))
            return F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten())

        fit(model, loss, task.batches(32), steps=200, lr=1e-2, warmup=20)
        written, _ = model.generate(test.inputs, 12, START)
        accuracy[attention] = (written == test.targets).double().mean().item()
    assert accuracy[False] < 0.45
    assert accuracy[True] > 0.6
