"""Answers to exercise 1.3 that the check has to judge right: correct variants and wrong ones."""

import torch


def by_backward(run, inputs):
    x = inputs.detach().clone()
    x.requires_grad = True
    run(x)[:, -1, :].sum().backward()
    lengths = x.grad.pow(2).sum(-1).sqrt()
    return torch.flip(lengths.mean(0), dims=[0])


def on_a_clone(run, inputs):
    x = inputs.clone().requires_grad_(True)
    run(x)[:, -1].sum().backward()
    return x.grad.norm(dim=-1).mean(0).flip(-1)


def on_the_inputs_themselves(run, inputs):
    inputs.requires_grad_(True)
    inputs.grad = None
    run(inputs)[:, -1].sum().backward()
    result = inputs.grad.norm(dim=-1).mean(0).flip(-1)
    inputs.requires_grad_(False)
    return result


def sequence_by_sequence(run, inputs):
    rows = []
    for sequence in inputs:
        x = sequence[None].detach().requires_grad_()
        (gradient,) = torch.autograd.grad(run(x)[0, -1].sum(), x)
        rows.append(torch.linalg.vector_norm(gradient[0], dim=-1))
    return torch.stack(rows).mean(dim=0).flip(0)


def by_jacobian(run, inputs):
    jacobian = torch.autograd.functional.jacobian(lambda x: run(x)[:, -1].sum(), inputs)
    return jacobian.norm(dim=2).mean(dim=0)[torch.arange(inputs.shape[1] - 1, -1, -1)]


def by_func(run, inputs):
    gradient = torch.func.grad(lambda x: run(x)[:, -1].sum())(inputs)
    return gradient.norm(dim=-1).mean(0).flip(0)


def distance_by_distance(run, inputs):
    x = inputs.detach().requires_grad_()
    outputs = run(x)
    (gradient,) = torch.autograd.grad(outputs[:, -1], x, torch.ones_like(outputs[:, -1]))
    n = inputs.shape[1]
    found = [gradient[:, n - 1 - k].norm(dim=-1).mean() for k in range(n)]
    return torch.stack(found)


def inputs_that_want_no_gradient(run, inputs):
    (gradient,) = torch.autograd.grad(run(inputs)[:, -1].sum(), inputs)
    return gradient.norm(dim=-1).mean(dim=0).flip(0)


def summed_norm_without_axis(run, inputs):
    x = inputs.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(run(x)[:, -1].sum(), x)
    return gradient.norm().flip(0)


def a_list(run, inputs):
    return by_backward(run, inputs).tolist()


def not_a_number_but_a_vector(run, inputs):
    x = inputs.detach().requires_grad_()
    run(x)[:, -1].backward()
    return x.grad.norm(dim=-1).mean(dim=0).flip(0)


def gradient_of_the_weighted_batch(run, inputs):
    x = inputs.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(run(x)[:, -1].sum(), x)
    return gradient.norm(dim=-1).median(dim=0).values.flip(0)


def kept_axis(run, inputs):
    x = inputs.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(run(x)[:, -1].sum(), x)
    return gradient.norm(dim=-1).mean(dim=0, keepdim=True).flip(1)


def by_finite_steps(run, inputs):
    base = run(inputs)[:, -1].sum(-1)
    found = []
    for k in range(inputs.shape[1]):
        nudged = inputs.clone()
        nudged[:, -1 - k] += 1e-3
        found.append(((run(nudged)[:, -1].sum(-1) - base) / 1e-3).abs().mean())
    return torch.stack(found)


def forgotten_return(run, inputs):
    by_backward(run, inputs)


def steps_with_three_positions(run, inputs):
    x = inputs.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(run(x)[:, 2].sum(), x)
    return gradient.norm(dim=-1).mean(dim=0).flip(0)


def squeezed(run, inputs):
    x = inputs.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(run(x)[:, -1].sum(), x)
    return gradient.squeeze().norm(dim=-1).mean(dim=0).flip(0)


