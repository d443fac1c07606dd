"""How a notice leaves: composed from the store, then sent by mail, to a webhook, to a check or to a command."""
