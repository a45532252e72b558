"""Views in, one partition out. One method is one file; ``__all__`` is the registry."""

__all__: list[str] = []
