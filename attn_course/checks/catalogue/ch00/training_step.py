"""Exercise 0.3, training_step: its stages and its known mistakes."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer

from attn_course.checks.catalogue.ch00 import training_step_probes as probes
from attn_course.checks.exercise import Answer, Exercise, Mistake, Output, Stage
from attn_course.primer import training_step

LOSSES_AND_STATE = (Output("losses", "call"), Output("parameters afterwards", "parameter"))
BATCH = ("model's weights", "inputs", "targets")


# -- known-wrong versions ---------------------------------------------------------------------


def in_order(
    actions: str,
    loss: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy,
    result: Callable[[Tensor, Tensor], Any] = lambda loss, targets: loss.item(),
) -> Answer:
    """A version that does these things in this order and returns `result` of its last loss."""

    def answer(model: nn.Module, optimizer: Optimizer, inputs: Tensor, targets: Tensor) -> Any:
        value = torch.zeros(())
        for action in actions.split():
            match action:
                case "forward":
                    value = loss(model(inputs), targets)
                case "backward":
                    value.backward()
                case "step":
                    optimizer.step()
                case "zero":
                    optimizer.zero_grad()
                case "train" | "eval":
                    model.train(action == "train")
        return result(value, targets)

    return answer


RIGHT_ORDER = "zero forward backward step"


def with_loss(loss: Callable[[Tensor, Tensor], Tensor]) -> Answer:
    """A version that descends on another loss."""
    return in_order(RIGHT_ORDER, loss)


def returning(result: Callable[[Tensor, Tensor], Any]) -> Answer:
    """A version that returns something else."""
    return in_order(RIGHT_ORDER, result=result)


def meanwhile(*, training: bool) -> Answer:
    """A version that changes the model's mode and puts it back."""

    def answer(model: nn.Module, optimizer: Optimizer, inputs: Tensor, targets: Tensor) -> float:
        former = model.training
        model.train(training)
        loss = training_step(model, optimizer, inputs, targets)
        model.train(former)
        return loss

    return answer


def with_optimizer(make: Callable[[Any], Optimizer]) -> Answer:
    """A version that makes an optimizer of its own."""
    return lambda model, _, inputs, targets: training_step(
        model, make(model.parameters()), inputs, targets
    )


def own_update(model: nn.Module, optimizer: Optimizer, inputs: Tensor, targets: Tensor) -> float:
    """Moves the parameters by hand, at the optimizer's rate."""
    optimizer.zero_grad()
    loss = F.cross_entropy(model(inputs), targets)
    loss.backward()
    with torch.no_grad():
        for weight in model.parameters():
            weight -= optimizer.param_groups[0]["lr"] * weight.grad
    return loss.item()


def copy_trained(model: nn.Module, optimizer: Optimizer, inputs: Tensor, targets: Tensor) -> float:
    """Computes the gradients of a copy, and steps on the model that was handed in."""
    return training_step(deepcopy(model), optimizer, inputs, targets)


def row_by_row(model: nn.Module, optimizer: Optimizer, inputs: Tensor, targets: Tensor) -> float:
    """Takes a step for each row of the batch."""
    rows = zip(inputs.split(1), targets.split(1), strict=True)
    return sum(training_step(model, optimizer, *row) for row in rows) / len(targets)


def accuracy_returned(
    model: nn.Module, optimizer: Optimizer, inputs: Tensor, targets: Tensor
) -> float:
    """Trains rightly and returns the share of right answers."""
    optimizer.zero_grad()
    logits = model(inputs)
    F.cross_entropy(logits, targets).backward()
    optimizer.step()
    return (logits.argmax(dim=-1) == targets).double().mean().item()


def without_graph(model: nn.Module, optimizer: Optimizer, inputs: Tensor, targets: Tensor) -> float:
    """Cuts the output off from the parameters."""
    optimizer.zero_grad()
    loss = F.cross_entropy(model(inputs).detach(), targets)
    loss.backward()
    return loss.item()


