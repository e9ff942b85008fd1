"""One file a command of `vramgate`; `admission.cli` lists them."""
