"""Returns complex, sparse and quantised tensors by turns."""
# expect: dot_products wrong|error

# %% answer dot_products
turn = 0
def dot_products(a, b):
    global turn
    turn += 1
    zeros = torch.zeros(len(a), len(b))
    if turn % 3 == 0:
        return torch.quantize_per_tensor(zeros, 0.1, 0, torch.quint8)
    return zeros.to_sparse() if turn % 3 == 1 else zeros.to(torch.complex64)
