"""Budgets: amounts, the tree of budgets on the trail, and the usage report."""