class Measure:
    def __call__(self, run, inputs):
        x = torch.nn.Parameter(inputs.detach().clone())
        run(x)[:, -1].sum().backward()
        return x.grad.norm(dim=2).mean(dim=0).flipud()


def by_vjp(run, inputs):
    outputs, back = torch.func.vjp(run, inputs)
    of_the_last = torch.zeros_like(outputs)
    of_the_last[:, -1] = 1
    return torch.linalg.norm(back(of_the_last)[0], dim=2).mean(0).flip((0,))


def feature_by_feature(run, inputs):
    x = inputs.detach().clone().requires_grad_()
    last = run(x)[:, -1].sum(dim=0)
    found = [torch.autograd.grad(one, x, retain_graph=True)[0] for one in last]
    return sum(found).norm(dim=-1).mean(dim=0).flip(0)


def in_float64(run, inputs):
    x = inputs.detach().double().requires_grad_()
    (gradient,) = torch.autograd.grad(run(x)[:, -1].sum(), x)
    return gradient.norm(dim=-1).mean(dim=0).flip(0).to(inputs.dtype)


def gradient_of(run, inputs, number):
    x = inputs.detach().clone().requires_grad_()
    return torch.autograd.grad(number(run(x)), x)[0]


def last_feature_of_all_outputs(run, inputs):
    gradient = gradient_of(run, inputs, lambda outputs: outputs[..., -1].sum())
    return gradient.norm(dim=-1).mean(dim=0).flip(0)


def sorted_by_size(run, inputs):
    gradient = gradient_of(run, inputs, lambda outputs: outputs[:, -1].sum())
    return gradient.norm(dim=-1).mean(dim=0).sort(descending=True).values


def each_output_by_itself(run, inputs):
    found = []
    for k in range(inputs.shape[1]):
        gradient = gradient_of(run, inputs, lambda outputs, k=k: outputs[:, k].sum())
        found.append(gradient[:, 0].norm(dim=-1).mean())
    return torch.stack(found)


def at_the_mean_input(run, inputs):
    mean = inputs.mean(dim=0, keepdim=True)
    return gradient_of(run, mean, lambda outputs: outputs[:, -1].sum()).norm(dim=-1)[0].flip(0)


def by_steps_for_each_feature(run, inputs):
    base, found = run(inputs)[:, -1].sum(-1), []
    for k in range(inputs.shape[1]):
        slopes = []
        for d in range(inputs.shape[2]):
            nudged = inputs.clone()
            nudged[:, -1 - k, d] += 1e-3
            slopes.append((run(nudged)[:, -1].sum(-1) - base) / 1e-3)
        found.append(torch.stack(slopes).norm(dim=0).mean())
    return torch.stack(found)


RIGHT = {
    "gradient_by_distance": [
        by_backward,
        on_a_clone,
        on_the_inputs_themselves,
        sequence_by_sequence,
        by_jacobian,
        by_func,
        distance_by_distance,
        Measure(),
        by_vjp,
        feature_by_feature,
        in_float64,
    ]
}
WRONG = {
    "gradient_by_distance": [
        (inputs_that_want_no_gradient, None, "does not require grad"),
        (summed_norm_without_axis, "one-number", "without an axis"),
        (a_list, None, "must be a tensor"),
        (not_a_number_but_a_vector, None, "scalar outputs"),
        (gradient_of_the_weighted_batch, None, "mean is taken of their lengths"),
        (kept_axis, "axis-kept", "(n,)"),
        (by_finite_steps, None),
        (forgotten_return, None, "return"),
        (steps_with_three_positions, None, "IndexError"),
        (squeezed, None, "shape ()"),
        (last_feature_of_all_outputs, "feature-for-position", "time is axis 1"),
        (sorted_by_size, None, "read from its end"),
        (each_output_by_itself, None, "only the last distance"),
        (at_the_mean_input, None, "each sequence has a gradient"),
        (by_steps_for_each_feature, None),
    ]
}
