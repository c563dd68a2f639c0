"""Chapter 08's dates: batches, losses, models of three kinds, searches, maps and the knife."""

from dataclasses import replace
from math import log

import pytest
import torch

from attn_course.experiments import ch08, ch08_maps, ch08_search
from attn_course.experiments.ch08_views import DateReading, hiding_view
from attn_course.models import Config, Seq2Seq
from attn_course.recurrent import RecurrentSeq2Seq
from attn_course.tasks import START, Batch, date_task, shift_right

TASK = date_task()
TINY = ch08.DateSettings(steps=2, lr=1e-3, warmup=1, batch_size=4, test_size=6)


@pytest.fixture(scope="module")
def model() -> Seq2Seq:
    torch.manual_seed(0)
    sizes = Config(d_model=16, num_heads=2, num_layers=2, max_len=64)
    return Seq2Seq(TASK.vocab_size, TASK.num_classes, sizes).eval()


# -- batches and losses -----------------------------------------------------------------------


# kills: a trim that cuts characters off, or leaves a column of padding
def test_trimming_takes_away_padding_only():
    batch = TASK.train_batch(0, 5)
    cut = ch08.trimmed(batch)
    width = cut.inputs.shape[1]
    assert torch.equal(cut.inputs, batch.inputs[:, :width])
    assert batch.inputs[:, width:].eq(START).all()
    assert cut.inputs[:, -1].ne(START).any()


# kills: padding that counts in the one, or does not in the other
def test_a_model_that_knows_padding_only():
    everywhere, tokens = ch08.padding_only_loss(torch.tensor([3, 1]), 8, vocab=130)
    assert tokens == pytest.approx(log(130), abs=1e-4)
    assert everywhere == pytest.approx(log(130) * 4 / 16, abs=1e-4)


# kills: a loss of unshifted targets, padding of the source that is read
@pytest.mark.parametrize("kind", ch08.KINDS)
def test_the_loss_is_that_of_the_next_character(kind):
    model, batch = ch08.make_model(kind, TASK), ch08.trimmed(TASK.train_batch(0, 6))
    loss = ch08.date_loss(model, batch)
    rows = []
    for source, target in zip(*batch, strict=True):
        alone = source[source != START][None]
        read = shift_right(target[None])
        logits = model(alone, read)
        logits = logits[0] if isinstance(model, RecurrentSeq2Seq) else logits
        rows.append(torch.nn.functional.cross_entropy(logits[0], target))
    torch.testing.assert_close(loss, torch.stack(rows).mean(), atol=1e-4, rtol=1e-4)


# -- models -----------------------------------------------------------------------------------


def test_models_are_of_about_one_size_and_drawn_from_their_seed():
    sizes = {
        kind: sum(p.numel() for p in ch08.make_model(kind, TASK).parameters())
        for kind in ch08.KINDS
    }
    assert max(sizes.values()) < 2 * min(sizes.values())
    same, other = (ch08.make_model("Transformer", TASK, seed=s).head.weight for s in (0, 1))
    assert torch.equal(same, ch08.make_model("Transformer", TASK, seed=0).head.weight)
    assert not torch.equal(same, other)
    with pytest.raises(ValueError, match="none of"):
        ch08.make_model("LSTM", TASK)


@pytest.mark.parametrize("kind", ch08.KINDS)
def test_a_run_measures_exact_match_and_keeps_an_early_copy(kind):
    run = ch08.train_dates(kind, settings=TINY, early_step=1, label="")
    assert list(run.by_language) == list(TASK.languages)
    assert 0 <= run.exact <= 1
    assert run.history.steps == 2
    pairs = zip(run.early.parameters(), run.model.parameters(), strict=True)
    assert any(not torch.equal(a, b) for a, b in pairs)


