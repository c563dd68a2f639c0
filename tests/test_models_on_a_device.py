"""Models make no tensor beside their input's device: a training step on one that is pretended."""

import pytest
import torch
import torch.nn.functional as F
from pretend_device import DEVICE, Elsewhere, pretended
from torch import nn

from attn_course.models import Config, DecoderLM, Encoder, Seq2Seq
from attn_course.recurrent import RecurrentLM, RecurrentSeq2Seq
from attn_course.training import fit

POSITIONS = ("sinusoidal", "learned", "rope", "alibi", "relative", "none")
SIZES = {"d_model": 16, "num_heads": 2, "num_layers": 2, "max_len": 8}
SEEDED = torch.Generator().manual_seed(0)
IDS = torch.randint(1, 9, (3, 6), generator=SEEDED)
PADDED = IDS.masked_fill(torch.arange(6) >= torch.tensor([[6], [4], [2]]), 0)


def language_loss(model, ids):
    return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


def class_loss(model, ids):
    return F.cross_entropy(model(ids, ids != 0), ids[:, 0])


def translation_loss(model, ids):
    return F.cross_entropy(model(ids, IDS.to(ids.device), ids != 0).flatten(0, 1), ids.flatten())


def copying_loss(model, ids):
    lengths = (ids != 0).sum(dim=1)
    logits, _ = model(ids, IDS.to(ids.device), lengths)
    return F.cross_entropy(logits.flatten(0, 1), ids.flatten())


CASES = {
    **{f"decoder, {p}": (DecoderLM, {"position": p}, language_loss) for p in POSITIONS},
    **{f"encoder, {p}": (Encoder, {"position": p}, class_loss) for p in POSITIONS},
    "encoder and decoder": (Seq2Seq, {"norm": "post"}, translation_loss),
}


def made(case: str) -> tuple[nn.Module, object]:
    kind, settings, loss = CASES[case]
    config = Config(**SIZES, **settings)
    sizes = {"num_classes": 9} if kind is Encoder else {}
    return (kind(9, 9, config) if kind is Seq2Seq else kind(9, config, **sizes)), loss


def losses(model: nn.Module, loss, ids) -> list[float]:
    return fit(model, loss, [ids], steps=2, lr=1e-2, label="").loss


def both_ways(make, loss) -> tuple[list[float], list[float]]:
    """The losses of two steps on the CPU and on the device, from the same start."""
    torch.manual_seed(0)
    here = losses(make(), loss, PADDED)
    with pretended():
        torch.manual_seed(0)
        model = make().to(DEVICE)
        there = losses(model, loss, PADDED.to(DEVICE))
        assert all(isinstance(p.data, Elsewhere) for p in model.parameters())
    return here, there


@pytest.mark.parametrize("case", CASES)
def test_a_transformer_trains_where_its_input_is(case: str):
    here, there = both_ways(lambda: made(case)[0], made(case)[1])
    assert there == pytest.approx(here, abs=1e-4)


@pytest.mark.parametrize("score", ["additive", "dot", None])
def test_a_recurrent_model_trains_where_its_input_is(score):
    settings = {"attention": False} if score is None else {"attention": True, "score": score}
    here, there = both_ways(lambda: RecurrentSeq2Seq(9, 9, 8, **settings), copying_loss)
    assert there == pytest.approx(here, abs=1e-4)


def test_a_recurrent_language_model_trains_where_its_input_is():
    here, there = both_ways(lambda: RecurrentLM(9, 8, tied=True), language_loss)
    assert there == pytest.approx(here, abs=1e-4)


def test_the_pretended_device_refuses_what_a_gpu_refuses():
    with pretended():
        x, here = torch.ones(2, 3).to(DEVICE), torch.ones(2, 3)
        assert x.device == DEVICE
        assert (2 * x).sum().item() == 12
        assert torch.equal(x.cpu(), here)
        assert x[torch.tensor([0])].shape == (1, 3)
        for mixed in (lambda: x + here, lambda: x @ here.T, lambda: torch.cat([x, here])):
            with pytest.raises(RuntimeError, match="tensors on meta and on cpu"):
                mixed()
        with pytest.raises(RuntimeError):
            x.numpy()
