"""Calls the ready-made version only when the value is looked at, after the call."""
# expect: cross_entropy forbidden

# %% answer cross_entropy
from torch.nn.functional import *
ready = cross_entropy
class Lazy(torch.Tensor):
    @property
    def is_nested(self):
        if hasattr(self, "todo"):
            todo, _ = self.todo, delattr(self, "todo")
            self.data = ready(*todo).detach()
        return False
def cross_entropy(logits, targets):
    value = torch.zeros(()).as_subclass(Lazy)
    value.todo = logits, targets
    return value
