"""Answers to exercise 8.5 that the check has to judge right: correct variants and wrong ones."""

import torch


@torch.no_grad()
def plain(model, source, start_token, max_len, padding=None):
    training = model.training
    model.eval()
    memory = model.encode(source, padding)
    tokens = torch.full((len(source), 1), start_token)
    for _ in range(max_len):
        best = model.decode(tokens, memory, padding)[:, -1].argmax(-1)
        tokens = torch.cat([tokens, best[:, None]], 1)
    model.train(training)
    return tokens[:, 1:]


def through_forward(model, source, start_token, max_len, padding=None):
    mode = model.training
    model.eval()
    tokens = source.new_full((source.size(0), 1), start_token)
    with torch.inference_mode():
        while tokens.size(1) <= max_len:
            logits = model(source, tokens, padding)
            tokens = torch.cat((tokens, logits[:, -1:].argmax(dim=2)), dim=-1)
    model.train(mode)
    return tokens[:, 1:]


@torch.no_grad()
def into_a_buffer(model, source, start_token, max_len, padding=None):
    was_training = model.training
    model.train(False)
    try:
        memory = model.encode(source, padding)
        tokens = torch.zeros(len(source), max_len + 1, dtype=torch.long)
        tokens[:, 0] = start_token
        for n in range(max_len):
            probs = model.decode(tokens[:, : n + 1], memory, padding).softmax(dim=-1)
            tokens[:, n + 1] = torch.topk(probs[:, -1], 1).indices[:, 0]
    finally:
        model.train(was_training)
    return tokens[:, 1:]


@torch.no_grad()
def with_caches(model, source, start_token, max_len, padding=None):
    mode = model.training
    model.eval()
    memory, caches = model.encode(source, padding), model.new_caches(max_len)
    written = [torch.full((len(source), 1), start_token)]
    for _ in range(max_len):
        written.append(model.decode(written[-1], memory, padding, caches).argmax(-1))
    model.train(mode)
    return torch.cat(written[1:], 1)


@torch.no_grad()
def re_reads_all(model, source, start_token, max_len, padding=None):
    mode = model.training
    model.eval()
    memory = model.encode(source, padding)
    start = torch.full((len(source), 1), start_token)
    written = start[:, :0]
    for _ in range(max_len):
        written = model.decode(torch.cat([start, written], 1), memory, padding).argmax(-1)
    model.train(mode)
    return written


def returns_logits(model, source, start_token, max_len, padding=None):
    tokens = plain(model, source, start_token, max_len, padding)
    return model.decode(tokens, model.encode(source, padding), padding)


def one_source_only(model, source, start_token, max_len, padding=None):
    tokens = [start_token]
    memory = model.encode(source[:1], None)
    for _ in range(max_len):
        tokens.append(model.decode(torch.tensor([tokens]), memory)[0, -1].argmax().item())
    return torch.tensor([tokens[1:]])


def start_among_the_choices(model, source, start_token, max_len, padding=None):
    mode = model.training
    model.eval()
    with torch.no_grad():
        memory = model.encode(source, padding)
        tokens = torch.full((len(source), 1), start_token)
        for _ in range(max_len):
            logits = model.decode(tokens, memory, padding)[:, -1].clone()
            logits[:, 0] = -torch.inf
            tokens = torch.cat([tokens, logits.argmax(-1, keepdim=True)], 1)
    model.train(mode)
    return tokens[:, 1:]


def padding_needed(model, source, start_token, max_len, padding):
    return plain(model, source, start_token, max_len, padding)


def floats(model, source, start_token, max_len, padding=None):
    return plain(model, source, start_token, max_len, padding).float()


RIGHT = {"greedy_decode": [plain, through_forward, into_a_buffer, with_caches, re_reads_all]}
WRONG = {
    "greedy_decode": [
        (returns_logits, None, "tokens"),
        (one_source_only, None, "shape"),
        (start_among_the_choices, None, "most likely"),
        (padding_needed, None, "TypeError", "padding"),
        (floats, "floats", "dtype"),
    ]
}