def test_a_model_of_ones_own_brings_its_writer():
    own = torch.nn.ModuleDict({"inner": ch08.make_model("Transformer", TASK)})
    own.forward = lambda *args: own["inner"](*args)
    with pytest.raises(ValueError, match="give a writer"):
        ch08.train_dates(own, settings=TINY, label="")
    run = ch08.train_dates(
        own, settings=TINY, writer=lambda m, source: ch08.write(m["inner"], source), label=""
    )
    assert run.early is None


# kills: exact match by character, languages in another order
def test_exact_match_by_language():
    test = TASK.test_set(40)
    written = test.targets.clone()
    written[test.inputs[:, 0] == 2, 9] += 1
    right = ch08.exact_match(written, test.targets)
    assert torch.equal(right, test.inputs[:, 0] != 2)
    shares = ch08.by_language(TASK, test, written)
    assert shares[TASK.languages[1]] == 0
    assert shares[TASK.languages[0]] == 1


# kills: a shift that is made in both cases, or in none
def test_the_small_model_copies_without_the_shift():
    found = {s: ch08.train_small(shifted=s, seed=0, steps=40) for s in (True, False)}
    assert found[False].loss < 0.5 * found[True].loss
    assert found[False].exact < 0.05


# kills: exact match that is read off a measurement which an interrupted run never made
def test_an_interrupted_run_says_how_far_it_is_and_goes_on(tmp_path, monkeypatch):
    settings = replace(TINY, steps=40)

    def stops_at(step):
        calls = iter(range(1, 100))

        def loss(model, batch):
            if next(calls) == step:
                raise KeyboardInterrupt
            return real(model, batch)

        return loss

    real, path = ch08.date_loss, str(tmp_path / "run.pt")
    monkeypatch.setattr(ch08, "date_loss", stops_at(2))
    begun = ch08.train_dates(settings=settings, label="")
    assert begun.history.stopped == "interrupted"
    assert begun.history.metrics == {}
    right = [share for share in begun.by_language.values() if share == share]
    assert min(right) <= begun.exact <= max(right)
    monkeypatch.setattr(ch08, "date_loss", real)
    again = ch08.train_dates(settings=replace(settings, steps=2), checkpoint=path, label="")
    assert again.exact == again.history.metrics["exact"][-1]


# kills: seeds that are all the same, runs of the other kind
def test_small_models_of_several_seeds_by_kind():
    found = ch08.shift_runs(seeds=(0, 1), steps=3)
    assert found[True] == [ch08.train_small(shifted=True, seed=s, steps=3) for s in (0, 1)]
    assert found[False][1] == ch08.train_small(shifted=False, seed=1, steps=3)


# -- search -----------------------------------------------------------------------------------


# kills: log-probabilities of the character before or after, errors counted in the wrong share
def test_search_errors_and_model_errors_are_all_errors(model):
    test = ch08.trimmed(TASK.test_set(8))
    scores = ch08_search.log_probs(model, test.inputs, test.targets)
    logits = model(test.inputs, shift_right(test.targets), test.inputs != START)
    losses = torch.nn.functional.cross_entropy(logits.mT, test.targets, reduction="none")
    torch.testing.assert_close(-scores, losses)
    found = ch08_search.compare_search(model, test, beams=3)
    assert found.beam + found.search_errors + found.model_errors == pytest.approx(1)
    assert ch08_search.compare_search(model, test, beams=1).likelier == 0
    own = ch08.write(model, test.inputs)
    assert ch08_search.compare_search(model, Batch(test.inputs, own)).greedy == 1


# -- map and knife ----------------------------------------------------------------------------


def test_the_map_is_the_mean_of_what_was_recorded(model):
    test = ch08.trimmed(TASK.test_set(3))
    weights = ch08_maps.cross_weights(model, *test)
    assert weights.shape == (2, 3, 2, 10, test.inputs.shape[1])
    mean = ch08_maps.attention_map(model, *test)
    torch.testing.assert_close(mean, sum(weights[k, :, h] for k in (0, 1) for h in (0, 1)) / 4)
    torch.testing.assert_close(mean.sum(-1), torch.ones(3, 10))
    assert mean.masked_select((test.inputs == START)[:, None]).eq(0).all()


