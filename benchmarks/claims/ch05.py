"""What chapter 05 claims: the staircase, what heads cost, how wide they must be, what they do."""

from collections.abc import Mapping

import torch

from attn_course.efficient import chunked_attention
from attn_course.experiments.ch05 import (
    KeySettings,
    StaircaseSettings,
    ablation_costs,
    attention_to_questions,
    staircase,
    train_key_lookup,
    train_staircase,
)
from attn_course.experiments.ch05_costs import kept_bytes, multiply_adds
from attn_course.memory import attention_memory
from attn_course.models import count_parameters
from attn_course.multihead import MultiHeadAttention
from benchmarks.claims import Claim

Figures = Mapping[str, float]


def few_heads(seed: int) -> Figures:
    """Right answers to four questions, by up to four heads."""
    return {
        f"{h} heads": train_staircase(StaircaseSettings(num_heads=h), seed=seed).answered
        for h in (1, 2, 3, 4)
    }


def lone_head(seed: int) -> Figures:
    """Which of four questions a lone head answers, how well, and the next best."""
    accuracy = train_staircase(StaircaseSettings(), seed=seed).accuracy
    best, second = accuracy.sort(descending=True).values[:2].tolist()
    question = float(accuracy.argmax()) + 1
    return {"best question": best, "second best": second, "which (1 … 4)": question}


def lone_head_longer(seed: int) -> Figures:
    """Right answers of a lone head, with the usual steps and with more than twice as many."""
    return {
        f"{steps} steps": train_staircase(
            StaircaseSettings(num_heads=1, steps=steps), seed=seed
        ).answered
        for steps in (400, 1000)
    }


def many_heads(seed: int) -> Figures:
    """Right answers to four questions as heads get narrow, and with three times the steps."""
    found = {
        f"{h} heads of {48 // h}": train_staircase(
            StaircaseSettings(num_heads=h), seed=seed
        ).answered
        for h in (8, 12, 24, 48)
    }
    longer = train_staircase(StaircaseSettings(num_heads=48, steps=1000), seed=seed)
    return found | {"48 heads, 1000 steps": longer.answered}


def ways_around(seed: int) -> Figures:
    """One head with a network behind it, and two layers of one head."""
    ways = {
        "2 questions, one head": StaircaseSettings(num_questions=2),
        "2 questions, with a network": StaircaseSettings(num_questions=2, d_ff=192, steps=800),
        "2 questions, two layers": StaircaseSettings(num_questions=2, num_layers=2, steps=500),
        "4 questions, with a network": StaircaseSettings(d_ff=192, steps=800),
    }
    return {name: train_staircase(one, seed=seed).answered for name, one in ways.items()}


def costs(seed: int) -> Figures:
    """Parameters, multiply-adds and kept bytes of 8 heads against one, as PyTorch counts them."""
    torch.manual_seed(seed)
    x = torch.randn(1, 2048, 512)
    one, eight = MultiHeadAttention(512, 1), MultiHeadAttention(512, 8)
    kept = kept_bytes(eight, x, x, x)
    short = x[:, :64].clone()
    return {
        "parameters, 8 heads / 1": count_parameters(eight) / count_parameters(one),
        "multiply-adds, 8 heads / 1": multiply_adds(eight, x, x, x) / multiply_adds(one, x, x, x),
        "activations, 8 heads / 1, n = 2048": kept / kept_bytes(one, x, x, x),
        "activations, 8 heads / 1, n = 64": kept_bytes(eight, short, short, short)
        / kept_bytes(one, short, short, short),
        "kept / formula": kept / attention_memory(512, 8, 2048).activations,
    }


def chunks(seed: int) -> Figures:
    """What chunked attention keeps for the backward pass."""
    torch.manual_seed(seed)
    q, k, v = (torch.randn(1, 8, 1024, 16, requires_grad=True) for _ in range(3))
    return {
        "MiB kept": kept_bytes(lambda *x: chunked_attention(*x)[0], q, k, v) / 2**20,
        "MiB of the weights": attention_memory(128, 8, 1024).weights / 2**20,
    }


