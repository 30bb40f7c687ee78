"""The contenders of the discovery benchmark, each behind the same two functions."""
