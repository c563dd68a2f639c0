"""Chapter 09's experiments: runs, baselines, fillers, speeds, repetitions and the view."""

from dataclasses import replace

import pytest
import torch

from attn_course.experiments import ch09, ch09_masked, ch09_speed, ch09_text
from attn_course.experiments.ch09_views import sampling_view, written
from attn_course.models import Config, DecoderLM, count_parameters
from attn_course.tasks import IGNORE, Batch, prose

TEXT = prose()
TINY = ch09.ProseSettings(steps=3, lr=1e-3, warmup=1, batch_size=2, n=8, test_windows=4)


def small(vocab_size: int = TEXT.vocab_size) -> DecoderLM:
    torch.manual_seed(0)
    return DecoderLM(vocab_size, Config(d_model=16, num_heads=2, num_layers=1, max_len=32)).eval()


# -- training ---------------------------------------------------------------------------------


def test_the_two_models_have_about_as_many_parameters():
    sizes = [count_parameters(ch09.make_lm(kind, TEXT)) for kind in ch09.KINDS]
    assert max(sizes) < 1.1 * min(sizes)
    with pytest.raises(ValueError, match="kind='LSTM' is none of Transformer, GRU"):
        ch09.make_lm("LSTM", TEXT)


def test_a_model_is_the_same_for_the_same_seed_and_leaves_chance_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one, same, other = (ch09.make_lm("GRU", TEXT, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(one.W_out.weight, same.W_out.weight)
    assert not torch.equal(one.W_out.weight, other.W_out.weight)


def test_a_run_keeps_moments_and_tells_its_observer():
    seen = []

    class Watch:
        def __call__(self, info):
            seen.append(info.step)

        def finish(self, history):
            seen.append(history.steps)

    run = ch09.train_lm(small(), settings=TINY, keep=(1, 2), watch=Watch(), label="")
    assert sorted(run.moments) == [1, 2]
    weights = [m.head.weight for m in (*run.moments.values(), run.model)]
    assert not torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[1], weights[2])
    assert seen == [1, 2, 3, 3]
    assert run.loss == run.history.metrics["held-out loss"][-1]


# kills: a loss that is read off a measurement which an interrupted run never made
def test_an_interrupted_run_says_how_far_it_is():
    def interrupt(info):
        raise KeyboardInterrupt

    settings, model = replace(TINY, steps=30), small().train()
    run = ch09.train_lm(model, settings=settings, watch=Stopping(interrupt), label="")
    test = TEXT.test_set(TINY.n, TINY.test_windows)
    assert run.history.stopped == "interrupted"
    assert (run.history.steps, run.history.metrics) == (1, {})
    assert run.loss == ch09.held_out_loss(run.model, test)
    assert run.model.training


class Stopping:
    """An observer that does something at each step, and nothing at the end."""

    def __init__(self, do):
        self.do = do

    def __call__(self, info):
        self.do(info)

    def finish(self, history):
        pass


def test_training_lowers_the_loss_of_both_kinds():
    settings = replace(TINY, steps=25, lr=5e-3, n=32, batch_size=8, test_windows=20)
    for kind in ch09.KINDS:
        run = ch09.train_lm(kind, settings=settings, label="")
        measured = run.history.metrics["held-out loss"]
        assert measured[-1] < measured[0]


def test_a_budget_scales_the_steps_alone():
    quarter, whole = ch09.scaled("GRU", 1 / 4), ch09.BEST["GRU"]
    assert quarter.steps == whole.steps / 4
    assert replace(quarter, steps=whole.steps) == whole


def test_the_loss_by_position_has_the_loss_as_its_mean():
    model, test = small(), TEXT.test_set(8, 5)
    along = ch09.loss_by_position(model, test)
    assert along.shape == (8,)
    assert along.mean() == pytest.approx(ch09.lm_loss(model, test).item(), rel=1e-4)


def test_counting_gets_better_with_context_and_then_worse():
    losses = ch09.ngram_losses(
        TEXT, (1, 3, 5, 8), ch09.ProseSettings(steps=1, lr=1, test_windows=60)
    )
    assert losses[1] > losses[3] > losses[5] < losses[8]


# -- fillers ----------------------------------------------------------------------------------


def test_only_one_filler_sees_what_comes_later():
    ids = TEXT.test_set(12, 1).inputs
    later = ids.clone()
    later[0, 8:] = TEXT.vocab_size
    moved = {}
    for way in ch09_masked.WAYS:
        model = ch09_masked.make_filler(way, TEXT).eval()
        moved[way] = not torch.allclose(model(ids)[0, :8], model(later)[0, :8], atol=1e-5)
    assert moved == {"both ways": True, "to the left": False}
    with pytest.raises(ValueError, match="way='up'"):
        ch09_masked.make_filler("up", TEXT)


def test_each_step_hides_other_characters_and_repeats_itself():
    batches = ch09_masked.hidden_batches(TEXT, replace(TINY, n=64), share=0.5)
    once, again, other = batches(3), batches(3), batches(4)
    assert torch.equal(once.inputs, again.inputs)
    assert torch.equal(once.targets, again.targets)
    assert not torch.equal(once.targets == IGNORE, other.targets == IGNORE)


def test_the_hidden_test_hides_every_chosen_character():
    inputs, targets = ch09_masked.hidden_test(TEXT, replace(TINY, n=64, test_windows=50))
    chosen = targets != IGNORE
    assert torch.equal(inputs == TEXT.vocab_size, chosen)
    assert 0.12 < chosen.double().mean() < 0.18
    original = torch.where(chosen, targets, inputs)
    assert torch.equal(original, TEXT.test_set(64, 50).inputs)


def test_figures_of_a_filler_that_knows_the_answer():
    test = ch09_masked.hidden_test(TEXT, TINY)
    answer = torch.where(test.targets == IGNORE, test.inputs, test.targets)
    logits = 50 * torch.nn.functional.one_hot(answer, TEXT.vocab_size + 1).double()
    found = ch09_masked.fill_figures(lambda _: logits, test)
    assert found["accuracy"] == 1
    assert found["held-out loss"] < 1e-6
    wrong = ch09_masked.fill_figures(lambda _: logits.roll(1, dims=-1), test)
    assert wrong["accuracy"] == 0


@pytest.mark.parametrize("way", ch09_masked.WAYS)
def test_a_filler_trains(way):
    run = ch09_masked.train_filler(way, settings=TINY, label="")
    assert 0 <= run.accuracy <= 1
    assert run.loss > 0


def test_the_left_context_is_read_as_it_was():
    """The loss at a hidden character does not depend on what is hidden before it."""
    model, ids = small(TEXT.vocab_size + 1), TEXT.test_set(8, 1).inputs
    hidden = torch.zeros(1, 8, dtype=torch.bool)
    hidden[0, 5] = True
    one = Batch(ids.masked_fill(hidden, TEXT.vocab_size), ids.masked_fill(~hidden, IGNORE))
    by_hand = -model(ids)[0, 4].log_softmax(-1)[ids[0, 5]].item()
    assert ch09_masked.left_context_loss(model, one) == pytest.approx(by_hand, rel=1e-4)
    hidden[0, 0] = hidden[0, 3] = True
    more = Batch(ids.masked_fill(hidden, TEXT.vocab_size), ids.masked_fill(~hidden, IGNORE))
    at_three = -model(ids)[0, 2].log_softmax(-1)[ids[0, 3]].item()
    expected = (by_hand + at_three) / 2  # position 0 has nothing to its left
    assert ch09_masked.left_context_loss(model, more) == pytest.approx(expected, rel=1e-4)


def test_hidden_text_is_shown_with_gaps():
    ids = TEXT.encode("a cat")
    ids[2] = TEXT.vocab_size
    assert ch09_masked.shown(TEXT, ids) == "a ▁at"
    assert ch09_masked.shown(TEXT, torch.tensor([IGNORE, *TEXT.encode("b")])) == "·b"


def test_windows_of_prose_are_found():
    windows = torch.stack([TEXT.encode(line) for line in ("a, b", "abcd", "----", "ab d")])
    windows[3, 2] = TEXT.vocab_size
    assert ch09_masked.most_prose(TEXT, windows, 2) == [1, 3]


def test_only_gaps_are_filled():
    model, ids = small(TEXT.vocab_size + 1), TEXT.test_set(8, 1).inputs[0].clone()
    ids[2] = ids[5] = TEXT.vocab_size
    found = ch09_masked.filled(model, ids, TEXT.vocab_size)
    kept = torch.tensor([0, 1, 3, 4, 6, 7])
    assert torch.equal(found[kept], ids[kept])
    assert found.max() < TEXT.vocab_size


# -- speed ------------------------------------------------------------------------------------


def test_layers_wait_by_depth_or_by_length():
    steps = [[ch09_speed.sequential_steps(r, n) for n in (16, 64)] for r in ch09_speed.READERS]
    assert steps == [[3, 3], [16, 64], [16, 64]]
    with pytest.raises(ValueError, match="reader='CNN'"):
        ch09_speed.sequential_steps("CNN", 4)


def test_token_by_token_and_by_prefixes_give_what_one_call_gives():
    ids = TEXT.test_set(6, 2).inputs
    gru = ch09.make_lm("GRU", TEXT)
    torch.testing.assert_close(ch09_speed.stepwise(gru, ids), gru(ids), atol=1e-5, rtol=1e-4)
    model = small()
    torch.testing.assert_close(ch09_speed.by_prefixes(model, ids), model(ids), atol=1e-5, rtol=1e-4)


def test_speeds_are_measured_for_each_reader_and_length():
    threads = torch.get_num_threads()
    speeds = ch09_speed.tokens_per_second([16, 64], repeats=1)
    assert torch.get_num_threads() == threads
    assert list(speeds) == list(ch09_speed.READERS)
    assert all(len(found) == 2 and min(found) > 0 for found in speeds.values())
    ratios = ch09_speed.relative_speed({"Transformer": [6.0, 2.0], "GRU": [2.0, 4.0]}, "GRU")
    assert ratios == [3.0, 0.5]
    with pytest.raises(ValueError, match="n=100 does not divide the 1024"):
        ch09_speed.tokens_per_second([100])


# -- repetitions ------------------------------------------------------------------------------


def test_the_share_that_was_seen_before():
    assert ch09_text.seen_before("abcdef", "xxabcyy", 3) == pytest.approx(3 / 7)
    assert ch09_text.seen_before("abcdef", "xabcdy", 3) == pytest.approx(4 / 6)
    assert ch09_text.seen_before("abcdef", "fedcba", 2) == 0
    with pytest.raises(ValueError, match="run=9"):
        ch09_text.seen_before("abc", "abc", 9)


def test_the_tail_of_the_book_repeats_more_than_held_out_topics():
    train, test = ch09_text.tail_split()
    assert len(test) == pytest.approx(0.1 * (len(train) + len(test)), rel=0.01)
    by_topic = ch09_text.seen_before(TEXT.train, TEXT.test)
    assert by_topic < 0.6 * ch09_text.seen_before(train, test)
    with pytest.raises(ValueError, match="test_share=0"):
        ch09_text.tail_split(0)


def test_echoes_are_runs_that_stood_before():
    assert ch09_text.echoed("abcdabcd", 4) == pytest.approx(1 / 5)
    assert ch09_text.echoed("abcdefgh", 4) == 0
    assert ch09_text.echoed("aaaaaaaa", 4) == pytest.approx(4 / 5)
    assert ch09_text.echoed("ab", 4) == 0


# -- the view ---------------------------------------------------------------------------------


def test_the_view_counts_what_can_come_and_writes():
    live = sampling_view(small(), TEXT, "The value ")
    live.visit_extremes()
    live.set(temperature=1.0, top_k="4", top_p=1.0)
    assert "4 characters can come" in live.caption
    live.set(temperature=0.0)
    assert "1 character can come" in live.caption


def test_what_is_written_leaves_the_prompt_out_and_repeats_by_seed():
    model = small()
    one, same, other = (written(model, TEXT, "The ", 20, seed=seed) for seed in (1, 1, 2))
    assert one == same != other
    assert len(one) <= 20
