"""The domains of a small ferry line: its warehouse, its logs and its support desk."""

from pathlib import Path

from clew.catalog.domain import Domain
from northline.logs import build_logs
from northline.store import Store
from northline.support import build_support
from northline.warehouse import build_warehouse

DATABASE = Path(__file__).parents[1] / "northline.db"


def build_domains() -> list[Domain]:
    """All three, on one database, which is made when it is not there."""
    store = Store(DATABASE)
    store.fill()
    return [build_warehouse(store, DATABASE), build_logs(store), build_support(store)]
