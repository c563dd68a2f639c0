"""Answers to exercise 9.3 that the check has to judge right: correct variants and wrong ones."""

import torch


def cut(logits, temperature, top_k, top_p):
    """Log-probabilities after all three steps, by other ways than the course's."""
    logp = (logits / temperature).log_softmax(-1)
    if top_k is not None and top_k < logits.shape[-1]:
        low = logp.sort(dim=-1).indices[:, :-top_k]
        logp = logp.scatter(-1, low, -torch.inf)
    if top_p is not None:
        probs = logp.softmax(-1)
        ranked = probs.argsort(dim=-1, descending=True)
        for row, order in enumerate(ranked):
            total, kept = 0.0, set()
            for token in order.tolist():
                kept.add(token)
                total += probs[row, token].item()
                if total >= top_p:
                    break
            for token in set(range(logits.shape[-1])) - kept:
                logp[row, token] = -torch.inf
    return logp


def plain(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax(dim=-1)
    logits = logits / temperature
    if top_k is not None:
        kth = logits.topk(min(top_k, logits.shape[-1])).values[:, -1:]
        logits = logits.masked_fill(logits < kth, -torch.inf)
    probs = logits.softmax(dim=-1)
    if top_p is not None:
        largest, order = probs.sort(dim=-1, descending=True)
        before = largest.cumsum(dim=-1) - largest
        probs = torch.zeros_like(probs).scatter(-1, order, largest * (before < top_p))
    return torch.multinomial(probs, 1, generator=generator)[:, 0]


def unique_rows(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    """Gumbel-max on what a slow loop has cut."""
    if temperature == 0:
        return logits.max(dim=-1).indices
    rows, back = logits.unique(dim=0, return_inverse=True)
    logp = cut(rows, temperature, top_k, top_p)[back]
    noise = -torch.empty_like(logp).exponential_(generator=generator).log()
    return (logp + noise).argmax(dim=-1)


def inverse_cdf(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature < 1e-8:
        return torch.argmax(logits, -1)
    rows, back = logits.unique(dim=0, return_inverse=True)
    probs = cut(rows, temperature, top_k, top_p).softmax(-1).double()[back]
    u = torch.rand(len(logits), 1, generator=generator, dtype=torch.float64)
    return (probs.cumsum(-1) / probs.sum(-1, keepdim=True) <= u).sum(-1)


def among_k(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    """Keeps a shortened, sorted list, and looks the token up in it."""
    if temperature == 0:
        return logits.argmax(-1)
    k = logits.shape[-1] if top_k is None else min(top_k, logits.shape[-1])
    values, tokens = (logits / temperature).topk(k)
    probs = values.softmax(-1)
    if top_p is not None:
        probs = probs.masked_fill(probs.cumsum(-1) - probs >= top_p, 0)
    return tokens.gather(-1, torch.multinomial(probs, 1, generator=generator)).squeeze(-1)


def row_by_row(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    """A loop in Python: thousands of draws must not take it too long."""
    tokens = []
    for row in logits:
        if temperature == 0:
            tokens.append(row.argmax())
            continue
        row = row / temperature
        if top_k is not None and top_k < len(row):
            row = torch.where(row < row.topk(top_k).values[-1], -torch.inf, row)
        probs = row.softmax(-1)
        if top_p is not None:
            largest, order = probs.sort(descending=True)
            gone = order[largest.cumsum(0) - largest >= top_p]
            probs = probs.index_fill(0, gone, 0.0)
        tokens.append(torch.multinomial(probs, 1, generator=generator)[0])
    return torch.stack(tokens)


def tuple_returned(*args):
    return plain(*args), 1


def floats(*args):
    return plain(*args).float()


def argmax_only(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    return logits.argmax(-1)


def batch_softmax(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax(-1)
    return torch.multinomial((logits / temperature).softmax(0), 1, generator=generator)[:, 0]


def threshold_of_first_row(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature and top_k:
        kth = logits[0].topk(min(top_k, logits.shape[-1])).values[-1]
        logits = logits.masked_fill(logits < kth, -1e9)
    return plain(logits, temperature, None, top_p, generator)


def p_of_probabilities_at_one(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    """The nucleus at temperature 1, then the temperature."""
    if temperature == 0 or top_p is None:
        return plain(logits, temperature, top_k, top_p, generator)
    probs = logits.softmax(-1)
    largest, order = probs.sort(dim=-1, descending=True)
    gone = (largest.cumsum(-1) - largest >= top_p).gather(-1, order.argsort(-1))
    return plain(logits.masked_fill(gone, -torch.inf), temperature, top_k, None, generator)


def crossing_out_of_the_logits(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    """With a small p every logit becomes minus infinity, and the softmax NaN."""
    if temperature == 0 or top_p is None:
        return plain(logits, temperature, top_k, top_p, generator)
    logits = logits / temperature
    if top_k is not None:
        low = logits.topk(min(top_k, logits.shape[-1])).values[:, -1:]
        logits = logits.masked_fill(logits < low, -torch.inf)
    largest, order = logits.sort(dim=-1, descending=True)
    gone = largest.softmax(-1).cumsum(-1) > top_p
    logits = logits.masked_fill(gone.gather(-1, order.argsort(-1)), -torch.inf)
    return torch.multinomial(logits.softmax(-1), 1, generator=generator)[:, 0]


def largest_of_all_rows(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature and top_k:
        kth = logits.flatten().topk(min(top_k, logits.shape[-1])).values[-1]
        logits = logits.masked_fill(logits < kth, -torch.inf)
    return plain(logits, temperature, None, top_p, generator)


def k_not_bounded(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature and top_k:
        kth = torch.topk(logits, top_k, dim=-1).values[:, -1:]
        logits = logits.masked_fill(logits < kth, -torch.inf)
    return plain(logits, temperature, None, top_p, generator)


def one_or_the_other(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if top_k is not None:
        top_p = None
    return plain(logits, temperature, top_k, top_p, generator)


def no_generator(logits, temperature=1.0, top_k=None, top_p=None):
    return plain(logits, temperature, top_k, top_p)


def too_hot(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    return plain(logits, 3 * temperature, top_k, top_p, generator)


RIGHT = {"sample_next": [plain, unique_rows, inverse_cdf, among_k, row_by_row]}
WRONG = {
    "sample_next": [
        (tuple_returned, None, "must be a tensor"),
        (floats, "floats", "integers"),
        (argmax_only, "always-greedy", "nothing is drawn"),
        (batch_softmax, "softmax-over-batch", "along the batch"),
        (threshold_of_first_row, "threshold-shared", "Each row has its own"),
        (largest_of_all_rows, "threshold-shared", "one of them or of the whole batch"),
        (crossing_out_of_the_logits, "crossing-dropped", "left out"),
        (k_not_bounded, "k-beyond-vocabulary", "larger than the vocabulary"),
        (one_or_the_other, "top-p-without-top-k", "only one of"),
        (p_of_probabilities_at_one, "temperature-last", "comes first"),
        (no_generator, None, "TypeError"),
        (too_hot, None, "as often as the softmax says", "0.56"),
    ]
}
