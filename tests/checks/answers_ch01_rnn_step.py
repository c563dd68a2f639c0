"""Answers to exercise 1.1 that the check has to judge right: correct variants and wrong ones."""

import math

import torch
import torch.nn.functional as F
from einops import einsum


def glued_together(x, h, W_x, W_h, b):
    return torch.tanh(torch.cat([x, h], dim=-1) @ torch.cat([W_x, W_h]) + b)


def by_linear(x, h, W_x, W_h, b):
    return F.tanh(F.linear(x, W_x.T, b) + F.linear(h, W_h.T))


def by_einsum(x, h, W_x, W_h, b):
    from_x = einsum(x, W_x, "b i, i o -> b o")
    from_h = einsum(h, W_h, "b i, i o -> b o")
    return (from_x + from_h + b).tanh()


def by_sigmoid(x, h, W_x, W_h, b):
    return 2 * torch.sigmoid(2 * (x @ W_x + h @ W_h + b)) - 1


def in_float64(x, h, W_x, W_h, b):
    total = x.double() @ W_x.double() + h.double() @ W_h.double() + b.double()
    return total.tanh().to(x.dtype)


def by_loops(x, h, W_x, W_h, b):
    rows = []
    for n in range(x.shape[0]):
        row = []
        for o in range(b.shape[0]):
            total = b[o]
            for i in range(x.shape[1]):
                total = total + x[n, i] * W_x[i, o]
            for i in range(h.shape[1]):
                total = total + h[n, i] * W_h[i, o]
            row.append(torch.tanh(total))
        rows.append(torch.stack(row))
    return torch.stack(rows)


def addmm(x, h, W_x, W_h, b):
    return torch.addmm(torch.addmm(b, x, W_x), h, W_h).tanh_()


def forgotten_return(x, h, W_x, W_h, b):
    by_linear(x, h, W_x, W_h, b)


def half_of_it(x, h, W_x, W_h, b):
    return 0.5 * h + 0.5 * torch.tanh(x @ W_x + h @ W_h + b)


def through_numpy(x, h, W_x, W_h, b):
    total = x.detach().numpy() @ W_x.detach().numpy() + h.detach().numpy() @ W_h.detach().numpy()
    return torch.from_numpy(total + b.detach().numpy()).tanh()


def python_floats(x, h, W_x, W_h, b):
    total = (x @ W_x + h @ W_h + b).tolist()
    return torch.tensor([[math.tanh(value) for value in row] for row in total])


def in_half_precision(x, h, W_x, W_h, b):
    return torch.tanh(x.half() @ W_x.half() + h.half() @ W_h.half() + b.half())


def always_float32(x, h, W_x, W_h, b):
    return torch.tanh(x.float() @ W_x.float() + h.float() @ W_h.float() + b.float())


def arguments_in_another_order(h, x, W_x, W_h, b):
    return torch.tanh(x @ W_x + h @ W_h + b)


def dot_for_matmul(x, h, W_x, W_h, b):
    return torch.tanh(x * W_x + h * W_h + b)


def tanh_of_input_and_state(x, h, W_x, W_h, b):
    return torch.tanh(x @ W_x + h @ W_h) + b


def columns(x, h, W_x, W_h, b):
    return torch.tanh(W_x.matmul(x) + W_h.matmul(h) + b)


def columns_turned(x, h, W_x, W_h, b):
    return torch.tanh((W_x @ x.T + W_h @ h.T).T + b)


def softsign(x, h, W_x, W_h, b):
    return F.softsign(x @ W_x + h @ W_h + b)


def mean_over_the_batch(x, h, W_x, W_h, b):
    return torch.tanh(x @ W_x + h.mean(0, keepdim=True) @ W_h + b)


def adds_into_the_state(x, h, W_x, W_h, b):
    h += x @ W_x + b
    return torch.tanh(h @ W_h)


class Step:
    def __call__(self, x, h, W_x, W_h, b):
        return torch.nn.Tanh()(torch.add(torch.matmul(x, W_x), torch.matmul(h, W_h)).add(b))


def bias_as_a_weight_of_one(x, h, W_x, W_h, b):
    joined = torch.cat([x, h, torch.ones_like(x[:, :1])], dim=1)
    return torch.tanh(joined @ torch.cat([W_x, W_h, b[None]]))


def by_expm1(x, h, W_x, W_h, b):
    z = x @ W_x + h @ W_h + b
    e = torch.expm1(-2 * z.abs())
    return -torch.sign(z) * e / (e + 2)


def by_vmap(x, h, W_x, W_h, b):
    return torch.vmap(lambda u, v: torch.tanh(W_x.T @ u + W_h.T @ v + b))(x, h)


def by_one_exponential(x, h, W_x, W_h, b):
    z = x @ W_x + h @ W_h + b
    return (torch.exp(2 * z) - 1) / (torch.exp(2 * z) + 1)


def nan_replaced(x, h, W_x, W_h, b):
    z = x @ W_x + h @ W_h + b
    return ((z.exp() - (-z).exp()) / (z.exp() + (-z).exp())).nan_to_num()


def half_as_steep(x, h, W_x, W_h, b):
    return 2 * torch.sigmoid(x @ W_x + h @ W_h + b) - 1


def cut_where_tanh_is_flat(x, h, W_x, W_h, b):
    return torch.tanh((x @ W_x + h @ W_h + b).clamp(-5, 5))


def first_bias_for_all(x, h, W_x, W_h, b):
    return torch.tanh(x @ W_x + h @ W_h + b[0])


def squeezed(x, h, W_x, W_h, b):
    return torch.tanh(x @ W_x + h @ W_h + b).squeeze()


def weights_by_data(x, h, W_x, W_h, b):
    return torch.tanh(x @ W_x.data + h @ W_h.data + b.data)


RIGHT = {
    "rnn_step": [
        glued_together,
        by_linear,
        by_einsum,
        by_sigmoid,
        in_float64,
        by_loops,
        addmm,
        Step(),
        bias_as_a_weight_of_one,
        by_expm1,
        by_vmap,
    ]
}
WRONG = {
    "rnn_step": [
        (forgotten_return, None, "return"),
        (half_of_it, None, "0.5 times"),
        (through_numpy, "gradient-cut", "graph"),
        (python_floats, None, "coarser"),
        (in_half_precision, None, "coarser"),
        (always_float32, None, "coarser"),
        (arguments_in_another_order, "weights-exchanged", "order of the arguments"),
        (dot_for_matmul, "elementwise-product", "sum over"),
        (tanh_of_input_and_state, "bias-after-tanh"),
        (columns, "column-vectors", "rows"),
        (columns_turned, "weights-transposed", "(in, out)"),
        (softsign, None, "tanh(x W_x)"),
        (mean_over_the_batch, None, "h"),
        (adds_into_the_state, None, "in place"),
        (by_one_exponential, "tanh-overflow", "infinite"),
        (nan_replaced, "tanh-overflow"),
        (half_as_steep, "stretched-sigmoid", "steep"),
        (cut_where_tanh_is_flat, None),
        (first_bias_for_all, None, "only the first feature"),
        (squeezed, None, "axes of size 1"),
        (weights_by_data, None, "gradient of W_x"),
    ]
}
