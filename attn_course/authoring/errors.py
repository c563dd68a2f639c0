"""The one error that the builder raises for what an author can mend."""


class BuildError(ValueError):
    """A chapter that cannot be built; the message says where and why."""
