"""Sampling follows the stated order; cached and uncached generation agree; beams beat greed."""

import itertools

import pytest
import torch

from attn_course.generation import (
    beam_search,
    generate,
    greedy_decode,
    next_token_probs,
    sample_next,
)
from attn_course.models import Config, DecoderLM, Seq2Seq

LOGITS = torch.tensor([2.0, 1.0, 0.5, 0.0, -1.0, -3.0], dtype=torch.float64)


def small(position="sinusoidal", **sizes):
    torch.manual_seed(1)
    settings = {"d_model": 16, "num_heads": 2, "num_layers": 2, "max_len": 12} | sizes
    return DecoderLM(7, Config(position=position, **settings))


def test_temperature_divides_the_logits_once():
    for temperature in (0.5, 2.0):
        expected = (LOGITS / temperature).softmax(-1)
        torch.testing.assert_close(next_token_probs(LOGITS, temperature), expected)


def test_greedy_puts_all_on_the_first_of_the_largest():
    logits = torch.tensor([[0.0, 3.0, 3.0], [1.0, 0.0, -1.0]])
    assert next_token_probs(logits, 0).tolist() == [[0, 1, 0], [1, 0, 0]]


def test_top_k_keeps_exactly_k():
    probs = next_token_probs(LOGITS, top_k=2)
    torch.testing.assert_close(probs[:2], LOGITS[:2].softmax(-1))
    assert probs[2:].eq(0).all()
    torch.testing.assert_close(next_token_probs(LOGITS, top_k=99), LOGITS.softmax(-1))
    equal = next_token_probs(torch.zeros(5), top_k=2)
    assert (equal > 0).sum() == 2


def test_the_nucleus_includes_the_token_that_crosses_p():
    probs = LOGITS.softmax(-1)
    assert (next_token_probs(LOGITS, top_p=0.01) > 0).tolist() == [True] + [False] * 5
    inside = float(probs[:2].sum())
    assert (next_token_probs(LOGITS, top_p=inside - 1e-6) > 0).sum() == 2
    assert (next_token_probs(LOGITS, top_p=inside + 1e-6) > 0).sum() == 3
    torch.testing.assert_close(next_token_probs(LOGITS, top_p=1.0), probs)


def test_temperature_comes_before_the_nucleus():
    # at temperature 2 the distribution is flatter, and 0.8 of it needs more tokens
    flat = (LOGITS / 2).softmax(-1)
    needed = int((flat.cumsum(-1) < 0.8).sum()) + 1
    probs = next_token_probs(LOGITS, 2.0, top_p=0.8)
    assert int((probs > 0).sum()) == needed
    assert needed != int((LOGITS.softmax(-1).cumsum(-1) < 0.8).sum()) + 1
    torch.testing.assert_close(probs[:needed], flat[:needed] / flat[:needed].sum())


def test_drawn_tokens_follow_the_distribution():
    generator = torch.Generator().manual_seed(0)
    drawn = sample_next(LOGITS.expand(20_000, -1), 1.5, top_k=4, generator=generator)
    share = torch.bincount(drawn, minlength=6) / 20_000
    torch.testing.assert_close(
        share.double(), next_token_probs(LOGITS, 1.5, top_k=4), atol=0.015, rtol=0
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"temperature": -1}, "below 0"), ({"top_k": 0}, "no token"), ({"top_p": 0.0}, "0 < p <= 1")],
)
def test_impossible_settings_are_errors(settings, words):
    with pytest.raises(ValueError, match=words):
        next_token_probs(LOGITS, **settings)
    with pytest.raises(ValueError, match=words):
        generate(small(), torch.tensor([[1]]), 3, **settings)


@pytest.mark.parametrize("position", ["none", "sinusoidal", "learned", "rope", "alibi", "relative"])
def test_cached_and_uncached_write_the_same(position):
    model, prompt = small(position), torch.tensor([[1, 2, 3], [4, 5, 6]])
    for settings in ({"temperature": 0}, {"temperature": 1.3, "top_k": 5, "top_p": 0.9}):
        texts = [
            generate(
                model,
                prompt,
                20,  # past max_len, so that the context moves on
                use_cache=use_cache,
                generator=torch.Generator().manual_seed(3),
                **settings,
            )
            for use_cache in (True, False)
        ]
        assert texts[0].tolist() == texts[1].tolist()
        assert texts[0].shape == (2, 23)
        assert torch.equal(texts[0][:, :3], prompt)