def widths(seed: int) -> Figures:
    """One look-up by keys of 1, 2, 4 or 8 features, with few and with many different keys."""
    return {
        f"{num_keys} keys, d_k = {d_k}": train_key_lookup(KeySettings(num_keys, d_k), seed=seed)
        for num_keys in (8, 128)
        for d_k in (1, 2, 4, 8)
    }


def inspected(num_heads: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Weight on each question's item, and what each question loses by ablation, (h, q) both."""
    settings = StaircaseSettings(num_heads=num_heads)
    model = train_staircase(settings, seed=seed).model
    test = staircase(settings, seed).test_set(500)
    return attention_to_questions(model, test), ablation_costs(model, test)


def four_heads(seed: int) -> Figures:
    """With as many heads as questions."""
    looks, loses = inspected(4, seed)
    same = (looks.argmax(dim=1) == loses.argmax(dim=1)).double()
    return {
        "map and knife agree": same.mean().item(),
        "questions with a head of their own": float(len(looks.argmax(dim=1).unique())),
        "smallest loss by ablation": loses.max(dim=1).values.min().item(),
    }


def eight_heads(seed: int) -> Figures:
    """With more heads than questions."""
    looks, loses = inspected(8, seed)
    weight, question = looks.max(dim=1)
    cost = loses.gather(1, question[:, None])[weight > 0.5, 0]
    return {
        "heads that watch one question": float(len(cost)),
        "smallest loss by ablation": cost.min().item(),
        "largest loss by ablation": cost.max().item(),
    }


CLAIMS = (
    Claim(
        "Four questions at one position: each head up to the fourth answers one more.",
        few_heads,
        lambda f: f["1 heads"] < 1.8 < f["2 heads"] < 2.8 < f["3 heads"] < 3.9 < f["4 heads"],
    ),
    Claim(
        "A lone head answers one question nearly always and gives up the others.",
        lone_head,
        lambda f: f["best question"] > 0.9 and f["second best"] < 0.5,
    ),
    Claim(
        "More than twice the steps bring a lone head less than half an answer.",
        lone_head_longer,
        lambda found: found["1000 steps"] < found["400 steps"] + 0.5,
    ),
    Claim(
        "Very narrow heads answer fewer again after the same training, and catch up with more.",
        many_heads,
        lambda f: (
            f["8 heads of 6"] > 3.9
            and f["48 heads of 1"] < f["24 heads of 2"] < f["8 heads of 6"]
            and f["48 heads, 1000 steps"] > f["48 heads of 1"] + 0.5
        ),
    ),
    Claim(
        "A network behind one head, or two layers, answer two questions.",
        ways_around,
        lambda f: (
            f["2 questions, one head"] < 1.5
            and f["2 questions, with a network"] > 1.8
            and f["2 questions, two layers"] > 1.8
            and f["4 questions, with a network"] < 3.8
        ),
    ),
    Claim(
        "Heads cost neither parameters nor multiply-adds; memory for the weights grows, h · n².",
        costs,
        lambda f: (
            f["parameters, 8 heads / 1"] == f["multiply-adds, 8 heads / 1"] == 1
            and abs(f["activations, 8 heads / 1, n = 2048"] - 4.5) < 0.1
            and abs(f["kept / formula"] - 1) < 1e-6
        ),
    ),
    Claim(
        "Chunked attention keeps no weights.",
        chunks,
        lambda f: f["MiB kept"] < f["MiB of the weights"] / 10,
    ),
    Claim(
        "The more different keys, the wider a head must be.",
        widths,
        lambda f: (
            f["8 keys, d_k = 1"] < 0.7
            and f["128 keys, d_k = 2"] < f["8 keys, d_k = 2"] - 0.03
            and f["128 keys, d_k = 8"] > 0.9
        ),
    ),
    Claim(
        "Four heads for four questions: each has its own, and ablation agrees with the map.",
        four_heads,
        lambda f: f["map and knife agree"] == 1 and f["smallest loss by ablation"] > 0.5,
    ),
    Claim(
        "Eight heads: some watch a question and can be silenced without loss, some cannot.",
        eight_heads,
        lambda f: (
            f["smallest loss by ablation"] < 0.35 < f["largest loss by ablation"]
            and f["heads that watch one question"] > 4
        ),
    ),
)
