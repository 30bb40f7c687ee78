"""Clew: a context engine and team runtime for AI agents. The trail is in `clew.trail`, the client in `clew.client`."""

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from clew.config.define import define_config as define_config


def __getattr__(name: str) -> object:
    if name != "define_config":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from clew.config.define import define_config  # for `.clew/config.py`; most commands do without

    return define_config
