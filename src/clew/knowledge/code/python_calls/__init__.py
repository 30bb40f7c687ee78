"""The call graph of Python programs, by points-to analysis.

Each file is summarized once per content (`statements` and `expressions` write a `summary`, with `scopes` for names).
`program` combines the summaries of all files: the `solver` propagates values through the variables on the `heap`,
`modules` resolves imports, `calls` looks attributes up and binds arguments to parameters, and `builtins` models the
functions and containers of the language.
"""
