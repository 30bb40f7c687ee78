"""The call graph of Python programs, by points-to analysis.

Each file is summarized once per content (`statements` and `expressions` write a `summary`, with `scopes` for names).
`program` brings the summaries of all files together: the `solver` spreads values through the variables on the `heap`,
`modules` resolves imports, `calls` looks attributes up and binds arguments to parameters, and `builtins` models the
functions and containers of the language.
"""
