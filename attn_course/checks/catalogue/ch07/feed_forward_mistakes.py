"""Exercise 7.2, FeedForward: a right answer, and its known mistakes as edits of it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attn_course.checks.edits import Edits
from attn_course.checks.exercise import Mistake


class Layer(nn.Module):
    """A right answer, which the mistakes edit."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.W_1 = nn.Linear(d_model, d_ff)
        self.W_2 = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Project, put to zero what is negative, project back."""
        hidden = torch.relu(self.W_1(x))
        return self.W_2(hidden)


# the pieces of it that are edited most often
FIRST, SECOND = "nn.Linear(d_model, d_ff)", "nn.Linear(d_ff, d_model)"
SECOND_MADE = f"\n        self.W_2 = {SECOND}"
HIDDEN = "torch.relu(self.W_1(x))"
OUTPUT = "self.W_2(hidden)"

WITHOUT_BIAS = {
    FIRST: "nn.Linear(d_model, d_ff, bias=False)",
    SECOND: "nn.Linear(d_ff, d_model, bias=False)",
}


def as_wide_as(width: str) -> Edits:
    """A hidden layer of another width."""
    return {FIRST: f"nn.Linear(d_model, {width})", SECOND: f"nn.Linear({width}, d_model)"}


def also_made(statement: str) -> Edits:
    """Something else that is made in __init__."""
    return {"super().__init__()": f"super().__init__()\n        {statement}"}


MISTAKES = (
    Mistake(
        "no-parameters",
        "The layer knows of no parameters: projections in a Python list are not registered, so "
        "that no optimizer sees them. Set them as attributes.",
        {
            f"self.W_1 = {FIRST}": f"self.layers = [{FIRST}, {SECOND}]",
            SECOND_MADE: "",
            "self.W_1(x)": "self.layers[0](x)",
            OUTPUT: "self.layers[1](hidden)",
        },
    ),
    Mistake(
        "no-bias",
        "A bias is missing: the formula has b_1 and b_2.",
        WITHOUT_BIAS,
        also=(
            {FIRST: WITHOUT_BIAS[FIRST]},
            {SECOND: WITHOUT_BIAS[SECOND]},
        ),
    ),
    Mistake(
        "widths-exchanged",
        "The widths are exchanged: W_1 goes from d_model to d_ff features, W_2 back.",
        {FIRST: SECOND, SECOND: FIRST, "self.W_1(x)": "self.W_2(x)", OUTPUT: "self.W_1(hidden)"},
    ),
    Mistake(
        "width-fixed",
        "The hidden layer has a width of its own. It has d_ff features.",
        as_wide_as("4 * d_model"),
        also=(
            as_wide_as("d_model"),
            as_wide_as("d_model * d_ff"),
            as_wide_as("2048"),
        ),
    ),
    Mistake(
        "stays-wide",
        "What comes out has d_ff features. The block adds it to x, so it must have d_model again.",
        {SECOND: "nn.Linear(d_ff, d_ff)"},
        also=({SECOND_MADE: "", OUTPUT: "hidden"},),
    ),
    Mistake(
        "three-projections",
        "There are three projections. Asked for are two; a third, as a gate, is SwiGLU.",
        also_made("self.W_3 = nn.Linear(d_model, d_ff)"),
        also=(
            also_made("self.W_3 = nn.Linear(d_model, d_model)"),
            also_made("self.W_gate = nn.Linear(d_model, d_ff)"),
        ),
    ),
    Mistake(
        "norm-within",
        "There is a norm within the layer. It stands around the layer, in the block.",
        also_made("self.norm = nn.LayerNorm(d_model)"),
        also=(
            also_made("self.norm_1 = nn.LayerNorm(d_model)"),
            also_made("self.layer_norm = nn.LayerNorm(d_model)"),
        ),
    ),
    Mistake(
        "other-names",
        "The projections have other names. The check copies its weights in by name: self.W_1 and "
        "self.W_2.",
        examples=(
            {
                "self.W_1 =": "self.fc1 =",
                "self.W_2 =": "self.fc2 =",
                "self.W_1(x)": "self.fc1(x)",
                OUTPUT: "self.fc2(hidden)",
            },
            {
                f"self.W_1 = {FIRST}": f"self.net = nn.Sequential({FIRST}, nn.ReLU(), {SECOND})",
                SECOND_MADE: "",
                HIDDEN: "self.net(x)",
                OUTPUT: "hidden",
            },
        ),
    ),
    Mistake(
        "random",
        "Two calls of the same layer disagree: something is dropped, by a dropout or a functional "
        "call that does not know about eval(), or weights are made in forward.",
        {OUTPUT: f"F.dropout({OUTPUT}, 0.1)"},
        also=(
            {"(hidden)": "(F.dropout(hidden, 0.1))"},
            {"self.W_2(h": "nn.Linear(self.W_2.in_features, x.shape[-1]).to(x)(h"},
        ),
    ),
    Mistake(
        "drops-in-training",
        "In training something is dropped. Here the layer drops nothing; dropout is its own part "
        "of the lesson.",
        {OUTPUT: f"F.dropout({OUTPUT}, 0.1, self.training)"},
        also=({"(hidden)": "(F.dropout(hidden, 0.1, self.training))"},),
    ),
    Mistake(
        "input-altered",
        "x is altered in place. The block adds x to the output, so it still needs it.",
        {"W_1(x)": "W_1(x.relu_())"},
    ),
    Mistake(
        "no-nonlinearity",
        "Nothing stands between the projections. Two linear maps in a row are one linear map: "
        "the wide hidden layer would be for nothing.",
        {HIDDEN: "self.W_1(x)"},
    ),
    Mistake(
        "relu-last",
        "The ReLU stands at the end, so that nothing negative is ever added to a token. It stands "
        "between the projections.",
        {HIDDEN: "self.W_1(x)", OUTPUT: f"torch.relu({OUTPUT})"},
    ),
    Mistake(
        "relu-twice",
        "There is a second ReLU at the end, so that nothing negative is ever added to a token.",
        {OUTPUT: f"torch.relu({OUTPUT})"},
    ),
    Mistake(
        "relu-first",
        "The ReLU is applied to x, before the first projection: half of what a token says is lost.",
        {HIDDEN: "self.W_1(torch.relu(x))"},
        also=({"W_1(x)": "W_1(torch.relu(x))"},),
    ),
    Mistake(
        "gelu",
        "The function between is a GELU. Later models have it; asked for is the ReLU of the first.",
        {"torch.relu": "F.gelu"},
        also=({HIDDEN: "F.gelu(self.W_1(x), approximate='tanh')"},),
    ),
    Mistake(
        "other-function",
        "The function between the projections is another one. Asked for is the ReLU, max(0, x).",
        {"torch.relu": "torch.sigmoid"},
        also=(
            {"torch.relu": "torch.tanh"},
            {"torch.relu": "F.silu"},
            {"torch.relu": "F.leaky_relu"},
            {"torch.relu": "F.softplus"},
            {"torch.relu": "F.elu"},
            {HIDDEN: "self.W_1(x).softmax(dim=-1)"},
            {HIDDEN: "self.W_1(x).clamp(0, 1)"},
            {"torch.relu": "F.relu6"},
            {HIDDEN: f"{HIDDEN}.square()"},
        ),
    ),
    Mistake(
        "sign",
        "The ReLU keeps the wrong half, or keeps both: negative numbers become zero, others stay.",
        {HIDDEN: "self.W_1(x).clamp(max=0)"},
        also=(
            {"torch.relu": "torch.abs"},
            {"self.W_1(x)": "-self.W_1(x)"},
        ),
    ),
    Mistake(
        "residual",
        "x is added to the output. The residual belongs to the block, not to this layer.",
        {"return ": "return x + "},
    ),
    Mistake(
        "normalised",
        "The output, or the input, is normalised. The norm stands around the layer, in the block.",
        {OUTPUT: f"F.layer_norm({OUTPUT}, x.shape[-1:])"},
        also=({"W_1(x)": "W_1(F.layer_norm(x, x.shape[-1:]))"},),
    ),
    Mistake(
        "tokens-mixed",
        "Tokens are mixed: the hidden features are averaged over them. This layer looks at each "
        "token alone; mixing is what attention is for.",
        {"(hidden)": "(hidden.mean(dim=max(0, x.ndim - 2), keepdim=True).expand_as(hidden))"},
    ),
    Mistake(
        "biases-unused",
        "The biases are made and not used.",
        {HIDDEN: "torch.relu(x @ self.W_1.weight.T)", OUTPUT: "hidden @ self.W_2.weight.T"},
    ),
    Mistake(
        "weights-transposed",
        "The weights are used as (in, out). nn.Linear stores them as (out, in), which shows "
        "nothing while d_ff is d_model.",
        {
            HIDDEN: "torch.relu(x @ self.W_1.weight + self.W_1.bias)",
            OUTPUT: "hidden @ self.W_2.weight + self.W_2.bias",
        },
    ),
    Mistake(
        "one-projection-twice",
        "One projection serves twice, which goes unnoticed while d_ff is d_model.",
        {OUTPUT: "self.W_1(hidden)"},
        also=({"self.W_1(x)": "self.W_2(x)"},),
    ),
    Mistake(
        "order-exchanged",
        "W_2 comes before W_1, which goes unnoticed while d_ff is d_model.",
        {"self.W_1(x)": "self.W_2(x)", OUTPUT: "self.W_1(hidden)"},
    ),
    Mistake(
        "hidden-returned",
        "The hidden features come back. They still have to go through W_2.",
        {OUTPUT: "hidden"},
        also=({OUTPUT: "self.W_1(x)"},),
    ),
    Mistake(
        "flattened",
        "The axes before the features are made one and not put back.",
        {"W_1(x)": "W_1(x.reshape(-1, x.shape[-1]))"},
    ),
    Mistake(
        "no-gradient",
        "No gradient comes through: the layer runs under no_grad, or detaches.",
        {"def forward": "@torch.no_grad()\n    def forward"},
    ),
    Mistake(
        "input-detached",
        "No gradient reaches x, so that nothing before this layer would be trained.",
        {"W_1(x)": "W_1(x.detach())"},
    ),
    Mistake(
        "hidden-detached",
        "No gradient comes past the hidden features: W_1 would not be trained.",
        {"(hidden)": "(hidden.detach())"},
    ),
)
