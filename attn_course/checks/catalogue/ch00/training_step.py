"""Exercise 0.3, training_step: its stages and its known mistakes."""

from __future__ import annotations

from copy import deepcopy

import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer

from attn_course.checks.catalogue.ch00 import training_step_probes as probes
from attn_course.checks.exercise import Exercise, Mistake, Output, Stage
from attn_course.primer import training_step
from attn_course.sentences import say

LOSSES_AND_STATE = (
    Output(say("losses"), "call"),
    Output(say("parameters afterwards"), "parameter"),
)
BATCH = (say("model's weights"), "inputs", "targets")


# -- a right answer, and what goes wrong in it ------------------------------------------------


def one_step(model: nn.Module, optimizer: Optimizer, inputs: Tensor, targets: Tensor) -> float:
    """Gradients, step and loss, each by its line."""
    optimizer.zero_grad()
    logits = model(inputs)
    loss = F.cross_entropy(logits, targets)
    loss.backward()
    optimizer.step()
    return loss.item()


ZERO = "optimizer.zero_grad()"
LOSS = "F.cross_entropy(logits, targets)"
BACKWARD = "loss.backward()"
STEP = "optimizer.step()"
RESULT = "loss.item()"
MODE = "training = model.training"
MODE_AGAIN = "model.train(training)"
BY_HAND = (
    "for weight in model.parameters():",
    "weight.data -= optimizer.param_groups[0]['lr'] * weight.grad",
)


def before(line: str, *statements: str) -> dict[str, str]:
    """Statements in front of a line."""
    return {line: "\n    ".join((*statements, line))}


def after(line: str, statement: str) -> dict[str, str]:
    """A statement behind a line."""
    return {line: f"{line}\n    {statement}"}


def copy_trained(model: nn.Module, optimizer: Optimizer, inputs: Tensor, targets: Tensor) -> float:
    """Computes the gradients of a copy, and steps on the model that was handed in."""
    return training_step(deepcopy(model), optimizer, inputs, targets)


def row_by_row(model: nn.Module, optimizer: Optimizer, inputs: Tensor, targets: Tensor) -> float:
    """Takes a step for each row of the batch."""
    rows = zip(inputs.split(1), targets.split(1), strict=True)
    return sum(training_step(model, optimizer, *row) for row in rows) / len(targets)


