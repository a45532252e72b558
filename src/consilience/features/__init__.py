"""One table of features in, one partition out. One method is one file; ``__all__`` lists them."""

from typing import Any

from consilience.registry import method, methods


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [cls.__name__ for cls in methods(__name__)]
    return method(name, __name__)


def __dir__() -> list[str]:
    return __getattr__("__all__")
