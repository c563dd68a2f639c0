"""Answers to exercise 0.3 that the check has to judge right: correct variants and wrong ones."""

import torch
import torch.nn.functional as F
from torch import nn

from attn_course.primer import cross_entropy


def zeroed_before_backward(model, optimizer, inputs, targets):
    loss = nn.CrossEntropyLoss()(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def zeroed_last(model, optimizer, inputs, targets):
    loss = F.cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    return float(loss)


def zeroed_through_the_model(model, optimizer, inputs, targets):
    model.zero_grad()
    logits = model.forward(inputs)
    loss = F.nll_loss(F.log_softmax(logits, dim=-1), targets)
    loss.backward()
    optimizer.step()
    return loss.detach()


def gradients_set_to_none(model, optimizer, inputs, targets):
    for parameter in model.parameters():
        parameter.grad = None
    loss = cross_entropy(model(inputs), targets)
    before = loss.item()
    loss.backward(retain_graph=True)
    optimizer.step()
    return before


def by_a_closure(model, optimizer, inputs, targets):
    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), targets)
        loss.backward()
        return loss

    return optimizer.step(closure).item()


def by_autograd_grad(model, optimizer, inputs, targets):
    loss = F.cross_entropy(model(inputs), targets)
    parameters = list(model.parameters())
    for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
        parameter.grad = gradient
    optimizer.step()
    return loss.detach().numpy()


def with_probabilities_as_targets(model, optimizer, inputs, targets):
    optimizer.zero_grad()
    logits = model(inputs)
    loss = F.cross_entropy(logits, F.one_hot(targets, logits.shape[-1]).to(logits.dtype))
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        return loss.item()


def under_no_grad(model, optimizer, inputs, targets):
    optimizer.zero_grad()
    with torch.no_grad():
        loss = F.cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss.item()


def made_of_numbers(model, optimizer, inputs, targets):
    optimizer.zero_grad()
    loss = torch.tensor(F.cross_entropy(model(inputs), targets).item())
    loss.backward()
    optimizer.step()
    return loss.item()


def item_too_early(model, optimizer, inputs, targets):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(inputs), targets).item()
    loss.backward()
    optimizer.step()
    return loss


def targets_first(model, optimizer, inputs, targets):
    optimizer.zero_grad()
    loss = nn.CrossEntropyLoss()(targets, model(inputs))
    loss.backward()
    optimizer.step()
    return loss.item()


def step_first_and_never_zeroed(model, optimizer, inputs, targets):
    loss = F.cross_entropy(model(inputs), targets)
    optimizer.step()
    loss.backward()
    return loss.item()


def softmax_inside_and_never_zeroed(model, optimizer, inputs, targets):
    loss = F.cross_entropy(torch.softmax(model(inputs), dim=1), targets)
    loss.backward()
    optimizer.step()
    return loss.item()


def own_sgd(model, optimizer, inputs, targets):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return zeroed_before_backward(model, optimizer, inputs, targets)


def own_adam(model, optimizer, inputs, targets):
    return zeroed_before_backward(
        model, torch.optim.Adam(model.parameters(), lr=0.01), inputs, targets
    )


def loss_and_accuracy(model, optimizer, inputs, targets):
    optimizer.zero_grad()
    logits = model(inputs)
    loss = F.cross_entropy(logits, targets)
    loss.backward()
    optimizer.step()
    return loss.item(), (logits.argmax(-1) == targets).float().mean().item()


def loss_after_the_step_in_eval_mode(model, optimizer, inputs, targets):
    zeroed_before_backward(model, optimizer, inputs, targets)
    model.eval()
    with torch.no_grad():
        loss = F.cross_entropy(model(inputs), targets)
    model.train()
    return loss.item()


def loss_bound_to_the_graph(model, optimizer, inputs, targets):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss


def first_row_only(model, optimizer, inputs, targets):
    return zeroed_before_backward(model, optimizer, inputs[:1], targets[:1])


def flattening_the_inputs(model, optimizer, inputs, targets):
    return zeroed_before_backward(model, optimizer, inputs.float(), targets)


def keeping_the_graph_of_all_calls(model, optimizer, inputs, targets, losses=[]):  # noqa: B006
    losses.append(F.cross_entropy(model(inputs), targets))
    optimizer.zero_grad()
    losses[-1].backward()
    optimizer.step()
    return sum(loss.item() for loss in losses) / len(losses)


def backward_forgotten(model, optimizer, inputs, targets):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(inputs), targets)
    optimizer.step()
    return loss.item()


