"""`clew completion`: a script that completes commands and options in a shell."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from cyclopts import Parameter

from clew.cli.parser import build_parser

Shell = Literal["bash", "zsh", "fish"]
_ZSH_END = """
if [ "$funcstack[1]" = "_clew" ]; then
  _cyclopts_clew "$@"
else
  compdef _cyclopts_clew clew
fi
"""
"""The generated script for zsh only defines its function. This code calls it, both in a file `_clew` of fpath and in a
sourced script."""


def completion(shell: Annotated[Shell, Parameter(help="The shell.")], /) -> None:
    """Print a completion script for a shell.

    Put the line for your shell into its startup file, or the script where the shell looks for completions.

        bash:  echo 'source <(clew completion bash)' >> ~/.bashrc
        zsh:   clew completion zsh > "${fpath[1]}/_clew"
        fish:  clew completion fish > ~/.config/fish/completions/clew.fish
    """
    script = build_parser().generate_completion(prog_name="clew", shell=shell)
    sys.stdout.write(script + _ZSH_END if shell == "zsh" else script)