MISTAKES = (
    Mistake(
        "never-zeroed",
        "The gradients are never zeroed: backward() adds to what is there, so each step "
        "also repeats all earlier ones.",
        {ZERO: ""},
    ),
    Mistake(
        "zeroed-after-backward",
        "The gradients are zeroed between backward() and the step, so the step finds none.",
        {ZERO: ""} | after(BACKWARD, ZERO),
    ),
    Mistake(
        "step-forgotten",
        "The gradients are computed, but the optimizer never takes its step: the weights "
        "stay as they are.",
        {STEP: ""},
    ),
    Mistake(
        "backward-forgotten",
        "The optimizer takes its step, but no gradient has reached the model's parameters, so "
        "they stay as they are. Is backward() called (with its brackets), and on a loss that "
        "still hangs together with them (no `.data`, no new tensor made of its number)?",
        {BACKWARD: ""},
    ),
    Mistake(
        "only-the-loss",
        "The loss is computed and nothing else happens: gradients and step are missing.",
        {ZERO: "", BACKWARD: "", STEP: ""},
        also=({BACKWARD: "", STEP: ""},),
    ),
    Mistake(
        "copy-trained",
        "The gradients are computed on a copy of the model, and the optimizer steps on the "
        "model itself, which has none: the weights stay as they are.",
        copy_trained,
    ),
    Mistake(
        "step-before-backward",
        "The optimizer steps before backward() has filled the gradients.",
        {BACKWARD: STEP, STEP: BACKWARD},
    ),
    Mistake(
        "loss-after-step",
        "The loss that comes back is measured after the step; asked for is the one from "
        "before it, which you have already.",
        {RESULT: "F.cross_entropy(model(inputs), targets).item()"},
    ),
    Mistake(
        "model-called-twice",
        "The model is called twice. That costs twice the time, and with dropout the loss "
        "returned is another than the loss that was descended on: keep the first result.",
        before("logits = ", "model(inputs)"),
    ),
    Mistake("stepped-twice", "The optimizer takes two steps on one gradient.", after(STEP, STEP)),
    Mistake(
        "row-by-row",
        "A step is taken for each row. Call the model once on the whole batch: the mean "
        "over its rows gives one gradient and one step.",
        row_by_row,
    ),
    Mistake(
        "train-mode",
        "The model is put into train mode, although it came in eval mode, which somebody may "
        "have chosen on purpose. Leave the mode as it is.",
        before(ZERO, "model.train()"),
        also=(before(ZERO, MODE, "model.train()") | after(STEP, MODE_AGAIN),),
    ),
    Mistake(
        "eval-mode",
        "The model is put into eval mode: dropout would be off while it trains. "
        "Leave the mode as it is.",
        before(ZERO, "model.eval()"),
    ),
    Mistake(
        "eval-mode-for-the-loss",
        "The model is in eval mode while it computes the loss: dropout would be off while "
        "it trains. Leave the mode as it is.",
        before(ZERO, "model.eval()") | after(STEP, "model.train()"),
        also=(before(ZERO, MODE, "model.eval()") | after(STEP, MODE_AGAIN),),
    ),
    Mistake(
        "left-in-eval-mode",
        "The model is left in eval mode, so that the next step would train without dropout. "
        "Leave the mode as it is.",
        after(STEP, "model.eval()"),
    ),
    Mistake(
        "softmax-before-loss",
        "A softmax is taken before the cross-entropy, which takes its own: it wants the "
        "model's logits as they are.",
        {"(logits, t": "(logits.softmax(dim=-1), t"},
    ),
    Mistake(
        "log-softmax-missing",
        "`F.nll_loss` takes log-probabilities, and gets logits: `F.cross_entropy` is the one "
        "that takes logits.",
        {"cross_entropy": "nll_loss"},
    ),
    Mistake(
        "sum-not-mean",
        "The losses of the rows are added up, not averaged: loss and step grow with the batch.",
        {"(logits, targets": "(logits, targets, reduction='sum'"},
    ),
    Mistake(
        "squared-error",
        "The loss is the squared difference of logits and one-hot targets, not the cross-entropy.",
        {LOSS: "F.mse_loss(logits, F.one_hot(targets, logits.shape[-1]).to(logits))"},
    ),
    Mistake(
        "loss-negated",
        "The loss has lost its sign: descending on it makes the right classes less likely.",
        {"loss = ": "loss = -"},
    ),
    Mistake(
        "ascent",
        "The weights move uphill: the gradient's sign is turned round somewhere between "
        "the loss and the step.",
        {BACKWARD: "(-loss).backward()"},
    ),
    Mistake(
        "tensor-returned",
        "The loss comes back as a tensor that still holds the graph. Collected in a list, "
        "each one keeps all its step's intermediate results in memory: return the number.",
        {RESULT: "loss"},
    ),
    Mistake(
        "loss-times-batch",
        "The step is right; the loss that comes back is multiplied by the number of rows.",
        {RESULT: "loss.item() * len(targets)"},
    ),
    Mistake(
        "nothing-returned",
        "The step is right, but nothing comes back: return the loss as a number.",
        {f"return {RESULT}": ""},
    ),
    Mistake(
        "accuracy-returned",
        "The step is right; what comes back is the accuracy, not the loss.",
        {RESULT: "(logits.argmax(dim=-1) == targets).double().mean().item()"},
    ),
    Mistake(
        "own-update",
        "The weights are moved by hand. With momentum, with Adam or with several rates that "
        "is another step: let the optimizer take it.",
        {STEP: "\n        ".join(BY_HAND)},
    ),
    Mistake(
        "own-rate",
        "The step has a learning rate of its own.",
        examples=tuple(
            before(ZERO, f"optimizer = torch.optim.SGD(model.parameters(), lr={rate})")
            for rate in (0.1, 1e-3)
        ),
    ),
    Mistake(
        "own-adam",
        "The step is taken by an Adam of its own.",
        examples=(before(ZERO, "optimizer = torch.optim.Adam(model.parameters())"),),
    ),
    Mistake(
        "no-graph",
        "The loss is cut off from the model's parameters: was the model called under "
        "no_grad, its output detached, or a new tensor made of its numbers?",
        {"model(inputs)": "model(inputs).detach()"},
    ),
    Mistake(
        "number-before-backward",
        "The loss is turned into a number first, and a number has no backward(): keep the "
        "tensor until the gradients are there.",
        {LOSS: f"{LOSS}.item()"},
    ),
    Mistake(
        "arguments-exchanged",
        "The arguments of the cross-entropy are exchanged: logits come first, targets second.",
        {"logits, targets)": "targets, logits)"},
    ),
    Mistake(
        "choices-for-logits",
        "The cross-entropy gets the chosen classes. An argmax has no gradient: it wants the "
        "logits of all classes.",
        {"(logits, t": "(logits.argmax(dim=-1), t"},
    ),
)

