"""The language server: what the linter knows, where people type it. Only server.py knows the protocol's library."""