def mistyped(model, optimizer, inputs, targets):
    optimizer.zero_gradient()


def a_wrong_shape(model, optimizer, inputs, targets):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(inputs.T), targets)
    loss.backward()
    optimizer.step()
    return loss.item()


def train_mode_for_the_step(model, optimizer, inputs, targets):
    was = model.training
    model.train()
    loss = zeroed_through_the_model(model, optimizer, inputs, targets)
    model.train(was)
    return loss.item()


def rate_written_into_the_optimizer(model, optimizer, inputs, targets):
    for group in optimizer.param_groups:
        group["lr"] = 0.01
    return zeroed_before_backward(model, optimizer, inputs, targets)


def rate_lowered_after_each_step(model, optimizer, inputs, targets):
    loss = zeroed_before_backward(model, optimizer, inputs, targets)
    for group in optimizer.param_groups:
        group["lr"] *= 0.9
    return loss


def loss_of_the_data(model, optimizer, inputs, targets):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(inputs).data, targets).requires_grad_()
    loss.backward()
    optimizer.step()
    return loss.item()


def brackets_forgotten(model, optimizer, inputs, targets):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(inputs), targets)
    loss.backward  # noqa: B018
    optimizer.step()
    return loss.item()


def tensor_of_a_loss_alone(model, optimizer, inputs, targets):
    return F.cross_entropy(model(inputs), targets)


def tensor_and_never_zeroed(model, optimizer, inputs, targets):
    loss = F.cross_entropy(model(inputs), targets)
    loss.backward()
    return loss, optimizer.step()


def accumulated_row_by_row(model, optimizer, inputs, targets):
    optimizer.zero_grad()
    total = 0.0
    for row, target in zip(inputs.split(1), targets.split(1), strict=True):
        loss = F.cross_entropy(model(row), target) / len(targets)
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


def by_the_gradient_of_the_logits(model, optimizer, inputs, targets):
    optimizer.zero_grad()
    logits = model(inputs)
    probs = logits.detach().softmax(dim=-1)
    n = torch.arange(len(targets))
    gradient = probs.clone()
    gradient[n, targets] -= 1
    logits.backward(gradient / len(targets))
    optimizer.step()
    return float(-probs[n, targets].log().mean())


def by_torch_func(model, optimizer, inputs, targets):
    weights = dict(model.named_parameters())

    def loss_at(values):
        return F.cross_entropy(torch.func.functional_call(model, values, (inputs,)), targets)

    found = torch.func.grad_and_value(loss_at)({k: v.detach() for k, v in weights.items()})
    for name, gradient in found[0].items():
        weights[name].grad = gradient
    optimizer.step()
    return found[1].item()


RIGHT = {
    "training_step": [
        zeroed_before_backward,
        zeroed_last,
        zeroed_through_the_model,
        gradients_set_to_none,
        by_a_closure,
        by_autograd_grad,
        with_probabilities_as_targets,
        by_the_gradient_of_the_logits,
        by_torch_func,
    ]
}
WRONG = {
    "training_step": [
        (train_mode_for_the_step, "train-mode", "mode"),
        (under_no_grad, "no-graph", "no_grad"),
        (made_of_numbers, "no-graph"),
        (item_too_early, "number-before-backward", "keep the tensor"),
        (targets_first, "arguments-exchanged", "logits come first"),
        (step_first_and_never_zeroed, "step-before-backward"),
        (softmax_inside_and_never_zeroed, "softmax-before-loss"),
        (own_sgd, "own-rate", "0.01"),
        (own_adam, "own-adam"),
        (loss_and_accuracy, None, "must be a number, got a list or tuple of 2"),
        (loss_after_the_step_in_eval_mode, "loss-after-step", "before"),
        (loss_bound_to_the_graph, "tensor-returned"),
        (first_row_only, None),
        (flattening_the_inputs, None),
        (keeping_the_graph_of_all_calls, None),
        (backward_forgotten, "backward-forgotten"),
        (mistyped, None, "zero_gradient"),
        (a_wrong_shape, None, "RuntimeError", "model(inputs.T)"),
        (rate_written_into_the_optimizer, "own-rate", "0.01"),
        (rate_lowered_after_each_step, None, "over 3 calls"),
        (loss_of_the_data, "backward-forgotten", ".data"),
        (brackets_forgotten, "backward-forgotten", "brackets"),
        (tensor_of_a_loss_alone, "only-the-loss"),
        (tensor_and_never_zeroed, None, "must be a number, got a list or tuple of 2"),
        (accumulated_row_by_row, None, "called once"),
    ]
}
