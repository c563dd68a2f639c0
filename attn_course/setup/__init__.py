"""Setting up: whether the install fits, and opening JupyterLab."""