def test_the_same_prompt_twice_gives_the_same():
    model, prompt = small(), torch.tensor([[1, 2]])
    first = generate(model, prompt, 6, temperature=0)
    assert torch.equal(first, generate(model, prompt, 6, temperature=0))


def test_a_prompt_longer_than_the_context_is_cut_not_refused():
    model = small()
    prompt = torch.randint(7, (1, 30), generator=torch.Generator().manual_seed(0))
    ours = generate(model, prompt, 2, temperature=0)
    assert torch.equal(ours[:, 30:], generate(model, prompt[:, -12:], 2, temperature=0)[:, 12:])


def test_the_mode_of_the_model_is_kept_and_dropout_is_off():
    model = small(dropout_p=0.9)
    model.train()
    texts = [generate(model, torch.tensor([[1]]), 8, temperature=0) for _ in range(2)]
    assert torch.equal(*texts)
    assert model.training
    model.eval()
    generate(model, torch.tensor([[1]]), 1)
    assert not model.training
    assert not texts[0].requires_grad


def test_a_stopped_text_stays_stopped():
    class Counts(DecoderLM):
        """Sequence 0 stops at once, sequence 1 after three tokens."""

        def forward(self, ids, caches=None):
            logits = torch.zeros(*ids.shape, 7)
            logits[..., 1] = 1.0
            logits[0, :, 6] = 2.0
            logits[1, -1, 6] = 3.0 * (ids.shape[1] > 3)
            return logits

    model = Counts(7, Config(d_model=4, num_heads=1, num_layers=1))
    text = generate(
        model, torch.tensor([[2], [2]]), 10, temperature=0, use_cache=False, stop_token=6
    )
    assert text.tolist() == [[2, 6, 6, 6, 6], [2, 1, 1, 1, 6]]


def test_an_empty_prompt_is_an_error():
    with pytest.raises(ValueError, match="n >= 1"):
        generate(small(), torch.empty(1, 0, dtype=torch.long), 3)


def translator(seed=0):
    torch.manual_seed(seed)
    model = Seq2Seq(9, 5, Config(d_model=16, num_heads=2, num_layers=1)).double()
    model.head.weight.data *= 4  # confident enough that texts differ
    return model


SOURCE = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 0]])
PADDING = torch.tensor([[True] * 4, [True] * 3 + [False]])
START, STOP, LENGTH = 0, 4, 4


def log_prob(model, source, padding, text):
    """Of a text that ends with its first stop token or at the full length."""
    target = torch.tensor([[START, *text[:-1]]])
    steps = model(source, target, padding)[0].log_softmax(-1)
    return sum(steps[k, token].item() for k, token in enumerate(text))


def all_texts():
    for n in range(1, LENGTH + 1):
        for text in itertools.product(range(5), repeat=n):
            stops_at_end = STOP not in text[:-1] and text[-1] == STOP
            if stops_at_end or (n == LENGTH and STOP not in text):
                yield text


@pytest.mark.parametrize("penalty", [0.0, 0.6])
def test_a_wide_beam_finds_the_best_of_all_texts(penalty):
    model = translator()
    found, scores = beam_search(
        model, SOURCE, START, STOP, LENGTH, beams=300, length_penalty=penalty, padding=PADDING
    )
    for b in range(2):
        source, padding = SOURCE[b : b + 1], PADDING[b : b + 1]
        ranked = {
            text: log_prob(model, source, padding, text) / ((5 + len(text)) / 6) ** penalty
            for text in all_texts()
        }
        best = max(ranked, key=ranked.__getitem__)
        text = found[b].tolist()
        assert tuple(text[: len(best)]) == best
        assert all(token == STOP for token in text[len(best) :])
        assert scores[b].item() == pytest.approx(ranked[best])


def test_one_beam_is_greedy():
    for seed in range(3):
        model = translator(seed)
        greedy = greedy_decode(model, SOURCE, START, 6, padding=PADDING, stop_token=STOP)
        found, _ = beam_search(model, SOURCE, START, STOP, 6, beams=1, padding=PADDING)
        assert greedy.tolist() == found.tolist()


def test_greedy_equals_decoding_without_a_cache():
    model = translator()
    text = torch.full((2, 1), START)
    for _ in range(6):
        best = model(SOURCE, text, PADDING)[:, -1:].argmax(-1)
        text = torch.cat([text, best], 1)
    assert torch.equal(text[:, 1:], greedy_decode(model, SOURCE, START, 6, padding=PADDING))


def test_a_beam_of_none_is_an_error():
    with pytest.raises(ValueError, match="at least 1"):
        beam_search(translator(), SOURCE, START, STOP, 6, beams=0)
