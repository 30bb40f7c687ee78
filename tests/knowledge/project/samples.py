"""Two projects that have nothing in common: a shop in TypeScript and React, and a ledger in Python."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from clew.knowledge.code.graph import CodeGraph
from tests.knowledge.code.repositories import make_repository
from tests.knowledge.code.sample_project import opened

CONFIRM = """\
import { useEffect } from 'react'

import { Button } from '@/components/button'

interface ConfirmModalProps {
  title: string
  message: string
  onConfirm: () => void
  onCancel?: () => void
  confirmText?: string
  variant?: 'danger' | 'warning' | 'info'
}

/** Asks before something is done that cannot be undone. */
export function ConfirmModal({
  title,
  message,
  onConfirm,
  onCancel,
  confirmText = 'Confirm',
  variant = 'warning',
}: ConfirmModalProps) {
  useEffect(() => {
    document.title = title
  }, [title])
  return (
    <div className={variant}>
      <p>{message}</p>
      <Button label={confirmText} onClick={onConfirm} />
    </div>
  )
}
"""

REACT = {
    "package.json": (
        '{\n  "name": "shop",\n  "dependencies": {\n    "date-fns": "^2.30.0",\n    "react": "^18.2.0"\n  },\n'
        '  "devDependencies": {\n    "vitest": "^1.0.0"\n  },\n  "peerDependencies": {\n    "zod": ">=3"\n  }\n}\n'
    ),
    "src/components/confirm-modal.tsx": CONFIRM,
    "src/components/button.tsx": (
        "interface ButtonProps {\n  label: string\n  onClick: () => void\n}\n\n"
        "export function Button({ label, onClick }: ButtonProps) {\n"
        "  return <button onClick={onClick}>{label}</button>\n}\n"
    ),
    "src/pages/order-page.tsx": """\
import React from 'react'

import { format } from 'date-fns'

import { ConfirmModal } from '@/components/confirm-modal'

import { loadOrder } from '../utils/load-order'

import './order-page.css'

export const OrderPage = ({ id }: { id: string }) => {
  const [isOpen, setIsOpen] = React.useState(false)
  const shownDate = format(new Date(), 'yyyy-MM-dd')
  const handleDelete = async () => {
    await loadOrder(id)
    setIsOpen(false)
  }
  return (
    <main title="order">
      {shownDate}
      {isOpen && (
        <ConfirmModal
          title="Delete?"
          message="This cannot be undone."
          onConfirm={handleDelete}
        />
      )}
    </main>
  )
}
""",
    "src/utils/load-order.ts": """\
import { parse } from 'date-fns'

import { ApiError } from './api-error'

const MAX_ATTEMPTS = 3
const BASE_URL = '/api'

export interface Order {
  id: string
  paidAt: Date
}

export async function loadOrder(id: string): Promise<Order> {
  try {
    const response = await fetch(`${BASE_URL}/orders/${id}`)
    const orderData = await response.json()
    return {
      id,
      paidAt: parse(orderData.paid, 'yyyy', new Date()),
    }
  } catch (error) {
    throw new ApiError('it did not load', MAX_ATTEMPTS)
  }
}
""",
    "src/utils/api-error.ts": (
        "export class ApiError extends Error {\n  constructor(\n    message: string,\n"
        "    readonly attempts: number\n  ) {\n    super(message)\n  }\n}\n"
    ),
    "src/hooks/use-session.ts": (
        "import { useState } from 'react'\n\n/** Who is logged in. */\n"
        "export function useSession(initialName = '') {\n  const [userName] = useState(initialName)\n"
        "  return userName\n}\n"
    ),
    "src/utils/format-price.ts": (
        "/** An amount with its currency. */\n"
        "export function formatPrice(amount: number, currency?: string): string {\n"
        "  return `${amount} ${currency}`\n}\n"
    ),
    "src/styles/theme.css": (
        ":root {\n  /* --color-old: #111111; */\n  --color-primary: #3B82F6;\n  --color-text: #1F2937;\n"
        "  --color-link: var(--color-primary);\n  --spacing-md: 16px;\n  --radius-lg: 12px;\n"
        "  --shadow-card: 0 1px 2px rgba(0, 0, 0, 0.1);\n  --font-size-body: 1rem;\n}\n"
    ),
}

PYTHON = {
    "pyproject.toml": (
        '[project]\nname = "ledger"\ndependencies = [\n  "python-dateutil>=2.8",\n  "httpx",\n]\n\n'
        '[project.optional-dependencies]\ndev = ["pytest>=8"]\n'
    ),
    "ledger/__init__.py": '__all__ = ["post_entry"]\n\nfrom ledger.book_keeping import post_entry\n',
    "ledger/book_keeping.py": """\
\"\"\"Keeps the books; it's 'quoted' here.\"\"\"

import json
from pathlib import Path

import httpx
from dateutil.parser import parse

from ledger.money_types import EntryError, LedgerEntry

MAX_LINES = 100
DEFAULT_RATE = 0.19


class BookKeeper:
    def post_entry(self, raw_text: str) -> LedgerEntry:
        try:
            entry_data = json.loads(raw_text)
        except ValueError as error:
            raise EntryError("no entry") from error
        return LedgerEntry(
            entry_data["name"],
            parse(entry_data["day"]),
        )

    def _read_all(self, folder: Path) -> list[str]:
        found_names = [
            "first",
            "second",
        ]
        return found_names


async def fetch_rates(base_url: str) -> dict:
    async with httpx.AsyncClient() as rate_client:
        answer = await rate_client.get(base_url)
    return answer.json()


def post_entry(raw_text: str) -> LedgerEntry:
    return BookKeeper().post_entry(raw_text)
""",
    "ledger/money_types.py": (
        "class EntryError(Exception):\n    pass\n\n\nclass LedgerEntry:\n"
        "    def __init__(self, entry_name, posted_at):\n        self.entry_name = entry_name\n"
        "        self.posted_at = posted_at\n"
    ),
}


@asynccontextmanager
async def project(folder: Path, files: dict[str, str]) -> AsyncIterator[CodeGraph]:
    """The graph of a repository with these files."""
    async with opened(make_repository(folder / "project", files), folder / "kept") as graph:
        await graph.refresh()
        yield graph


def line_at(files: dict[str, str], source: str) -> str:
    """The line that a `path:line` names."""
    path, _, number = source.rpartition(":")
    return files[path].split("\n")[int(number) - 1]