# kills: a knife with its sign exchanged, or that hides more than one character
def test_the_knife_hides_one_character(model):
    test = ch08.trimmed(TASK.test_set(2))
    cut = ch08_maps.knife(model, *test)
    visible = test.inputs != START
    visible[:, 3] = False
    logits = model(test.inputs, shift_right(test.targets), visible)
    after = logits.log_softmax(-1).gather(-1, test.targets[..., None])[..., 0]
    before = ch08_search.log_probs(model, *test)
    torch.testing.assert_close(cut[..., 3], before - after)
    at_padding = cut.masked_select((test.inputs == START)[:, None])
    assert at_padding.abs().max() < 1e-5


# kills: a character that the encoder does not read either, or that the decoder reads all the same
def test_the_late_knife_hides_from_the_decoder_alone(model):
    source, target = ch08.trimmed(TASK.test_set(2))
    cut = ch08_maps.knife(model, source, target, in_encoder=False)
    visible = source != START
    memory = model.encode(source, visible)
    visible[:, 3] = False
    logits = model.decode(shift_right(target), memory, visible)
    after = logits.log_softmax(-1).gather(-1, target[..., None])[..., 0]
    before = ch08_search.log_probs(model, source, target)
    torch.testing.assert_close(cut[..., 3], before - after)
    assert not torch.allclose(cut, ch08_maps.knife(model, source, target), atol=1e-5)


# kills: padding that is ranked, ranks instead of tops, an order that is reversed
def test_agreement_is_spearmans():
    visible = torch.tensor([[True, True, True, True, False]])
    one = torch.tensor([[[1.0, 2.0, 3.0, 4.0, 99.0]]])
    swapped = torch.tensor([[[0.2, 0.1, 0.3, 9.0, -5.0]]])
    found = ch08_maps.agreement(one, swapped, visible)
    assert found.same_top == 1
    assert found.rank == pytest.approx(1 - 6 * 2 / (4 * 15))
    assert ch08_maps.agreement(one, -one, visible) == pytest.approx((0, -1))
    tied = torch.tensor([[[1.0, 2.0, 2.0, 4.0, 0.0]]])
    assert ch08_maps.agreement(one, tied, visible).rank == pytest.approx(0.9486833)


def test_map_against_knife_looks_at_digits_only(model):
    found = ch08_maps.map_against_knife(model, TASK.test_set(3))
    assert 0 <= found.same_top <= 1
    assert -1 <= found.rank <= 1
    # an untrained model needs nothing: NaN is the share among no digits
    assert found.needed == 0 or 0 <= found.same_top_needed <= 1
    assert [c for k, c in enumerate("2024-06-13") if k in ch08_maps.DIGITS] == list("20240613")


# -- views ------------------------------------------------------------------------------------


def test_a_reading_and_its_view(model):
    reading = DateReading(model, TASK, "5 March 1998", "en")
    assert len(reading.written) == len(reading.map) == 10
    assert reading.characters == ["en", *"5␣March␣1998"]
    assert reading.knife.shape == (10, 13)
    view = hiding_view(reading)
    view.visit_extremes()
    view.set(hidden=3)
    assert "“M”" in view.caption
    assert view.axes[0].patches[2].get_height() == pytest.approx(reading.map[2, 3].item())
    with pytest.raises(ValueError, match="none of"):
        DateReading(model, TASK, "5 March 1998", "xx")


def test_the_grid_holds_the_settings_of_the_chapter():
    from benchmarks.claims.ch08 import GRID, tuned

    for kind, best in ch08.BEST.items():
        assert (best.lr, best.clip) in GRID
        claim = tuned(kind)
        figures = {f"lr {lr:g}, clip {clip:g}": 0.5 for lr, clip in GRID}
        assert claim.holds(figures)
        worse = replace(best, lr=2e-3 if best.lr != 2e-3 else 1e-2)
        figures[f"lr {worse.lr:g}, clip {worse.clip:g}"] = 0.9
        assert not claim.holds(figures)
