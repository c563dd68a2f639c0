"""The catalogue: for each exercise a module `chNN_name` with its probes and known mistakes."""
