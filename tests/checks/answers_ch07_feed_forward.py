"""Answers to exercise 7.2 that the check has to judge right: correct variants and wrong ones."""

import torch
import torch.nn.functional as F
from torch import nn


class Plain(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.W_2 = nn.Linear(d_ff, d_model)
        self.W_1 = nn.Linear(d_model, d_ff)

    def forward(self, x):
        return self.W_2(F.relu(self.W_1(x)))


class WithModules(Plain):
    def __init__(self, d_model, d_ff):
        super().__init__(d_model, d_ff)
        self.activation, self.dropout = nn.ReLU(), nn.Dropout(0.0)

    def forward(self, x):
        return self.W_2(self.dropout(self.activation(self.W_1(x))))


class ByHand(Plain):
    def forward(self, x):
        hidden = x @ self.W_1.weight.T + self.W_1.bias
        hidden = torch.where(hidden > 0, hidden, 0.0)
        return hidden @ self.W_2.weight.T + self.W_2.bias


class InPlaceOnTheHidden(Plain):
    def forward(self, x):
        return self.W_2(self.W_1(x).clamp_(min=0))


class InTheOtherMode(Plain):
    def forward(self, x):
        return self.W_2(F.dropout(F.relu(self.W_1(x)), 0.1, training=not self.training))


class OneSequential(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        return self.layers(x)


class ThreeAxesOnly(Plain):
    def forward(self, x):
        b, n, _ = x.shape
        return self.W_2(F.relu(self.W_1(x))).view(b, n, -1)


class LowerCase(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.w_1, self.w_2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.w_2(F.relu(self.w_1(x)))


class Gated(Plain):
    def __init__(self, d_model, d_ff):
        super().__init__(d_model, d_ff)
        self.gate = nn.Linear(d_model, d_ff)

    def forward(self, x):
        return self.W_2(F.silu(self.gate(x)) * self.W_1(x))


class ReluWithFloor(Plain):
    def forward(self, x):
        return self.W_2(self.W_1(x).clamp(min=0.1))


class NoModule:
    def __init__(self, d_model, d_ff):
        self.W_1, self.W_2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def __call__(self, x):
        return self.W_2(F.relu(self.W_1(x)))


class WithoutReturn(Plain):
    def forward(self, x):
        self.W_2(F.relu(self.W_1(x)))


class KeepsTheFirst(Plain):
    kept = None

    def forward(self, x):
        if self.kept is None:
            self.kept = F.relu(self.W_1(x))
        return self.W_2(self.kept)


RIGHT = {"FeedForward": [Plain, WithModules, ByHand, InPlaceOnTheHidden]}
WRONG = {
    "FeedForward": [
        (InTheOtherMode, None, "Two calls"),
        (OneSequential, "other-names", "layers.0", "self.W_1"),
        (ThreeAxesOnly, None, "ValueError"),
        (LowerCase, "other-names", "w_1"),
        (Gated, None, "two projections"),
        (ReluWithFloor, None, "what is negative"),
        (NoModule, None, "no nn.Module"),
        (WithoutReturn, None, "return"),
        (KeepsTheFirst, None, "output"),
    ]
}
