"""What the package knows of the notebook that it runs in."""
