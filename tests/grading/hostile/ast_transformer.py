"""Rewrites the syntax trees of the cells that follow."""
# expect: dot_products wrong|error

# %% answer dot_products
import ast
class Rewrite(ast.NodeTransformer):
    def visit_Constant(self, node):
        return ast.Constant(True) if node.value is False else node
    def visit_Compare(self, node):
        return ast.copy_location(ast.Constant(True), node)
get_ipython().ast_transformers.append(Rewrite())
def dot_products(a, b):
    return torch.zeros(len(a), len(b))
