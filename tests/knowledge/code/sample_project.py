"""A small project to ask about, and a graph over it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from clew.clock import ManualClock
from clew.knowledge.code.graph import CodeGraph, open_code

SAMPLE = {
    "shop/__init__.py": "from shop.basket import Basket\n",
    "shop/prices.py": (
        '"""What things cost."""\n\nVAT = 0.19\n\n\ndef add_tax(price: float) -> float:\n'
        '    """The price with tax."""\n'
        "    return price * (1 + VAT)\n\n\ndef round_cents(price: float) -> float:\n    return round(price, 2)\n"
    ),
    "shop/basket.py": (
        "from shop.prices import add_tax, round_cents as rounded\n\n\nclass Container:\n    pass\n\n\n"
        'class Basket(Container):\n    """Things that somebody wants to buy."""\n\n    def total(self) -> float:\n'
        "        return rounded(add_tax(10.0))\n"
    ),
    "shop/checkout.py": (
        "import shop\n\n\ndef pay(basket: shop.Basket) -> float:\n    return basket.total()\n\n\ndef main() -> None:\n"
        "    pay(shop.Basket())\n"
    ),
    "web/app.js": "export function render(basket) {\n  return basket.total;\n}\n",
    "README.md": "# Shop\n\nA basket with prices.\n",
}


@asynccontextmanager
async def opened(root: Path, folder: Path | None = None) -> AsyncIterator[CodeGraph]:
    async with open_code(folder or root / ".clew", root, ManualClock(), None) as graph:
        yield graph
