"""Takes the solution from the course's package."""
# expect: dot_products forbidden|error

# %% answer dot_products
from attn_course.primer import dot_products