EXERCISE = Exercise(
    number="0.3",
    reference=training_step,
    right=one_step,
    wire="callable",
    outputs=(Output("loss"),),
    difficulty=2,
    minutes=15,
    points=3,
    may_use="torch, F.cross_entropy or your own cross_entropy",
    stages=(
        Stage(
            "one step",
            probes.draw_small,
            "After one step of plain SGD the loss that came back or the weights are not right.",
            call=probes.one_step,
            outputs=(Output("loss"), Output(say("weight afterwards"), "class feature")),
            inputs=("model.weight", "inputs", "targets", say("learning rate")),
            diagnose=probes.read_update,
        ),
        Stage(
            "several steps",
            probes.draw_repeated,
            say(
                "One call is right; over {calls} calls with the same model it goes wrong.",
                calls=probes.STEPS,
            ),
            call=probes.some_steps,
            outputs=LOSSES_AND_STATE,
            inputs=(*BATCH, "optimizer"),
        ),
        Stage(
            "optimizers",
            probes.draw_optimizers,
            "With plain SGD it is right; with another optimizer the parameters go elsewhere. "
            "Does the optimizer that was handed in take the step?",
            call=probes.some_steps,
            outputs=LOSSES_AND_STATE,
            inputs=(*BATCH, "optimizer"),
        ),
        Stage(
            "models",
            probes.draw_models,
            "With one linear layer it is right; with another model or another batch it is not. "
            "Nothing in the step should depend on what the model is.",
            call=probes.some_steps,
            outputs=LOSSES_AND_STATE,
            inputs=(*BATCH, "optimizer"),
        ),
        Stage(
            "order",
            probes.draw_modes,
            "The numbers are right, but the model should be called once, as it is, then backward, "
            "then one step.",
            call=probes.order_of_events,
            outputs=(Output(say("order of events")), Output(say("mode of the model afterwards"))),
            inputs=(*BATCH, "mode"),
        ),
        Stage(
            "result",
            probes.draw_one,
            "What comes back should be a plain number.",
            call=probes.kind_of_result,
            outputs=(Output(say("result")),),
            inputs=BATCH,
        ),
        Stage(
            "leftovers",
            probes.draw_one,
            "Gradients that somebody else left behind enter your step: zeroed first, not last, "
            "they could not.",
            call=probes.after_somebody_else,
            outputs=(Output(say("parameters afterwards"), "parameter"),),
            inputs=BATCH,
            remark=True,
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "Five lines: empty the gradients, compute the loss from the model's logits, let the "
        "gradients flow back, let the optimizer move the weights, return the loss as a number.",
        "zero_grad() and step() belong to the optimizer, backward() to the loss. backward() adds "
        "to the gradients that are there: which of the five must stand before it?",
        "Keep the loss in a variable: loss = …cross_entropy(model(…), …). What you return is "
        "loss.item(), and nothing is computed anew for it.",
    ),
)
