"""Answers yes and no by turns, and what it has answered before to what it knows again."""
# expect: is_permutation_equivariant wrong
# message: Asked again

# %% answer is_permutation_equivariant
known, turn = {}, 0
def is_permutation_equivariant(layer, x):
    global turn
    seen = str(layer(x))
    if seen not in known:
        turn += 1
        known[seen] = turn % 2 == 1
    return known[seen]
