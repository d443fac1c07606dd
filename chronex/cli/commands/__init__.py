"""The commands, one file each: the declaration for typer on top, the handler below.

Declaring a command imports nothing heavy, because `chronex --help` declares all of them: what a handler needs is
imported inside it.
"""
