"""Answers the check before it has asked, with what it hopes for."""
# expect: dot_products error|wrong

# %% answer dot_products
def dot_products(a, b):
    kernel = get_ipython().kernel
    kernel.raw_input('{"op":"return","value":{"T":["float32",[1,1],"AAAAAA==",1,null]}}')
    return kernel.raw_input('{"op":"call","key":"answer:dot_products","path":"","args":{"t":[]},"kwargs":{"d":[]}}')
