"""The experiments of the chapters: what is too long for a notebook cell, one module each."""