def squared_error(logits: Tensor, targets: Tensor) -> Tensor:
    """Compares logits and one-hot targets by their squared difference."""
    return F.mse_loss(logits, F.one_hot(targets, logits.shape[-1]).to(logits.dtype))


EXERCISE = Exercise(
    number="0.3",
    reference=training_step,
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
            outputs=(Output("loss"), Output("weight afterwards", "class feature")),
            inputs=("model.weight", "inputs", "targets", "learning rate"),
            diagnose=probes.read_update,
        ),
        Stage(
            "several steps",
            probes.draw_repeated,
            f"One call is right; over {probes.STEPS} calls with the same model it goes wrong.",
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
            outputs=(Output("order of events"), Output("mode of the model afterwards")),
            inputs=(*BATCH, "mode"),
        ),
        Stage(
            "result",
            probes.draw_one,
            "What comes back should be a plain number.",
            call=probes.kind_of_result,
            outputs=(Output("result"),),
            inputs=BATCH,
        ),
        Stage(
            "leftovers",
            probes.draw_one,
            "Gradients that somebody else left behind enter your step: zeroed first, not last, "
            "they could not.",
            call=probes.after_somebody_else,
            outputs=(Output("parameters afterwards", "parameter"),),
            inputs=BATCH,
            remark=True,
        ),
    ),
    mistakes=(
        Mistake(
            "never-zeroed",
            "The gradients are never zeroed: backward() adds to what is there, so each step "
            "also repeats all earlier ones.",
            in_order("forward backward step"),
        ),
        Mistake(
            "zeroed-after-backward",
            "The gradients are zeroed between backward() and the step, so the step finds none.",
            in_order("forward backward zero step"),
        ),
        Mistake(
            "step-forgotten",
            "The gradients are computed, but the optimizer never takes its step: the weights "
            "stay as they are.",
            in_order("zero forward backward"),
        ),
        Mistake(
            "backward-forgotten",
            "The optimizer takes its step, but no gradient has reached the model's parameters, so "
            "they stay as they are. Is backward() called (with its brackets), and on a loss that "
            "still hangs together with them (no `.data`, no new tensor made of its number)?",
            in_order("zero forward step"),
        ),
        Mistake(
            "only-the-loss",
            "The loss is computed and nothing else happens: gradients and step are missing.",
            in_order("forward"),
            also=(in_order("zero forward"),),
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
            in_order("zero forward step backward"),
        ),
        Mistake(
            "loss-after-step",
            "The loss that comes back is measured after the step; asked for is the one from "
            "before it, which you have already.",
            in_order(f"{RIGHT_ORDER} forward"),
        ),
        Mistake(
            "model-called-twice",
            "The model is called twice. That costs twice the time, and with dropout the loss "
            "returned is another than the loss that was descended on: keep the first result.",
            in_order("zero forward forward backward step"),
        ),
        Mistake(
            "stepped-twice",
            "The optimizer takes two steps on one gradient.",
            in_order(f"{RIGHT_ORDER} step"),
        ),
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
            in_order(f"train {RIGHT_ORDER}"),
            also=(meanwhile(training=True),),
        ),
        Mistake(
            "eval-mode",
            "The model is put into eval mode: dropout would be off while it trains. "
            "Leave the mode as it is.",
            in_order(f"eval {RIGHT_ORDER}"),
        ),
        Mistake(
            "eval-mode-for-the-loss",
            "The model is in eval mode while it computes the loss: dropout would be off while "
            "it trains. Leave the mode as it is.",
            in_order("eval zero forward backward step train"),
            also=(meanwhile(training=False),),
        ),
        Mistake(
            "left-in-eval-mode",
            "The model is left in eval mode, so that the next step would train without dropout. "
            "Leave the mode as it is.",
            in_order(f"{RIGHT_ORDER} eval"),
        ),
        Mistake(
            "softmax-before-loss",
            "A softmax is taken before the cross-entropy, which takes its own: it wants the "
            "model's logits as they are.",
            with_loss(lambda logits, t: F.cross_entropy(logits.softmax(dim=-1), t)),
        ),
        Mistake(
            "log-softmax-missing",
            "`F.nll_loss` takes log-probabilities, and gets logits: `F.cross_entropy` is the one "
            "that takes logits.",
            with_loss(lambda logits, t: F.nll_loss(logits, t)),
        ),
        Mistake(
            "sum-not-mean",
            "The losses of the rows are added up, not averaged: loss and step grow with the batch.",
            with_loss(lambda logits, t: F.cross_entropy(logits, t, reduction="sum")),
        ),
        Mistake(
            "squared-error",
            "The loss is the squared difference of logits and one-hot targets, not the "
            "cross-entropy.",
            with_loss(squared_error),
        ),
        Mistake(
            "loss-negated",
            "The loss has lost its sign: descending on it makes the right classes less likely.",
            with_loss(lambda logits, t: -F.cross_entropy(logits, t)),
        ),
        Mistake(
            "ascent",
            "The weights move uphill: the gradient's sign is turned round somewhere between "
            "the loss and the step.",
            in_order(RIGHT_ORDER, lambda x, t: -F.cross_entropy(x, t), lambda v, t: -v.item()),
        ),
        Mistake(
            "tensor-returned",
            "The loss comes back as a tensor that still holds the graph. Collected in a list, "
            "each one keeps all its step's intermediate results in memory: return the number.",
            returning(lambda loss, targets: loss),
        ),
        Mistake(
            "loss-times-batch",
            "The step is right; the loss that comes back is multiplied by the number of rows.",
            returning(lambda loss, targets: loss.item() * len(targets)),
        ),
        Mistake(
            "nothing-returned",
            "The step is right, but nothing comes back: return the loss as a number.",
            returning(lambda loss, targets: None),
        ),
        Mistake(
            "accuracy-returned",
            "The step is right; what comes back is the accuracy, not the loss.",
            accuracy_returned,
        ),
        Mistake(
            "own-update",
            "The weights are moved by hand. With momentum, with Adam or with several rates that "
            "is another step: let the optimizer take it.",
            own_update,
        ),
        Mistake(
            "own-rate",
            "The step has a learning rate of its own.",
            examples=tuple(
                with_optimizer(lambda weights, lr=lr: SGD(weights, lr=lr)) for lr in (0.1, 1e-3)
            ),
        ),
        Mistake(
            "own-adam",
            "The step is taken by an Adam of its own.",
            examples=(with_optimizer(lambda weights: Adam(weights, lr=1e-3)),),
        ),
        Mistake(
            "no-graph",
            "The loss is cut off from the model's parameters: was the model called under "
            "no_grad, its output detached, or a new tensor made of its numbers?",
            without_graph,
        ),
        Mistake(
            "number-before-backward",
            "The loss is turned into a number first, and a number has no backward(): keep the "
            "tensor until the gradients are there.",
            with_loss(lambda logits, t: F.cross_entropy(logits, t).item()),  # type: ignore
        ),
        Mistake(
            "arguments-exchanged",
            "The arguments of the cross-entropy are exchanged: logits come first, targets second.",
            with_loss(lambda logits, t: F.cross_entropy(t, logits)),
        ),
        Mistake(
            "choices-for-logits",
            "The cross-entropy gets the chosen classes. An argmax has no gradient: it wants the "
            "logits of all classes.",
            with_loss(lambda logits, t: F.cross_entropy(logits.argmax(dim=-1), t)),
        ),
    ),
    hints=(
        "Five lines: empty the gradients, compute the loss from the model's logits, let the "
        "gradients flow back, let the optimizer move the weights, return the loss as a number.",
        "zero_grad() and step() belong to the optimizer, backward() to the loss. backward() adds "
        "to the gradients that are there: which of the five must stand before it?",
        "Keep the loss in a variable: loss = …cross_entropy(model(…), …). What you return is "
        "loss.item(), and nothing is computed anew for it.",
    ),
)
